//! How long an answer may be, whatever a server sends.

use serde_json::{Value, json};

use super::{over, search};
use crate::stub::{Stub, printed_args};

/// FX-MANY.
fn many(count: usize) -> Value {
    let hits = (0..count).map(|i| {
        json!({"stream":"mail","record_key":format!("m{i}"),"connection_id":"conn_1","connector_key":"gmail",
            "title":format!("Subject {i}"),"snippet":{"field":"body","text":"lorem ".repeat(84)}})
    });
    json!({"object":"list","has_more":true,"data":hits.collect::<Vec<_>>()})
}

#[test]
fn many_hits_stay_within_the_budget_and_what_is_hidden_is_counted() {
    // BU-02, SE-07, SE-10, LG-01
    let body = many(200);
    let stub = Stub::default().on("/v1/search", body.clone());
    let (text, structured) = search(&stub, json!({"query": "lorem", "limit": 100}));
    insta::assert_snapshot!("many", text);
    assert!(text.len() < 1_800, "{}", text.len());
    assert_eq!(structured["data"], body);
    // SE-11
    assert_eq!(structured["results"].as_array().unwrap().len(), 100);
    let shown = (0..100)
        .filter(|i| {
            text.contains(&format!("conn_1/mail:m{i} "))
                || text.contains(&format!("conn_1/mail:m{i}\n"))
        })
        .count();
    assert!(
        text.contains(&format!("not_shown={} ", 100 - shown)),
        "{shown}: {text}"
    );
    let again = &printed_args(&text, "search")[0];
    assert_eq!(*again, json!({"query": "lorem", "limit": shown}));
}

#[test]
fn a_page_too_large_to_be_taken_is_asked_for_again_as_one_hit() {
    // LG-01
    let stub = Stub::default()
        .overflowing("/v1/search?q=lorem&limit=10")
        .on("/v1/search?q=lorem&limit=1", many(1));
    let (text, structured) = search(&stub, json!({"query": "lorem"}));
    assert!(text.contains(" page_shortened=1of10 "), "{text}");
    assert_eq!(
        structured["page_shortened"],
        json!({"asked": 10, "shown": 1})
    );
}

#[test]
fn a_default_page_shows_every_id() {
    for count in [10, 25] {
        let stub = Stub::default().on("/v1/search", many(count));
        let (text, _) = search(&stub, json!({"query": "lorem"}));
        assert!(text.len() < 1_800);
        assert!(!text.contains("not_shown="), "{text}");
        for i in 0..count {
            assert!(
                text.split_whitespace()
                    .any(|word| word.trim_start_matches("id=") == format!("conn_1/mail:m{i}")),
                "m{i} in {text}"
            );
        }
    }
}

#[test]
fn every_hit_with_an_excerpt_says_who_and_when_and_the_others_do_too() {
    // AN-18, EV-17
    let hits: Vec<Value> = (0..6)
        .map(|i| {
            let text = format!("{} the <mark>bridge</mark> vendor {}", "before ".repeat(30), "after ".repeat(30));
            json!({"stream":"messages","record_key":format!("m-0456{i}"),"connection_id":"mail-work","connector_key":"mail",
                "display_name":"Mara's work mail","authored_at":format!("2026-09-1{i}T06:50:00Z"),"author":"Grace Mbeki",
                "title":format!("Re: Harbour footbridge, offer {i}"),
                "evidence_excerpts":[{"field_path":"body","preview_text":text,"text_start_chars":0,"truncated":true}]})
        })
        .collect();
    let (text, structured) = search(&over(json!(hits)), json!({"query": "bridge"}));
    assert!(text.len() < 1_800, "{}", text.len());
    for i in 0..6 {
        let id = format!("mail-work/messages:m-0456{i}");
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{}. ", i + 1)) && line.contains(&id));
        let line = line.expect(&text);
        for part in [
            format!("offer {i}"),
            format!("time=2026-09-1{i}"),
            "Grace".to_owned(),
        ] {
            assert!(line.contains(&part), "{part} in {text}");
        }
        assert_eq!(line.contains("<mark>bridge</mark> vendor"), i < 3, "{text}");
    }
    for list in [
        &structured["results"],
        &structured["content_ladder"]["records"],
    ] {
        for entry in list.as_array().unwrap() {
            let preview = entry["evidence_preview"].as_str().unwrap();
            assert!(preview.contains("the bridge vendor"), "{preview}");
        }
    }
}

