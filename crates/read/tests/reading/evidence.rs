//! Evidence: every excerpt, read again at its offsets, gives the same characters, in every script.

use contract::error::ErrorCode;
use contract::window::WindowSelector;
use serde_json::{Value, json};

use crate::fixture::*;

fn reader(world: &World, fields: Value) -> Reader {
    world.mail_client(json!([{"name": "messages", "fields": fields}]))
}

/// Reads every excerpt of a hit again through its own continuation.
fn reread(reader: &Reader, hit: &Value) -> usize {
    let excerpts = hit["evidence_excerpts"].as_array().unwrap();
    for excerpt in excerpts {
        let read = &excerpt["read"];
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let mut query = window(
            hit["record_key"].as_str().unwrap(),
            excerpt["field_path"].as_str().unwrap(),
            WindowSelector {
                offset_chars: Some(number(&read["offset_chars"])),
                limit_chars: Some(number(&read["limit_chars"])),
                ..WindowSelector::default()
            },
        );
        query.connection_id = hit["connection_id"].as_str().map(str::to_owned);
        let window = reader.window(query).unwrap()["window"].clone();
        let preview = excerpt["preview_text"].as_str().unwrap();
        let text = &preview.replace("<mark>", "").replace("</mark>", "");
        let (from, to) = (
            number(&excerpt["text_start_chars"]),
            number(&excerpt["text_end_chars"]),
        );
        let before = from - number(&window["start_chars"]);
        let around = window["text"].as_str().unwrap().chars();
        let again: String = around.clone().skip(before).take(to - from).collect();
        assert_eq!(again, *text);
        // What is known already is not all that a window shows.
        assert_eq!(excerpt["truncated"] == true, around.count() > to - from);
        assert!(!excerpt["matches"].as_array().unwrap().is_empty());
        let start = number(&excerpt["text_start_chars"]);
        for span in excerpt["matches"].as_array().unwrap() {
            let (from, to) = (number(&span["start_chars"]), number(&span["end_chars"]));
            let marked: String = text.chars().skip(from - start).take(to - from).collect();
            assert_eq!(marked.chars().count(), to - from);
            assert!(
                preview.contains(&format!("<mark>{marked}</mark>")),
                "{preview}: {marked}"
            );
        }
    }
    excerpts.len()
}

#[test]
fn an_excerpt_read_again_gives_the_same_characters_in_every_script() {
    // PA-02, PA-03, EV-20
    let filler = "Neutral words stand here, nothing to see. ".repeat(30);
    let cases = [
        ("hyperlane", "We agreed on Hyperlane next quarter"),
        ("cafe", "Un café crème, e\u{301}te\u{301} CAFE\u{301}"),
        (
            "\"overdraft fee\"",
            "the Overdraft fee, and overdraft alone",
        ),
        ("over*", "an overdraft and an overture"),
        ("東京都", "昨日は東京都で会議がありました"),
        ("京", "昨日は東京都で会議がありました"),
        ("👩‍👩‍👧‍👦 family", "our 👩‍👩‍👧‍👦 family 🏳️‍🌈🇩🇪 trip"),
        ("שלום", "אמרתי שָׁלוֹם לכולם, שלום"),
        ("مرحبا", "قلت مرحبا للجميع"),
        ("strasse", "Die Straße und die STRASSE"),
        ("ist*", "İstanbul and istanbul"),
    ];
    for (q, phrase) in cases {
        let world = World::mail();
        let body = format!("👩‍👩‍👧‍👦 日本 {filler}{phrase}. {filler}{phrase}!");
        world.message(&json!({"id": "m1", "subject": phrase, "body": body}));
        let reader = reader(&world, json!(["subject", "body"]));
        let hits = reader.find_with(q, 3);
        if q.starts_with('👩') && hits.is_empty() {
            // Emoji may or may not be words; around them, words are.
            assert_eq!(reread(&reader, &reader.find_with("family", 3)[0]), 3);
            continue;
        }
        assert_eq!(hits.len(), 1, "{q}");
        assert_eq!(hits[0]["matched_fields"], json!(["subject", "body"]), "{q}");
        assert_eq!(reread(&reader, &hits[0]), 3, "{q}");
    }
}

