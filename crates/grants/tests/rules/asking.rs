//! What is allowed beyond a grant: exactly what was shown, and no wider than the limits of the grant where they can be said of it.

use std::time::Duration;

use contract::declaration::Declaration;
use contract::grant::GrantedRow;
use contract::id::{ClientId, ConnectorKey};
use contract::step_up::Beyond;
use grants::step_up::{self, Allowance, AskError, Proposal};
use grants::{Issued, Wording};
use serde_json::{Value, json};
use store::Catalog as _;
use store::catalog::NewConnection;

use crate::world::{World, connection, detail, from_details, rows};

const LETTERS: &str = r#"{
  "protocol_version": "0.1.0",
  "source": { "kind": "connector", "id": "https://sources.example/letters" },
  "declaration_version": "1",
  "streams": [
    { "name": "messages", "semantics": "mutable_state", "primary_key": ["id"], "consent_time_field": "sent_at",
      "schema": { "type": "object", "required": ["id"], "properties": {
        "id": { "type": "string" }, "folder": { "type": "string" }, "sender": { "type": "string" },
        "body": { "type": "string" }, "sent_at": { "type": "string", "format": "date-time" } } },
      "query": { "range_filters": { "sent_at": ["gte", "lt"] }, "expand": [{ "name": "attachments" }] },
      "relationships": [{ "name": "attachments", "stream": "attachments", "foreign_key": "message_id", "cardinality": "has_many" }] },
    { "name": "attachments", "semantics": "mutable_state", "primary_key": ["id"],
      "schema": { "type": "object", "required": ["id"], "properties": {
        "id": { "type": "string" }, "message_id": { "type": "string" }, "title": { "type": "string" } } } },
    { "name": "drafts", "semantics": "mutable_state", "primary_key": ["id"], "consent_time_field": "begun_at",
      "schema": { "type": "object", "required": ["id"], "properties": {
        "id": { "type": "string" }, "begun_at": { "type": "string", "format": "date-time" } } } }
  ]
}"#;

fn connect(world: &World, id: &str) {
    let new = NewConnection {
        connector: ConnectorKey::parse("letters").unwrap(),
        name: id.to_owned(),
        id: Some(connection(id)),
    };
    world.store.add_connection(new).unwrap();
}

fn world() -> World {
    let world = World::empty();
    let letters = Declaration::parse(LETTERS).unwrap();
    world.store.declare(&letters).unwrap();
    connect(&world, "work");
    connect(&world, "home");
    world
}

/// A grant of letters at work.
fn granted(world: &World, stream: Value) -> Issued {
    let mut stream = stream;
    stream["name"] = "messages".into();
    stream["instance_ids"] = json!(["work"]);
    let detail = detail(|detail| {
        detail["source"]["id"] = "https://sources.example/letters".into();
        detail["streams"] = json!([stream]);
    });
    world.issue(&from_details(&detail).unwrap())
}

fn proposed(world: &World, issued: &Issued, beyond: &Beyond) -> Proposal {
    let grant = issued.grant_id.as_ref().unwrap();
    let client = ClientId::parse("agent").unwrap();
    let id = step_up::ask(world.store(), grant, &client, beyond, world.now()).unwrap();
    step_up::proposal(world.store(), &id.unwrap(), world.now()).unwrap()
}

/// What the owner reads, a line for each row; after it was allowed, the rows that were read then are compared with those shown.
fn allowed(world: &World, issued: &Issued, beyond: &Beyond) -> Vec<String> {
    let proposal = proposed(world, issued, beyond);
    let (id, digest) = (&proposal.ask.id, &proposal.digest);
    let allowance = Allowance::TenMinutes;
    step_up::allow(world.store(), id, digest, allowance, world.now()).unwrap();
    let all = rows(world, issued);
    for row in &proposal.rows {
        let given = &row.given;
        let read = read_of(&all, given.connection_id.as_str(), given.stream.as_str());
        assert!(given.fields.iter().all(|field| read.fields.contains(field)));
        assert_eq!(read.only, given.only.clone().unwrap_or_default());
        assert_eq!(read.except, given.except.clone().unwrap_or_default());
        assert_eq!(read.time_constraint, given.time_constraint);
        let keys = given.resources.clone();
        assert_eq!(read.resources, keys.map(|keys| keys.into_iter().collect()));
        for field in &given.fields {
            let part = given.redact.as_ref().and_then(|redact| redact.get(field));
            assert_eq!(read.redact.get(field), part);
        }
    }
    proposal
        .rows
        .iter()
        .map(step_up::ExtendedRow::words)
        .collect()
}

fn read_of<'a>(rows: &'a [GrantedRow], connection: &str, stream: &str) -> &'a GrantedRow {
    let is_row =
        |row: &&GrantedRow| row.connection.as_str() == connection && row.stream.as_str() == stream;
    rows.iter().find(is_row).unwrap()
}

fn limited() -> Value {
    json!({
        "fields": ["id", "folder", "sender"],
        "time_range": {"since": "2026-01-01"},
        "where": [{"field": "folder", "in": ["family", "travel"]}],
        "except": [{"field": "sender", "eq": "doctor@example.org"}],
        "redact": {"sender": "domain"},
    })
}

