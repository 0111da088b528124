//! Search, in given hits and in hostile worlds.

use serde_json::{Value, json};
use testkit::fake::{FakeServer, NEEDLE, Quirk, SearchShape, State, fixtures, hostile};

use super::ask::{ok, refused};

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[test]
fn given_hits_are_paged_and_narrowed() {
    let server = FakeServer::start(fixtures::multi());
    let hits = |target: &str| ok(&server, target)["data"].as_array().unwrap().len();
    assert_eq!(hits("/v1/search?q=maker"), 2);
    assert_eq!(hits("/v1/search?q=maker&connection_id=cin_bbb"), 1);
    let first = ok(&server, "/v1/search?q=maker&limit=1");
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = ok(
        &server,
        &format!("/v1/search?q=maker&limit=1&cursor={cursor}"),
    );
    assert_eq!(second["data"][0]["record_key"], json!("o9"));
    assert_eq!(second["has_more"], json!(false));
    assert_eq!(refused(&server, "/v1/search").0, 400);
    assert_eq!(refused(&server, "/v1/search?q=a&mode=lexical").0, 400);
    assert_eq!(refused(&server, "/v1/search/semantic?q=a").0, 404);
    let many = ok(
        &FakeServer::start(fixtures::many(200)),
        "/v1/search?q=a&limit=100",
    );
    assert_eq!(many["data"].as_array().unwrap().len(), 100);
    assert_eq!(many["has_more"], json!(true));
}

#[test]
fn hits_stand_where_older_servers_put_them() {
    for (shape, pointer) in [
        (SearchShape::Results, "/results/0/record_key"),
        (SearchShape::Hits, "/hits/0/record_key"),
        (SearchShape::DataResults, "/data/results/0/record_key"),
        (SearchShape::DataData, "/data/data/0/record_key"),
    ] {
        let mut state = fixtures::multi();
        state.search_shape = shape;
        let body = ok(&FakeServer::start(state), "/v1/search?q=maker");
        assert_eq!(body.pointer(pointer), Some(&json!("o1")), "{shape:?}");
    }
}

#[test]
fn a_search_proves_what_it_says() {
    // PA-02, PA-03
    let server = FakeServer::start(fixtures::evidence_found());
    let body = ok(&server, "/v1/search?q=hyperlane");
    let excerpt = &body["data"][0]["evidence_excerpts"][0];
    let preview = excerpt["preview_text"].as_str().unwrap();
    assert!(preview.contains("bridge using <mark>Hyperlane</mark> or LayerZero"));
    assert_eq!(
        excerpt["matches"],
        json!([{"start_chars": 3_000, "end_chars": 3_009}])
    );
    let read = &excerpt["read"];
    let target = format!(
        "{}?field=text&connection_id=cin_slack&offset_chars={}&limit_chars={}",
        read["route"].as_str().unwrap(),
        read["offset_chars"],
        read["limit_chars"]
    );
    assert_eq!(ok(&server, &target)["window"]["text"], excerpt["text"]);
    let nothing = ok(&server, "/v1/search?q=hidden");
    assert_eq!(nothing["data"], json!([]), "a hidden field is not searched");
    let older = FakeServer::start(fixtures::evidence_found().with(Quirk::OlderEvidence));
    let body = ok(&older, "/v1/search?q=hyperlane");
    assert_eq!(body["data"][0]["evidence_excerpts"][0]["text"], Value::Null);
}

/// Every record is reachable by its key, and every excerpt is where it says.
fn crawl(state: &State) -> usize {
    let server = FakeServer::start(state.clone());
    for record in &state.world.records {
        let (stream, key) = (encoded(&record.stream), encoded(&record.key));
        let connection = encoded(&record.connection_id);
        let target = format!("/v1/streams/{stream}/records/{key}?connection_id={connection}");
        assert_eq!(ok(&server, &target)["id"], json!(record.key));
    }
    let body = ok(&server, &format!("/v1/search?q={NEEDLE}&limit=100"));
    let mut proven = 0;
    for hit in body["data"].as_array().unwrap() {
        for excerpt in hit["evidence_excerpts"].as_array().unwrap() {
            let read = &excerpt["read"];
            let target = format!(
                "{}?field={}&connection_id={}&offset_chars={}&limit_chars={}",
                read["route"].as_str().unwrap(),
                encoded(read["field"].as_str().unwrap()),
                encoded(read["connection_id"].as_str().unwrap()),
                read["offset_chars"],
                read["limit_chars"]
            );
            let window = ok(&server, &target)["window"].clone();
            assert_eq!(window["text"], excerpt["text"]);
            let chars: Vec<char> = excerpt["text"].as_str().unwrap().chars().collect();
            let start = excerpt["text_start_chars"].as_u64().unwrap();
            for found in excerpt["matches"].as_array().unwrap() {
                let at = |member: &str| {
                    usize::try_from(found[member].as_u64().unwrap() - start).unwrap()
                };
                let word: String = chars[at("start_chars")..at("end_chars")].iter().collect();
                assert_eq!(word, NEEDLE);
                proven += 1;
            }
            let preview = excerpt["preview_text"].as_str().unwrap();
            let marks = excerpt["matches"].as_array().unwrap().len();
            assert_eq!(preview.matches("<mark>").count(), marks);
            assert_eq!(preview.matches("</mark>").count(), marks);
        }
    }
    proven
}

#[test]
fn hostile_worlds_are_whole_and_a_seed_makes_one_again() {
    let proven: usize = (0..12).map(|seed| crawl(&hostile(seed))).sum();
    assert!(proven > 100, "{proven} matches");
    let keys = |state: State| -> Vec<String> {
        let records = state.world.records.into_iter();
        records.map(|record| record.key).collect()
    };
    assert_eq!(keys(hostile(7)), keys(hostile(7)));
    assert_ne!(keys(hostile(7)), keys(hostile(8)));
}
