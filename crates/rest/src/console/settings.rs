//! Settings: how to sign in, where the server is, whether the data is whole, and a backup of everything.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use grants::sign_in::has_password;
use store::inspection::{Depth, Inspection};

use super::format::format_number;
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::overview::indexing_words;
use super::{html, session};
use crate::history;
use crate::owner::blocking;
use crate::owner::maintenance;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    has_password: bool,
    public_url: String,
    console_url: String,
    mcp_url: String,
    version: &'static str,
    records: String,
    files: String,
    model: String,
    last_backup: Option<Moment>,
    /// How far the index is, while it is not whole.
    indexing: String,
    /// What is wrong with the data.
    findings: Vec<String>,
}

/// `GET /settings`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(session::to_sign_in(&context));
    };
    let frame = Frame::new(&session, Section::Settings);
    let page = blocking(Arc::clone(&context.service), move |service| {
        page(service, frame)
    });
    html(StatusCode::OK, &page.await?)
}

fn page(service: &Service, frame: Frame) -> Result<SettingsPage, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::internal("the settings", error);
    let looked = service
        .store
        .inspect(Depth::Glance)
        .map_err(|error| failed(&error))?;
    let now = service.now();
    let model = service.store.model();
    let last_backup = history::last_backup(&*service.store, now);
    let status = service.store.index_status();
    Ok(SettingsPage {
        frame,
        has_password: has_password(&*service.store, now).map_err(|error| failed(&error))?,
        public_url: service.public_url.to_string(),
        console_url: service.console.origin().to_owned(),
        mcp_url: format!("{}/mcp", service.public_url),
        version: env!("CARGO_PKG_VERSION"),
        records: format_number(looked.records),
        files: format_number(looked.blobs),
        model: match model {
            Some(_) => "A sentence model is there: searches by meaning are possible.".to_owned(),
            None => String::new(),
        },
        last_backup: last_backup
            .map_err(|error| failed(&error))?
            .and_then(Moment::new),
        indexing: indexing_words(&status.map_err(|error| failed(&error))?).unwrap_or_default(),
        findings: findings(&looked),
    })
}

fn findings(looked: &Inspection) -> Vec<String> {
    let damaged = [
        ("records", &looked.damaged_records),
        ("files", &looked.damaged_blobs),
        ("index", &looked.damaged_index),
    ];
    let mut findings: Vec<String> = Vec::new();
    for (what, damage) in damaged {
        findings.extend(damage.iter().map(|one| format!("{what}: {}", one.detail)));
    }
    if looked.traces_left {
        findings.push("Something was erased of which bytes may still be on the disk.".to_owned());
    }
    findings.extend(
        looked
            .unwritable
            .iter()
            .map(|why| format!("Nothing can be written: {why}")),
    );
    findings.extend(looked.unmarked.clone());
    if looked.waiting_disclosures > 0 {
        findings.push("Some entries of the log wait to be written.".to_owned());
    }
    findings
}

/// `POST /settings/backup`: everything as one archive, which `pdpp restore` takes.
pub(super) async fn backup(mut context: RequestContext) -> HandlerResult {
    if let Err(sign_in) = session::sent_form(&mut context, "/sign-in").await? {
        return Ok(sign_in);
    }
    let mut response = maintenance::backup(context).await?;
    for (name, value) in [
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"pdpp-backup.tar\"",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told() {
        assert!(findings(&Inspection::default()).is_empty());
        let looked = Inspection {
            unwritable: Some("the disk is full".to_owned()),
            traces_left: true,
            ..Inspection::default()
        };
        assert_eq!(findings(&looked).len(), 2);
    }
}
