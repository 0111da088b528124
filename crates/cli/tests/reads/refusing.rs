//! What is refused, in which words, with which exit code.

use crate::desk::{grant, library, read};
use crate::harness::Home;

/// The exit code and what was told.
fn told(home: &Home, args: &[&str]) -> (i32, String) {
    let ran = read(home, args);
    assert_eq!(ran.stdout, "", "{args:?}");
    (ran.code.unwrap(), ran.stderr)
}

#[test]
fn a_refusal_is_json_where_json_is_asked_for() {
    let home = library();
    for (args, code, exit) in [
        (
            &["query", "books", "--cursor", "x"][..],
            "invalid_cursor",
            1,
        ),
        (&["query", "boks"], "stream_not_declared", 1),
        (&["fetch", "nonsense"], "invalid_id", 1),
        (
            &["query", "books", "--grant", "grt_nope"],
            "authentication_error",
            78,
        ),
        (
            &["query", "books", "--filter", "pages"],
            "invalid_arguments",
            2,
        ),
        (
            &["read", "books:b1", "text", "--q", "zzz"],
            "query_not_found",
            1,
        ),
    ] {
        let ran = read(&home, &[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(exit), "{ran:?}");
        let error = &ran.json()["error"];
        assert_eq!(error["code"], code, "{ran:?}");
        let told = format!("error: {}\n", error["message"].as_str().unwrap());
        assert!(ran.stderr.starts_with(&told), "{ran:?}");
    }
    // Where standard output speaks a protocol, nothing else stands on it.
    let mcp = home.run(&["mcp", "--json", "--provider-url", "http://127.0.0.1:9"]);
    assert_eq!((mcp.code, mcp.stdout.as_str()), (Some(78), ""), "{mcp:?}");
}

#[test]
fn under_a_grant_nothing_outside_it_is_suggested() {
    let home = library();
    let (grant, _) = grant(&home, &["--stream", "books", "--fields", "id,title"]);
    let (code, text) = told(
        &home,
        &[
            "query",
            "books",
            "--fields",
            "titel,genre",
            "--grant",
            &grant,
        ],
    );
    assert_eq!(code, 1);
    assert!(
        text.contains("did you mean 'title'?") && text.contains("fields: id, title\n"),
        "{text}"
    );
    let (_, text) = told(&home, &["query", "loans", "--grant", &grant]);
    assert!(
        text.contains("streams: books\n") && text.contains("not granted"),
        "{text}"
    );
    home.run(&["grant", "revoke", &grant]).succeeds();
    let (code, text) = told(&home, &["query", "books", "--grant", &grant]);
    assert!(code == 1 && text.contains("revoked"), "{text}");
}
