//! Answers of the reference server read into our types and written back unchanged.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of a test fail as the test does"
)]

use contract::aggregate::Aggregation;
use contract::page::{Page, WarningCode, Warnings as _};
use contract::record::{Expanded, FieldWindow, Record};
use contract::schema::{SchemaAnswer, StreamMetadata, StreamSummary};
use contract::search::SearchHit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads, writes, compares as JSON values, and hands out the typed form.
fn survives<T: DeserializeOwned + Serialize>(text: &str) -> T {
    let typed: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let written = serde_json::to_string(&typed).unwrap();
    assert!(
        contract::json::same_value(text, &written),
        "read\n{text}\nwrote\n{written}"
    );
    // Through a value as well: surfaces that look inside an answer take that road.
    let value: Value = serde_json::from_str(text).unwrap();
    let again: T = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), value);
    typed
}

#[test]
fn a_page_of_records_survives() {
    let page: Page<Record> = survives(
        r#"{"object":"list","url":"/v1/streams/messages/records","has_more":true,"next_cursor":"eyJj",
        "data":[{"object":"record","id":"m3","stream":"messages","emitted_at":"2026-03-03T09:05:00Z",
          "data":{"id":"m3","amount":12345678901234567890.0010,"z":1,"a":[1.50]},
          "connection_id":"cin_work","connector_instance_id":"cin_work","display_name":"Work mail"}],
        "links":{"self":"/v1/streams/messages/records?limit=1","next":"/v1/streams/messages/records?limit=1&cursor=eyJj"},
        "meta":{"count":{"kind":"exact","value":3},
          "window":{"total":3,"earliest_at":"2026-03-01T10:00:00.000Z","latest_at":"2026-03-03T09:00:00.000Z"},
          "warnings":[{"code":"limit_clamped","message":"m","param":"limit","detail":{"max_limit":100,"requested_limit":500}}]}}"#,
    );
    assert_eq!(page.next_cursor(), Some("eyJj"));
    assert_eq!(page.warnings()[0].code, WarningCode::LimitClamped);
    let data = page.data[0].data.as_ref().unwrap().get();
    assert_eq!(
        data,
        r#"{"id":"m3","amount":12345678901234567890.0010,"z":1,"a":[1.50]}"#
    );
}

#[test]
fn a_last_page_and_a_changes_page_survive() {
    let page: Page<Record> = survives(
        r#"{"object":"list","data":[{"object":"record","id":"m2","stream":"messages","deleted":true,
        "deleted_at":"2026-03-05T00:00:00Z","emitted_at":"2026-03-05T00:00:00Z","connection_id":"cin_work",
        "connector_instance_id":"cin_work","display_name":"Work mail"}],"has_more":false,"next_changes_since":"eyJr",
        "url":"/v1/streams/messages/records","links":{"self":"/x","next":null},"meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
    assert!(page.data[0].deleted && page.data[0].data.is_none());
    assert_eq!(
        page.next_changes_since.as_option().map(String::as_str),
        Some("eyJr")
    );
    // FX-PAGE: meta without warnings, no links; nothing is added.
    survives::<Page<Record>>(
        r#"{"object":"list","data":[],"has_more":true,"next_cursor":"cur_2","meta":{"count":{"kind":"exact","value":42}}}"#,
    );
    // What another server says besides is passed over; whoever needs it keeps the text.
    let odd =
        r#"{"data":[{"id":"x","strange":{"deep":[1,null]}}],"next_cursor":null,"server":"other"}"#;
    assert_eq!(
        serde_json::from_str::<Page<Record>>(odd).unwrap().data[0].id,
        "x"
    );
}

#[test]
fn our_tombstone_has_the_shape_of_the_wire() {
    let tombstone =
        Record::tombstone("messages", "m2", "2026-03-05T00:00:00Z").in_connection("work");
    assert_eq!(
        serde_json::to_string(&tombstone).unwrap(),
        r#"{"object":"record","id":"m2","stream":"messages","emitted_at":"2026-03-05T00:00:00Z","connection_id":"work","deleted":true,"deleted_at":"2026-03-05T00:00:00Z"}"#
    );
}

