//! Conversations: what is said beside a good answer, and who says it.

use serde_json::json;

use crate::fixture::*;
use crate::leaks::cases;
use crate::ordering::walk;

/// A chat in which one message answers another.
const THREADED: &str = r#"{"protocol_version": "0.1.0", "source": {"kind": "connector", "id": "https://sources.example/chat"},
    "declaration_version": "1", "streams": [{"name": "messages", "semantics": "append_only",
    "primary_key": ["id"], "cursor_field": "sent_at", "consent_time_field": "sent_at",
    "schema": {"type": "object", "properties": {"id": {"type": "string"},
        "chat": {"type": "string", "x_pdpp_role": "thread"},
        "sender": {"type": "string", "x_pdpp_role": "author"},
        "text": {"type": "string", "x_pdpp_role": "body"},
        "sent_at": {"type": "string", "format": "date-time"}}},
    "query": {"search": {"lexical_fields": ["text"]}}}]}"#;

// FI-20: what was said right before and after the best hits is shown, entered in the log, and counted as no hit. Without the
// right to see it, it is not there.
#[test]
fn neighbours_of_a_hit_are_shown_and_logged_and_are_no_hits() {
    let world = World::empty();
    world.connect(THREADED, "cin_chat", "Chat");
    for (id, day, sender, text) in [
        ("m1", "2026-01-01T00:00:00Z", "Ada", "Hello"),
        (
            "m2",
            "2026-01-02T00:00:00Z",
            "Ben",
            "When does the ferry leave?",
        ),
        ("m3", "2026-01-03T00:00:00Z", "Ada", "At eight"),
    ] {
        let message =
            json!({"id": id, "chat": "c", "sender": sender, "text": text, "sent_at": day});
        world.put("cin_chat", "messages", &message);
    }
    let asked = |fields: &[&str], since: &str| {
        let reader = world.client(
            "https://sources.example/chat",
            json!([{"name": "messages", "instance_ids": ["cin_chat"], "fields": fields,
                "time_constraint": {"field": "sent_at", "since": since}}]),
        );
        let mut query = words("ferry");
        query.count = contract::query::Count::Exact;
        let page = reader.search(query).unwrap();
        let neighbours = page["data"][0]["neighbours"].clone();
        (page, neighbours)
    };
    let all = ["id", "chat", "sender", "text", "sent_at"];
    let (page, mut neighbours) = asked(&all, "2025-01-01");
    for neighbour in neighbours.as_array_mut().unwrap() {
        let cite = neighbour.as_object_mut().unwrap().shift_remove("cite");
        assert!(cite.is_some(), "{neighbour}");
    }
    assert_eq!(
        neighbours,
        json!([{"side": "before", "id": "cin_chat/messages:m1", "author": "Ada", "field_path": "text",
                "text": "Hello", "truncated": false},
            {"side": "after", "id": "cin_chat/messages:m3", "author": "Ada", "field_path": "text",
                "text": "At eight", "truncated": false}])
    );
    assert_eq!(page["meta"]["count"], 1);
    let last = world.notes.0.lock().unwrap().pop().unwrap();
    for key in ["m1", "m2", "m3"] {
        assert!(last.records.contains(&format!("cin_chat/messages:{key}")));
    }
    // Wherever there is room, each hit has its own.
    let again = json!({"id": "m4", "chat": "c", "sender": "Ben", "text": "The ferry!", "sent_at": "2026-01-04T00:00:00Z"});
    world.put("cin_chat", "messages", &again);
    let with_neighbours = |reader: &Reader| {
        let hits = reader.find("ferry").into_iter();
        let hits = hits.filter(|hit| hit.get("near").is_none());
        hits.map(|hit| hit["neighbours"].as_array().map_or(0, Vec::len))
            .collect::<Vec<_>>()
    };
    assert_eq!(with_neighbours(&world.owner()), [1, 2]);
    assert_eq!(with_neighbours(&world.owner().bounded(10_000)), [1, 0]);
    let (_, hidden) = asked(&all, "2026-01-02");
    assert_eq!(hidden.as_array().unwrap().len(), 1);
    let (_, without_thread) = asked(&["id", "sender", "text", "sent_at"], "2025-01-01");
    assert_eq!(without_thread, json!(null));
}

