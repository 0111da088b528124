//! Searching by meaning as clients see it: what a hit shows, what is advertised, what is noted, and what is refused.

use contract::error::ErrorCode;
use contract::query::{Count, PageLimit};
use contract::search::{Matching, SearchMode, SearchOrder, SearchQuery};
use contract::window::WindowSelector;
use serde_json::{Value, json};

use crate::fixture::{Reader, World, refusal, window, words};

const GROUPS: [&[&str]; 2] = [&["car", "automobile"], &["dinner", "meal"]];

/// Some mail, with a model.
fn world() -> World {
    let world = World::mail();
    world.add_model(&GROUPS);
    for (id, subject, body) in [
        ("m1", "Tuesday", "We sold the automobile."),
        ("m2", "Friday", "A dinner in Lyon"),
        ("m3", "Lyon", "A long trip"),
    ] {
        world.message(&json!({"id": id, "subject": subject, "body": body, "received_at": "2026-02-01T00:00:00Z"}));
    }
    world.embed();
    world
}

fn by(mode: SearchMode, q: &str) -> SearchQuery {
    let mut query = words(q);
    query.mode = mode;
    query
}

fn client(world: &World, fields: &[&str]) -> Reader {
    world.mail_client(json!([{"name": "messages", "fields": fields}]))
}

fn first(reader: &Reader, query: SearchQuery) -> Value {
    reader.search(query).unwrap()["data"][0].clone()
}

#[test]
fn a_hit_by_meaning_shows_a_passage_and_no_evidence() {
    // FI-40
    let world = world();
    let reader = client(&world, &["id", "subject", "body"]);
    for mode in [SearchMode::Semantic, SearchMode::Hybrid] {
        let mut hit = first(&reader, by(mode, "a car"));
        let passage = hit["passage"].as_object_mut().unwrap();
        assert!(passage.shift_remove("cite").is_some());
        assert_eq!(hit["record_key"], "m1");
        assert_eq!(hit["retrieval_mode"], mode.as_str());
        assert_eq!(hit["matched_fields"], json!([]));
        assert_eq!(
            hit["passage"],
            json!({"field_path": "body", "text": "We sold the automobile.", "truncated": false,
                "text_start_chars": 0, "text_end_chars": 23, "provenance": "semantic_match",
                "read": {"offset_chars": 0, "limit_chars": 23}})
        );
        for absent in [
            "evidence_excerpts",
            "matched_terms",
            "missing_terms",
            "score",
            "snippet",
        ] {
            assert_eq!(hit.get(absent), None, "{absent}");
        }
        let selector = WindowSelector {
            offset_chars: Some(0),
            limit_chars: Some(23),
            ..WindowSelector::default()
        };
        let read = reader.window(window("m1", "body", selector)).unwrap();
        assert_eq!(read["window"]["text"], "We sold the automobile.");
    }
}

#[test]
fn with_words_a_hit_that_has_one_proves_it() {
    let world = world();
    let reader = client(&world, &["id", "subject", "body"]);
    let page = reader.search(by(SearchMode::Hybrid, "meal Lyon")).unwrap();
    let hit = &page["data"][0];
    assert_eq!(
        hit["record_key"], "m2",
        "it has the word and means the other"
    );
    assert_eq!(
        hit["evidence_excerpts"][0]["preview_text"],
        "A dinner in <mark>Lyon</mark>"
    );
    assert_eq!(hit.get("passage"), None);
    assert_eq!(page["meta"]["words"]["found"], json!(["lyon"]));
    assert_eq!(page["meta"]["recall"]["ranking_scope"], "candidate_window");
    let page = reader
        .search(by(SearchMode::Semantic, "meal Lyon"))
        .unwrap();
    assert_eq!(page["meta"].get("words"), None);
    assert_eq!(page["url"], "/v1/search/semantic");
}

#[test]
fn only_granted_fields_are_compared_and_noted() {
    // FI-32
    let world = world();
    let hidden = client(&world, &["id", "subject"]);
    let page = hidden.search(by(SearchMode::Semantic, "car")).unwrap();
    assert!(!page.to_string().contains("automobile"));
    let keys = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["record_key"].clone());
    assert!(!keys.into_iter().any(|key| key == "m1"));
    let reader = client(&world, &["id", "body"]);
    world.notes.0.lock().unwrap().clear();
    first(&reader, by(SearchMode::Semantic, "car"));
    let noted = format!("{:?}", world.notes.0.lock().unwrap());
    assert!(noted.contains("m1") && noted.contains("body"), "{noted}");
}

