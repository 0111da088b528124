//! The shape of each answer, member by member.

use contract::declaration::FilterOperator::{self, Gt, Gte, Lt, Lte};
use contract::id::ViewId;
use contract::query::{
    ChangesSince, Count, ExpandRequest, Filter, ListOptions, Projection, Reading, RecordQuery,
};
use contract::window::WindowSelector;
use serde_json::{Value, json};

use crate::fixture::*;

fn world() -> World {
    let world = World::mail();
    world.put_text(
        "work",
        "messages",
        r#"{"id":"m1","subject":"Re: overdraft","body":"The fee was refunded.","amount":1.50,"received_at":"2026-03-03T09:00:00Z","sent_at":"2026-03-03T08:59:00Z","secret":"hidden","extra":{"z":1,"a":[1.0]}}"#,
    );
    world.put_text(
        "work",
        "messages",
        r#"{"id":"m2","subject":"Lunch","received_at":"2026-03-01T10:00:00+02:00"}"#,
    );
    world
}

fn reader(world: &World) -> Reader {
    world.mail_client(
        json!([{"name": "messages", "fields": ["id", "subject", "body", "amount", "received_at"]}]),
    )
}

#[test]
fn a_page_of_records() {
    let world = world();
    let mut query = limited("messages", 1);
    query.reading = Reading::List(ListOptions {
        count: Count::Exact,
        time_span: true,
        ..ListOptions::default()
    });
    let mut page = reader(&world).records(query).unwrap();
    let as_written: Value = serde_json::from_str("1.50").unwrap();
    let cursor = page["next_cursor"].take();
    assert!(cursor.as_str().is_some_and(|cursor| cursor.len() > 40));
    assert_eq!(
        page,
        json!({
            "object": "list", "url": "/v1/streams/messages/records", "has_more": true, "next_cursor": null,
            "data": [{"object": "record", "id": "m1", "stream": "messages", "emitted_at": "2026-05-01T00:00:00Z",
                "connection_id": "work", "connector_key": "demo_mail", "display_name": "Work mail",
                "data": {"id": "m1", "subject": "Re: overdraft", "body": "The fee was refunded.", "amount": as_written,
                    "received_at": "2026-03-03T09:00:00Z"}}],
            "meta": {"count": {"kind": "exact", "value": 2},
                "window": {"total": 2, "earliest_at": "2026-03-01T08:00:00.000Z", "latest_at": "2026-03-03T09:00:00.000Z"},
                "roles": {"title": "subject", "time": "received_at"}, "warnings": []}
        })
    );
}

#[test]
fn a_record_by_itself_is_as_written_and_its_size_is_that_of_what_is_shown() {
    let world = world();
    let record = world.owner().record(one("m1")).unwrap();
    assert_eq!(record["data"]["extra"], json!({"z": 1, "a": [1.0]}));
    let answer = wait(contract::reader::ReadContract::record(
        &reader(&world).0,
        one("m1"),
    ))
    .unwrap();
    let data = r#"{"id":"m1","subject":"Re: overdraft","body":"The fee was refunded.","amount":1.50,"received_at":"2026-03-03T09:00:00Z"}"#;
    assert_eq!(answer.data.as_ref().unwrap().get(), data);
    let mut answer = serde_json::to_value(answer).unwrap();
    let cited = answer
        .as_object_mut()
        .unwrap()
        .shift_remove("cite")
        .unwrap();
    assert_eq!(cited["body"], "ABX3QI56YasoQ-kB");
    assert_eq!(
        answer,
        json!({
            "object": "record", "id": "m1", "stream": "messages", "emitted_at": "2026-05-01T00:00:00Z",
            "connection_id": "work", "connector_key": "demo_mail", "display_name": "Work mail",
            "data": serde_json::from_str::<Value>(data).unwrap(), "record_json_bytes": data.len(),
            "citation_url": "https://me.example/records/work/messages/m1",
            "meta": {"count": {"kind": "none"}, "warnings": []}
        })
    );
}

#[test]
fn a_projection_has_exactly_the_fields_asked_for_in_that_order() {
    let world = world();
    let reader = reader(&world);
    let mut query = one("m1");
    query.projection = fields(&["subject", "amount"]);
    let answer = wait(contract::reader::ReadContract::record(
        &reader.0,
        query.clone(),
    ))
    .unwrap();
    assert_eq!(
        answer.data.unwrap().get(),
        r#"{"subject":"Re: overdraft","amount":1.50}"#
    );
    query.projection = Projection::View(ViewId::parse("envelope").unwrap());
    let record = reader.record(query).unwrap();
    assert_eq!(
        record["data"].to_string(),
        r#"{"subject":"Re: overdraft","id":"m1"}"#
    );
    assert_eq!(record["id"], "m1");
}

