//! Resources: handles as inputs, for hosts that read resources. Everything they give is reachable by a tool as well.
//!
//! A resource is read with the same authority as a tool call, and is bounded like one. What fails is a JSON-RPC error
//! that carries the same typed error a tool would give.

use contract::error::{ErrorCode, ReadError};
use contract::handle::{Handle, RECORD_URI, RecordHandle, WINDOW_URI};
use contract::segment;
use contract::upstream::Get;
use percent_encoding::percent_decode_str;
use rmcp::model::{
    ErrorData, ReadResourceResponse, ReadResourceResult, ResourceContents, ResourceTemplate,
};

use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::text::plain;
use crate::tool_call::ToolCall;
use crate::tools::{fetch, read_record_field};

const STREAM_URI: &str = "pdpp://stream/";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// The text of a resource; JSON inside JSON may take twice its size.
const CEILING: usize = budget::RESULT / 2 - 32_768;

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, handle: &str, name: &str, kind: &str, about: &str| {
        ResourceTemplate::new(format!("{uri}{{{handle}}}"), name)
            .with_mime_type(kind)
            .with_description(about)
    };
    vec![
        template(
            STREAM_URI,
            "name",
            "pdpp-stream",
            JSON,
            "What is known of a stream; the schema tool tells the same",
        ),
        template(
            RECORD_URI,
            "handle",
            "pdpp-record",
            JSON,
            "One record; the fetch tool takes the same handle",
        ),
        template(
            WINDOW_URI,
            "handle",
            "pdpp-field-window",
            TEXT,
            "A window of a text field, as read_record_field shows it",
        ),
    ]
}