#[test]
fn what_can_be_searched_by_meaning_is_advertised_with_a_model_only() {
    // FI-41
    let world = world();
    let reader = client(&world, &["id", "subject", "body"]);
    let described = reader.stream("messages").unwrap();
    assert_eq!(
        described["query"]["search"]["semantic_fields"],
        json!(["body"])
    );
    let can = |described: &Value, field: &str| {
        described["field_capabilities"][field]["semantic_search"]["usable"] == true
    };
    assert!(can(&described, "body") && !can(&described, "subject"));
    world.store.remove_model().unwrap();
    let described = reader.stream("messages").unwrap();
    assert_eq!(described["query"]["search"].get("semantic_fields"), None);
    assert!(!can(&described, "body"));
    let (code, param) = refusal(reader.search(by(SearchMode::Hybrid, "car")));
    assert_eq!(
        (code, param.as_deref()),
        (ErrorCode::ModeNotSupported, Some("mode"))
    );
}

#[test]
fn options_of_words_do_not_go_with_meaning() {
    let world = world();
    let reader = client(&world, &["id", "body"]);
    for name in ["order", "match", "count"] {
        let mut query = by(SearchMode::Hybrid, "car");
        match name {
            "order" => query.order = SearchOrder::Newest,
            "match" => query.matching = Matching::All,
            _ => query.count = Count::Exact,
        }
        let (code, param) = refusal(reader.search(query));
        assert_eq!(
            (code, param.as_deref()),
            (ErrorCode::InvalidRequest, Some(name))
        );
    }
}

#[test]
fn cursors_belong_to_their_mode_and_model() {
    // FI-36
    let world = world();
    let reader = client(&world, &["id", "subject", "body"]);
    let page = |mode: SearchMode, cursor: Option<&str>| {
        let mut query = by(mode, "car Lyon dinner");
        query.limit = PageLimit::new(1);
        query.cursor = cursor.map(str::to_owned);
        reader.search(query)
    };
    let begun = page(SearchMode::Hybrid, None).unwrap();
    let cursor = begun["next_cursor"].as_str().unwrap();
    assert!(cursor.len() <= 300, "{}", cursor.len());
    let next = page(SearchMode::Hybrid, Some(cursor)).unwrap();
    assert_ne!(
        next["data"][0]["record_key"],
        begun["data"][0]["record_key"]
    );
    for other in [SearchMode::Lexical, SearchMode::Semantic] {
        assert_eq!(
            refusal(page(other, Some(cursor))).0,
            ErrorCode::InvalidCursor
        );
    }
    world.add_model(&[&["car", "Lyon"]]);
    assert_eq!(
        refusal(page(SearchMode::Hybrid, Some(cursor))).0,
        ErrorCode::InvalidCursor
    );
}

#[test]
fn what_has_no_vectors_yet_is_said_to_those_who_may_see_it() {
    // FI-42
    let world = world();
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id", "body"],
        "time_constraint": {"field": "received_at", "since": "2026-01-01"}}]));
    let meta = || reader.search(by(SearchMode::Semantic, "car")).unwrap()["meta"].clone();
    assert_eq!(meta()["recall"]["complete"], true);
    world.message(&json!({"id": "old", "body": "car", "received_at": "2025-01-01T00:00:00Z"}));
    assert_eq!(
        meta()["recall"]["complete"],
        true,
        "nothing that can be seen"
    );
    assert_eq!(meta().get("index_maintenance"), None);
    world.message(&json!({"id": "new", "body": "car", "received_at": "2026-03-01T00:00:00Z"}));
    assert_eq!(meta()["recall"]["complete"], false);
    assert!(meta()["index_maintenance"]["note"].is_string());
    world.embed();
    assert_eq!(meta()["recall"]["complete"], true);
    assert_eq!(
        first(&reader, by(SearchMode::Semantic, "car"))["record_key"],
        "new"
    );
}
