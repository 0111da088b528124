//! Which relations may be expanded, and how to read on where one was cut.

use serde_json::{Value, json};

use crate::stub::{Stub, printed_args};

fn outcome(schema: Value) -> (Result<(), String>, Vec<String>) {
    let stub = Stub::default().on("/v1/schema", schema).on(
        "/v1/streams/mail/records/m1",
        json!({"id":"m1","data":{"text":"x"}}),
    );
    let args = json!({"id":"c1/mail:m1","expand":["thread"]});
    let outcome = stub.call("fetch", args);
    let outcome = outcome.map(|_| ()).map_err(|fault| fault.text());
    (outcome, stub.asked())
}

#[test]
fn a_relation_nobody_advertises_is_refused_before_a_record_is_read() {
    // UP-04
    let row = json!({"name":"mail","expand_capabilities":[{"name":"files","usable":true}]});
    for schema in [
        json!({"connectors":[{"streams":[row]}]}),
        json!({"data":{"connectors":[{"streams":[row]}]}}),
        json!({"streams":[row]}),
        json!({"streams":[{"name":"mail"}]}),
        json!({"streams":[{"name":"mail","expand_capabilities":[]}]}),
    ] {
        let (outcome, asked) = outcome(schema);
        let text = outcome.unwrap_err();
        assert!(text.starts_with("error invalid_expand"), "{text}");
        assert!(text.contains("thread") && text.contains("mail"), "{text}");
        let schema = "/v1/schema?view=compact&stream=mail&connection_id=c1";
        assert_eq!(asked, [schema]);
    }
}

#[test]
fn an_advertised_relation_passes_and_an_unknown_stream_is_left_to_the_server() {
    // UP-04
    let row =
        |usable| json!({"name":"mail","expand_capabilities":[{"name":"thread","usable":usable}]});
    for schema in [
        json!({"connectors":[{"streams":[row(true)]}]}),
        json!({"streams":[row(false), row(true)]}),
        json!({"streams":[]}),
        json!({"object":"list"}),
    ] {
        let (outcome, asked) = outcome(schema);
        assert_eq!(outcome, Ok(()));
        assert_eq!(
            asked[1],
            "/v1/streams/mail/records/m1?connection_id=c1&expand=thread"
        );
    }
    let failing = Stub::default()
        .refusing("/v1/schema", 500, json!({}))
        .on("/v1/streams/mail/records/m1", json!({"id":"m1","data":{}}));
    let args = json!({"id":"c1/mail:m1","expand":["thread"]});
    assert!(failing.call("fetch", args).is_ok());
    let (refused, _) = outcome(json!({"streams":[row(false)]}));
    assert!(refused.unwrap_err().contains("cannot be used"));
}

/// Two orders of a shop whose related records, one each, are not all there is.
fn shop(filter: &str, most: u64) -> Stub {
    let relation = json!({"name":"items","target_stream":"items","usable":true,"foreign_key":"order_id",
        "max_limit":most});
    let orders = json!({"streams":[{"name":"orders","expand_capabilities":[relation]}]});
    let items = json!({"streams":[{"name":"items","field_capabilities":{"order_id":filter,"name":"t=string"}}]});
    let order = |key: &str| {
        let item = json!({"object":"record","id":format!("{key}-1"),"stream":"items","connection_id":"shop",
            "data":{"id":format!("{key}-1"),"name":"cup"}});
        json!({"object":"record","id":key,"stream":"orders","connection_id":"shop","data":{"id":key},
            "expanded":{"items":{"object":"list","data":[item],"has_more":true}}})
    };
    let list = json!({"object":"list","has_more":false,"data":[order("o1"), order("o2")]});
    Stub::default()
        .on("/v1/schema?view=compact&stream=orders", orders)
        .on("/v1/schema?view=compact&stream=items", items)
        .on("/v1/streams/orders/records?", list)
        .on("/v1/streams/orders/records/o1", order("o1"))
}

fn orders() -> Value {
    json!({"stream":"orders","connection_id":"shop","expand":["items"],"expand_limit":{"items":1}})
}

