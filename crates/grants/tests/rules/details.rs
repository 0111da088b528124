//! Grants by authorization details: a closed schema, and every mistake says where it stands.

use grants::{Flags, IssueError, Selection, TokenKind};
use serde_json::{Value, json};
use store::Catalog as _;

use crate::world::{
    World, connection, detail, detail_with, flags, from_details, row, rows, streams,
};

#[test]
fn nothing_named_is_an_error_and_never_everything() {
    let world = World::new();
    let mistakes = world.mistakes(Selection::from_flags(Flags::default()));
    assert!(
        mistakes.contains("--connection: nothing is named"),
        "{mistakes}"
    );
    let only_streams = world.mistakes(Selection::from_flags(flags(&[], &["messages"], &[])));
    assert!(only_streams.contains("--connection: nothing is named"));
    for details in ["[]", "{}", "", "null", "7"] {
        world.mistakes(Selection::from_details(details));
    }
    let empty = [
        json!([detail(|detail| detail["streams"] = json!([]))]),
        json!([detail(|detail| detail["streams"][0]["fields"] = json!([]))]),
        json!([detail(
            |detail| detail["streams"][0]["instance_ids"] = json!([])
        )]),
        json!([detail(
            |detail| detail["streams"][0]["resources"] = json!([])
        )]),
        json!([detail(|detail| drop(
            detail.as_object_mut().unwrap().remove("streams")
        ))]),
    ];
    for details in &empty {
        let mistakes = world.mistakes(from_details(details));
        assert!(mistakes.contains("grants nothing"), "{details}: {mistakes}");
    }
}

#[test]
fn details_of_one_source_make_a_grant_with_all_they_say() {
    let world = World::new();
    let details = detail(|detail| {
        detail["source"]["kind"] = json!("connector");
        detail["purpose_description"] = json!("To plan trips");
        detail["retention"] = json!({ "max_duration": "P90D", "on_expiry": "delete" });
        detail["client_claims"] = json!({ "commitments": ["We are kind"] });
        detail["streams"] = json!([
            { "name": "messages", "necessity": "required", "instance_ids": ["work", "home"], "view": "headers",
              "time_range": { "since": "2026-01-01" } },
            { "name": "folders", "necessity": "optional", "instance_ids": ["home"], "resources": ["[\"a\", \"b\"]"] }
        ]);
    });
    // One object alone is as good as an array of one.
    for details in [json!([details]), details] {
        let issued = world.issue(&from_details(&details).unwrap());
        let rows = rows(&world, &issued);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows.first().unwrap().connection.as_str(), "work");
        let folders = rows.last().unwrap();
        assert!(folders.resources.iter().flatten().eq(["[\"a\",\"b\"]"]));
        let id = issued.grant_id.unwrap().to_string();
        let shown = grants::show(world.store(), &id, world.now(), 10).unwrap();
        let document = serde_json::to_value(shown.overview.grants.first().unwrap()).unwrap();
        assert_eq!(document["purpose_description"], "To plan trips");
        assert_eq!(document["retention"]["max_duration"], "P90D");
        assert_eq!(document["source_declaration"]["version"], "1");
        assert!(
            !document.to_string().contains("kind\":\"We"),
            "claims stay outside"
        );
        assert!(!document.to_string().contains("We are kind"));
    }
}

#[test]
fn details_of_several_sources_make_a_package() {
    let world = World::new();
    let details = json!([
        detail(|_| ()),
        detail(|detail| {
            detail["source"]["id"] = json!("https://sources.example/chat");
            detail["streams"] = json!([{ "name": "*" }]);
        }),
    ]);
    let issued = world.issue(&from_details(&details).unwrap());
    assert_eq!(issued.token_kind, TokenKind::Package);
    assert_eq!(
        streams(&issued),
        [
            row("home", "messages", &["id", "subject", "body", "sent_at"]),
            row("team", "messages", &["id", "text", "at"])
        ]
    );
}

#[test]
fn one_source_may_stand_in_two_entries_only_for_different_rows() {
    let world = World::new();
    let both = |connection: &str| {
        json!([
            detail(|_| ()),
            detail(|detail| {
                detail["streams"][0]["instance_ids"] = json!([connection]);
                detail["streams"][0]["fields"] = json!(["id"]);
            })
        ])
    };
    let apart = world.issue(&from_details(&both("work")).unwrap());
    assert_eq!(rows(&world, &apart).len(), 2);
    let error = world
        .try_issue(&from_details(&both("home")).unwrap())
        .unwrap_err();
    assert!(matches!(error, IssueError::Grant(_)), "{error}");
}

