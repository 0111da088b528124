//! The shape of every read.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::fixture::{Answer, World, letter, send};

#[tokio::test]
async fn connectors_say_what_they_hold_and_where_to_read_it() {
    let world = World::new().await;
    let body = world.read("/v1/connectors").await;
    let connector = &body["data"][0];
    assert_eq!(connector["connector_key"], "demo_mail");
    assert_eq!(connector["stream_count"], 4);
    let messages = &connector["streams"][0];
    assert_eq!(messages["record_count"], 4);
    assert_eq!(messages["last_updated"], "2026-03-04T09:05:00Z");
    assert_eq!(
        messages["capabilities"]["aggregate_url"],
        "/v1/streams/messages/aggregate"
    );
    let receipts = &connector["streams"][2];
    assert_eq!(receipts["capabilities"]["aggregate_url"], json!(null));
    let (client, _) = world.grant(&["work"], &["messages"], &["id", "subject"]);
    let body = world.get(&client, "/v1/connectors").await.body;
    let messages = &body["data"][0]["streams"][0];
    assert_eq!(messages["record_count"], 3);
    assert_eq!(messages["capabilities"]["range_filters"], false);
    assert_eq!(
        messages["capabilities"]["records_url"],
        "/v1/streams/messages/records?connection_id=work"
    );
    assert_eq!(body["data"][0]["stream_count"], 1);
}

#[tokio::test]
async fn a_connector_without_connections_is_listed_for_the_owner() {
    let world = World::empty();
    let body = world.read("/v1/connectors").await;
    assert_eq!(body["data"][0]["connector_key"], "demo_mail");
    assert_eq!(body["data"][0]["streams"][0]["record_count"], 0);
    assert_eq!(body["data"][0]["source"]["kind"], "connector");
}

#[tokio::test]
async fn filters_and_expansion_are_understood_in_brackets() {
    let world = World::new().await;
    let ids = async |query: &str| {
        let target = format!("/v1/streams/messages/records?connection_id=work&{query}");
        let body = world.read(&target).await;
        let data = body["data"].as_array().unwrap().clone();
        data.iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        ids("filter[size_bytes][gte]=20&filter[size_bytes][lte]=20").await,
        "m2"
    );
    assert_eq!(ids("filter%5Bsubject%5D=Lunch+tomorrow").await, "m2");
    assert_eq!(ids("filter[subject]=").await, "");
    assert_eq!(ids("order=asc").await, "m1 m2 m3");
    assert_eq!(ids("sort=received_at").await, "m1 m2 m3");
    assert_eq!(
        ids("order=&sort=&count=&cursor=&changes_since=").await,
        "m3 m2 m1"
    );
    let body = world
        .read("/v1/streams/messages/records/m1?connection_id=work&expand[]=attachments&expand_limit[attachments]=1")
        .await;
    assert_eq!(body["expanded"]["attachments"]["data"][0]["id"], "a1");
    assert_eq!(body["connector_key"], "demo_mail");
    assert_eq!(
        body["citation_url"],
        "http://127.0.0.1:7420/records/work/messages/m1"
    );
}

#[tokio::test]
async fn limits_are_read_kindly() {
    let world = World::new().await;
    for (limit, entries) in [
        ("2", 2),
        ("2x", 2),
        ("1.9", 1),
        ("0", 3),
        ("-1", 3),
        ("x", 3),
        ("", 3),
    ] {
        let target = format!("/v1/streams/messages/records?connection_id=work&limit={limit}");
        let body = world.read(&target).await;
        assert_eq!(body["data"].as_array().unwrap().len(), entries, "{limit}");
        assert_eq!(body["meta"]["warnings"], json!([]));
    }
    for limit in ["101", "99999999999999999999"] {
        let body = world
            .read(&format!("/v1/search?q=overdraft&limit={limit}"))
            .await;
        assert_eq!(body["meta"]["warnings"][0]["code"], "limit_clamped");
    }
}