/// The call that lists what belongs to one order.
fn items_of(key: &str) -> Value {
    json!({"stream":"items","connection_id":"shop","filter":{"order_id":key}})
}

#[test]
fn a_page_says_which_relations_hold_more_and_lists_exactly_those() {
    // HD-01, LG-04
    let reply = shop("t=string,eq", 50).call("query_records", orders());
    let reply = reply.unwrap();
    insta::assert_snapshot!(reply.text, @r#"
    records from stream "orders": 2 record(s). has_more=false first_fetch_id=shop/orders:o1
    1. id=shop/orders:o1 {"id":"o1","expanded":{"items":[{"id":"o1-1","name":"cup"}]}}; "items" has_more=true (1 sent), continue with query_records {"stream":"items","connection_id":"shop","filter":{"order_id":"o1"}}
    2. id=shop/orders:o2 {"id":"o2","expanded":{"items":[{"id":"o2-1","name":"cup"}]}}; "items" has_more=true (1 sent), continue likewise with "filter":{"order_id":"o2"}
    Next: call fetch with an id as-is for a whole record, adding connection_id only when it is shown separately.
    "#);
    assert_eq!(printed_args(&reply.text, "query_records"), [items_of("o1")]);
    let rungs = &reply.structured["content_ladder"]["records"];
    for (place, key) in ["o1", "o2"].into_iter().enumerate() {
        let items = &rungs[place]["expanded"]["items"];
        assert_eq!(items["has_more"], json!(true));
        let next = json!({"tool":"query_records","args":items_of(key)});
        assert_eq!(items["next"], next);
    }
}

#[test]
fn the_call_is_spelt_out_at_the_first_row_that_needs_one() {
    // HD-01
    let item = json!({"object":"record","id":"o0-1","stream":"items","data":{"id":"o0-1"}});
    let whole = json!({"object":"record","id":"o0","stream":"orders","connection_id":"shop","data":{"id":"o0"},
        "expanded":{"items":{"object":"list","data":[item],"has_more":false}}});
    let mut cut = whole.clone();
    cut["id"] = json!("o1");
    cut["expanded"]["items"]["has_more"] = json!(true);
    let list = json!({"object":"list","has_more":false,"data":[whole, cut]});
    let stub = shop("t=string,eq", 50).on("/v1/streams/orders/records?connection_id", list);
    let text = stub.call("query_records", orders()).unwrap().text;
    assert_eq!(
        printed_args(&text, "query_records"),
        [items_of("o1")],
        "{text}"
    );
}

#[test]
fn a_relation_that_cannot_be_filtered_is_asked_for_more_of() {
    // HD-01, LG-04
    let reply = shop("t=string", 50).call("query_records", orders());
    let text = reply.unwrap().text;
    let larger = json!({"id":"shop/orders:o1","expand":["items"],"expand_limit":{"items":50}});
    assert_eq!(printed_args(&text, "fetch"), [larger], "{text}");
    assert!(text.contains("continue likewise with this id"), "{text}");
    // As much as there is to be had.
    let reply = shop("t=string", 1).call("query_records", orders());
    let text = reply.unwrap().text;
    assert!(text.contains("no call shows more"), "{text}");
    assert!(printed_args(&text, "fetch").is_empty(), "{text}");
}

#[test]
fn a_page_without_room_for_calls_still_says_that_there_is_more() {
    // LG-04, BU-03
    for (long, rows) in [(30, 10), (300, 3), (900, 2)] {
        let key = "k".repeat(long);
        let order = json!({"object":"record","id":key,"stream":"orders","connection_id":"shop",
            "data":{"id":key,"note":"word ".repeat(300)},
            "expanded":{"items":{"object":"list","data":[],"has_more":true}}});
        let stub = shop("t=string,eq", 50).on(
            "/v1/streams/orders/records?connection_id",
            json!({"object":"list","has_more":false,"data":vec![order; rows]}),
        );
        let text = stub.call("query_records", orders()).unwrap().text;
        assert!(
            text.len() < 1_800.max(2 * long + 600),
            "{}: {text}",
            text.len()
        );
        let told = text.lines().filter(|line| line.contains(". id="));
        for line in told {
            assert!(
                line.contains("\"items\" has_more=true (0 sent), "),
                "{line}"
            );
        }
    }
}

#[test]
fn a_fetched_record_leads_to_its_own_related_records() {
    // HD-01, HD-04: the call listed those of every record.
    let args = json!({"id":"shop/orders:o1","expand":["items"]});
    let next = |stub: Stub| {
        let reply = stub.call("fetch", args.clone()).unwrap();
        reply.structured["metadata"]["expanded"]["items"]["next"].clone()
    };
    assert_eq!(
        next(shop("t=string,eq", 50)),
        json!({"tool":"query_records","args":items_of("o1")})
    );
    for denied in ["t=string", "t=string,eq,g=false", "t=string,eq=unusable:x"] {
        let larger = next(shop(denied, 50));
        assert_eq!(larger["tool"], "fetch", "{denied}");
        assert_eq!(larger["args"]["expand_limit"], json!({"items":50}));
    }
    let none = next(shop("t=string", 1));
    assert!(none.as_str().unwrap().starts_with("no call shows more"));
}

#[test]
fn a_relation_that_is_whole_has_no_way_on_and_nothing_is_asked_for_one() {
    let item = json!({"object":"record","id":"i1","stream":"items","data":{"n":1}});
    let order = json!({"object":"record","id":"o1","stream":"orders","connection_id":"shop","data":{"id":"o1"},
        "expanded":{"items":{"object":"list","data":[item],"has_more":false}}});
    let stub = shop("t=string,eq", 50).on("/v1/streams/orders/records/o1?", order);
    let args = json!({"id":"shop/orders:o1","expand":["items"]});
    let document = stub.call("fetch", args).unwrap().structured;
    let items = &document["metadata"]["expanded"]["items"];
    assert_eq!(items.get("next"), None, "{items}");
    assert_eq!(stub.asked().len(), 2);
}

#[test]
fn all_relations_of_a_record_share_one_room() {
    // LG-01
    let item = |n: usize| json!({"id": format!("i{n}"), "stream": "items", "data": {"text": "w".repeat(2_000)}});
    let items: Vec<Value> = (0..10).map(item).collect();
    let names: Vec<String> = (0..8).map(|n| format!("relation{n}")).collect();
    let expanded: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| (name.clone(), json!({"object": "list", "data": items})))
        .collect();
    let offered: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let stub = Stub::default()
        .on(
            "/v1/schema",
            json!({"streams": [{"name": "orders", "expand_capabilities": offered}]}),
        )
        .on(
            "/v1/streams/orders/records/o1",
            json!({"id": "o1", "data": {"id": "o1"}, "expanded": expanded}),
        );
    let args = json!({"id": "shop/orders:o1", "expand": names});
    let document = stub.call("fetch", args).unwrap().structured;
    let relations = document["metadata"]["expanded"].as_object().unwrap();
    let shown: Vec<&Value> = relations.values().map(|one| &one["records"]).collect();
    let bytes: usize = shown.iter().map(|one| one.to_string().len()).sum();
    assert!((8_192..=16_384 + 64).contains(&bytes), "{bytes}");
    assert_eq!(relations["relation7"]["not_shown"], json!(10));
}

#[test]
fn a_related_record_that_cannot_be_named_says_how_it_is_read_where_it_is_cut() {
    // HD-04
    let item =
        |text: &str| json!({"id": "k".repeat(505), "stream": "items", "data": {"text": text}});
    let order = json!({"id": "o1", "stream": "orders", "connection_id": "shop", "data": {"id": "o1"},
        "expanded": {"items": {"object": "list", "data": [item("short"), item(&"w".repeat(2_000))]}}});
    let stub = shop("t=string,eq", 50).on("/v1/streams/orders/records/o1?", order);
    let args = json!({"id":"shop/orders:o1","expand":["items"]});
    let document = stub.call("fetch", args).unwrap().structured;
    let records = &document["metadata"]["expanded"]["items"]["records"];
    assert_eq!(records[0].get("read"), None, "{records}");
    assert!(
        records[1]["read"]
            .as_str()
            .unwrap()
            .starts_with("call schema")
    );
}