// GM-23: the same stream of another connection is not wider than what was granted of it.
#[test]
fn another_connection_gets_the_fields_and_limits_of_the_stream() {
    let world = world();
    let issued = granted(&world, limited());
    let home = Beyond::stream("messages", Some("home"));
    assert!(proposed(&world, &issued, &home).has_limits);
    assert_eq!(
        allowed(&world, &issued, &home),
        [concat!(
            "messages of home: id, folder, sender; only sent_at from 2026-01-01 00:00 UTC; ",
            r#"only where folder is one of "family", "travel"; never where sender is "doctor@example.org"; of sender only the domain"#
        )]
    );
}

// GM-23: records that point at limited ones follow them, however they are asked for, and a time of the whole grant holds for more of it.
#[test]
fn other_streams_follow_the_limits_where_they_can() {
    let world = world();
    let issued = granted(&world, limited());
    let words = concat!(
        r#"attachments of work: id, message_id, title; only where the folder of message_id is one of "family", "travel"; "#,
        r#"only where the sent_at of message_id is at least "2026-01-01"; never where the sender of message_id is "doctor@example.org""#
    );
    let by_relation = Beyond {
        relation: Some("attachments".to_owned()),
        ..Beyond::stream("messages", Some("work"))
    };
    assert_eq!(allowed(&world, &issued, &by_relation), [words]);
    world.wait(Duration::from_mins(11));
    let by_name = Beyond::stream("attachments", Some("work"));
    assert_eq!(allowed(&world, &issued, &by_name), [words]);
    let drafts = Beyond::stream("drafts", Some("work"));
    assert_eq!(
        allowed(&world, &issued, &drafts),
        ["drafts of work: id, begun_at; only begun_at from 2026-01-01 00:00 UTC"]
    );
    // A list of records is one of what points at them.
    let issued = granted(&world, json!({"resources": ["m1", "m2"]}));
    assert_eq!(
        allowed(&world, &issued, &by_name),
        [
            r#"attachments of work: id, message_id, title; only where message_id is one of "m1", "m2""#
        ]
    );
    // Where nothing can be said, that is said.
    assert_eq!(
        allowed(&world, &issued, &drafts),
        ["drafts of work: id, begun_at; all records"]
    );
}

// GM-23: fields are added to the records that the grant shows, and a part that becomes whole is named.
#[test]
fn added_fields_keep_the_limits_and_a_part_that_becomes_whole_is_said() {
    let world = world();
    let issued = granted(&world, limited());
    let more = Beyond {
        fields: Some(vec![
            "sender".to_owned(),
            "body".to_owned(),
            "id".to_owned(),
        ]),
        ..Beyond::stream("messages", Some("work"))
    };
    let words = allowed(&world, &issued, &more);
    assert!(words[0].starts_with("messages of work: sender, body; only sent_at from"));
    assert!(
        words[0].ends_with("; sender whole, until now only the domain"),
        "{words:?}"
    );
    let shown = proposed(&world, &granted(&world, limited()), &more);
    let limits = shown.rows[0].limits(&Wording::whole(|text| text.replace('e', "E")));
    assert_eq!(
        limits.last().unwrap(),
        "sEndEr whole, until now only the domain"
    );
}

// GM-23: what a later call adds to a row that an earlier one brought keeps the parts and limits of that row.
#[test]
fn what_is_added_to_what_was_added_keeps_its_limits() {
    let world = world();
    let issued = granted(&world, limited());
    allowed(&world, &issued, &Beyond::stream("messages", Some("home")));
    for (at, field) in ["body", "sent_at"].into_iter().enumerate() {
        world.wait(Duration::from_secs(1));
        let more = Beyond {
            fields: Some(vec![field.to_owned()]),
            ..Beyond::stream("messages", Some("home"))
        };
        let words = allowed(&world, &issued, &more);
        assert!(
            words[0].contains("only where folder is one of"),
            "{words:?}"
        );
        let all = rows(&world, &issued);
        let read = read_of(&all, "home", "messages");
        assert_eq!((read.fields.len(), read.redact.len()), (4 + at, 1));
    }
}

// GM-23: what was allowed of a connection that is removed does not come back for another of its name.
#[test]
fn a_connection_that_takes_the_name_of_a_removed_one_is_not_allowed() {
    let world = world();
    let issued = granted(&world, json!({}));
    allowed(&world, &issued, &Beyond::stream("messages", Some("home")));
    assert_eq!(rows(&world, &issued).len(), 2);
    world.store.remove_connection(&connection("home")).unwrap();
    assert_eq!(rows(&world, &issued).len(), 1);
    world.wait(Duration::from_secs(1));
    connect(&world, "home");
    assert_eq!(rows(&world, &issued).len(), 1);
}

// GM-26: what a paused grant of a package gives cannot be had beside it.
#[test]
fn what_a_paused_grant_gives_cannot_be_asked_for_under_another() {
    let world = World::new();
    let issued = world.issue_for(&["team", "home"]);
    let all = rows(&world, &issued);
    let paused = read_of(&all, "home", "messages").grant_id.clone();
    let other = read_of(&all, "team", "messages").grant_id.clone();
    grants::budget::pause(world.store(), &paused, "looked odd", world.now()).unwrap();
    let client = ClientId::parse("agent").unwrap();
    let beyond = Beyond::stream("messages", Some("home"));
    let id = step_up::ask(world.store(), &other, &client, &beyond, world.now()).unwrap();
    let shown = step_up::proposal(world.store(), &id.unwrap(), world.now()).unwrap();
    assert!(shown.rows.is_empty());
    let (id, digest) = (&shown.ask.id, &shown.digest);
    let allowed = step_up::allow(world.store(), id, digest, Allowance::Lasting, world.now());
    assert!(matches!(allowed, Err(AskError::Nothing)));
}