#[tokio::test]
async fn the_old_name_of_a_connection_is_understood_with_a_warning() {
    // Decision 7
    let world = World::new().await;
    for target in [
        "/v1/schema?connector_instance_id=work",
        "/v1/streams?connector_instance_id=work",
        "/v1/streams/messages?connector_instance_id=work",
        "/v1/streams/messages/records?connector_instance_id=work",
        "/v1/streams/messages/records?connector_instance_id=work&connection_id=work",
        "/v1/streams/messages/records/m1?connector_instance_id=work",
        "/v1/streams/messages/records/m1/field-window?field=body&connector_instance_id=work",
        "/v1/streams/messages/aggregate?metric=count&connector_instance_id=work",
        "/v1/search?q=overdraft&connector_instance_id=work",
    ] {
        let body = world.read(target).await;
        assert_eq!(
            body["meta"]["warnings"],
            json!([{
                "code": "deprecated_alias_used",
                "message": "`connector_instance_id` is deprecated; send `connection_id` instead.",
                "param": "connector_instance_id",
            }]),
            "{target}"
        );
    }
    let body = world.read("/v1/streams?connector_instance_id=").await;
    assert_eq!(body["meta"]["warnings"], json!([]));
}

#[tokio::test]
async fn numbers_of_a_window_are_read_kindly() {
    let world = World::new().await;
    let base = "/v1/streams/messages/records/m3/field-window?connection_id=work&field=body";
    let far = format!("{base}&offset_chars=99999999999999999999999");
    assert_eq!(world.read(&far).await["window"]["text"], "");
    let body = world.read(&format!("{base}&limit_chars=99999")).await;
    assert_eq!(body["meta"]["warnings"][0]["code"], "limit_clamped");
}

// AN-05
#[tokio::test]
async fn a_search_takes_an_order_and_refuses_what_is_none() {
    let world = World::new().await;
    for (order, newest_first) in [("newest", true), ("oldest", false)] {
        let target = format!("/v1/search?q=overdraft&order={order}");
        let page = world.read(&target).await;
        let hits = page["data"].as_array().unwrap().iter();
        let times: Vec<&str> = hits
            .map(|hit| hit["authored_at"].as_str().unwrap())
            .collect();
        assert_eq!(times.len(), 3);
        assert_eq!(
            times.is_sorted_by(|one, other| one >= other),
            newest_first,
            "{times:?}"
        );
        assert_eq!(times.is_sorted(), !newest_first, "{times:?}");
    }
    let refused = world.ask("/v1/search?q=overdraft&order=best").await;
    assert_eq!(refused.failure(), (400, "invalid_request"));
    assert_eq!(refused.body["error"]["param"], "order");
    let metadata = world.read("/.well-known/oauth-protected-resource").await;
    let orders = &metadata["capabilities"]["lexical_retrieval"]["orders"];
    assert_eq!(*orders, json!(["relevance", "newest", "oldest"]));
}

#[tokio::test]
async fn excerpts_are_as_many_as_asked_for_and_only_within_bounds() {
    // AN-10, AN-11, AN-13
    let world = World::new().await;
    let filler = "nothing of interest stands in these few words here ".repeat(9);
    let body = format!("{filler} hyperlane {filler} hyperlane {filler}");
    world
        .ingest(
            "work",
            "messages",
            &letter("m9", "Plans for the year", &body, 5),
        )
        .await;
    let (client, _) = world.grant(
        &["work"],
        &["messages"],
        &["id", "subject", "body", "received_at"],
    );
    let hit = async |query: &str| {
        let page = world.get(&client, query).await.body;
        page["data"][0].clone()
    };
    let one = hit("/v1/search?q=hyperlane").await;
    assert_eq!(one["evidence_excerpts"].as_array().unwrap().len(), 1);
    let preview = one["evidence_excerpts"][0]["preview_text"]
        .as_str()
        .unwrap();
    let beside = one.to_string().len() - preview.len();
    assert!(
        beside + 160 + "<mark></mark>".len() <= 780,
        "{beside}: {one}"
    );
    let two = hit("/v1/search?q=hyperlane&excerpts=2").await;
    assert_eq!(two["evidence_excerpts"].as_array().unwrap().len(), 2);
    for view in ["", "?view=compact"] {
        let schema = world.read(&format!("/v1/schema{view}")).await;
        assert_eq!(schema["search"]["max_excerpts"], 5);
        assert_eq!(schema["search"]["orders"][1], "newest");
    }
    for wrong in ["0", "6", "x", "1.5"] {
        let target = format!("/v1/search?q=hyperlane&excerpts={wrong}");
        let answer = world.ask(&target).await;
        assert_eq!(answer.failure(), (400, "invalid_request"), "{wrong}");
        assert_eq!(answer.body["error"]["param"], "excerpts", "{wrong}");
    }
}