// FI-20: the name of who speaks counts double in a conversation, whether its field has the role or is only named so.
#[test]
fn who_speaks_counts_double_by_role_or_by_name() {
    let searched = THREADED.replace("[\"text\"]", "[\"text\", \"sender\"]");
    let unsaid = searched.replace(", \"x_pdpp_role\": \"author\"", "");
    let other = unsaid.replace("sender", "reader");
    for (declaration, field, first) in [
        (searched, "sender", "said"),
        (unsaid, "sender", "said"),
        (other, "reader", "named"),
    ] {
        let world = World::empty();
        world.connect(&declaration, "cin_chat", "Chat");
        for (id, chat, sender, text) in [
            ("said", "a", "Ada", "Hello"),
            ("named", "b", "Ben", "Ada or ada or ada"),
            (
                "long",
                "c",
                "Ben",
                "a text so long that others are short beside it",
            ),
        ] {
            let mut message =
                json!({"id": id, "chat": chat, "text": text, "sent_at": "2026-01-01T00:00:00Z"});
            message[field] = json!(sender);
            world.put("cin_chat", "messages", &message);
        }
        let hits = world.owner().find("ada");
        assert_eq!(
            (hits.len(), &hits[0]["record_key"]),
            (2, &json!(first)),
            "{field}"
        );
    }
}

// FI-11, FI-20: pages lose and repeat no hits that a neighbour lends to, while hidden turns are written between the turns of their
// conversation.
#[test]
fn walks_through_conversations_under_hidden_writes_lose_and_repeat_nothing() {
    let world = World::empty();
    let place = "\"place\": {\"type\": \"integer\", \"x_pdpp_role\": \"order\"}, \"text\":";
    world.connect(&THREADED.replace("\"text\":", place), "cin_chat", "Chat");
    let put = |id: &str, day: &str, (chat, place): (usize, usize), text: &str| {
        let turn = json!({"id": id, "chat": format!("c{chat}"), "place": place, "sender": "Ada",
            "text": text, "sent_at": format!("{day}T00:00:00Z")});
        world.put("cin_chat", "messages", &turn);
    };
    let texts = [
        "When does the ferry leave?",
        "At eight",
        "Thanks",
        "The ferries to Bergen are late",
        "Good night",
        "See you",
        "Ferry!",
    ];
    for at in 0..35 {
        let text = texts[at % texts.len()];
        put(
            &format!("m{at:02}"),
            "2026-02-01",
            (at / 7, at % 7 * 10),
            text,
        );
    }
    let reader = world.client(
        "https://sources.example/chat",
        json!([{"name": "messages", "instance_ids": ["cin_chat"],
            "fields": ["id", "chat", "place", "sender", "text"],
            "time_constraint": {"field": "sent_at", "since": "2026-01-01"}}]),
    );
    let whole = walk(&reader, "ferry to Bergen", 100, &mut |_| ());
    let lent = whole.iter().filter(|hit| !hit.ends_with("null")).count();
    assert_eq!((whole.len(), lent), (35, 20));
    for number in 0..cases(40) as usize {
        let limit = u32::try_from(3 + number % 9).unwrap();
        let seen = walk(&reader, "ferry to Bergen", limit, &mut |seen| {
            let at = (number * 31 + seen) % 40;
            let id = format!("h{at:02}");
            if at.is_multiple_of(7) {
                world.delete("cin_chat", "messages", &id);
            } else {
                let text = texts[(number + seen) % texts.len()];
                put(&id, "2025-02-01", (at % 5, at % 8 * 10 + 5), text);
            }
        });
        assert_eq!(seen, whole, "walk {number}");
    }
}