#[test]
fn what_room_is_left_over_goes_to_the_best_hits() {
    // SE-03
    let stub = Stub::default().on("/v1/search", many(25));
    let (text, _) = search(&stub, json!({"query": "lorem"}));
    let lines = text.lines().filter(|line| line.contains("title="));
    let widths: Vec<usize> = lines.map(str::len).collect();
    assert_eq!(widths.len(), 25);
    // Places of two digits take a byte or two more.
    let is_narrower = |pair: &[usize]| pair[1] <= pair[0] + 3;
    assert!(widths.windows(2).all(is_narrower), "{text}");
    assert!(widths[0] > widths[24], "{text}");
}

#[test]
fn an_excerpt_needs_its_room_more_than_labels_do() {
    // AN-18, EV-17
    let said = "we have agreed on the <mark>bridge</mark> vendor, who delivers in week 14 of 2027, and Jonas prepares the contract that we sign on the sixth of October in Basel";
    let hits = (0..6).map(|i| {
        json!({"stream":"messages","record_key":format!("m{i}"),"connection_id":"mail-work","connector_key":"mail",
            "display_name":"Mara's work mail","authored_at":"2026-09-18T06:50:00Z","author":"Grace Mbeki","title":"Harbour footbridge",
            "evidence_excerpts":[{"field_path":"body","preview_text":said,"text_start_chars":0,"truncated":false}]})
    });
    let (text, _) = search(&over(hits.collect()), json!({"query": "bridge"}));
    let proofs: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("field_path=body \""))
        .collect();
    assert_eq!(proofs.len(), 3, "{text}");
    for line in proofs {
        assert!(
            line.contains(said) && line.contains("title=\"Harbour footbridge\""),
            "{text}"
        );
    }
}

#[test]
fn a_hit_that_stands_next_to_the_best_one_is_quoted_once() {
    // FI-20
    let hits = json!([
        {"stream":"chat","record_key":"m1","connection_id":"c1","title":"T",
            "evidence_excerpts":[{"field_path":"text","preview_text":"which <mark>vendor</mark>?","truncated":false}],
            "neighbours":[{"side":"after","id":"c1/chat:m2","field_path":"text","text":"Ironleaf it is","truncated":false}]},
        {"stream":"chat","record_key":"m2","connection_id":"c1","title":"T","near":"c1/chat:m1","matched_fields":[],
            "passage":{"field_path":"text","text":"Ironleaf it is","truncated":false}}
    ]);
    let (text, _) = search(&over(hits), json!({"query": "vendor"}));
    assert_eq!(text.matches("Ironleaf it is").count(), 1, "{text}");
    assert!(
        text.contains("2. id=c1/chat:m2 stream=chat title=\"T\" near=c1/chat:m1"),
        "{text}"
    );
}

#[test]
fn a_time_is_shown_whole() {
    // AN-18
    let hits = (0..25).map(|i| {
        json!({"stream":"events","record_key":format!("yoga@x_2025012{i}T180000"),"connection_id":"cal","title":"Yoga class",
            "authored_at":"2025-01-27T18:00:00+01:00"})
    });
    let (text, _) = search(&over(hits.collect()), json!({"query": "yoga"}));
    let times = text.matches("time=").count();
    assert!(times > 5, "{text}");
    assert_eq!(text.matches("2025-01-27T18:00:00+01:00").count(), times);
}

