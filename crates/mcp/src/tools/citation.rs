//! Whether what was quoted still stands: `read_record_field` with a citation.

use contract::upstream::Get;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::read_record_field::{FieldContent, FieldRequest, RecordContent, first_line};
use crate::answer::CheckedCitation;
use crate::call::Call;
use crate::fault::Fault;
use crate::reply::{Reply, ToolResult};
use crate::text::window::{self, WindowContent};

#[skip_serializing_none]
#[derive(Serialize)]
struct Content<'a> {
    record: RecordContent<'a>,
    field: FieldContent<'a>,
    /// What has become of the quoted text.
    status: &'static str,
    window: Option<WindowContent<'a>>,
    emitted_at: Option<&'a str>,
    #[serialize_always]
    request_id: Option<&'a str>,
}

pub(super) async fn check(call: Call<'_>, asked: &FieldRequest, cite: &str) -> ToolResult {
    let handle = &asked.handle;
    let path = [
        "streams",
        handle.stream(),
        "records",
        handle.record(),
        "verify",
    ];
    let question = Get::v1(path)
        .with("connection_id", handle.connection())
        .with("cite", Some(cite))
        .with("field", Some(asked.field.as_str()));
    let answered = call.get(question).await?;
    let CheckedCitation {
        status,
        window,
        emitted_at,
    } = answered.citation_check().map_err(|message| {
        let error = contract::ReadError::new(contract::ErrorCode::RsBadResponse, message)
            .with_hint("read the field instead; the server's checks cannot be trusted");
        Fault::from(error).with_answer(Some(200), answered.request_id.clone())
    })?;
    let identity = asked.identity(&answered);
    let mut text = first_line(&identity, &asked.field);
    for piece in [" status=", status.as_str(), "\n", status.words()] {
        text.push_str(piece);
    }
    if let Some(window) = &window {
        text.push('\n');
        text.push_str(&window::range(window));
        window::framed(&mut text, window);
    }
    let content = Content {
        record: RecordContent::new(&identity),
        field: FieldContent::new(&asked.field),
        status: status.as_str(),
        window: window.as_ref().map(WindowContent::new),
        emitted_at: emitted_at.as_deref(),
        request_id: answered.request_id.as_deref(),
    };
    Reply::new(text, &content)
}
