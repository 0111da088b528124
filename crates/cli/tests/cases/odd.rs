//! Questions that are odd or wrong: the commands answer as REST does, and the tools answer alike or refuse before they ask.

use contract::error::ErrorCode;
use serde_json::Value;

use crate::answer::{Id, SurfaceResult};
use crate::generated::CONNECTIONS;
use crate::surface::{Ask, Surface, plain};
use crate::world::archives;

/// What was said, in short, or the code of the refusal.
type Said = Result<String, String>;

fn said<T>(told: SurfaceResult<T>, short: impl Fn(T) -> String) -> Said {
    told.map(short).map_err(|refused| refused.code)
}

/// Whether a code is one that the tools refuse with before a server is asked.
fn is_refused_unasked(code: &str) -> bool {
    let known = ErrorCode::from_code(code).unwrap();
    let adapter = known.error_type() == "adapter_error";
    adapter
        || matches!(
            known,
            ErrorCode::InvalidExpand | ErrorCode::InvalidFieldPath
        )
}

/// Holds a question against the rule; gives whether all said the same.
fn hold(what: &str, ask: &dyn Fn(Surface) -> Said) -> bool {
    let rest = ask(Surface::Rest);
    assert_eq!(ask(Surface::Cli), rest, "{what}");
    let tools = ask(Surface::Mcp);
    match (&rest, &tools) {
        (_, Err(code)) if is_refused_unasked(code) => {}
        _ => assert_eq!(tools, rest, "{what}"),
    }
    tools == rest
}

fn east() -> Ask {
    plain().connection(CONNECTIONS[0]).limit(4)
}

#[test]
fn odd_lists_are_answered_alike_or_refused() {
    let cases = [
        east().filter("kind", ""),
        east().filter("kind", Value::Null),
        east().filter("size", true),
        east().filter("size", 7.5),
        east().filter("size", "74"),
        east().filter("id", 74),
        east().filter("marks", "m"),
        east().fields(&["nope"]),
        east().fields(&[""]),
        east().with("count", "maybe"),
        east().with("count", "estimated"),
        east().with("order", "up"),
        east().with("sort", "-at").with("order", "asc"),
        east().with("sort", ""),
        east().with("view", "nope"),
        east().with("cursor", ""),
        east().with("expand", vec!["nope"]),
        east().with("changes_since", "beginning").with("sort", "at"),
        east()
            .with("changes_since", "beginning")
            .with("count", "exact"),
        plain().connection(CONNECTIONS[0]).limit(0),
        plain().connection(CONNECTIONS[0]).limit(101),
        plain().connection(""),
        plain().connection("a/b"),
        plain().connection(".."),
    ];
    let mut same = 0;
    for ask in cases {
        let what = format!("{ask:?}");
        let alike = hold(&what, &|surface| {
            let told = surface.query(&archives(), "entries", &ask);
            said(told, |page| format!("{:?} {:?}", page.keys(), page.count))
        });
        same += u32::from(alike);
    }
    assert!(same > 12, "{same}");
    for stream in ["..", ".", "a/b", "a\\b", "x y", "ä"] {
        hold(stream, &|surface| {
            let told = surface.query(&archives(), stream, plain());
            said(told, |page| format!("{:?}", page.keys()))
        });
    }
}

#[test]
fn odd_searches_are_answered_alike_or_refused() {
    let few = || plain().limit(3);
    let cases = [
        ("", few()),
        ("  ", few()),
        ("***", few()),
        ("\"open", few()),
        ("-", few()),
        ("Entry AND OR NOT ( ) ^ ~ : /", few()),
        ("entry entry entry entry entry entry entry entry", few()),
        ("Entry", few().with("cursor", "")),
        ("Entry", few().with("streams", vec![""])),
        (
            "Entry",
            few()
                .with("streams", vec!["entries"])
                .filter("kind", "memo"),
        ),
        (
            "Entry",
            few().with("streams", vec!["entries"]).filter("kind", ""),
        ),
        ("Entry", plain().limit(0)),
        ("Entry", plain().limit(500)),
    ];
    let mut same = 0;
    for (words, ask) in cases {
        let alike = hold(&format!("{words} {ask:?}"), &|surface| {
            let told = surface.search(&archives(), words, &ask);
            said(told, |found| format!("{:?}", found.ids()))
        });
        same += u32::from(alike);
    }
    assert!(same > 6, "{same}");
}

#[test]
fn odd_figures_are_answered_alike_or_refused() {
    let east = || plain().connection(CONNECTIONS[0]);
    let groups = || east().with("group_by", "kind");
    let times = || east().with("group_by_time", "at");
    let cases = [
        ("", east()),
        ("sum", east()),
        ("count", east().with("field", "size")),
        ("sum", east().with("field", "kind")),
        (
            "count",
            groups()
                .with("group_by_time", "at")
                .with("granularity", "day"),
        ),
        ("count", times()),
        ("count", times().with("granularity", "eon")),
        ("count", groups().limit(0)),
        ("count", groups().limit(1000)),
        ("count", east().limit(5)),
        ("count", groups().with("time_zone", "UTC")),
    ];
    for (metric, ask) in cases {
        hold(&format!("{metric} {ask:?}"), &|surface| {
            let told = surface.aggregate(&archives(), "entries", metric, &ask);
            said(told, |figures| format!("{figures:?}"))
        });
    }
}

#[test]
fn odd_windows_and_records_are_answered_alike_or_refused() {
    let id = Id::new(CONNECTIONS[0], "entries", "plain");
    let word = || plain().with("q", "zanzibarix");
    let cases = [
        ("text", plain().with("limit_chars", 0)),
        ("text", plain().with("limit_chars", 20_000)),
        ("text", plain().with("offset_chars", 999_999)),
        ("text", word().with("offset_chars", 5)),
        ("text", plain().with("q", "")),
        ("text", plain().with("before_chars", 5)),
        ("text", word().with("before_chars", 9_000)),
        ("text", word().with("limit_chars", 30)),
        (
            "text",
            plain().with("q", "ZANZIBARIX").with("before_chars", 2),
        ),
        ("", plain()),
        ("a.b", plain()),
        ("a/b", plain()),
    ];
    for (field, ask) in cases {
        hold(&format!("{field} {ask:?}"), &|surface| {
            let told = surface.read(&archives(), &id, field, &ask);
            said(told, |window| format!("{window:?}"))
        });
    }
    for ask in [
        plain().fields(&["nope"]),
        plain().fields(&[""]),
        plain().fields(&["id", "id"]),
        plain().with("view", "nope"),
        plain().with("expand", vec!["nope"]),
    ] {
        hold(&format!("{ask:?}"), &|surface| {
            let told = surface.fetch(&archives(), &id, &ask);
            said(told, |record| format!("{:?}", record.data))
        });
    }
    for key in ["none", "x\u{200b}y", "ü", "a  b", "%00"] {
        let id = Id::new(CONNECTIONS[0], "entries", key);
        hold(key, &|surface| {
            let told = surface.fetch(&archives(), &id, plain());
            said(told, |record| format!("{:?}", record.id))
        });
    }
}