/// BU-03: labels, titles, cursor and excerpts as long as a server may send them.
fn adversarial(filler: &str, key_chars: usize) -> Value {
    let long = |chars: usize| filler.chars().cycle().take(chars).collect::<String>();
    let hits = (0..60).map(|i| {
        let excerpt = |field: &str| {
            let text = format!("{} <mark>{}</mark> {}", long(300), long(8), long(300));
            json!({"field_path": field, "preview_text": text, "truncated": true})
        };
        json!({"stream":"s".repeat(60),"record_key":format!("{i}{}", "k".repeat(key_chars)),
            "connection_id":format!("conn_{}", i % 10),"connector_key":"c".repeat(60),"display_name":long(80),
            "title":long(100),"snippet":{"field":"body","text":long(500)},
            "evidence_excerpts":[excerpt("body"), excerpt("note")]})
    });
    let warnings: Vec<Value> = (0..20)
        .map(|i| json!({"code": format!("warning_{i}_{}", "w".repeat(40))}))
        .collect();
    json!({"object":"list","has_more":true,"next_cursor":"c".repeat(300),"data":hits.collect::<Vec<_>>(),
        "meta":{"warnings":warnings,"recall":{"complete":false,"ranked_candidate_count":100}}})
}

#[test]
fn no_server_can_make_the_text_too_long_or_unbalanced() {
    // BU-03, SE-14, ID-05
    for filler in ["word ", "日本語 ", "👩‍👧‍👦🎉", "\u{202e}\n\"\\", "<mark>", "…"]
    {
        for key_chars in [1, 60, 260] {
            let stub = Stub::default().on("/v1/search", adversarial(filler, key_chars));
            let (text, structured) = search(&stub, json!({"query": "word", "limit": 50}));
            let ids = 3 * (key_chars + 75);
            assert!(
                text.len() < 1_800 + ids,
                "{filler} {key_chars}: {} {text}",
                text.len()
            );
            if key_chars < 260 {
                assert!(text.len() < 1_800, "{filler} {key_chars}: {}", text.len());
            }
            let first = structured["results"][0]["id"].as_str().unwrap();
            assert!(text.contains(&format!("first_fetch_id={first} ")));
            assert!(
                text.contains("Evidence excerpts:\n1. field_path=body"),
                "{text}"
            );
            assert!(text.contains("recall is partial"), "UP-02");
            let tags = |tag: &str| text.matches(tag).count();
            assert_eq!(tags("<mark>"), tags("</mark>"), "{text}");
            assert!(!text.contains(['\u{202e}', '\u{200d}']));
            for args in printed_args(&text, "read_record_field") {
                assert!(args["id"].as_str().unwrap().starts_with("conn_"));
            }
        }
    }
}

#[test]
fn a_hit_whose_id_leaves_no_room_is_named_once_and_the_search_leads_on() {
    // BU-03, HD-01: it was called not shown, and the call to show it was the one that had been made.
    for (key, cursor, count) in [(510, 940, 1), (700, 900, 1), (510, 940, 5), (400, 900, 3)] {
        let hits = (0..count).map(|i| {
            json!({"stream":"mail","record_key":format!("{i}{}", "k".repeat(key)),"connection_id":"c1","title":"T",
                "evidence_excerpts":[{"field_path":"body","preview_text":"a <mark>word</mark> b","truncated":true}]})
        });
        let body = json!({"object":"list","has_more":true,"next_cursor":"c".repeat(cursor),"data":hits.collect::<Vec<_>>()});
        let stub = Stub::default().on("/v1/search", body);
        let args = json!({"query": "word", "limit": count, "cursor": "d".repeat(100)});
        let (text, _) = search(&stub, args.clone());
        let most = 1_800.max(key + cursor + 380);
        assert!(text.len() < most, "{}: {text}", text.len());
        assert!(text.contains("\n1. "), "{text}");
        assert!(!printed_args(&text, "search").contains(&args), "{text}");
        assert_eq!(text.contains("not_shown="), count > 1, "{text}");
    }
}