#[test]
fn a_window() {
    let world = world();
    let selector = WindowSelector {
        q: Some("FEE".to_owned()),
        before_chars: Some(4),
        after_chars: Some(4),
        ..WindowSelector::default()
    };
    let answer = reader(&world)
        .window(window("m1", "body", selector))
        .unwrap();
    assert_eq!(
        answer,
        json!({
            "object": "field_window", "stream": "messages", "record_id": "m1", "connection_id": "work",
            "url": "/v1/streams/messages/records/m1/field-window", "field": {"path": "body", "type": "string"},
            "window": {"text": "The fee was", "start_chars": 0, "end_chars": 11, "total_chars": 21, "limit_chars": 11,
                "match_start_chars": 4, "match_end_chars": 7, "complete": false, "has_more": true,
                "next_offset_chars": 11, "previous_offset_chars": null},
            "cite": "AAv3QI56YWkws0la",
            "meta": {"count": {"kind": "none"}, "warnings": []}
        })
    );
}

#[test]
fn a_search_hit_carries_its_evidence_once_and_how_to_read_on() {
    // PA-02, AN-10
    let world = world();
    let page = reader(&world).search(words("refunded")).unwrap();
    assert_eq!(
        page,
        json!({
            "object": "list", "url": "/v1/search", "has_more": false,
            "data": [{"object": "search_result", "stream": "messages", "record_key": "m1", "connector_id": "demo_mail",
                "connector_key": "demo_mail", "connection_id": "work", "display_name": "Work mail",
                "citation_url": "https://me.example/records/work/messages/m1",
                "emitted_at": "2026-05-01T00:00:00Z", "authored_at": "2026-03-03T09:00:00Z", "title": "Re: overdraft", "matched_fields": ["body"],
                "evidence_excerpts": [{"field_path": "body", "text_start_chars": 0, "text_end_chars": 21,
                    "matches": [{"start_chars": 12, "end_chars": 20}],
                    "preview_text": "The fee was <mark>refunded</mark>.", "truncated": false, "cite": "ABX3QI56YasoQ-kB",
                    "read": {"offset_chars": 0, "limit_chars": 21}}]}],
            "meta": {"count": null, "count_accuracy": "not_counted",
                "recall": {"complete": true, "ranking_scope": "all_matches", "truncated": false, "sources_searched_count": 1},
                "words": {"found": ["refunded"], "with_every_word": 1},
                "warnings": []}
        })
    );
}

#[test]
fn a_hit_on_a_page_that_is_counted_in_bytes_says_nothing_that_stands_beside_it() {
    // AN-10, AN-12
    let world = world();
    let counted = reader(&world).bounded(8_192);
    let page = counted.search(words("refunded")).unwrap();
    assert_eq!(
        page["data"],
        json!([{"object": "search_result", "stream": "messages", "record_key": "m1", "connector_id": "demo_mail",
            "connection_id": "work", "display_name": "Work mail",
            "emitted_at": "2026-05-01T00:00:00Z", "authored_at": "2026-03-03T09:00:00Z", "title": "Re: overdraft",
            "evidence_excerpts": [{"field_path": "body", "text_start_chars": 0,
                "preview_text": "The fee was <mark>refunded</mark>.", "truncated": false, "cite": "ABX3QI56YasoQ-kB"}]}])
    );
    assert_eq!(
        page["links"],
        json!({"records": "https://me.example/records"})
    );
    assert_eq!(
        page["meta"],
        json!({"recall": {"complete": true, "ranking_scope": "all_matches", "truncated": false},
            "words": {"found": ["refunded"], "with_every_word": 1},
            "warnings": []})
    );
}