pub(crate) async fn read(call: Call<'_>, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let (text, kind) = contents(call, uri)
        .await
        .map_err(|fault| error(&fault.about(uri)))?;
    let contents = ResourceContents::text(text, uri).with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

async fn contents(call: Call<'_>, uri: &str) -> Result<(String, &'static str), Fault> {
    if let Some(name) = uri.strip_prefix(STREAM_URI) {
        return Ok((stream(call, name).await?, JSON));
    }
    if !uri.starts_with(RECORD_URI) && !uri.starts_with(WINDOW_URI) {
        return Err(unknown(uri));
    }
    match Handle::parse(uri).map_err(ReadError::from)? {
        Handle::Record(handle) => Ok((record(call, &handle).await?, JSON)),
        Handle::Window(handle) => {
            let asked = read_record_field::FieldRequest::from_handle(&handle)?;
            let reply = read_record_field::read(call, asked).await?;
            Ok((reply.text, TEXT))
        }
    }
}

async fn stream(call: Call<'_>, name: &str) -> Result<String, Fault> {
    let name = percent_decode_str(name)
        .decode_utf8()
        .map_err(|_| unknown(name))?;
    if let Err(why) = segment::guard(&name) {
        let shown = plain::quoted(&name, budget::LABEL);
        let message = format!("the stream name {why}: {shown}");
        return Err(Fault::refused(ErrorCode::InvalidStream, "uri", message)
            .with_next("call schema to see the streams of this grant"));
    }
    let answered = call.get(Get::v1(["streams", &*name])).await?;
    let whole = ToolCall::new("schema")
        .with("stream", &*name)
        .with("detail", "full");
    let request_id = answered.request_id.clone();
    fitting(answered.into_stream_json(&whole, CEILING), request_id)
}

async fn record(call: Call<'_>, handle: &RecordHandle) -> Result<String, Fault> {
    let answered = call.get(fetch::record_question(handle)).await?;
    fetch::refuse_another(handle, &answered)?;
    let request_id = answered.request_id.clone();
    let identity = Identity::new(handle.clone());
    match answered.into_record_json(&identity, CEILING) {
        Some(text) => fitting(text, request_id),
        None => Err(fetch::not_a_record(request_id)),
    }
}

fn fitting(text: String, request_id: Option<String>) -> Result<String, Fault> {
    if text.len() <= CEILING {
        return Ok(text);
    }
    let message = "the resource is too large to be read as one";
    let error = ReadError::new(ErrorCode::RsBadResponse, message)
        .with_hint("call fetch with fields, or schema with the stream, to read a part of it");
    Err(Fault::from(error).with_answer(Some(200), request_id))
}

fn unknown(uri: &str) -> Fault {
    let shown = plain::quoted(uri, budget::LABEL);
    let message = format!("there is no resource {shown}");
    Fault::refused(ErrorCode::InvalidResourceUri, "uri", message)
        .with_next("resources/templates/list tells which there are")
}

/// What we refuse is the caller's mistake; what a server has not is not found; the rest is neither's. The address stands
/// beside the error, so that a host that reads several knows which one failed.
fn error(fault: &Fault) -> ErrorData {
    let message = fault.text();
    let data = serde_json::to_value(fault).ok();
    let code = ErrorCode::from_code(fault.code());
    match (fault.http_status(), code) {
        (Some(404), _) => ErrorData::resource_not_found(message, data),
        (None, Some(code)) if code.http_status() == 400 => ErrorData::invalid_params(message, data),
        _ => ErrorData::internal_error(message, data),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorCode as Rpc;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::record_server::{RecordServer, run};

    fn text_of(response: ReadResourceResponse) -> (String, String) {
        let ReadResourceResponse::Complete(result) = response else {
            panic!("a resource asks for nothing");
        };
        match result.contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents {
                text, mime_type, ..
            }) => (text, mime_type.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    fn server() -> RecordServer {
        RecordServer::new(json!({"text": "日本語 text ".repeat(30_000), "n": 1,
            "raw": "QUJDREVGR0hJSktM".repeat(500)}))
    }

    #[test]
    fn there_are_three_templates() {
        let templates = serde_json::to_value(templates()).unwrap();
        let of = |name: &str| {
            let all = templates.as_array().unwrap();
            all.iter()
                .map(|one| one[name].as_str().unwrap())
                .collect::<Vec<_>>()
        };
        let uris = [
            "pdpp://stream/{name}",
            "pdpp://record/{handle}",
            "pdpp://field-window/{handle}",
        ];
        assert_eq!(of("uriTemplate"), uris);
        assert_eq!(
            of("name"),
            ["pdpp-stream", "pdpp-record", "pdpp-field-window"]
        );
        assert_eq!(of("mimeType"), [JSON, JSON, TEXT]);
    }

    #[test]
    fn a_record_is_json_with_long_values_and_bytes_replaced() {
        // HD-05, LG-01, LG-02, LG-03
        let server = server();
        let handle = RecordHandle::parse("cin_slack/messages:m1").unwrap();
        for uri in [
            handle.to_uri(),
            "pdpp://record/cin_slack%2Fmessages%3Am1".to_owned(),
        ] {
            let (text, kind) = text_of(run(read(server.means(), &uri)).unwrap());
            assert_eq!(kind, JSON);
            let record: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(record["data"]["n"], 1);
            assert_eq!(record["data"]["text"]["truncated"], true);
            assert!(server.follow(&record["data"]["text"]["read"]).is_ok());
            assert!(!text.contains("QUJD"));
            assert!(text.len() < 8_192, "{}", text.len());
        }
    }

    #[test]
    fn a_record_of_many_long_fields_still_fits() {
        // LG-01
        let data: Map<String, Value> = (0..20)
            .map(|n| (format!("f{n}"), json!("\"quoted\" ".repeat(11_000))))
            .collect();
        let server = RecordServer::new(Value::Object(data));
        let (text, _) = text_of(
            run(read(
                server.means(),
                "pdpp://record/cin_slack%2Fmessages%3Am1",
            ))
            .unwrap(),
        );
        assert!(json!(text).to_string().len() < budget::RESULT);
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["data"].as_object().unwrap().len(), 20);
    }

    #[test]
    fn a_stream_is_its_metadata() {
        let stub = crate::stub::Stub::default().on(
            "/v1/streams/my%20mail",
            json!({"object":"stream_metadata","name":"my mail"}),
        );
        let owner = crate::call::OwnerSeen::default();
        let call = Call::new(&stub, &owner);
        let (text, kind) = text_of(run(read(call, "pdpp://stream/my%20mail")).unwrap());
        assert_eq!(
            (text.as_str(), kind.as_str()),
            (r#"{"object":"stream_metadata","name":"my mail"}"#, JSON)
        );
        let refused = run(read(call, "pdpp://stream/..%2Fx")).unwrap_err();
        assert_eq!(refused.code, Rpc::INVALID_PARAMS);
        assert_eq!(stub.asked().len(), 1);
    }

    #[test]
    fn failures_are_errors_with_the_typed_error_inside() {
        // HD-03
        let server = server();
        let other = RecordHandle::parse("cin_other/messages:m1")
            .unwrap()
            .to_uri();
        let unknown = RecordHandle::parse("cin_slack/messages:m2")
            .unwrap()
            .to_uri();
        for (uri, code, inner) in [
            (
                "https://example.test/",
                Rpc::INVALID_PARAMS,
                "invalid_resource_uri",
            ),
            ("pdpp://record/nonsense", Rpc::INVALID_PARAMS, "invalid_id"),
            (
                "pdpp://record/c%2F..%3Ax",
                Rpc::INVALID_PARAMS,
                "invalid_id",
            ),
            (
                "pdpp://field-window/nonsense",
                Rpc::INVALID_PARAMS,
                "invalid_id",
            ),
            (
                other.as_str(),
                Rpc::RESOURCE_NOT_FOUND,
                "connection_not_found",
            ),
            (unknown.as_str(), Rpc::RESOURCE_NOT_FOUND, "not_found"),
        ] {
            let error = run(read(server.means(), uri)).unwrap_err();
            assert_eq!(error.code, code, "{uri}");
            let data = error.data.unwrap();
            assert_eq!(data["error"]["code"], inner, "{uri}");
            assert_eq!(data["uri"], uri);
        }
        let refusing = crate::stub::Stub::default().refusing(
            "/v1/",
            403,
            json!({"error":{"code":"field_not_granted","message":"no"}}),
        );
        let owner = crate::call::OwnerSeen::default();
        let uri = RecordHandle::parse("c/messages:m1").unwrap().to_uri();
        let error = run(read(Call::new(&refusing, &owner), &uri)).unwrap_err();
        assert_eq!(error.code, Rpc::INTERNAL_ERROR);
        assert_eq!(error.data.unwrap()["http_status"], 403);
    }
}
