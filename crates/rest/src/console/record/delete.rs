//! Deleting a record: asked once, with what it means.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::id::{ConnectionId, StreamName};

use super::{Subject, missing};
use crate::console::address::Address;
use crate::console::browse::stream_address;
use crate::console::frame::{Frame, Section};
use crate::console::summary::Summary;
use crate::console::viewer::Viewer;
use crate::console::{html, see_other, session};
use crate::owner::blocking;
use crate::owner::records::delete_records;
use crate::owner::wire::{Deletion, RecordName};
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "delete_record.html")]
struct DeletePage {
    frame: Frame,
    title: String,
    address: String,
}

/// `GET /records/{connection_id}/{stream}/{record_id}/delete`
pub(in crate::console) async fn ask(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Browse).await?;
    let path = [context.part(0), context.part(1), context.part(2)].map(str::to_owned);
    drop(context);
    let parts = path.each_ref().map(String::as_str);
    let subject = Subject::read(&viewer, parts).await?;
    let [connection, stream, key] = parts;
    let page = DeletePage {
        title: Summary::of_members(&subject.shape, &subject.members, &subject.record.id).title,
        address: Address::record(connection, stream, key).to_string(),
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
}

/// `POST /records/{connection_id}/{stream}/{record_id}/delete`
pub(in crate::console) async fn delete(mut context: RequestContext) -> HandlerResult {
    session::sent_form(&mut context, "/sign-in").await?;
    let connection_id = ConnectionId::parse(context.part(0)).map_err(|_| missing())?;
    let stream = StreamName::parse(context.part(1)).map_err(|_| missing())?;
    let address = stream_address(connection_id.as_str(), stream.as_str());
    let deletion = Deletion {
        records: vec![RecordName {
            connection_id,
            stream,
            record_id: context.part(2).to_owned(),
        }],
    };
    blocking(Arc::clone(&context.service), move |service| {
        delete_records(service, &deletion).map(drop)
    })
    .await?;
    Ok(see_other(&address.to_string()))
}