#[test]
fn a_record_with_related_records_survives() {
    let record: Record = survives(
        r#"{"connector_key":"https://sources.example/demo_mail","connection_id":"cin_work","data":{"id":"m1","labels":["a"]},
        "emitted_at":"2026-03-06T00:00:00Z","id":"m1","object":"record","stream":"messages",
        "connector_instance_id":"cin_work","display_name":"Work mail","record_json_bytes":188,
        "expanded":{"thread":null,"sender":{"object":"record","id":"p1","stream":"people","emitted_at":"e","data":{"n":1.0}},
          "attachments":{"object":"list","has_more":false,"data":[{"object":"record","id":"a1","stream":"attachments",
            "data":{"blob_ref":{"blob_id":"blob_sha256_00","size_bytes":10}},"emitted_at":"e","connection_id":"cin_work"}]}},
        "links":{"self":"/v1/streams/messages/records/m1"},"meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
    let expanded = record.expanded.unwrap();
    assert!(matches!(expanded.get("thread"), Some(Expanded::None)));
    assert!(matches!(expanded.get("sender"), Some(Expanded::One(_))));
    assert!(
        matches!(expanded.get("attachments"), Some(Expanded::Many(list)) if list.data.len() == 1)
    );
}

#[test]
fn a_field_window_survives() {
    let window: FieldWindow = survives(
        r#"{"object":"field_window","stream":"messages","record_id":"m1","url":"/v1/streams/messages/records/m1/field-window",
        "field":{"path":"body","type":"string"},"window":{"text":"fee","start_chars":5404,"end_chars":5407,"total_chars":11436,
        "limit_chars":3,"match_start_chars":null,"match_end_chars":null,"complete":false,"has_more":true,
        "next_offset_chars":5407,"previous_offset_chars":5401},"links":{"self":"/x"},"meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
    assert_eq!(window.window.text, "fee");
}

#[test]
fn aggregates_survive() {
    survives::<Aggregation>(
        r#"{"approximate":false,"field":"size_bytes","filtered_record_count":1000,"granularity":null,"group_by":null,
        "group_by_time":null,"metric":"sum","object":"aggregation","stream":"messages","time_zone":null,"value":1206965,
        "links":{"self":"/x"},"meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
    let grouped: Aggregation = survives(
        r#"{"approximate":false,"field":null,"filtered_record_count":1000,"granularity":"month","group_by":null,
        "group_by_time":"received_at","metric":"count","object":"aggregation","stream":"messages","time_zone":"UTC",
        "groups":[{"count":29,"key":"2023-01-01"},{"count":1,"key":null}],"limit":10,"other_count":722,
        "links":{"self":"/x"},"meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
    assert_eq!(grouped.groups.unwrap()[1].key.get(), "null");
}

#[test]
fn search_hits_survive() {
    let page: Page<SearchHit> = survives(
        r#"{"has_more":false,"object":"list","url":"/v1/search","data":[{"connector_id":"bench_mail",
        "emitted_at":"2024-10-13T12:36:00.391Z","matched_fields":["body"],"object":"search_result","record_key":"pm0000595",
        "record_url":"/v1/streams/messages/records/pm0000595","stream":"messages","connection_id":"cin_bench_personal",
        "connector_instance_id":"cin_bench_personal","display_name":"Bench Mail - personal",
        "snippet":{"field":"body","text":"…zafe <mark>ref</mark>."},"evidence_excerpts":[{"field_path":"body",
        "object":"evidence_excerpt","preview_text":"…zafe <mark>ref</mark>.","provenance":"lexical_match",
        "read":{"field":"body","method":"GET","object":"field_window_read","record_id":"pm0000595",
        "route":"/v1/streams/messages/records/pm0000595/field-window","stream":"messages","connection_id":"cin_bench_personal"},
        "truncated":true}],"score":{"kind":"bm25","order":"lower_is_better","value":-5.311427355723818}}],
        "meta":{"count":1,"count_accuracy":"exact","recall":{"complete":true,"ranked_candidate_count":1,
        "ranking_scope":"all_matches","sources_searched_count":2,"truncated":false},
        "index_maintenance":{"note":"backlog","pending_scopes":2},"warnings":[]},"links":{"self":"/v1/search?q=ref","next":null}}"#,
    );
    assert_eq!(
        page.data[0].evidence_excerpts.as_ref().unwrap()[0].text,
        None
    );
    // FX-ODD and FX-URI: hits that lack what the contract names and carry what it does not.
    survives::<Page<SearchHit>>(
        r#"{"data":[{"url":"https://x.test/1","title":"u","connection_id":"c1"},{"title":"keyless"},
        {"record_uri":"pdpp://record/x","data":{"sent_at":"2026"},"scores":{"lexical":{"value":1.5}}}],"meta":{"count":null}}"#,
    );
}

#[test]
fn evidence_has_the_members_of_decision_20() {
    survives::<SearchHit>(
        r#"{"object":"search_result","stream":"m","record_key":"k","title":"T","citation_url":"http://h/records/c/m/k",
        "evidence_excerpts":[{"object":"evidence_excerpt","field_path":"body","text":"a fee","text_start_chars":3,
        "text_end_chars":8,"matches":[{"start_chars":5,"end_chars":8}],"preview_text":"a <mark>fee</mark>","truncated":true,
        "provenance":"lexical_match","read":{"object":"field_window_read","method":"GET","route":"/r","connection_id":"c",
        "stream":"m","record_id":"k","field":"body","offset_chars":3,"limit_chars":400}}]}"#,
    );
}

