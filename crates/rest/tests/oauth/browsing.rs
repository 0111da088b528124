//! The tables of streams: what narrows and orders them, in which zone, what they add up, and what is saved of them.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::fixture::World;
use crate::shared::connect;

#[tokio::test]
async fn a_stream_is_a_table_that_is_narrowed_by_its_address() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let index = browser.get("/browse").await;
    index.shows("<a href=\"/browse/work/messages\">");
    index.shows("6 records</a> in all.");
    let page = browser.get("/browse/work/messages").await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("<b>3 records</b>");
    page.shows("<bdi>Size bytes</bdi>: <a href=\"#rows\">6<span");
    page.shows("March 2026: 3");
    page.shows("aria-sort=\"descending\"");
    page.shows("filter%5Bfrom_email%5D=bank%40example.test");
    let first = page.text.find("messages/m3").unwrap();
    assert!(first < page.text.find("messages/m1").unwrap());
    let turned = browser.get("/browse/work/messages?order=asc").await;
    let first = turned.text.find("messages/m1").unwrap();
    assert!(first < turned.text.find("messages/m3").unwrap());
    // A form sends the fields that were left empty, too.
    let narrowed = "/browse/work/messages?filter%5Bsize_bytes%5D%5Bgte%5D=2&filter%5Bsize_bytes%5D%5Blte%5D=&fields=subject&fields=amount";
    let narrowed = browser.get(narrowed).await;
    narrowed.shows("<b>2 records</b>");
    narrowed.shows("Size bytes from 2");
    narrowed.hides("bank@example.test");
    for (target, status) in [
        ("/browse/work/nowhere", 404),
        ("/browse/nowhere/messages", 404),
        ("/browse/work/messages?filter%5Bnone%5D=1", 400),
        ("/browse/work/messages?filter%5Bsize_bytes%5D=many", 400),
        ("/browse/work/messages?cursor=stale", 400),
        ("/browse/work/messages?fields=none", 400),
    ] {
        let answer = browser.get(target).await;
        assert_eq!(answer.status, status, "{target}");
        answer.shows("<html lang=\"en\">");
    }
}

#[tokio::test]
async fn what_a_table_shows_can_be_saved() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let base = "/browse/work/messages/download?order=asc&filter%5Bsize_bytes%5D%5Bgte%5D=2";
    let csv = browser
        .get(&format!("{base}&fields=id&fields=body&format=csv"))
        .await;
    assert_eq!(
        csv.text,
        "id,body\r\nm2,The overdraft fee is 42 EUR.\r\nm3,The overdraft fee is 42 EUR.\r\n"
    );
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert!(csv.header("content-disposition").starts_with("attachment"));
    let lines = browser.get(&format!("{base}&fields=id&format=jsonl")).await;
    assert_eq!(lines.text, "{\"id\":\"m2\"}\n{\"id\":\"m3\"}\n");
    let refused = browser
        .get("/browse/work/messages/download?fields=none")
        .await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn what_a_connection_saves_can_be_imported_again() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/connections/work").await;
    let links = page.text.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let saved: Vec<String> = links
        .filter(|link| link.contains("/messages/download"))
        .map(|link| link.replace("&#38;", "&"))
        .collect();
    assert_eq!(saved.len(), 2, "{}", page.text);
    let csv = browser.get(&saved[0]).await;
    assert_eq!(csv.text.lines().count(), 4);
    for field in ["secret", "body", "size_bytes", "amount"] {
        assert!(csv.text.lines().next().unwrap().contains(field), "{field}");
    }
    let exported = browser.get(&saved[1]).await;
    let before: Vec<String> = ["m1", "m2", "m3"].map(str::to_owned).into();
    let read = |id: &str| format!("/v1/streams/messages/records/{id}?connection_id=work");
    let mut data = Vec::new();
    for id in &before {
        data.push(world.read(&world.owner, &read(id)).await.json()["data"].clone());
        let request = Request::delete(read(id))
            .header("authorization", format!("Bearer {}", world.owner))
            .body(Body::empty());
        let gone = world.send(request.unwrap()).await;
        assert!(gone.status.is_success(), "{}", gone.text);
    }
    let target = "/v1/ingest/messages?connection_id=work";
    let receipt = world.write(target, exported.text).await;
    assert_eq!(receipt.json()["records_accepted"], 3, "{}", receipt.text);
    for (id, data) in before.iter().zip(data) {
        let again = world.read(&world.owner, &read(id)).await;
        assert_eq!(again.json()["data"], data, "{}", again.text);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the zone of a process is its environment"
)]
fn is_there(zone: &str) -> bool {
    std::env::var("TZ").is_ok_and(|here| here == zone)
}