#[test]
fn an_excerpt_is_only_of_fields_that_are_granted() {
    // PA-03
    let world = World::mail();
    world.message(
        &json!({"id": "m1", "subject": "Hyperlane", "body": "Hyperlane", "secret": "Hyperlane"}),
    );
    let all = reader(&world, json!(["subject", "body"]));
    let less = reader(&world, json!(["subject", "from_email"]));
    let hit = &less.find("hyperlane")[0];
    assert_eq!(hit["matched_fields"], json!(["subject"]));
    assert_eq!(hit["evidence_excerpts"].as_array().unwrap().len(), 1);
    assert_eq!(
        all.find("hyperlane")[0]["matched_fields"],
        json!(["subject", "body"])
    );
    let answer = less.window(window("m1", "body", WindowSelector::default()));
    assert_eq!(code(answer), ErrorCode::FieldNotGranted);
}

#[test]
fn words_of_hidden_fields_neither_find_nor_exclude() {
    let world = World::mail();
    world.message(&json!({"id": "m1", "subject": "tea", "secret": "poison"}));
    let client = reader(&world, json!(["subject"]));
    assert_eq!(client.find("poison").len(), 0);
    assert_eq!(client.find("+tea +poison").len(), 0);
    assert_eq!(client.find("tea -poison").len(), 1);
    let owner = world.owner();
    assert_eq!(owner.find("+tea +poison").len(), 1);
    assert_eq!(owner.find("tea -poison").len(), 0);
    assert_eq!(client.find("-poison").len(), 0);
    assert_eq!(client.find("   ").len(), 0);
}

#[test]
fn the_field_that_proves_most_comes_first_and_marks_of_the_source_are_escaped() {
    let world = World::mail();
    world.message(
        &json!({"id": "m1", "subject": "a fee", "body": "the <mark>overdraft</mark> fee"}),
    );
    let hit = &world.owner().find_with("overdraft fee", 2)[0];
    assert_eq!(hit["evidence_excerpts"][0]["field_path"], "body");
    assert_eq!(
        hit["evidence_excerpts"][0]["preview_text"],
        "the &lt;mark><mark>overdraft</mark>&lt;/mark> <mark>fee</mark>"
    );
    assert_eq!(hit["evidence_excerpts"][1]["field_path"], "subject");
}

#[test]
fn a_hit_has_one_excerpt_unless_more_are_asked_for_and_not_of_what_its_title_says() {
    // AN-10, AN-11
    let world = World::mail();
    let filler = "Nothing to see here at all. ".repeat(20);
    let body = format!("tea {filler} tea {filler} tea {filler} tea {filler} tea {filler} tea");
    world.message(&json!({"id": "m1", "subject": "tea", "body": body}));
    let owner = world.owner();
    for excerpts in 1..=5 {
        let hit = &owner.find_with("tea", excerpts)[0];
        let found = hit["evidence_excerpts"].as_array().unwrap();
        assert_eq!(found.len(), excerpts);
        assert_eq!(found[0]["field_path"], "body");
        for repeated in ["snippet", "record_url", "connector_instance_id"] {
            assert!(hit.get(repeated).is_none(), "{repeated}");
        }
        assert!(found.iter().all(|one| one.get("text").is_none()));
    }
}

#[test]
fn a_page_ends_by_the_bytes_its_caller_has_room_for() {
    // AN-12
    let world = World::mail();
    for at in 0..9 {
        let body = format!("tea {}", "x".repeat(300));
        let record = json!({"id": format!("m{at}"), "subject": "s", "body": body});
        world.message(&record);
    }
    let bounded = |max_bytes| world.owner().bounded(max_bytes);
    for max_bytes in [1, 700, 1_500, 3_000] {
        let pages = [
            bounded(max_bytes).search(words("tea")),
            bounded(max_bytes).records(limited("messages", 25)),
        ];
        for page in pages.map(Result::unwrap) {
            let data = page["data"].as_array().unwrap();
            let bytes = page["data"].to_string().len();
            assert!(data.len() == 1 || bytes <= max_bytes, "{bytes} {max_bytes}");
            assert!(!data.is_empty() && data.len() < 9);
            assert_eq!(page["has_more"], true);
            assert!(page["next_cursor"].is_string());
        }
    }
    let whole = bounded(100_000).records(limited("messages", 25)).unwrap();
    assert_eq!(whole["data"].as_array().unwrap().len(), 9);
}

