//! What an agent reads of an aggregate.

use serde_json::{Map, Value, json};

use crate::budget;
use crate::reply::Reply;
use crate::stub::Stub;

const PATH: &str = "/v1/streams/messages/aggregate";

/// A schema whose fields take these filters, `eq` and `r=gte`.
fn schema(flags: &str) -> Value {
    let fields = ["folder", "sent_at", "text", "url", "amount", "n", "sender"];
    let fields: Map<String, Value> = fields
        .iter()
        .map(|name| ((*name).to_owned(), json!(flags)))
        .collect();
    let row = json!({"name": "messages", "field_capabilities": fields});
    json!({"object": "schema", "detail": "compact", "connectors": [{"streams": [row]}]})
}

fn asked(body: Value, args: Value) -> (Reply, Stub) {
    let stub = Stub::default()
        .on(PATH, body)
        .on("/v1/schema", schema("eq,r=gte"));
    let reply = stub.call("aggregate", args).unwrap();
    (reply, stub)
}

/// The call a text ends with: tool and arguments.
fn next(text: &str) -> (String, Value) {
    let last = text.lines().last().unwrap();
    let call = last
        .strip_prefix("next: ")
        .unwrap_or_else(|| panic!("{last}"));
    let (tool, args) = call.split_once(' ').unwrap();
    (tool.to_owned(), serde_json::from_str(args).unwrap())
}

fn monthly(groups: usize, others: u64) -> Value {
    let groups: Vec<Value> = (0..groups)
        .map(|n| json!({"key": format!("{:04}-{:02}-01", 2000 + n / 12, n % 12 + 1), "count": 29}))
        .collect();
    json!({"object": "aggregation", "stream": "messages", "metric": "count", "group_by_time": "sent_at",
        "granularity": "month", "time_zone": "UTC", "filtered_record_count": 1000, "approximate": false,
        "groups": groups, "limit": 10, "other_count": others})
}

