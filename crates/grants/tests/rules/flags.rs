//! Grants by simple flags: what is named is granted, exactly, and stays as it was.

use contract::declaration::Declaration;
use contract::time::Instant;
use grants::{Flags, IssueError, Selection, TokenKind};
use serde_json::json;
use store::Catalog as _;

use crate::world::{MAIL, World, connection, flags, row, rows, streams};

#[test]
fn a_connection_alone_gives_all_its_streams_and_fields() {
    let world = World::new();
    let issued = world.issue_for(&["home"]);
    assert_eq!(issued.token_kind, TokenKind::Client);
    assert!(issued.grant_id.is_some() && issued.grant_package_id.is_none());
    assert_eq!(
        streams(&issued),
        [
            row("home", "messages", &["id", "subject", "body", "sent_at"]),
            row("home", "folders", &["account", "name"])
        ]
    );
    // 90 days, as the terminal promises.
    assert_eq!(issued.expires_at, "2026-08-30T12:00:00.000Z");
}

#[test]
fn the_json_of_what_was_issued_has_the_promised_members() {
    let world = World::new();
    let one = serde_json::to_value(world.issue_for(&["team"])).unwrap();
    let mut names: Vec<&String> = one.as_object().unwrap().keys().collect();
    names.sort_unstable();
    let promised = [
        "access_token",
        "expires_at",
        "grant_id",
        "streams",
        "token_kind",
    ];
    assert_eq!(names, promised);
    assert_eq!(
        one["streams"][0],
        json!({ "connection_id": "team", "stream": "messages", "fields": ["id", "text", "at"] })
    );
    let several = serde_json::to_value(world.issue_for(&["team", "home"])).unwrap();
    assert_eq!(several["token_kind"], "mcp_package");
    assert!(several.get("grant_id").is_none() && several["grant_package_id"].is_string());
}

#[test]
fn several_accounts_of_one_source_make_one_grant_and_several_sources_a_package() {
    let world = World::new();
    let one = world.issue_for(&["work", "home", "work"]);
    assert!(one.grant_id.is_some());
    assert_eq!(rows(&world, &one).len(), 4);

    let several = world.issue_for(&["home", "team", "work"]);
    assert_eq!(several.token_kind, TokenKind::Package);
    let rows = rows(&world, &several);
    assert_eq!(rows.len(), 5);
    let mut ids: Vec<_> = rows.iter().map(|row| row.grant_id.clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 2, "one grant per source");
}

#[test]
fn streams_fields_and_time_narrow_exactly() {
    let world = World::new();
    let asked = Flags {
        since: Some("2026-01-01".to_owned()),
        until: Some("2026-02-01T00:00:00+01:00".to_owned()),
        ..flags(&["home"], &["messages"], &["subject", "id", "subject"])
    };
    let issued = world.issue(&Selection::from_flags(asked).unwrap());
    // Decision 31: nothing is added, not even what the schema requires.
    assert_eq!(
        streams(&issued),
        [row("home", "messages", &["subject", "id"])]
    );
    let rows = rows(&world, &issued);
    let time = rows.first().unwrap().time_constraint.as_ref().unwrap();
    assert_eq!(time.field.as_str(), "sent_at");
    assert_eq!(time.since.as_deref(), Some("2026-01-01"));
    assert_eq!(time.until.as_deref(), Some("2026-02-01T00:00:00+01:00"));
}

/// What is asked, and the words of the mistake.
const WRONG_FLAGS: &str = r#"
--connection nope | --connection: there is no connection "nope"; known: home, work, team
--connection home --stream nope | --stream: none of the named connections has a stream "nope"; known: messages, folders
--connection home,team --stream folders | --connection: team has none of the named streams
--connection home --fields id | --fields: needs exactly one --stream
--connection home --stream messages,folders --fields id | --fields: needs exactly one --stream
--connection home --stream messages --fields id,nope | --fields: stream "messages" has no field "nope"; known: id, subject
--connection home,team --stream messages --fields text | --fields: stream "messages" has no field "text"; known: id, subject
--connection home --stream folders --fields name | --fields: stream "folders" is granted whole or not at all
--connection home --stream messages --fields , | --fields: names something without a name
--connection team --since 2026-02-01 --until 2026-01-01 | --since: since is later than until
--connection team --since yesterday | --since: "yesterday" is not an RFC 3339 time or date, such as 2026-03-01T10:00:00Z or 2026-03-01
--connection home --until 2026-01-01 | --until: stream "folders" declares no consent_time_field
--connection home --stream messages --where subject | --where: "subject" is not a condition; write 'field=value'
--connection home --stream messages --where nope=1 | --where: stream "messages" has no field "nope"
--connection home --stream messages --except sent_at=soon | --except: expected a date
--connection home --where subject=a | --where: stream "folders" has no field "subject"
--connection home --stream messages --except subject>=a | --except: the range operator 'gte' is not declared for "subject"
"#;

