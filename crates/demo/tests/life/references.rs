//! What one source says about another, the other knows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::world::{life, records, text, world};

type Records = HashMap<(&'static str, String), Vec<Value>>;

fn records_of<'a>(records: &'a Records, connection: &'static str, stream: &str) -> &'a [Value] {
    &records[&(connection, stream.to_owned())]
}

fn ids<'a>(records: &'a [Value], field: &str) -> HashSet<&'a str> {
    records.iter().map(|record| text(record, field)).collect()
}

/// Every value of a field, where there is one, is one of those ids.
fn point_at(records: &[Value], field: &str, ids: &HashSet<&str>) {
    for record in records.iter().filter(|record| !record[field].is_null()) {
        assert!(ids.contains(text(record, field)), "{field} of {record}");
    }
}

#[test]
fn keys_are_unique_and_relations_lead_somewhere() {
    let life = life();
    let records = records(life);
    for mailbox in ["mail-work", "mail-private"] {
        let messages = records_of(&records, mailbox, "messages");
        let known = ids(messages, "id");
        assert_eq!(known.len(), messages.len());
        point_at(messages, "in_reply_to", &known);
        point_at(
            messages,
            "thread_id",
            &ids(records_of(&records, mailbox, "threads"), "id"),
        );
        point_at(
            records_of(&records, mailbox, "attachments"),
            "message_id",
            &known,
        );
    }
    let said = records_of(&records, "chat-tidewater", "messages");
    let known = ids(said, "id");
    assert_eq!(known.len(), said.len());
    point_at(said, "thread_id", &known);
    point_at(
        said,
        "user_id",
        &ids(records_of(&records, "chat-tidewater", "users"), "id"),
    );
    point_at(
        said,
        "channel_id",
        &ids(records_of(&records, "chat-tidewater", "channels"), "id"),
    );
    for repository in ["git-spanwatch", "git-kraut"] {
        let commits = records_of(&records, repository, "commits");
        let known = ids(commits, "id");
        assert_eq!(known.len(), commits.len());
        point_at(commits, "parent", &known);
    }
    for (connection, stream) in [("notes", "notes"), ("calendar", "events")] {
        let all = records_of(&records, connection, stream);
        assert_eq!(ids(all, "id").len(), all.len());
    }
}

#[test]
fn every_order_is_confirmed_by_mail_and_paid_from_the_account() {
    let life = life();
    let records = records(life);
    let letters = records_of(&records, "mail-private", "messages");
    let subjects = ids(letters, "subject");
    let booked = records_of(&records, "bank", "transactions");
    for shop in ["shop-nordwand", "shop-kueche"] {
        let orders = records_of(&records, shop, "orders");
        let known = ids(orders, "id");
        assert_eq!(known.len(), orders.len());
        point_at(records_of(&records, shop, "items"), "order_id", &known);
        point_at(records_of(&records, shop, "shipments"), "order_id", &known);
        let mut sums: HashMap<&str, i64> = HashMap::new();
        for item in records_of(&records, shop, "items") {
            *sums.entry(text(item, "order_id")).or_default() +=
                item["total_cents"].as_i64().unwrap();
        }
        for order in orders {
            let (number, total) = (text(order, "id"), order["total_cents"].as_i64().unwrap());
            assert_eq!(sums[number], total, "{number}");
            let confirmed = format!("Your order {number} at {}", text(order, "shop"));
            assert!(subjects.contains(confirmed.as_str()), "{number}");
            let paid = booked.iter().any(|one| {
                text(one, "reference") == number && one["amount_cents"].as_i64() == Some(-total)
            });
            assert!(paid, "{number}");
        }
    }
}

#[test]
fn every_balance_follows_from_the_one_before() {
    let life = life();
    let records = records(life);
    let mut balances: HashMap<&str, i64> = HashMap::new();
    for one in records_of(&records, "bank", "transactions") {
        let (amount, balance) = (
            one["amount_cents"].as_i64().unwrap(),
            one["balance_cents"].as_i64().unwrap(),
        );
        if let Some(before) = balances.insert(text(one, "account"), balance) {
            assert_eq!(before + amount, balance, "{one}");
        }
        assert!(balance > 0, "{one}");
    }
}

#[test]
fn the_bytes_of_every_attachment_are_there() {
    let world = world();
    let records = records(life());
    for source in life().sources.iter().filter(|one| !one.files.is_empty()) {
        let attachments = records_of(&records, source.connection, "attachments");
        assert_eq!(attachments.len(), source.files.len());
        for (record, file) in attachments.iter().zip(&source.files) {
            let id = file.blob_id();
            assert_eq!(text(&record["blob_ref"], "blob_id"), id.as_str());
            let mut kept = Vec::new();
            let mut content = world.store.open_blob(&id).unwrap();
            std::io::Read::read_to_end(&mut content, &mut kept).unwrap();
            assert_eq!(kept, file.bytes, "{}", file.key);
        }
    }
}

#[test]
fn declared_relations_bring_records_along() {
    let world = world();
    let owner = world.owner();
    let order = owner.record(("shop-kueche", "orders"), "KK-9001", &["items", "shipment"]);
    let expanded = &order["expanded"];
    let items = expanded["items"]["data"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{order}");
    assert_eq!(items[0]["data"]["name"], "Noise-cancelling headphones");
    assert_eq!(
        expanded["shipment"]["data"]["order_id"], "KK-9001",
        "{order}"
    );
}