#[test]
fn a_preset_and_a_star_are_written_out_when_granted() {
    let world = World::new();
    // Two accounts carry the stream: leaving the connection open is never "both".
    let preset = json!([detail(|detail| {
        detail.as_object_mut().unwrap().remove("streams");
        detail["selection_preset"] = json!("headers");
    })]);
    let mistakes = world.mistakes(from_details(&preset));
    assert!(
        mistakes.contains("2 connections of mail carry this"),
        "{mistakes}"
    );

    let star = json!([detail(|detail| {
        detail["streams"] = json!([{ "name": "*", "instance_ids": ["work"] }]);
    })]);
    assert_eq!(
        streams(&world.issue(&from_details(&star).unwrap())).len(),
        2
    );

    world.store.remove_connection(&connection("work")).unwrap();
    let issued = world.issue(&from_details(&preset).unwrap());
    assert_eq!(
        streams(&issued),
        [row("home", "messages", &["id", "subject"])]
    );
}

/// Where a good entry is changed, to what, and the words of the mistake.
const WRONG_DETAILS: &str = r#"
/type | "other" | /0/type: must be one of https://pdpp.dev/data-access
/extra | 1 | /0/extra: unknown member "extra"; allowed here: type
/streams/0/all | 1 | /0/streams/0/all: unknown member
/source/id | "https://evil.example/mail" | /0/source/id: no source "https://evil.example/mail" is declared; known: https://sources.example/chat
/source/kind | "provider_native" | /0/source/kind: is not the kind
/purpose_code | "assist" | /0/purpose_code: must be an absolute URI
/access_mode | "forever" | /0/access_mode: must be one of single_use, continuous
/retention | {"max_duration":"90 days","on_expiry":"delete"} | /0/retention/max_duration: must be an ISO 8601 duration
/retention | {"max_duration":"P1D"} | /0/retention: on_expiry is required
/client_claims | {"promises":[]} | /0/client_claims/promises: unknown member
/selection_preset | "headers" | /0: gives both streams and selection_preset
/streams/0/where | [] | /0/streams/0/where: is empty
/streams/0/where | [{"field":"subject"}] | /0/streams/0/where/0: a rule needs exactly one of eq, in, contains, prefix, word, or bounds
/streams/0/where | [{"field":"subject","like":"a"}] | /0/streams/0/where/0/like: unknown member
/streams/0/where | [{"field":"subject","in":[]}] | /0/streams/0/where/0/in: is empty, and an empty list allows nothing
/streams/0/where | [{"field":"subject","eq":["a"]}] | /0/streams/0/where/0/eq: must be a string, a number, true or false
/streams/0/where | [{"field":"subject","prefix":""}] | /0/streams/0/where/0/prefix: must be a non-empty string
/streams/0/where | [{"field":"subject","prefix":"a"}] | /0/streams/0/where/0/prefix: the beginning of "subject" cannot be compared
/streams/0/where | [{"field":"subject","word":"?!"}] | /0/streams/0/where/0/word: has no letter and no digit
/streams/0/where | [{"field":"sent_at","word":"a"}] | /0/streams/0/where/0/word: the words of "sent_at" are not declared for search
/streams/0/where | [{"field":"subject","via":"id","eq":"a"}] | /0/streams/0/where/0/via: no relationship is declared by the field "id"
/streams/0/where | [{"field":"subject","gte":"a"}] | /0/streams/0/where/0/gte: the range operator 'gte' is not declared
/streams/0/except | [{"field":"nope","eq":"a"}] | /0/streams/0/except/0/field: stream "messages" has no field "nope"
/streams/0/except | [{"field":"sent_at","in":["2026-01-01","soon"]}] | /0/streams/0/except/0/in/1: expected a date
/streams/0/except | {"field":"subject","eq":"a"} | /0/streams/0/except: must be an array
/streams/0/name | "nope" | /0/streams/0/name: mail has no stream "nope"; known: messages, folders
/streams/0/name | 7 | /0/streams/0/name: must be a non-empty string, found 7
/streams | [{"name":"messages","instance_ids":["home"]},{"name":"messages"}] | /0/streams/1/name: names the stream "messages" a second time
/streams | [{"name":"*","instance_ids":["home"]},{"name":"folders","instance_ids":["home"]}] | /0/streams/0/name: "*" must be the only stream
/streams | [{"name":"*","instance_ids":["home"],"fields":["id"]}] | /0/streams/0: "*" takes no fields
/streams/0/instance_ids | ["team"] | /0/streams/0/instance_ids/0: mail has no connection "team"; known: home, work
/streams/0/fields | ["id","nope"] | /0/streams/0/fields/1: stream "messages" has no field "nope"
/streams/0/fields | ["id","id"] | /0/streams/0/fields/1: names "id" a second time
/streams/0/view | "nope" | /0/streams/0/view: stream "messages" has no view "nope"; known: headers
/streams/0 | {"name":"messages","view":"headers","fields":["id"]} | /0/streams/0: gives both fields and view
/streams/0/time_range | {} | /0/streams/0/time_range: needs since or until
/streams/0/time_range | {"since":"soon"} | /0/streams/0/time_range/since: "soon" is not an RFC 3339
/streams/0 | {"name":"folders","instance_ids":["home"],"resources":["[\"a\"]"]} | /0/streams/0/resources/0: the record key must have 2 parts
"#;