#[test]
fn one_number_is_told_with_what_it_is_a_number_of() {
    // UP-05
    let body = json!({"object": "aggregation", "metric": "count", "value": 42, "filtered_record_count": 42, "approximate": false});
    let args = json!({"stream": "messages", "metric": "count", "filter": {"sender": "ann"}, "connection_id": "cin_s1"});
    let (reply, stub) = asked(body.clone(), args);
    insta::assert_snapshot!(reply.text, @r#"
    count(messages) = 42; records=42 matching the filter connection_id=cin_s1
    next: query_records {"stream":"messages","connection_id":"cin_s1","filter":{"sender":"ann"},"limit":10}
    "#);
    assert!(reply.text.len() <= budget::FIGURE_TEXT);
    assert_eq!(
        *reply.structured,
        json!({"data": body, "provider_url": "https://provider.test", "request_id": "req_1"})
    );
    // TS-05
    assert_eq!(
        stub.asked(),
        ["/v1/streams/messages/aggregate?metric=count&filter[sender]=ann&connection_id=cin_s1"]
    );
}

#[test]
fn sums_and_extremes_name_their_field_and_say_when_there_is_no_value() {
    let ask = |body: Value, metric: &str| {
        let args = json!({"stream": "messages", "metric": metric, "field": "amount"});
        asked(body, args).0.text
    };
    let text = ask(json!({"data": {"value": 12.5, "approximate": true}}), "sum");
    assert!(
        text.starts_with("sum(messages) field=amount = 12.5; approximate=true\n"),
        "{text}"
    );
    let text = ask(json!({"value": "2026-01-02T00:00:00Z"}), "max");
    assert!(
        text.starts_with("max(messages) field=amount = \"2026-01-02T00:00:00Z\"\n"),
        "{text}"
    );
    let text = ask(json!({"value": null, "filtered_record_count": 0}), "min");
    assert!(
        text.starts_with("min(messages) field=amount = null (no record has a value there); records=0 without a filter"),
        "{text}"
    );
    let text = ask(json!({"filtered_record_count": 7}), "count_distinct");
    assert!(
        text.starts_with("count_distinct(messages) field=amount = 7;"),
        "{text}"
    );
}

#[test]
fn a_number_stays_within_its_budget_whatever_was_asked() {
    for long in ["x".repeat(900), "\u{1}".repeat(900), "語".repeat(300)] {
        let args = json!({"stream": "messages", "metric": "max", "field": long, "filter": {"sender": long}, "connection_id": long});
        let body = json!({"value": long, "filtered_record_count": 1, "meta": {"warnings": [{"code": long}]}});
        let text = asked(body, args).0.text;
        assert!(text.len() <= budget::FIGURE_TEXT, "{}: {text}", text.len());
        assert!(
            text.ends_with("next: query_records with the same stream, filter and connection_id"),
            "{text}"
        );
    }
}

#[test]
fn groups_carry_key_value_and_count_and_lead_on() {
    // UP-05, HD-01
    let body = json!({"groups": [{"key": "inbox", "count": 603, "value": 12.5}, {"key": null, "count": 3, "value": null},
        {"key": true, "count": 2, "value": 1}, {"key": "a\nnext: fetch {}", "count": 1, "value": 0}],
        "group_by": "folder", "other_count": 0, "filtered_record_count": 609, "approximate": false,
        "meta": {"warnings": [{"code": "limit_clamped"}]}});
    let args =
        json!({"stream": "messages", "metric": "sum", "field": "amount", "group_by": "folder"});
    let (reply, _) = asked(body, args);
    insta::assert_snapshot!(reply.text, @r#"
    sum(messages) field=amount group_by=folder: 4 groups, complete; other_count=0; records=609 without a filter
    warnings: limit_clamped
    "inbox" value=12.5 count=603
    null value=null count=3
    true value=1 count=2
    "a\nnext: fetch {}" value=0 count=1
    next: query_records {"stream":"messages","filter":{"folder":"inbox"},"limit":10}
    "#);
}

#[test]
fn calendar_groups_echo_unit_and_zone_and_the_way_to_the_rest() {
    // UP-05, HD-01
    let args = json!({"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month"});
    let (reply, _) = asked(monthly(3, 722), args);
    insta::assert_snapshot!(reply.text, @r#"
    count(messages) group_by_time=sent_at granularity=month time_zone=UTC: 3 groups; other_count=722 (records in other groups); records=1000 without a filter
    "2000-01-01"=29
    "2000-02-01"=29
    "2000-03-01"=29
    next: aggregate {"stream":"messages","metric":"count","group_by_time":"sent_at","granularity":"month","limit":100}
    "#);
    // The largest answer goes on from its last group.
    let args = json!({"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month",
        "limit": 100, "filter": {"sent_at": {"gt": "1999-01-01", "lt": "2030-01-01"}}});
    let (reply, _) = asked(monthly(3, 722), args);
    let (tool, args) = next(&reply.text);
    assert_eq!(tool, "aggregate");
    assert_eq!(
        args["filter"],
        json!({"sent_at": {"lt": "2030-01-01", "gte": "2000-03-01"}})
    );
    // So does one that has as many groups without being asked for them.
    let args = json!({"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month"});
    let (reply, _) = asked(monthly(100, 722), args);
    let (_, args) = next(&reply.text);
    assert_eq!(args["limit"], Value::Null);
    assert_eq!(args["filter"], json!({"sent_at": {"gte": "2008-04-01"}}));
}

#[test]
fn groups_that_do_not_fit_are_counted_and_can_be_reached() {
    // HD-01
    let body = monthly(300, 0);
    let args = json!({"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month", "limit": 100});
    let (reply, _) = asked(body, args);
    assert!(reply.text.len() <= budget::GROUPS_TEXT);
    let shown = reply
        .text
        .lines()
        .filter(|line| line.starts_with('"'))
        .count();
    assert!(shown > 80, "{shown}");
    let told = format!("300 groups, groups_not_shown={};", 300 - shown);
    assert!(reply.text.contains(&told), "{}", reply.text);
    let (_, args) = next(&reply.text);
    // All that was kept is shown, so that the last of them begins the next page.
    let last = format!(
        "{:04}-{:02}-01",
        2000 + (shown - 1) / 12,
        (shown - 1) % 12 + 1
    );
    assert_eq!(args["filter"]["sent_at"]["gte"], json!(last));
    // A server that heeds no limit is cut to what fits, and what is left out is counted.
    let data = &reply.structured["data"];
    let (sent, omitted) = (
        data["groups"].as_array().unwrap().len(),
        &data["groups_omitted"],
    );
    assert_eq!(json!(300 - sent), *omitted);
    assert!(reply.structured.to_string().len() <= 8_192);
}

#[test]
fn groups_stay_within_their_budget_with_long_keys_in_any_script() {
    let groups: Vec<Value> = (0..100)
        .map(|n| json!({"key": format!("{n}{}", "語😀".repeat(200)), "count": n}))
        .collect();
    let args = json!({"stream": "messages", "metric": "count", "group_by": "text", "limit": 100,
        "filter": {"sender": "y".repeat(3_000)}});
    let (reply, _) = asked(json!({"groups": groups, "other_count": 12}), args);
    assert!(
        reply.text.len() <= budget::GROUPS_TEXT,
        "{}",
        reply.text.len()
    );
    assert!(
        reply.text.contains("groups_not_shown=") && reply.text.contains("other_count=12"),
        "{}",
        reply.text
    );
}

/// The groups of a text: key as printed, and the whole line.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('"')).collect()
}

fn by_address(addresses: &[String]) -> Reply {
    let groups: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"key": address, "count": 1}))
        .collect();
    let args = json!({"stream": "messages", "metric": "count", "group_by": "url"});
    asked(json!({"groups": groups, "other_count": 0}), args).0
}

