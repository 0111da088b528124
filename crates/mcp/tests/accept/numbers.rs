//! Decision 23, ID-27: a number reaches the caller with all its digits, whichever way it takes.

use std::sync::Arc;

use bytes::Bytes;
use contract::upstream::{Answer, Asked, Get, Upstream};
use http_body_util::{BodyExt as _, Full};
use mcp::{HttpSettings, Options, Server};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::runtime::Runtime;

/// A resource server with one record, which it tells as it was written.
struct Written {
    /// The number that is the record's `n`, its largest, and a key to group by.
    number: String,
    data: String,
}

impl Written {
    fn new(number: &str, text: &str) -> Written {
        let text = json!(text);
        Written {
            number: number.to_owned(),
            data: format!(
                r#"{{"n":{number},"o":{{"e":{number},"list":[{number},{text}]}},"t":{text}}}"#
            ),
        }
    }

    fn record(&self) -> String {
        let data = &self.data;
        format!(r#"{{"object":"record","id":"r","stream":"s","connection_id":"c","data":{data}}}"#)
    }

    fn answer(&self, target: &str) -> (u16, String) {
        let (record, number) = (self.record(), &self.number);
        let path = target.split('?').next().unwrap_or_default();
        match path {
            "/v1/streams/s/records" => (
                200,
                format!(r#"{{"object":"list","has_more":false,"data":[{record},{record}]}}"#),
            ),
            "/v1/streams/s/records/r" => (200, record),
            "/v1/streams/s/records/r/field-window" => (
                422,
                r#"{"error":{"code":"field_not_text","message":"no text"}}"#.to_owned(),
            ),
            "/v1/streams/s/aggregate" if target.contains("group_by") => (
                200,
                format!(r#"{{"groups":[{{"key":{number},"count":2}}],"other_count":0}}"#),
            ),
            "/v1/streams/s/aggregate" => (
                200,
                format!(r#"{{"object":"aggregation","value":{number}}}"#),
            ),
            _ => (404, "{}".to_owned()),
        }
    }
}

impl Upstream for Written {
    fn provider_url(&self) -> Option<String> {
        Some("https://provider.test".to_owned())
    }

    fn get(&self, question: Get) -> Asked<'_> {
        let (status, body) = self.answer(&question.target());
        Box::pin(async move {
            Ok(Answer {
                status,
                request_id: None,
                body: body.clone(),
            })
        })
    }
}

#[derive(Deserialize)]
struct Response {
    result: Box<RawValue>,
}

/// A tool's result, its structured content as it came.
#[derive(Deserialize)]
struct Told {
    content: Vec<Part>,
    #[serde(rename = "structuredContent")]
    structured: Box<RawValue>,
}

#[derive(Deserialize)]
struct Part {
    text: String,
}

#[derive(Deserialize)]
struct Read {
    contents: Vec<Part>,
}

impl Told {
    fn text(&self) -> &str {
        &self.content[0].text
    }

    #[track_caller]
    fn holds(&self, text: &str) {
        assert!(self.structured.get().contains(text), "{}", self.structured);
    }

    #[track_caller]
    fn says(&self, text: &str) {
        assert!(self.text().contains(text), "{text}: {}", self.text());
    }
}

/// Somebody who asks such a server, over the pipe and over HTTP.
struct Asking {
    runtime: Runtime,
    server: Server,
}

impl Asking {
    fn of(rs: Written) -> Asking {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Asking {
            runtime: runtime.enable_all().build().unwrap(),
            server: Server::new(Arc::new(rs), Options::default()),
        }
    }

    /// The result of a request, either way.
    fn results(&self, method: &str, params: &Value) -> [Box<RawValue>; 2] {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let (piped, posted) = (
            piped(&self.server, &message),
            posted(&self.server, &message),
        );
        let lines = self.runtime.block_on(async { [piped.await, posted.await] });
        lines.map(|line| {
            let response: Response =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            response.result
        })
    }

    /// Calls a tool and looks at what it tells, either way.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments are written where they are passed"
    )]
    fn each(&self, tool: &str, args: Value, holds: impl Fn(Told)) {
        let params = json!({"name": tool, "arguments": args});
        for result in self.results("tools/call", &params) {
            holds(serde_json::from_str(result.get()).unwrap_or_else(|_| panic!("{result}")));
        }
    }
}

type Line<'a> = std::pin::Pin<Box<dyn Future<Output = String> + 'a>>;

fn piped<'a>(server: &'a Server, message: &'a Value) -> Line<'a> {
    Box::pin(async move {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(far);
        let serving = tokio::spawn(mcp::serve_pipe(server.clone(), input, output));
        let (lines, mut output) = tokio::io::split(near);
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let said = format!("{hello}\n{ready}\n{message}\n");
        output.write_all(said.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(lines).lines();
        lines.next_line().await.unwrap();
        let line = lines.next_line().await.unwrap().unwrap();
        drop((lines, output));
        serving.await.unwrap().unwrap();
        line
    })
}

fn posted<'a>(server: &'a Server, message: &'a Value) -> Line<'a> {
    Box::pin(async move {
        let settings = HttpSettings::new(["localhost".to_owned()], [], 1 << 20);
        let request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .body(Full::new(Bytes::from(message.to_string())))
            .unwrap();
        let response = mcp::serve_http(server.clone(), &settings, request).await;
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    })
}

/// The number as the parser spells it: an exponent has a small letter and a sign.
fn spelled(number: &str) -> String {
    match number.to_lowercase().split_once('e') {
        Some((digits, exponent)) if exponent.starts_with(['+', '-']) => {
            format!("{digits}e{exponent}")
        }
        Some((digits, exponent)) => format!("{digits}e+{exponent}"),
        None => number.to_owned(),
    }
}

/// Asks everything that tells the number, and holds what came against the record.
fn reaches_the_caller(number: &str, text: &str) {
    let asking = Asking::of(Written::new(number, text));
    let number = &spelled(number);
    let told = Written::new(number, text);
    let (data, record) = (&told.data, told.record());
    for args in [
        json!({"stream": "s"}),
        json!({"stream": "s", "changes_since": "beginning"}),
    ] {
        asking.each("query_records", args, |told| {
            told.holds(&format!(r#""data":[{record},{record}]"#));
            told.says(&format!(
                r#"{{"n":{number},"o":{{"e":{number},"list":[{number},"#
            ));
        });
    }
    asking.each("fetch", json!({"id": "c/s:r"}), |told| {
        assert_eq!(told.text(), told.structured.get(), "one document");
        told.holds(&format!(r#""fields":{{"n":{number},"#));
        told.holds(&json!(data).to_string());
    });
    asking.each("fetch", json!({"id": "c/s:r", "fields": ["n"]}), |told| {
        told.holds(&format!(r#""text":"{{\"n\":{number}}}""#));
    });
    let uri = json!({"uri": "pdpp://record/c%2Fs%3Ar"});
    for result in asking.results("resources/read", &uri) {
        let read: Read = serde_json::from_str(result.get()).unwrap();
        assert_eq!(read.contents[0].text, record);
    }
    reaches_windows(&asking, number, text);
    reaches_figures(&asking, number);
}

fn reaches_windows(asking: &Asking, number: &str, text: &str) {
    let window = |field: &str| json!({"id": "c/s:r", "field_path": field});
    asking.each("read_record_field", window("n"), |told| {
        told.holds(&format!(r#""text":"{number}""#));
        let size = number.len();
        told.holds(&format!(
            r#""type":"number","text_like":false,"size_bytes":{size},"#
        ));
        told.says(number);
    });
    let inner = format!(r#"{{"e":{number},"list":[{number},{}]}}"#, json!(text));
    asking.each("read_record_field", window("o"), |told| {
        told.holds(&format!(r#""text":{}"#, json!(inner)));
        told.holds(&format!(r#""size_bytes":{}"#, inner.len()));
    });
}

fn reaches_figures(asking: &Asking, number: &str) {
    let largest = json!({"stream": "s", "metric": "max", "field": "n"});
    asking.each("aggregate", largest, |told| {
        told.holds(&format!(r#""value":{number}}}"#));
        told.says(&format!("= {number}"));
    });
    let grouped = json!({"stream": "s", "metric": "count", "group_by": "n"});
    asking.each("aggregate", grouped, |told| {
        told.holds(&format!(r#""key":{number},"#));
        told.says(&format!("\n{number}=2"));
    });
}

#[test]
fn a_number_keeps_its_digits_everywhere() {
    // ID-27
    for number in [
        "1E400",
        "123456789012345678901234567890",
        "0.12345678901234567890123",
        "2.50",
        "7",
        "-0",
    ] {
        reaches_the_caller(number, "plain");
    }
}

/// A number is at most so long before texts about it are cut.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,40})",
        "-?(0|[1-9][0-9]{0,18})\\.[0-9]{1,20}",
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,5})?[eE][-+]?[0-9]{1,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_number_reaches_the_caller_with_all_its_digits(number in number(), text in "[0-9.eE\\[\\]-]{0,24}") {
        reaches_the_caller(&number, &text);
    }
}

#[test]
fn a_number_as_long_as_a_text_is_bounded_like_one() {
    // LG-01
    let number = "7".repeat(300_000);
    let asking = Asking::of(Written::new(&number, "plain"));
    for (tool, args) in [
        ("query_records", json!({"stream": "s"})),
        ("fetch", json!({"id": "c/s:r"})),
        (
            "read_record_field",
            json!({"id": "c/s:r", "field_path": "n"}),
        ),
        (
            "aggregate",
            json!({"stream": "s", "metric": "max", "field": "n"}),
        ),
    ] {
        let params = json!({"name": tool, "arguments": args});
        for result in asking.results("tools/call", &params) {
            assert!(result.get().len() < 1_048_576, "{tool}");
            let told: Told = serde_json::from_str(result.get()).unwrap();
            assert!(told.text().len() < 16_384, "{tool} {}", told.text().len());
        }
    }
}