#[test]
fn wrong_details_say_where_and_what_there_is() {
    let world = World::new();
    for row in WRONG_DETAILS.trim().lines() {
        let [path, value, words] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let mistakes = world.mistakes(from_details(&json!([detail_with(path, value)])));
        assert!(mistakes.contains(words), "{words}\n{mistakes}");
    }
}

#[test]
fn details_are_closed_against_tricks_of_json() {
    let world = World::new();
    let twice = r#"[{"type":"https://pdpp.dev/data-access","type":"other"}]"#;
    assert!(
        world
            .mistakes(Selection::from_details(twice))
            .contains("/0: ")
    );
    for text in ["[", "[{]", "[[]]", "[1]", "{\"a\":", &"[".repeat(100_000)] {
        world.mistakes(Selection::from_details(text));
    }
    let no_resources = json!([detail(|detail| {
        detail["source"]["id"] = json!("https://sources.example/chat");
        detail["streams"] = json!([{ "name": "messages", "resources": ["1"] }]);
    })]);
    let mistakes = world.mistakes(from_details(&no_resources));
    assert!(
        mistakes.contains("cannot be granted by single records"),
        "{mistakes}"
    );
    let nobody = json!([detail(|detail| {
        detail["source"]["id"] = json!("https://sources.example/shop");
        detail["streams"] = json!([{ "name": "orders" }]);
    })]);
    assert!(
        world
            .mistakes(from_details(&nobody))
            .contains("shop has no connection")
    );
}

#[test]
fn entries_granted_together_share_their_mode_and_training_stands_alone() {
    let world = World::new();
    let chat = |edit: fn(&mut Value)| {
        detail(|detail| {
            detail["source"]["id"] = json!("https://sources.example/chat");
            detail["streams"] = json!([{ "name": "messages" }]);
            edit(detail);
        })
    };
    let modes = json!([
        detail(|_| ()),
        chat(|detail| detail["access_mode"] = json!("single_use"))
    ]);
    let mistakes = world.mistakes(from_details(&modes));
    assert!(mistakes.contains("/1/access_mode"), "{mistakes}");
    let train: fn(&mut Value) =
        |detail| detail["purpose_code"] = json!("https://pdpp.dev/purpose/ai_training");
    let mistakes = world.mistakes(from_details(&json!([detail(|_| ()), chat(train)])));
    assert!(mistakes.contains("/1/purpose_code: training"), "{mistakes}");
    world.issue(&from_details(&json!([chat(train)])).unwrap());
}

#[test]
fn a_grant_for_single_use_lasts_a_day_unless_told_otherwise() {
    let world = World::new();
    let once = json!([detail(|detail| detail["access_mode"] = json!("single_use"))]);
    let once = from_details(&once).unwrap();
    assert_eq!(world.issue(&once).expires_at, "2026-06-02T12:00:00.000Z");
    let later = contract::time::Instant::parse("2027-01-01");
    let issued = grants::issue(world.store(), &once, "agent", later, &*world.clock).unwrap();
    assert_eq!(issued.expires_at, "2027-01-01T00:00:00.000Z");
    let past = contract::time::Instant::parse("2026-06-01T12:00:00Z");
    let error = grants::issue(world.store(), &once, "agent", past, &*world.clock).unwrap_err();
    assert!(matches!(error, IssueError::AlreadyOver(_)), "{error}");
}