#[test]
fn a_title_comes_from_a_granted_field_and_stays_short() {
    let world = World::mail();
    world.message(&json!({"id": "m1", "subject": "t".repeat(500), "body": "tea"}));
    let title = |reader: &Reader| reader.find("tea")[0]["title"].clone();
    assert_eq!(title(&world.owner()), format!("{}…", "t".repeat(200)));
    assert_eq!(title(&reader(&world, json!(["body"]))), Value::Null);
}

#[test]
fn a_search_fans_in_and_says_which_sources_it_could_not_ask() {
    // UP-11
    let world = World::mail();
    world.connect(CHAT, "chat", "Team chat");
    world.message(&json!({"id": "m1", "body": "tea"}));
    world.put("chat", "messages", &json!({"id": "c1", "text": "tea"}));
    let granted = |chat_fields: Value| {
        world.package(&[
            grant(
                "grt_1",
                "demo_mail",
                json!([{"name": "messages", "instance_ids": ["work"], "fields": ["body"]}]),
            ),
            grant(
                "grt_2",
                "demo_chat",
                json!([{"name": "messages", "instance_ids": ["chat"], "fields": chat_fields}]),
            ),
        ])
    };
    let ask = |reader: &Reader| reader.search(words("tea")).unwrap();
    let page = ask(&granted(json!(["text"])));
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    assert_eq!(page["meta"]["recall"]["sources_searched_count"], 2);
    let page = ask(&granted(json!(["id"])));
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        page["meta"]["warnings"],
        json!([{"code": "source_skipped_not_applicable", "detail": {"connection_id": "chat", "source": "demo_chat"},
            "message": "Connection 'chat' under connector 'demo_chat' is not applicable to this query and was skipped. /v1/schema?connection_id=chat tells what can be asked of it."}])
    );
    let only_chat = world.client(
        "demo_chat",
        json!([{"name": "messages", "instance_ids": ["chat"], "fields": ["id"]}]),
    );
    let page = ask(&only_chat);
    assert_eq!(page["meta"]["count"], Value::Null);
    assert_eq!(
        page["meta"]["recall"],
        json!({"complete": false, "ranking_scope": "unknown", "truncated": false})
    );
}