#[tokio::test]
async fn only_in_process_is_a_page_asked_for_by_bytes() {
    // AN-12
    let world = World::new().await;
    let target = "/v1/streams/messages/records?connection_id=work&limit=2";
    let bounded = |request: axum::http::request::Builder| {
        request
            .header(rest::MAX_BYTES, "1")
            .body(Body::empty())
            .unwrap()
    };
    let number = |answer: &Answer| answer.body["data"].as_array().unwrap().len();
    let outside = Request::get(target)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {}", world.owner));
    assert_eq!(number(&world.send(bounded(outside)).await), 2);
    let router = rest::owner_router(world.service.clone());
    let inside = send(router, bounded(Request::get(target))).await;
    assert_eq!(number(&inside), 1);
    assert_eq!(inside.body["has_more"], true);
}

#[tokio::test]
async fn groups_by_time_are_complete_and_others_say_what_is_left() {
    // AN-14
    let world = World::new().await;
    let lines: Vec<String> = (1..=28)
        .map(|day| letter(&format!("d{day}"), &format!("s{day}"), "text", day))
        .collect();
    world.ingest("work", "messages", &lines.join("\n")).await;
    let aggregate = async |query: &str| {
        let base = "/v1/streams/messages/aggregate?connection_id=work&metric=count";
        world.read(&format!("{base}&{query}")).await
    };
    let days = aggregate("group_by_time=received_at&granularity=day").await;
    assert_eq!(days["limit"], 100);
    assert_eq!(days["groups"].as_array().unwrap().len(), 28);
    assert_eq!(days["meta"]["warnings"], json!([]));
    let cut = aggregate("group_by_time=received_at&granularity=day&limit=3").await;
    let warning = &cut["meta"]["warnings"][0];
    assert_eq!(warning["code"], "partial_results");
    let message = warning["message"].as_str().unwrap();
    let left = cut["other_count"].to_string();
    assert!(
        message.contains(&left) && message.contains("limit=100"),
        "{message}"
    );
}

#[tokio::test]
async fn empty_denied_and_partial_are_three_different_answers() {
    // AN-15, AN-16
    let world = World::new().await;
    let (client, _) = world.grant(&["work"], &["messages"], &["id", "subject", "body"]);
    let empty = world
        .get(&client, "/v1/search?q=%2Boverdraft+%2Bzebra")
        .await
        .body;
    assert_eq!(empty["data"], json!([]));
    assert_eq!(empty["meta"]["recall"]["complete"], true);
    let terms = empty["meta"]["words"]["terms"].as_array().unwrap();
    assert!(
        terms
            .iter()
            .any(|term| term["term"] == "zebra" && term["count"] == 0)
    );
    assert!(empty["meta"]["next"].as_str().unwrap().contains("zebra"));
    // Whether it exists or not, what is not granted is refused in the same words.
    for streams in ["events", "nowhere"] {
        let target = format!("/v1/search?q=overdraft&streams={streams}");
        let denied = world.get(&client, &target).await;
        assert_eq!(denied.failure(), (403, "grant_stream_not_allowed"));
        let message = denied.body["error"]["message"].as_str().unwrap();
        assert_eq!(message, format!("the stream '{streams}' is not granted"));
        assert!(denied.body["error"]["next"].is_string());
    }
    let (both, _) = world.grant(&["work", "home"], &["messages"], &["id"]);
    let partial = world.get(&both, "/v1/search?q=overdraft").await.body;
    let warning = &partial["meta"]["warnings"][0];
    assert_eq!(warning["code"], "source_skipped_not_applicable");
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("/v1/schema?connection_id="), "{message}");
    let ambiguous = world.get(&both, "/v1/streams/messages/records").await;
    assert_eq!(ambiguous.failure(), (409, "ambiguous_connection"));
    let message = ambiguous.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("connection_id: work, home"), "{message}");
}