#[test]
fn only_the_owner_is_told_a_score_and_only_granted_fields_tell_when_it_was_written() {
    let world = world();
    let hit = &world.owner().find("refunded")[0];
    assert_eq!(hit["score"]["kind"], "bm25");
    assert_eq!(hit["score"]["order"], "higher_is_better");
    assert!(hit["score"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(hit["authored_at"], "2026-03-03T08:59:00Z");
    // SE-16: sent_at is not granted; what the stream declares as its time is.
    let hit = &reader(&world).find("refunded")[0];
    assert!(hit.get("score").is_none());
    assert_eq!(hit["authored_at"], "2026-03-03T09:00:00Z");
    // Nothing granted says when it was written.
    let timeless = world.mail_client(json!([{"name": "messages", "fields": ["id", "body"]}]));
    assert!(timeless.find("refunded")[0].get("authored_at").is_none());
}

#[test]
fn a_hit_says_who_wrote_it_where_that_is_granted() {
    let text = r#""text": { "type": "string" },"#;
    let who = r#""who": { "type": "string", "x_pdpp_role": "author" },"#;
    let world = World::mail();
    world.connect(&CHAT.replace(text, &format!("{text}{who}")), "chat", "Chat");
    let record =
        json!({"id": "z", "text": "tea", "who": " Mara ", "sent_at": "2026-02-04T00:00:00Z"});
    world.put("chat", "messages", &record);
    assert_eq!(world.owner().find("tea")[0]["author"], "Mara");
    let streams = json!([{"name": "messages", "instance_ids": ["chat"], "fields": ["id", "text"]}]);
    let client = world.client("demo_chat", streams);
    let hit = &client.find("tea")[0];
    assert!(hit.get("author").is_none(), "{hit}");
    // AN-17: a page names the fields that say so, of those that are granted.
    let mut asked = every();
    asked.connection_id = Some("chat".to_owned());
    let page = world.owner().records(asked.clone()).unwrap();
    let roles = json!({"author": "who", "time": "sent_at"});
    assert_eq!(page["meta"]["roles"], roles);
    let page = client.records(asked).unwrap();
    assert!(page["meta"].get("roles").is_none(), "{page}");
}

#[test]
fn streams_are_listed_per_connection() {
    let world = world();
    let answer = reader(&world).streams(None).unwrap();
    assert_eq!(
        answer,
        json!({
            "object": "list", "has_more": false,
            "data": [{"object": "stream", "name": "messages", "record_count": 2, "last_updated": "2026-05-01T00:00:00Z",
                "connection_id": "work", "connector_instance_id": "work", "connector_key": "demo_mail",
                "connector_id": "demo_mail", "source": {"kind": "connector", "id": "https://sources.example/demo_mail"},
                "display_name": "Work mail",
                "freshness": {"status": "unknown", "captured_at": "2026-05-01T00:00:00.000Z"}}],
            "meta": {"count": {"kind": "none"}, "warnings": []}
        })
    );
    let answer = world.owner().streams(Some("work")).unwrap();
    let names: Vec<&str> = answer["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["messages", "attachments", "receipts", "events"]);
    assert_eq!(answer["data"][1]["last_updated"], Value::Null);
    assert_eq!(answer["data"][1]["freshness"], json!({"status": "unknown"}));
}

#[test]
fn related_records_stand_beside_a_record() {
    let world = world();
    for (id, message) in [("a1", "m1"), ("a2", "m1"), ("a3", "m1"), ("a4", "m2")] {
        world.attachment(&json!({"id": id, "message_id": message, "name": "plan.pdf"}));
    }
    world.put("work", "receipts", &json!({"id": "m1", "total": 3}));
    let expand = |limit| {
        vec![
            ExpandRequest {
                name: "attachments".to_owned(),
                limit,
            },
            ExpandRequest {
                name: "receipt".to_owned(),
                limit: None,
            },
        ]
    };
    let mut query = one("m1");
    query.expand = expand(None);
    let record = world.owner().record(query).unwrap();
    let expanded = &record["expanded"];
    assert_eq!(expanded["attachments"]["object"], "list");
    assert_eq!(expanded["attachments"]["has_more"], true);
    assert_eq!(ids(&expanded["attachments"]), ["a1", "a2"]);
    assert_eq!(
        expanded["receipt"],
        json!({"object": "record", "id": "m1", "stream": "receipts", "emitted_at": "2026-05-01T00:00:00Z",
            "connection_id": "work", "connector_key": "demo_mail", "display_name": "Work mail",
            "data": {"id": "m1", "total": 3}})
    );
    let options = ListOptions {
        expand: expand(Some(3)),
        ..ListOptions::default()
    };
    // Request fields do not reach into related records.
    let mut query = list("messages", options);
    query.projection = fields(&["subject"]);
    let page = world.owner().records(query).unwrap();
    assert_eq!(ids(&page), ["m1", "m2"]);
    assert_eq!(
        ids(&page["data"][0]["expanded"]["attachments"]),
        ["a1", "a2", "a3"]
    );
    assert_eq!(page["data"][1]["expanded"]["receipt"], Value::Null);
    assert_eq!(
        page["data"][1]["expanded"]["attachments"]["data"][0]["data"]["name"],
        "plan.pdf"
    );
}

#[test]
fn a_client_expands_what_it_is_granted() {
    let world = world();
    world.attachment(&json!({"id": "a1", "message_id": "m1", "name": "plan.pdf"}));
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id"]},
            {"name": "attachments", "fields": ["message_id"]}]));
    let mut query = one("m1");
    query.expand = vec![ExpandRequest {
        name: "attachments".to_owned(),
        limit: None,
    }];
    let record = reader.record(query).unwrap();
    assert_eq!(
        record["expanded"]["attachments"]["data"][0]["data"],
        json!({"message_id": "m1"})
    );
}

