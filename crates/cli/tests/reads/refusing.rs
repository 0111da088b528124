//! What is refused, in which words, with which exit code.

use crate::desk::{grant, library, read, two_libraries};
use crate::harness::Home;

/// The exit code and what was told.
fn told(home: &Home, args: &[&str]) -> (i32, String) {
    let ran = read(home, args);
    assert_eq!(ran.stdout, "", "{args:?}");
    (ran.code.unwrap(), ran.stderr)
}

#[test]
fn a_name_that_is_nearly_right_is_corrected() {
    let home = library();
    for (args, expected) in [
        (
            &["query", "boks"][..],
            "error: no connection carries a stream 'boks'
hint: did you mean 'books'?
hint: streams: books, loans
hint: `pdpp schema` lists them all
",
        ),
        (
            &["query", "books", "--fields", "titel,genre"],
            "error: field 'titel' of stream 'books' is not declared
hint: did you mean 'title'?
hint: fields: id, title, text, genre, pages, price, bought_at, tags
hint: `pdpp schema --stream books` lists them all
",
        ),
        (
            &["aggregate", "books", "sum", "--field", "Pages"],
            "error: field 'Pages' of stream 'books' is not declared
hint: did you mean 'pages'?
hint: fields: id, title, text, genre, pages, price, bought_at, tags
hint: `pdpp schema --stream books` lists them all
",
        ),
        (
            &["search", "salt", "--connection-id", "library-hom"],
            "error: the connection 'library-hom' is not available
hint: did you mean 'library-home'?
hint: connections: library-home
hint: `pdpp schema` lists them all
",
        ),
        (
            &["read", "books:b1", "txt"],
            "error: field 'txt' of stream 'books' is not declared
hint: did you mean 'text'?
hint: fields: id, title, text, genre, pages, price, bought_at, tags
hint: `pdpp schema --stream books` lists them all
",
        ),
    ] {
        assert_eq!(told(&home, args), (1, expected.to_owned()), "{args:?}");
    }
}

#[test]
fn the_words_of_the_contract_are_passed_on() {
    let home = library();
    for (args, code, word) in [
        (&["fetch", "books:nope"][..], 1, "error: "),
        (&["fetch", "nonsense"], 1, "pdpp help ids"),
        (
            &["fetch", "library-home/books:b1", "--connection-id", "other"],
            1,
            "error: ",
        ),
        (&["read", "books:b1", "pages"], 1, "error: "),
        (&["read", "books:b1"], 2, "pdpp read ID FIELD"),
        (
            &["read", "books:b1", "text", "--q", "zzz"],
            1,
            "q was not found in field 'text'",
        ),
        (&["query", "books", "--cursor", "x"], 1, "error: "),
        (
            &["query", "books", "--filter", "pages"],
            2,
            "pdpp help filters",
        ),
        (&["query", "books", "--sort", "-title"], 1, "error: "),
        (&["query", "books", "--limit", "many"], 2, "--limit"),
        (
            &["query", "books", "--fields", "id", "--view", "short"],
            2,
            "--view",
        ),
        (&["aggregate", "books", "average"], 1, "metric"),
        (
            &["schema", "--detail", "full"],
            1,
            "detail=full needs a stream",
        ),
        (
            &["query", "books", "--grant", "grt_nope"],
            78,
            "there is no live grant 'grt_nope'",
        ),
        (&["query"], 2, "STREAM"),
        (&["search", "a", "--profile", "x"], 2, "--profile"),
    ] {
        let (exit, text) = told(&home, args);
        assert_eq!(exit, code, "{args:?}: {text}");
        assert!(text.contains(word), "{args:?}: {text}");
    }
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
fn an_ambiguous_read_lists_the_connections() {
    let home = two_libraries();
    let (code, text) = told(&home, &["query", "books", "--limit", "1"]);
    assert_eq!(code, 1);
    assert_eq!(
        text,
        "error: 2 connections carry the stream 'books'; name one of them
hint: name one of them:
  pdpp query books --limit 1 --connection-id library-home  # Home
  pdpp query books --limit 1 --connection-id library-town  # Town
"
    );
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