#[test]
fn a_huge_answer_is_bounded_and_every_cut_in_it_leads_on() {
    // LG-01
    let hits: Vec<Value> = (0..100)
        .map(|i| {
            json!({"stream":"mail","record_key":format!("m{i}"),"connection_id":"c1",
                "data":{"body":"x".repeat(50_000)},"snippet":"short"})
        })
        .collect();
    let (text, structured) = search(&over(json!(hits)), json!({"query": "x", "limit": 100}));
    assert!(text.len() < 1_800);
    assert!(structured.to_string().len() + text.len() * 2 < 1_048_576);
    let body = &structured["data"]["data"][99]["data"]["body"];
    assert_eq!(body["truncated"], true);
    assert_eq!(body["size"], 50_000);
    assert_eq!(
        body["read"],
        json!({"tool": "fetch", "args": {"id": "c1/mail:m99"}})
    );
}

#[test]
fn the_first_300_bytes_say_what_it_is_and_give_a_handle() {
    let stub = Stub::default().on("/v1/search", adversarial("word ", 20));
    let (text, _) = search(&stub, json!({"query": "word"}));
    let seen = &text[..300];
    for word in [
        "search: 25 hit(s).",
        "has_more=true",
        "first_fetch_id=conn_0/",
    ] {
        assert!(seen.contains(word), "{seen}");
    }
}

#[test]
fn one_hit_shows_its_proof_and_all_that_names_it() {
    // SE-03, EV-02
    let excerpt = |field: &str| {
        let text = format!(
            "{}<mark>needle</mark>{}",
            "before ".repeat(60),
            " after".repeat(60)
        );
        json!({"field_path": field, "preview_text": text, "truncated": true, "text_start_chars": 90_000})
    };
    let hit = json!({"stream":"messages","record_key":"r".repeat(60),"connection_id":"cin_slack","connector_key":"slack",
        "display_name":"Acme Slack","title":"A title of its own","snippet":{"field":"other","text":"something else entirely"},
        "evidence_excerpts":[excerpt("one"), excerpt("two"), excerpt("three")]});
    let (text, structured) = search(&over(json!([hit])), json!({"query": "needle"}));
    assert!(text.len() < 1_800, "{}", text.len());
    for part in [
        "connector_key=slack",
        "stream=messages",
        r#"display_name="Acme Slack""#,
        r#"title="A title of its own""#,
        r#"snippet="something else entirely""#,
        "field_path=one",
        "field_path=two",
        "before <mark>needle</mark> after",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for line in text.lines().filter(|line| line.contains("field_path=")) {
        let excerpt = line.split('"').nth(1).unwrap();
        assert!(excerpt.len() <= 400, "{excerpt}");
    }
    let preview = structured["results"][0]["evidence_preview"]
        .as_str()
        .unwrap();
    assert!(preview.len() <= 330 && preview.contains("before needle after"));
}

#[test]
fn hits_without_a_title_of_their_own_say_the_time_where_room_is_scarce() {
    let hits: Vec<Value> = (0..25)
        .map(|i| {
            json!({"stream":"mail","record_key":format!("m{i}"),"connection_id":"c1","display_name":"Lucía",
                "emitted_at":"2026-05-01T00:00:00Z","snippet":"w ".repeat(200)})
        })
        .collect();
    let first = |count: usize| {
        let (text, _) = search(&over(json!(hits[..count])), json!({"query": "x"}));
        let line = text.lines().find(|line| line.starts_with("1. ")).unwrap();
        line.to_owned()
    };
    let many = first(25);
    assert!(
        many.contains(" time=2026-05-01") && !many.contains(" title="),
        "{many}"
    );
    let one = first(1);
    assert!(one.contains(" title=") && !one.contains(" time="), "{one}");
    // A name in any script is bare.
    assert!(one.contains(" display_name=Lucía "), "{one}");
}

#[test]
fn connections_that_do_not_fit_the_first_lines_are_counted() {
    let hits: Vec<Value> = (0..24)
        .map(|i| json!({"stream":"s","record_key":"r","connection_id":format!("{}{i}", "c".repeat(40))}))
        .collect();
    let (text, _) = search(&over(json!(hits)), json!({"query": "x", "limit": 100}));
    let mix = text.split("source_mix=").nth(1).unwrap();
    let mix = mix.split_whitespace().next().unwrap();
    let more: usize = mix.split("|more:").nth(1).unwrap().parse().unwrap();
    assert_eq!(mix.split('|').count() - 1 + more, 24, "{mix}");
}
