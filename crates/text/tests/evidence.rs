//! Which clauses a field proves and how the evidence is cut out of it (decisions 18 to 20).

use text::{
    Excerpt, ExcerptLimits, Expression, FieldMatch, Form, FormKind, Seen, Span, excerpts, marked,
    occurrences,
};

fn found(text: &str, query: &str) -> bool {
    let expression = Expression::parse_all(query);
    occurrences(text, &expression).count() == expression.wanted.len()
}

fn show(text: &str, query: &str) -> Vec<Excerpt> {
    excerpts(
        text,
        &Expression::parse_all(query),
        ExcerptLimits::default(),
    )
}

fn preview(excerpt: &Excerpt) -> String {
    marked(&excerpt.text, excerpt.start_chars, &excerpt.matches)
}

fn words(prefix: &str, count: usize) -> String {
    let words: Vec<String> = (0..count).map(|n| format!("{prefix}{n}")).collect();
    words.join(" ") + " "
}

#[test]
fn matches_are_found_in_every_script() {
    for (text, query) in [
        ("The bridge using LayerZero", "layerzero BRIDGE"),
        ("the quick brown fox", "\"Quick Brown\""),
        ("mail me at jane@example.test", "example.test"),
        ("mail me at jane@example.test", "jane@example.test"),
        ("Größenwahn", "grossenwahn"),
        ("Größenwahn", "GRÖ*"),
        ("thành phố Hồ Chí Minh", "\"ho chi minh\""),
        ("Διονύσιος", "ΔΙΟΝΥΣΙΟΣ"),
        ("Королёва", "королева"),
        ("שָׁלוֹם", "שלום"),
        ("كِتَابٌ", "كتاب"),
        ("हिन्दी भाषा", "भाषा"),
        ("ฉันเรียนภาษาไทยทุกวัน", "ภาษาไทย"),
        ("我在北京大学学习", "北京大学"),
        ("我在北京大学学习", "京大"),
        ("我在北京大学学习", "习"),
        ("我在北京大学学习", "大"),
        ("東京ﾀﾜｰへ行く", "タワー"),
        ("한국어를 배운다", "국어"),
        ("买了iPhone手机", "iphone手机"),
        ("买了iPhone手机壳", "iPhone手"),
        ("great 👍🏽 job", "👍"),
        ("the 👨‍👩‍👧 came", "👩"),
        ("the 👨‍👩‍👧 came", "👨‍👩‍👧"),
        ("phone 手机 phone", "\"手机 phone\""),
    ] {
        assert!(found(text, query), "{query} in {text}");
        assert!(!show(text, query).is_empty(), "{query} in {text}");
    }
    for (text, query) in [
        ("quick red brown", "\"quick brown\""),
        ("手机店 phone", "\"手机 phone\""),
        ("alphabet", "alpha"),
        ("北京 大学", "京大"),
        ("bread", "read*"),
    ] {
        assert!(!found(text, query), "{query} in {text}");
        assert!(show(text, query).is_empty(), "{query} in {text}");
    }
}

#[test]
fn a_field_is_proven_for_the_clauses_it_contains() {
    let expression = Expression::parse("alpha \"beta gamma\" miss -delta");
    let expected = |clauses: [bool; 3], excluded| FieldMatch {
        clauses: clauses.map(|found| found.then_some(Seen::Exact)).to_vec(),
        excluded,
    };
    assert_eq!(
        occurrences("Alpha beta gamma", &expression),
        expected([true, true, false], false)
    );
    assert_eq!(
        occurrences("beta alpha delta", &expression),
        expected([true, false, false], true)
    );
    assert_eq!(occurrences("", &expression).count(), 0);
    assert_eq!(occurrences("alpha", &Expression::default()).count(), 0);
}

// FI-03: another form is marked like the word, and a field is proven by the best form it has.
#[test]
fn other_forms_of_a_word_are_evidence_too() {
    let mut expression = Expression::parse("bridge vendors");
    let form = |term: &str, kind| Form {
        term: term.to_owned(),
        kind,
    };
    expression.wanted[1].forms = vec![
        form("vendor", FormKind::Form),
        form("vendores", FormKind::Spelling),
    ];
    let seen = |text: &str| occurrences(text, &expression).clauses;
    assert_eq!(seen("the vendores"), [None, Some(Seen::Form(1))]);
    assert_eq!(seen("Vendores, Vendor"), [None, Some(Seen::Form(0))]);
    assert_eq!(seen("a vendor among VENDORS"), [None, Some(Seen::Exact)]);
    let shown = excerpts(
        "The Vendor builds a bridge.",
        &expression,
        ExcerptLimits::default(),
    );
    assert_eq!(
        preview(&shown[0]),
        "The <mark>Vendor</mark> builds a <mark>bridge</mark>."
    );
}

#[test]
fn phrases_overlapping_themselves_are_followed() {
    assert!(found("a a b", "\"a b\""));
    assert!(found("a b a b c", "\"a b c\""));
    assert!(found("a a a b", "\"a a b\""));
}

