//! A grant is told the same everywhere: at the terminal, on the first page, among all grants, on its own page, and on the
//! page where it is allowed.

use serde_json::{Value, json};

use super::served::{Connecting, Kept, Served};
use super::visitor::Visitor;
use crate::harness::Home;

/// A source with a stream of a hundred fields and a time, under two connectors.
fn wide() -> Home {
    let home = Home::with_mail();
    let mut fields =
        json!({"id": {"type": "string"}, "at": {"type": "string", "format": "date-time"}});
    for n in 0..98 {
        fields[format!("measured_value_{n:03}")] = json!({"type": "integer"});
    }
    for key in ["wide", "side"] {
        let declaration = json!({
            "protocol_version": "0.1.0", "declaration_version": "1",
            "source": {"kind": "connector", "id": format!("https://example.org/connectors/{key}")},
            "publisher": {"id": "https://example.org"}, "display": {"name": key},
            "streams": [{
                "name": "samples", "semantics": "mutable_state", "primary_key": ["id"],
                "cursor_field": "at", "consent_time_field": "at",
                "selection": {"fields": true, "resources": true},
                "schema": {"type": "object", "properties": fields},
            }],
        });
        let file = home.file("wide.json", declaration.to_string());
        home.run(format!("declare {file}")).succeeds();
        home.run(format!("connections add {key} --name {key} --id {key}"))
            .succeeds();
    }
    home
}

/// What `pdpp grant show` says may be read, line by line.
fn shown(home: &Home, id: &str) -> Vec<String> {
    let shown = home.run(format!("grant show {id}")).succeeds().stdout;
    let granted = shown.split("\nCalls").next().unwrap();
    let lines = granted.lines().filter_map(|line| line.strip_prefix("  "));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{shown}");
    lines
}

fn created(home: &Home, options: &str) -> (String, String) {
    let create = "grant create --client agent --expires 2099-01-01";
    let ran = home.run(format!("{create} {options}")).succeeds();
    let id = ran.stderr.split([' ', ':']).nth(1).unwrap().to_owned();
    (id, ran.stderr)
}

fn grants(home: &Home) -> Vec<String> {
    let keys: Vec<String> = (0..40).map(|n| format!("sample {n}")).collect();
    let detail = |source: &str, more: &[(&str, Value)]| {
        let mut stream = json!({"name": "samples"});
        for (name, value) in more {
            stream[*name] = value.clone();
        }
        json!({
            "type": "https://pdpp.dev/data-access",
            "source": {"kind": "connector", "id": format!("https://example.org/connectors/{source}")},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "purpose_description": "To plan <the> week",
            "access_mode": "single_use",
            "retention": {"max_duration": "P30D", "on_expiry": "delete"},
            "streams": [stream],
        })
    };
    let mut one = detail(
        "wide",
        &[("resources", json!(keys)), ("fields", json!(["id", "at"]))],
    );
    let since = json!({"since": "2026-01-01T08:00:00Z", "until": "2026-03-01"});
    one["streams"][0]["time_range"] = since;
    let one = home.file("one.json", one.to_string());
    let both = json!([
        detail("wide", &[]),
        detail("side", &[("fields", json!(["at"]))])
    ]);
    let both = home.file("both.json", both.to_string());
    let asked = [
        "--connection wide",
        "--connection wide --since 2026-01-01 --until 2026-02-01T00:00:01Z",
        &format!("--details {one}"),
        &format!("--details {both}"),
    ];
    let created = asked.map(|args| {
        let (id, told) = created(home, args);
        for line in shown(home, &id) {
            assert!(
                told.contains(&format!("\n  {line}\n")),
                "{line} is not in {told}"
            );
        }
        id
    });
    created.to_vec()
}

fn seen(page: &str) -> String {
    let mut text = page.to_owned();
    for tag in ["<bdi>", "</bdi>"] {
        text = text.replace(tag, "");
    }
    let entities = [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
    ];
    for (entity, character) in entities {
        text = text.replace(entity, character);
    }
    text.replace("&#38;", "&")
}

/// Checks that a short text says every limit whole and, of each list, how much it leaves out and where that stands.
fn told_briefly(text: &str, lines: &[String], way: &str) {
    for line in lines {
        let (name, limits) = line.split_once(": ").unwrap();
        assert!(text.contains(name), "{name} is not in {text}");
        for limit in limits.split("; ").filter(|limit| !text.contains(limit)) {
            let names: Vec<&str> = limit.split(", ").collect();
            let cut = (1..names.len()).find(|shown| {
                let more = names.len() - shown;
                text.contains(&format!("{} and {more} more ", names[..*shown].join(", ")))
            });
            assert!(
                cut.is_some(),
                "{limit} is neither told nor counted in {text}"
            );
            assert!(text.contains(way), "{way} is not in {text}");
        }
    }
}

#[test]
fn every_place_that_shows_a_grant_shows_what_grant_show_does() {
    // TR-11: time ranges, a hundred fields, lists of keys and packages, on every surface.
    let home = wide();
    let grants = grants(&home);
    let server = Served::start(&home);
    let mut owner = Visitor::signed_in(&server.url, &server.link);
    let listed = home.run("grants").succeeds().stdout;
    let pages = ["/", "/grants"].map(|path| seen(&owner.get(path).text));
    let all = home.run("grants --json").succeeds().json();
    for id in &grants {
        let lines = shown(&home, id);
        told_briefly(&listed, &lines, "pdpp grant show ID");
        for page in &pages {
            let way = format!("<a href=\"/grants/{id}\">All that");
            told_briefly(page, &lines, &way);
        }
        let page = seen(&owner.get(&format!("/grants/{id}")).text);
        for line in &lines {
            assert!(page.contains(line), "{line} is not in {page}");
        }
        let whole = home
            .run(format!("grant show {id} --json"))
            .succeeds()
            .json();
        let mut listed = all.as_array().unwrap().iter();
        let listed = listed.find(|one| one["id"] == id.as_str()).unwrap();
        assert_eq!(listed["grants"], whole["grants"]);
        let documents = whole["grants"].as_array().unwrap();
        let granted = documents
            .iter()
            .flat_map(|grant| grant["streams"].as_array().unwrap());
        let rows = listed["streams"].as_array().unwrap();
        for (row, stream) in rows.iter().zip(granted) {
            for limit in ["fields", "time_constraint", "resources"] {
                assert_eq!(row[limit], stream[limit], "{limit}");
            }
        }
    }
}

#[test]
fn what_is_allowed_is_what_the_review_said() {
    // TR-11: the page where a request is allowed.
    let home = wide();
    let server = Served::start(&home);
    let mut owner = Visitor::signed_in(&server.url, &server.link);
    let connecting = Connecting::start(&home, &server.url);
    let review = owner.allow(
        &connecting.link,
        &[
            ("stream", "wide/samples"),
            ("since:wide/samples", "2026-01-01"),
            ("stream", "side/samples"),
            ("field", "side/samples/at"),
            ("mode", "single_use"),
        ],
    );
    connecting.done();
    let lines = shown(&home, &Kept::read(&home, &server.url).grant());
    assert_eq!(lines.len(), 4, "two streams and their terms: {lines:?}");
    let review = seen(&review.text);
    for line in lines {
        assert!(review.contains(&line), "{line} is not in {review}");
    }
}
