//! The questions of docs/demo.md, each with the evidence that answers it.

use contract::aggregate::{AggregateQuery, Metric};
use contract::declaration::FilterOperator;
use contract::query::Filter;
use serde_json::Value;

use crate::world::{Owner, field, stream, text, world};

/// A page of a search holds a record of that connection, and it says all these words.
fn evidence(owner: &Owner, q: &str, place: (&str, &str), words: &[&str]) -> Value {
    for hit in owner.find(q) {
        if (text(&hit, "connection_id"), text(&hit, "stream")) != place || hit.get("near").is_some()
        {
            continue;
        }
        assert!(
            hit["evidence_excerpts"]
                .as_array()
                .is_some_and(|all| !all.is_empty()),
            "{hit}"
        );
        let record = owner.record(place, text(&hit, "record_key"), &[]);
        let said = record["data"].to_string();
        if words.iter().all(|word| said.contains(word)) {
            return record["data"].clone();
        }
    }
    panic!("nothing in {place:?} answers {q:?} with {words:?}");
}

fn sum(
    owner: &Owner,
    (connection, name): (&str, &str),
    summed: &str,
    conditions: Vec<Filter>,
) -> i64 {
    let metric = Metric::Sum(field(summed));
    let mut query = AggregateQuery::new(stream(name), metric, None).unwrap();
    query.connection_id = Some(connection.to_owned());
    query.filters = conditions;
    owner.figure(query)
}

fn span(name: &str, since: &str, until: &str) -> Filter {
    let bounds = vec![
        (FilterOperator::Gte, since.to_owned()),
        (FilterOperator::Lt, until.to_owned()),
    ];
    Filter::range(field(name), bounds)
}

#[test]
fn which_bridge_vendor_did_we_agree_on() {
    let world = world();
    let owner = world.owner();
    let words = ["Ironleaf Works", "412,000 EUR"];
    for place in [
        ("chat-tidewater", "messages"),
        ("mail-work", "messages"),
        ("notes", "notes"),
        ("git-spanwatch", "commits"),
    ] {
        evidence(&owner, "bridge vendor", place, &words);
    }
}

#[test]
fn what_did_i_spend_at_the_shops_in_october() {
    let world = world();
    let owner = world.owner();
    let october = || vec![span("ordered_at", "2026-10-01", "2026-11-01")];
    let spent = |shop| sum(&owner, (shop, "orders"), "total_cents", october());
    assert_eq!(
        (spent("shop-nordwand"), spent("shop-kueche")),
        (126_370, 108_720)
    );
}

#[test]
fn when_does_the_train_to_lyon_leave() {
    let world = world();
    let owner = world.owner();
    let event = evidence(&owner, "train to Lyon", ("calendar", "events"), &["07:34"]);
    assert_eq!(event["starts_at"], "2026-11-05T07:34:00+01:00");
    let place = ("mail-private", "messages");
    let changed = evidence(&owner, "train to Lyon leaves earlier", place, &["07:34"]);
    // The ticket says otherwise, but it is older.
    let ticket = evidence(&owner, "ticket Lyon", place, &["08:04", "QX7T4M"]);
    assert!(text(&ticket, "received_at") < text(&changed, "received_at"));
    evidence(
        &owner,
        "train Lyon standup",
        ("chat-tidewater", "messages"),
        &["07:34"],
    );
    evidence(&owner, "QX7T4M", ("bank", "transactions"), &["98.00 EUR"]);
    evidence(
        &owner,
        "QX7T4M e-ticket",
        ("mail-private", "attachments"),
        &["08:04"],
    );
}

#[test]
fn what_is_the_sampling_rate_of_the_riverside_sensors() {
    let world = world();
    let owner = world.owner();
    let place = ("chat-tidewater", "messages");
    let decided = evidence(
        &owner,
        "decision sampling rate riverside",
        place,
        &["20 Hz"],
    );
    let place = ("git-spanwatch", "commits");
    let commit = evidence(
        &owner,
        "riverside accelerometers 20 Hz",
        place,
        &["#monitoring"],
    );
    assert_eq!(text(&commit, "author_name"), "Tom Whitfield");
    assert!(text(&decided, "sent_at") < text(&commit, "authored_at"));
}

#[test]
fn how_much_rent_did_i_pay_this_year() {
    let world = world();
    let owner = world.owner();
    let conditions = vec![
        span("booked_on", "2026-01-01", "2027-01-01"),
        Filter::exact(field("category"), "rent"),
    ];
    let paid = sum(&owner, ("bank", "transactions"), "amount_cents", conditions);
    assert_eq!(paid, -2_150_000);
}

#[test]
fn what_is_lina_allergic_to() {
    let world = world();
    let owner = world.owner();
    evidence(&owner, "Lina allergic", ("notes", "notes"), &["hazelnuts"]);
    evidence(
        &owner,
        "Lina allergisch",
        ("mail-private", "messages"),
        &["Haselnüsse"],
    );
}

#[test]
fn when_is_the_final_report_for_osaka_due() {
    let world = world();
    let owner = world.owner();
    evidence(
        &owner,
        "最終報告書 納期",
        ("mail-work", "messages"),
        &["12月18日"],
    );
    let place = ("chat-tidewater", "messages");
    evidence(&owner, "Osaka \"final report\"", place, &["18 December"]);
    let event = evidence(&owner, "Osaka report due", ("calendar", "events"), &[]);
    assert_eq!(event["starts_at"], "2026-12-18T00:00:00Z");
}

#[test]
fn which_order_was_sent_back_and_did_the_money_arrive() {
    let world = world();
    let owner = world.owner();
    let place = ("shop-kueche", "orders");
    let order = evidence(&owner, "headphones returned", place, &["KK-9001"]);
    assert_eq!(order["refunded_cents"], 27_900);
    let place = ("mail-private", "messages");
    evidence(&owner, "refund KK-9001", place, &["279.00 CHF"]);
    let booked = evidence(&owner, "refund KK-9001", ("bank", "transactions"), &[]);
    assert_eq!(booked["amount_cents"], 27_900);
    assert_eq!(booked["booked_on"], "2026-09-04");
}