/// Runs a test of this program again in a zone far from UTC. Whether it is there now.
fn is_far_from_utc(name: &str) -> bool {
    const ZONE: &str = "Pacific/Auckland";
    if is_there(ZONE) {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let run = std::process::Command::new(program)
        .args(["--exact", &format!("browsing::{name}"), "--nocapture"])
        .env("TZ", ZONE)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[tokio::test]
async fn a_range_of_days_is_one_of_days_here_and_a_form_keeps_the_others() {
    if !is_far_from_utc("a_range_of_days_is_one_of_days_here_and_a_form_keeps_the_others") {
        return;
    }
    let world = World::new().await;
    // Late on the 1st and early on the 2nd of April in Auckland, both on the 1st in UTC.
    let letter = |key: &str, at: &str| {
        json!({"key": key, "data": {"id": key, "subject": key, "secret": "s", "received_at": at}})
            .to_string()
    };
    let lines = [
        letter("late", "2026-04-01T10:30:00Z"),
        letter("early", "2026-04-01T11:30:00Z"),
    ];
    let target = "/v1/ingest/messages?connection_id=work";
    world.write(target, lines.join("\n")).await;
    let mut browser = world.browser().await;
    let base = "/browse/work/messages?filter%5Breceived_at%5D";
    let typed = format!("{base}%5Bgte%5D=2026-04-02&filter%5Breceived_at%5D%5Blt%5D=2026-04-03");
    let page = browser.get(&typed).await;
    page.shows("<b>1 record</b>");
    page.shows("/messages/early\"");
    // The form shows the same days again, whether they were typed or come from a bar.
    let bar = format!(
        "{base}%5Bgte%5D=2026-04-01T11%3A00%3A00Z&filter%5Breceived_at%5D%5Blt%5D=2026-04-02T11%3A00%3A00Z"
    );
    for target in [&typed, &bar] {
        let page = browser.get(target).await;
        page.shows("<b>1 record</b>");
        page.shows("type=\"date\" name=\"filter[received_at][gte]\" value=\"2026-04-02\"");
        page.shows("type=\"date\" name=\"filter[received_at][lt]\" value=\"2026-04-03\"");
    }
    // A bound within a day is not cut to the day.
    let exact = format!("{base}%5Bgte%5D=2026-04-01T10%3A30%3A00Z");
    let page = browser.get(&exact).await;
    page.shows("type=\"text\" name=\"filter[received_at][gte]\" value=\"2026-04-01T10:30:00Z\"");
    // A condition without an input is kept.
    let other = format!("{base}%5Bgt%5D=2026-03-02T00%3A00%3A00Z");
    let page = browser.get(&other).await;
    page.shows("type=\"hidden\" name=\"filter[received_at][gt]\" value=\"2026-03-02T00:00:00Z\"");
    // The overview counts by the same days.
    browser
        .get("/timeline?day=2026-04-02&connection=work")
        .await
        .shows("<b>1 record</b>");
}

#[tokio::test]
async fn the_order_can_be_turned_without_its_column() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/browse/work/messages?fields=subject").await;
    page.shows("latest first: <a href=\"/browse/work/messages?fields=subject&#38;order=asc\">");
}

/// A source whose spendings have currencies.
const SPENDINGS: &str = r#"{
    "protocol_version": "0.1.0",
    "source": { "kind": "connector", "id": "https://sources.example/spendings" },
    "declaration_version": "1",
    "publisher": { "id": "https://sources.example" },
    "display": { "name": "Spendings" },
    "streams": [{
        "name": "spendings", "semantics": "mutable_state", "primary_key": ["id"],
        "selection": { "fields": true, "resources": true },
        "schema": { "type": "object", "required": ["id"], "properties": {
            "id": { "type": "string" },
            "amount": { "type": "number" },
            "currency": { "type": "string" }
        } },
        "query": { "aggregations": { "count": true, "sum": ["amount"], "group_by": ["currency"] } }
    }]
}"#;

#[tokio::test]
async fn amounts_have_their_currency_and_do_not_add_up_across_them() {
    let world = World::empty();
    let declared = contract::declaration::Declaration::parse(SPENDINGS).unwrap();
    world.store.declare(&declared).unwrap();
    connect(&*world.store, "spendings", "purse", "Purse");
    let line = |id: &str, amount: f64, currency: &str| {
        json!({"key": id, "data": {"id": id, "amount": amount, "currency": currency}}).to_string()
    };
    let lines = [
        line("a", 1.5, "EUR"),
        line("b", 2.25, "EUR"),
        line("c", 4.0, "US<D"),
    ];
    let target = "/v1/ingest/spendings?connection_id=purse";
    world.write(target, lines.join("\n")).await;
    let mut browser = world.browser().await;
    let page = browser
        .get("/browse/purse/spendings?fields=id&fields=amount")
        .await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows(">1.5 EUR<");
    page.shows(">4.0 US&#60;D<");
    page.shows("3.75 EUR, 4");
    page.hides(">7.75");
    let record = browser.get("/records/purse/spendings/c").await;
    record.shows("4.0 US&#60;D");
    // What is saved has only the columns that were chosen.
    let saved = "/browse/purse/spendings/download?fields=id&fields=amount&format=csv";
    browser.get(saved).await.hides("EUR");
}
