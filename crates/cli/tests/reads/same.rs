//! One answer on every surface: what `--json` prints is the body REST sends, and what `--grant` shows is what its token sees.

use serde_json::Value;

use crate::desk::{grant, library, read};
use crate::harness::Home;
use crate::harness::server::{Server, exchange};

/// Each command with the request it stands for.
const READS: [(&[&str], &str); 10] = [
    (&["schema"], "schema"),
    (&["schema", "--view", "compact"], "schema?view=compact"),
    (
        &["schema", "--stream", "books", "--detail", "full"],
        "schema?stream=books&detail=full",
    ),
    (
        &[
            "query", "books", "--limit", "2", "--count", "exact", "--filter", "pages>=1",
        ],
        "streams/books/records?filter[pages][gte]=1&count=exact&limit=2",
    ),
    (
        &["query", "books", "--changes-since", "beginning"],
        "streams/books/records?changes_since=beginning",
    ),
    (
        &["query", "books", "--view", "short", "--order", "asc"],
        "streams/books/records?view=short&order=asc",
    ),
    (
        &["aggregate", "books", "count", "--filter", "title=Salt"],
        "streams/books/aggregate?metric=count&filter[title]=Salt",
    ),
    (
        &["search", "salt water", "--streams", "books"],
        "search?q=salt%20water&streams=books",
    ),
    (
        &["fetch", "library-home/books:b1", "--fields", "id,text"],
        "streams/books/records/b1?connection_id=library-home&fields=id%2Ctext",
    ),
    (
        &["read", "library-home/books:b1", "text", "--q", "lamp"],
        "streams/books/records/b1/field-window?connection_id=library-home&field=text&q=lamp",
    ),
];

/// The same but for what is sealed anew on every answer, and for citations, which only a running server has an address for.
fn steady(mut body: Value) -> Value {
    let records = body.get_mut("data").and_then(Value::as_array_mut);
    for record in records.into_iter().flatten() {
        without_citation(record);
    }
    without_citation(&mut body);
    for name in ["next_cursor", "next_changes_since"] {
        if body.get(name).is_some_and(Value::is_string) {
            body[name] = "sealed".into();
        }
    }
    if body["links"]["next"].is_string() {
        body["links"]["next"] = "sealed".into();
    }
    body
}

fn without_citation(record: &mut Value) {
    if let Some(members) = record.as_object_mut() {
        members.remove("citation_url");
    }
}

fn over_socket(home: &Home, request: &str) -> Value {
    let socket = home.data_dir().join("owner.sock");
    let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let (status, body) = exchange(stream, &format!("GET /v1/{request}"), None, "");
    assert_eq!(status, 200, "{request}: {body}");
    body
}

#[test]
fn json_is_the_body_that_rest_sends() {
    // PA-01 between REST and terminal, PA-06
    let home = library();
    let printed: Vec<Value> = READS
        .iter()
        .map(|(args, _)| {
            read(&home, &[*args, &["--json"]].concat())
                .succeeds()
                .json()
        })
        .collect();
    let hit = &printed[7]["data"][0];
    assert_eq!(hit["evidence_excerpts"][0]["object"], "evidence_excerpt");
    assert_eq!(
        hit["evidence_excerpts"][0]["read"]["object"],
        "field_window_read"
    );
    let _server = (!home.is_served()).then(|| Server::start(&home));
    for ((args, request), printed) in READS.iter().zip(printed) {
        let body = over_socket(&home, request);
        assert_eq!(steady(printed.clone()), steady(body.clone()), "{args:?}");
        // With a server the same comes over its socket.
        let served = read(&home, &[*args, &["--json"]].concat())
            .succeeds()
            .json();
        assert_eq!(
            served["data"][0]["citation_url"], body["data"][0]["citation_url"],
            "{args:?}"
        );
        assert_eq!(steady(served), steady(printed), "{args:?}");
    }
}

#[test]
fn a_grant_shows_what_its_token_sees_and_nothing_is_noted() {
    let home = library();
    let (grant, token) = grant(
        &home,
        &["--stream", "books", "--fields", "id,title,text,pages"],
    );
    let server = (!home.is_served()).then(|| Server::start(&home));
    let mut compared = 0;
    for (args, request) in READS {
        let shown = read(&home, &[args, &["--json", "--grant", &grant]].concat());
        let Some(server) = &server else {
            continue;
        };
        let (status, body) = server.ask(&format!("GET /v1/{request}"), Some(&token), "");
        compared += 1;
        if status == 200 {
            assert_eq!(steady(shown.succeeds().json()), steady(body), "{args:?}");
        } else {
            let message = body["error"]["message"].as_str().unwrap();
            assert!(
                shown.stderr.starts_with(&format!("error: {message}\n")),
                "{shown:?}"
            );
        }
    }
    assert!(server.is_none() || compared == READS.len());
    // The clients' own reads are in the log, the owner's looks are not.
    let before = entries(&home);
    read(&home, &["search", "salt", "--grant", &grant]).succeeds();
    read(&home, &["fetch", "books:b1", "--grant", &grant]).succeeds();
    assert_eq!(entries(&home), before);
}

fn entries(home: &Home) -> u64 {
    // The log is written within a second.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let verified = home.run(&["grants", "verify", "--json"]).succeeds().json();
    verified["entries"].as_u64().unwrap()
}

#[test]
fn digits_and_order_are_kept_as_written() {
    let home = library();
    let line =
        r#"{"key":"b9","data":{"title":"Digits","id":"b9","price":12345678901234567890.1250}}"#;
    home.run_with(&["import", "-", "--as", "library/books"], line.as_bytes())
        .succeeds();
    let json = read(&home, &["fetch", "books:b9", "--json"])
        .succeeds()
        .stdout;
    assert!(
        json.contains(r#""price":12345678901234567890.1250"#),
        "{json}"
    );
    let shown = read(&home, &["fetch", "books:b9"]).succeeds().stdout;
    assert!(
        shown.contains("price  12345678901234567890.1250\n"),
        "{shown}"
    );
}