#[test]
fn bytes_are_reached_through_the_record_that_points_at_them() {
    let world = world();
    let at = store::StreamRef::new(
        &contract::ConnectionId::parse("work").unwrap(),
        &stream("attachments"),
    );
    let key = contract::RecordKey::single("a1").unwrap();
    let blob = world
        .store
        .put_blob(&at, &key, "text/plain", &mut &b"hello blob"[..])
        .unwrap();
    let id = blob.id.as_str();
    world.attachment(&json!({"id": "a1", "message_id": "m1",
        "blob_ref": {"blob_id": id, "fetch_url": "https://evil.example"}}));
    let record = world
        .owner()
        .record(RecordQuery::new(stream("attachments"), "a1"))
        .unwrap();
    assert_eq!(
        record["data"]["blob_ref"],
        json!({"blob_id": id, "fetch_url": format!("/v1/blobs/{id}")})
    );
    let answer = world.owner().blob(id, None).unwrap();
    assert_eq!(answer, ("text/plain".to_owned(), b"hello blob".to_vec()));

    let granted =
        |fields: Value| world.mail_client(json!([{"name": "attachments", "fields": fields}]));
    assert!(granted(json!(["blob_ref"])).blob(id, Some("work")).is_ok());
    let hidden = granted(json!(["id"])).blob(id, None).unwrap_err();
    assert_eq!(hidden.code.as_str(), "blob_not_found");
    assert_eq!(world.owner().blob("blob_nope", None).unwrap_err(), hidden);
    world.delete("work", "attachments", "a1");
    assert_eq!(world.owner().blob(id, None).unwrap_err(), hidden);
}

#[test]
fn filters_are_typed() {
    let world = World::mail();
    world.message(&json!({"id": "a", "seen": true, "size_bytes": 3, "amount": 2.0, "received_at": "2026-03-01T10:00:00Z", "subject": ""}));
    world.put_text("work", "messages", r#"{"id":"b","seen":false,"size_bytes":30,"amount":2,"received_at":"2026-03-01T12:00:00+02:00","subject":null}"#);
    world.message(&json!({"id": "c", "size_bytes": 4}));
    let found = |filter: Filter| {
        let mut keys = world.owner().keys(filtered("messages", vec![filter]));
        keys.sort();
        keys
    };
    let exact = |name: &str, value: &str| found(Filter::exact(field(name), value));
    assert_eq!(exact("seen", "true"), ["a"]);
    assert_eq!(exact("subject", ""), ["a"]);
    assert_eq!(exact("subject", "null"), Vec::<String>::new());
    assert_eq!(exact("size_bytes", "3"), ["a"]);
    assert_eq!(exact("amount", "2.0"), ["a", "b"]);
    // One moment, two spellings.
    assert_eq!(
        exact("received_at", "2026-03-01T11:00:00+01:00"),
        ["a", "b"]
    );
    let range = |name: &str, bounds: &[(FilterOperator, &str)]| {
        let bounds = bounds
            .iter()
            .map(|(operator, text)| (*operator, (*text).to_owned()))
            .collect();
        found(Filter::range(field(name), bounds))
    };
    assert_eq!(range("size_bytes", &[(Gte, "4"), (Lte, "29")]), ["c"]);
    assert_eq!(range("amount", &[(Gt, "1.5")]), ["a", "b"]);
    assert_eq!(
        range(
            "received_at",
            &[(Gte, "2026-03-01"), (Lt, "2026-03-01T10:00:00Z")]
        ),
        Vec::<String>::new()
    );
}

#[test]
fn a_limit_that_is_too_large_is_cut_openly() {
    let world = world();
    let page = world.owner().records(limited("messages", 500)).unwrap();
    assert_eq!(page["meta"]["warnings"][0]["code"], "limit_clamped");
    assert_eq!(
        page["meta"]["warnings"][0]["detail"],
        json!({"max_limit": 100, "requested_limit": 500})
    );
    let mut query = every();
    query.limit = contract::query::PageLimit::new(101);
    query.reading = Reading::Changes(ChangesSince::Beginning);
    let page = world.owner().records(query).unwrap();
    assert_eq!(page["meta"]["warnings"][0]["param"], "limit");
    let selector = WindowSelector {
        limit_chars: Some(99_999),
        ..WindowSelector::default()
    };
    let answer = world
        .owner()
        .window(window("m1", "body", selector))
        .unwrap();
    assert_eq!(
        answer["meta"]["warnings"],
        json!([{"code": "limit_clamped", "message": "limit_chars clamped to 16384", "param": "limit_chars"}])
    );
}