#[test]
fn streams_survive() {
    survives::<Page<StreamSummary>>(
        r#"{"object":"list","data":[{"object":"stream","name":"attachments","record_count":0,"last_updated":null,
        "connection_id":"cin_home","connector_instance_id":"cin_home","connector_id":"demo","source":{"kind":"connector","id":"demo"},
        "freshness":{"status":"unknown"}}],"has_more":false,"links":{"self":"/v1/streams","next":null},
        "meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
}

const FULL_STREAM: &str = r#"{"object":"stream_metadata","name":"notes","semantics":"mutable_state","primary_key":["id"],
    "cursor_field":"updated_at","consent_time_field":"created_at","selection":{"fields":true,"resources":true},
    "schema":{"type":"object","required":["id"],"properties":{"z":{"type":"string"},"amount":{"type":["number","null"],"maximum":1e400}}},
    "query":{"range_filters":{"amount":["gte","lte"]},"aggregations":{"count":true,"sum":["amount"]},
      "search":{"lexical_fields":["id"]},"expand":[{"name":"attachments","max_limit":50}]},
    "views":[{"id":"v","label":"V","fields":["id"]}],
    "relationships":[{"name":"attachments","stream":"attachments","foreign_key":"message_id","cardinality":"has_many"}],
    "field_capabilities":{"z":{"schema":{"type":"string"},"granted":true,"type":"text","role":"title",
      "exact_filter":{"declared":true,"usable":true},"range_filter":{"declared":true,"usable":true,"operators":["gte","lte"]},
      "lexical_search":{"declared":true,"usable":false,"reason":"field_not_granted"},"semantic_search":{"declared":false,"usable":false},
      "aggregation":{"count_distinct":{"declared":false,"usable":false},"sum":{"declared":true,"usable":true}}},
      "amount":{"schema":{}}},
    "expand_capabilities":[{"name":"attachments","stream":"attachments","target_stream":"attachments","cardinality":"has_many",
      "granted":true,"usable":true,"child_parent_key_field":"message_id","foreign_key":"message_id","default_limit":10,"max_limit":50}],
    "freshness":{"status":"unknown","captured_at":"2026-05-01T00:00:00.000Z"},"instance_ids":["cin_a"],"resources":["n1"],
    "time_constraint":{"field":"created_at","since":"2026-01-01T12:00:00Z"},
    "granted_connections":[{"connection_id":"cin_a"},{"connection_id":"cin_b","display_name":"B label"}]}"#;

#[test]
fn stream_metadata_survives_in_declared_order() {
    // 1e400 is beyond what a JSON value of this crate can hold, so this one goes through text alone.
    let stream: StreamMetadata = serde_json::from_str(FULL_STREAM).unwrap();
    assert!(contract::json::same_value(
        FULL_STREAM,
        &serde_json::to_string(&stream).unwrap()
    ));
    let names: Vec<&str> = stream
        .field_capabilities
        .iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["z", "amount"]);
}

#[test]
fn the_schema_survives_in_both_sizes() {
    let full = format!(
        r#"{{"object":"schema","bearer":{{"token_kind":"client","scope":"grant","grant_id":"g","client_id":"c"}},
        "connectors":[{{"object":"connector","source":{{"kind":"connector","id":"demo2"}},"connector_key":"demo2",
        "connector_id":"demo2","stream_count":1,"streams":[{}]}}],"links":{{"self":"/v1/schema"}},
        "meta":{{"count":{{"kind":"none"}},"warnings":[]}}}}"#,
        FULL_STREAM.replace("1e400", "9")
    );
    let SchemaAnswer::Full(schema) = survives::<SchemaAnswer>(&full) else {
        panic!("not the full form")
    };
    let compact = survives::<SchemaAnswer>(&serde_json::to_string(&schema.compact()).unwrap());
    assert!(matches!(compact, SchemaAnswer::Compact(_)));
    survives::<SchemaAnswer>(
        r#"{"object":"schema","detail":"compact","bearer":{"scope":"owner","token_kind":"owner"},"connector_count":1,"stream_count":1,
        "connectors":[{"object":"connector","source":{"id":"demo_mail","kind":"connector"},"connector_key":"demo_mail",
        "connector_id":"demo_mail","stream_count":1,"granted_connections":[{"connection_id":"cin_work","display_name":"Work mail"}],
        "streams":[{"name":"messages","primary_key":["id"],"cursor_field":"received_at","record_count":3,
        "field_capabilities":{"id":"t=string,eq","subject":"t=text,role=primary-title,eq,lex,sem"},
        "expand_capabilities":[{"name":"attachments","stream":"attachments","usable":true,"max_limit":50}]}]}],
        "links":{"self":"/v1/schema?view=compact"},"meta":{"count":{"kind":"none"},"warnings":[]}}"#,
    );
}