#[test]
fn a_search_takes_conditions_on_one_stream() {
    let world = World::mail();
    world.connect(CHAT, "chat", "Team chat");
    for (id, seen) in [("m1", true), ("m2", false)] {
        world.message(&json!({"id": id, "body": "tea", "seen": seen}));
    }
    world.put("chat", "messages", &json!({"id": "c1", "text": "tea"}));
    let mut query = words("tea");
    query.streams = vec![stream("messages")];
    let filter = contract::query::Filter::exact(field("seen"), "true");
    let page = world
        .owner()
        .search(query.filtered(vec![filter]).unwrap())
        .unwrap();
    let keys: Vec<&str> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["record_key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["m1"]);
    assert_eq!(
        page["meta"]["warnings"][0]["detail"]["connection_id"],
        "chat"
    );
}

// TR-17: a search that finds nothing says which words occur and how often, within the grant and never outside it.
#[test]
fn nothing_found_says_which_words_occur_within_the_grant() {
    let world = World::mail();
    for (id, day, subject) in [
        ("m1", "2026-02-01", "the bridge and its vendor"),
        ("m2", "2026-02-02", "a bridge"),
        ("h1", "2025-02-01", "bridge vendors at midnight"),
    ] {
        let letter = json!({"id": id, "received_at": day, "subject": subject, "seen": true});
        world.message(&letter);
    }
    let reader = world.mail_client(
        json!([{"name": "messages", "fields": ["id", "subject", "seen"],
            "time_constraint": {"field": "received_at", "since": "2026-01-01"}}]),
    );
    let explained = |q: &str| {
        let page = reader.search(words(q)).unwrap();
        page["meta"]["words"].clone()
    };
    assert_eq!(
        explained("+bridge +vendors"),
        json!({"found": ["bridge"], "missing": ["vendors"], "with_every_word": 0,
            "terms": [{"term": "bridge", "count": 2}, {"term": "vendors", "count": 0}],
            "suggestions": [{"term": "vend*", "count": 1}]})
    );
    assert_eq!(
        explained("+midnight \"a bridge\" vend*"),
        json!({"found": ["\"a bridge\"", "vend*"], "missing": ["midnight"], "with_every_word": 0,
            "terms": [{"term": "midnight", "count": 0}, {"term": "\"a bridge\"", "count": 1},
            {"term": "vend*", "count": 1}]})
    );
    assert_eq!(explained("-bridge"), json!({"with_every_word": 0}));
    assert_eq!(
        explained("vendor -bridge"),
        json!({"found": ["vendor"], "with_every_word": 0,
            "terms": [{"term": "vendor", "count": 1}], "without_excluded": 1})
    );
    // Where something is found, it is told which words were, and in which spelling.
    assert_eq!(
        explained("bridge vendors"),
        json!({"found": ["bridge", "vendors"], "with_every_word": 1})
    );
    assert_eq!(
        explained("midnight birdge"),
        json!({"missing": ["midnight"], "respelled": [{"term": "birdge", "found": ["bridge"]}],
            "with_every_word": 0})
    );
    let mut filtered = words("bridge");
    filtered.streams = vec![stream("messages")];
    filtered.filters = vec![contract::query::Filter::exact(field("seen"), "false")];
    let page = reader.search(filtered).unwrap();
    assert_eq!(
        page["meta"]["words"],
        json!({"missing": ["bridge"], "with_every_word": 0,
            "terms": [{"term": "bridge", "count": 2}], "without_filters": 2})
    );
}

// FI-01: whatever is asked, the answer is bounded and says what was looked for, or the refusal is typed.
#[test]
fn the_strangest_questions_are_answered_or_refused() {
    let world = World::mail();
    for at in 0..40 {
        let subject = format!("word{at} the bridge");
        world.message(&json!({"id": format!("m{at}"), "subject": subject}));
    }
    let reader = world.owner();
    let million = "bridge ".repeat(150_000);
    let ten_thousand: Vec<String> = (0..10_000).map(|at| format!("word{at}")).collect();
    let ten_thousand = ten_thousand.join(" ");
    let hits = |q: &str| {
        let page = reader.search(words(q)).map_err(|error| error.code)?;
        Ok::<_, ErrorCode>(page["data"].as_array().unwrap().len())
    };
    for (question, found) in [
        (million.as_str(), true),
        (ten_thousand.as_str(), true),
        ("the", true),
        ("w*", true),
        ("+w* -word1", true),
        ("?!… -- \u{200b}", false),
        ("of which with", false),
        ("\"\" \"", false),
        ("+ - *", false),
    ] {
        match hits(question) {
            Ok(count) => assert_eq!(count > 0, found, "{question:.40}"),
            Err(code) => assert!(
                matches!(code, ErrorCode::InvalidRequest),
                "{code:?} for {question:.40}"
            ),
        }
    }
}

// FI-10: with two records that may be seen and one mail that may not, words of the hidden mail cannot be told from others: not by
// the order, not by what is said of the words, not by any byte.
#[test]
fn five_words_of_a_hidden_mail_cannot_be_guessed() {
    let worlds = ["fortune", "nothing of it"].map(|secret| {
        let world = World::mail();
        for (id, day, subject) in [
            ("m1", "2026-02-01", "lunch plans tuesday"),
            ("m2", "2026-02-02", "dinner plans monday"),
            ("h1", "2025-02-01", secret),
        ] {
            let letter = json!({"id": id, "received_at": day, "subject": subject});
            world.message(&letter);
        }
        world
    });
    for word in ["fortune", "nothing", "lunch", "dinner", "fortunes"] {
        for question in [
            word.to_owned(),
            format!("plans {word}"),
            format!("{word} lunch dinner"),
            format!("lunch -{word}"),
            format!("{word}*"),
        ] {
            let answers = worlds.each_ref().map(|world| {
                let reader = world
                    .mail_client(json!([{"name": "messages", "fields": ["id", "subject"],
                    "time_constraint": {"field": "received_at", "since": "2026-01-01"}}]));
                reader.search(words(&question)).unwrap()
            });
            assert_eq!(answers[0], answers[1], "{question}");
        }
    }
}