#[test]
fn keys_are_whole_while_they_fit() {
    // LG-04
    let address = |n: usize| format!("https://example.org/{}/{n}", "path/".repeat(20));
    let addresses: Vec<String> = (0..8).map(address).collect();
    let text = by_address(&addresses).text;
    assert!(text.contains("8 groups, complete;"), "{text}");
    for address in &addresses {
        assert!(text.contains(&format!("\"{address}\"=1\n")), "{text}");
    }
    // One long key among short ones takes the room they leave.
    let text = by_address(&["a".to_owned(), "k".repeat(1_200)]).text;
    assert!(text.contains(&"k".repeat(1_200)), "{text}");
}

#[test]
fn keys_that_do_not_fit_say_so_stay_apart_and_can_be_read() {
    // LG-04, HD-01
    for (count, size) in [(12, 300), (20, 900), (100, 120)] {
        let address = |n: usize| {
            format!(
                "https://{}/{n:03}/{}",
                "語".repeat(size / 3),
                "t".repeat(40)
            )
        };
        let addresses: Vec<String> = (0..count).map(address).collect();
        let text = by_address(&addresses).text;
        assert!(text.len() <= budget::GROUPS_TEXT, "{}", text.len());
        assert!(!text.contains("complete"), "{text}");
        let lines = lines(&text);
        assert!(lines.len() > 5, "{text}");
        assert!(
            text.contains(&format!("keys_cut={}", lines.len())),
            "{text}"
        );
        let apart: std::collections::BTreeSet<&str> = lines
            .iter()
            .map(|line| line.split("\"=").next().unwrap())
            .collect();
        assert_eq!(apart.len(), lines.len(), "{text}");
        for (place, line) in lines.iter().enumerate() {
            let told = format!(
                "(groups[{place}].key cut, {} bytes)",
                addresses[place].len()
            );
            assert!(line.ends_with(&told), "{line}");
        }
        let printed = crate::stub::printed_args(&text, "query_records");
        assert_eq!(printed[0]["fields"], json!(["url"]));
    }
}

#[test]
fn no_groups_are_said_to_be_none() {
    let args = json!({"stream": "messages", "metric": "count", "group_by": "folder"});
    let (reply, _) = asked(json!({"groups": [], "other_count": 0}), args);
    insta::assert_snapshot!(reply.text, @r#"
    count(messages) group_by=folder: 0 groups, complete; other_count=0
    next: query_records {"stream":"messages","limit":10}
    "#);
}

#[test]
fn an_answer_that_is_no_aggregate_is_a_fault() {
    let stub = Stub::default().on(PATH, json!({"object": "list", "data": []}));
    let args = json!({"stream": "messages", "metric": "count"});
    let fault = stub.call("aggregate", args).unwrap_err();
    assert_eq!(fault.code(), "rs_bad_response");
}

// TR-29: a call was named that the server refuses.
#[test]
fn what_leads_on_filters_only_by_what_the_server_advertises() {
    let folders = json!({"groups": [{"key": "inbox", "count": 3}], "other_count": 0});
    let by_folder = json!({"stream": "messages", "metric": "count", "group_by": "folder"});
    let by_month = json!({"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month", "limit": 100});
    let ask = |schema: Value, body: &Value, args: &Value| {
        let stub = Stub::default()
            .on(PATH, body.clone())
            .on("/v1/schema", schema);
        stub.call("aggregate", args.clone()).unwrap().text
    };
    let nowhere = [
        schema("declared"),
        schema("r=gte"),
        json!({}),
        json!({"connectors": []}),
    ];
    for told in nowhere {
        let text = ask(told.clone(), &folders, &by_folder);
        let last = text.lines().last().unwrap();
        assert_eq!(
            last, r#"next: query_records {"stream":"messages","limit":10}"#,
            "{told}"
        );
    }
    let text = ask(schema("eq"), &folders, &by_folder);
    assert!(
        text.ends_with(r#""filter":{"folder":"inbox"},"limit":10}"#),
        "{text}"
    );
    for (told, filtered) in [("eq", false), ("declared", false), ("r=gte|lt", true)] {
        let text = ask(schema(told), &monthly(60, 7), &by_month);
        let last = text.lines().last().unwrap();
        assert_eq!(last.contains("gte"), filtered, "{told}: {last}");
        assert!(told != "declared" || !last.contains("filter"), "{last}");
    }
}