// EV-16
#[test]
fn a_preview_has_words_on_both_sides_of_the_mark() {
    let text = format!(
        "{}the bridge using LayerZero messaging was audited {}",
        words("before", 60),
        words("after", 60)
    );
    let excerpt = &show(&text, "layerzero")[0];
    let preview = preview(excerpt);
    assert!(
        preview.contains("bridge using <mark>LayerZero</mark> messaging"),
        "{preview}"
    );
    assert!(excerpt.truncated && excerpt.text.chars().count() <= 240);
    assert!(!excerpt.text.starts_with(' ') && !excerpt.text.ends_with(' '));
}

// EV-17
#[test]
fn a_preview_is_not_just_the_bare_term() {
    let long = words("word", 200);
    let texts = [
        format!("Needle {long}"),
        format!("{long}NEEDLE"),
        format!("{long}needle {long}"),
        format!("{}needle{}", "字".repeat(500), "字".repeat(500)),
        format!("needle{} tail", "x".repeat(1000)),
        "needle and".to_owned(),
    ];
    for text in &texts {
        for query in ["needle", "NeeDle*", "needle missing"] {
            for excerpt in show(text, query) {
                let marked_chars: usize = excerpt
                    .matches
                    .iter()
                    .map(|span| span.end_chars - span.start_chars)
                    .sum();
                assert!(
                    excerpt.text.chars().count() > marked_chars,
                    "{query}: {excerpt:?}"
                );
                assert!(!excerpt.matches.is_empty());
            }
        }
    }
    let bare = &show("needle", "needle")[0];
    assert_eq!((bare.text.as_str(), bare.truncated), ("needle", false));
}

#[test]
fn the_first_excerpt_shows_most_clauses_and_the_others_add_what_is_missing() {
    let text = format!(
        "alpha {}alpha beta {}gamma {}alpha",
        words("a", 100),
        words("b", 100),
        words("c", 100)
    );
    let shown = show(&text, "alpha beta gamma");
    assert_eq!(shown.len(), 3);
    assert!(preview(&shown[0]).contains("<mark>alpha</mark> <mark>beta</mark>"));
    assert!(preview(&shown[1]).contains("<mark>gamma</mark>"));
    assert!(shown[2].start_chars == 0);
}

#[test]
fn excerpts_never_overlap() {
    let text = "needle hay ".repeat(400);
    let shown = show(&text, "needle");
    assert_eq!(shown.len(), 3);
    for (index, one) in shown.iter().enumerate() {
        for other in &shown[index + 1..] {
            assert!(one.end_chars <= other.start_chars || other.end_chars <= one.start_chars);
        }
    }
}

#[test]
fn phrase_tokens_and_cjk_pairs_are_one_span() {
    let shown = show("see gamma-delta now", "gamma-delta");
    assert_eq!(
        shown[0].matches,
        [Span {
            start_chars: 4,
            end_chars: 15
        }]
    );
    let shown = show("我在北京大学学习", "北京大学");
    assert_eq!(
        shown[0].matches,
        [Span {
            start_chars: 2,
            end_chars: 6
        }]
    );
    // One character asked for is one character marked, though the index knows only pairs.
    let shown = show("我在北京大学学习", "京");
    assert_eq!(
        shown[0].matches,
        [Span {
            start_chars: 3,
            end_chars: 4
        }]
    );
}

// SE-14
#[test]
fn a_mark_of_the_source_is_never_taken_for_ours() {
    for (text, query, expected) in [
        (
            "a <mark>b</mark> c",
            "b",
            "a &lt;mark><mark>b</mark>&lt;/mark> c",
        ),
        ("a <MARK x>b", "b", "a &lt;MARK x><mark>b</mark>"),
        ("a <mark>", "mark", "a &lt;<mark>mark</mark>>"),
        ("a < mark <mar", "mark", "a < <mark>mark</mark> <mar"),
    ] {
        let shown = show(text, query);
        assert_eq!(preview(&shown[0]), expected);
    }
}

#[test]
fn cuts_do_not_tear_characters_apart() {
    for unit in [
        "e\u{301}\u{323}",
        "👨‍👩‍👧",
        "🇩🇪",
        "❤\u{FE0F}",
        "\u{1112}\u{1161}\u{11AB}",
        "👍🏽",
        "क्षि",
    ] {
        for shift in 0..8 {
            let side = unit.repeat(120);
            let text = format!("{}{side} needle {side}", "z".repeat(shift));
            let excerpt = &show(&text, "needle")[0];
            let (left, right) = excerpt.text.split_once("needle").unwrap();
            assert_eq!(left.trim().replace(unit, ""), "", "{unit} {shift}");
            assert_eq!(right.trim().replace(unit, ""), "", "{unit} {shift}");
            assert!(excerpt.text.chars().count() > 100, "{unit} {shift}");
        }
    }
}

#[test]
fn a_late_match_in_a_long_field_is_found_and_an_early_answer_is_the_same_for_more_text() {
    let text = format!("{}needle", words("hay", 20_000));
    assert!(show(&text, "needle")[0].end_chars == text.chars().count());
    let short = format!("{}needle {}", words("needle hay", 600), words("x", 500));
    let longer = format!("{short}{}", words("needle ", 600));
    let one = show(&short, "needle* hay*");
    assert_eq!(one, show(&longer, "needle* hay*"));
}