/// The flags of a line, with commas between several.
fn flags_in(line: &str) -> Flags {
    let mut flags = Flags::default();
    let words: Vec<&str> = line.split(' ').collect();
    for pair in words.chunks(2) {
        let all = || pair[1].split(',').map(str::to_owned).collect();
        match pair[0] {
            "--connection" => flags.connections = all(),
            "--stream" => flags.streams = all(),
            "--fields" => flags.fields = all(),
            "--since" => flags.since = Some(pair[1].to_owned()),
            "--until" => flags.until = Some(pair[1].to_owned()),
            "--where" => flags.only = all(),
            "--except" => flags.except = all(),
            other => panic!("{other}"),
        }
    }
    flags
}

#[test]
fn wrong_flags_say_which_and_what_there_is() {
    let world = World::new();
    for row in WRONG_FLAGS.trim().lines() {
        let (line, words) = row.split_once(" | ").unwrap();
        let mistakes = world.mistakes(Selection::from_flags(flags_in(line)));
        assert!(mistakes.contains(words), "{words}\n{mistakes}");
    }
}

// GM-01, GM-03: rules by flags are part of the grant, and a declaration that does not allow one any more closes its stream.
#[test]
fn rules_narrow_a_grant_until_the_declaration_does_not_allow_them() {
    let world = World::new();
    let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let asked = Flags {
        only: all(&["subject=tea", "subject=a=b", "subject=tea"]),
        except: all(&["body="]),
        ..flags(&["home"], &["messages"], &["id"])
    };
    let issued = world.issue(&Selection::from_flags(asked).unwrap());
    let rows = rows(&world, &issued);
    let row = rows.first().unwrap();
    let rules = serde_json::json!([row.only, row.except]);
    let expected = r#"[[{"field":"subject","in":["tea","a=b"]}],[{"field":"body","eq":""}]]"#;
    assert_eq!(rules.to_string(), expected);
    let words = || {
        let id = issued.grant_id.as_ref().unwrap();
        let shown = grants::show(&*world.store, id.as_str(), Instant(0), 0).unwrap();
        grants::Wording::whole(str::to_owned).overview(&shown.overview)
    };
    let told =
        r#"home messages: id; only where subject is one of "tea", "a=b"; never where body is """#;
    assert_eq!(words(), [told]);
    let narrower = MAIL.replace(
        r#""declaration_version": "1""#,
        r#""declaration_version": "2""#,
    );
    let narrower = narrower.replace(r#""body": { "type": "string" },"#, "");
    let narrower = Declaration::parse(&narrower).unwrap();
    world.store.declare(&narrower).unwrap();
    let closed = r#"; closed: its rule on body does not fit the declaration any more: stream "messages" has no field "body""#;
    assert_eq!(words(), [format!("{told}{closed}")]);
}

#[test]
fn a_later_declaration_does_not_widen_a_grant() {
    let world = World::new();
    let issued = world.issue_for(&["home"]);
    let before = rows(&world, &issued);
    let wider = MAIL
        .replace(
            "\"declaration_version\": \"1\"",
            "\"declaration_version\": \"2\"",
        )
        .replace(
            "\"body\": {",
            "\"secret\": { \"type\": \"string\" }, \"body\": {",
        );
    world
        .store
        .declare(&Declaration::parse(&wider).unwrap())
        .unwrap();
    assert_eq!(rows(&world, &issued), before);
    let anew = world.issue_for(&["home"]);
    assert!(
        rows(&world, &anew)
            .iter()
            .any(|row| row.fields.iter().any(|field| field.as_str() == "secret"))
    );
}

#[test]
fn a_connection_removed_meanwhile_is_not_granted() {
    let world = World::new();
    let selection = Selection::from_flags(flags(&["home"], &[], &[])).unwrap();
    world.store.remove_connection(&connection("home")).unwrap();
    assert!(matches!(
        world.try_issue(&selection),
        Err(IssueError::Selection(_))
    ));
}
