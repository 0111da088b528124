//! The arithmetic of windows, in characters.

use contract::{ErrorCode, Window, WindowError, WindowRequest, WindowSelector, window::cut};
use proptest::prelude::*;
use serde_json::{Value, json};

fn selected(selector: Value) -> Result<WindowRequest, WindowError> {
    let selector: WindowSelector = serde_json::from_value(selector).expect("a selector");
    selector.request()
}

fn window(text: &str, selector: Value) -> Result<Window, WindowError> {
    cut(text, &selected(selector)?)
}

fn fault(selector: Value) -> &'static str {
    match selected(selector) {
        Err(WindowError::Selector { param, .. }) => param,
        _ => "accepted",
    }
}

#[test]
fn a_short_field_is_complete() {
    let window = window("héllo", json!({})).unwrap();
    assert_eq!(window.text, "héllo");
    assert_eq!(
        (window.start_chars, window.end_chars, window.total_chars),
        (0, 5, 5)
    );
    assert_eq!(window.limit_chars, 4096);
    assert!(window.complete && !window.has_more);
    assert_eq!(
        (window.next_offset_chars, window.previous_offset_chars),
        (None, None)
    );
    assert_eq!(window.match_start_chars, None);
}

#[test]
fn the_middle_of_a_field_points_both_ways() {
    let window = window("0123456789", json!({"offset_chars": 4, "limit_chars": 3})).unwrap();
    assert_eq!(window.text, "456");
    assert!(!window.complete && window.has_more);
    assert_eq!(window.next_offset_chars, Some(7));
    assert_eq!(window.previous_offset_chars, Some(1));
}

#[test]
fn the_last_window_is_not_complete_and_has_no_more() {
    let window = window("0123456789", json!({"cursor": "8"})).unwrap();
    assert_eq!(window.text, "89");
    assert!(!window.complete && !window.has_more);
    assert_eq!(window.next_offset_chars, None);
    assert_eq!(window.previous_offset_chars, Some(0));
}

#[test]
fn an_offset_past_the_end_is_an_empty_window() {
    for offset in [10, 11, usize::MAX] {
        let window = window("0123456789", json!({"offset_chars": offset})).unwrap();
        assert_eq!(window.text, "");
        assert_eq!((window.start_chars, window.end_chars), (10, 10));
        assert!(!window.complete && !window.has_more);
    }
    let far = window("abc", json!({"cursor": "9".repeat(40)})).unwrap();
    assert_eq!((far.start_chars, far.total_chars), (3, 3));
    assert!(window("", json!({})).unwrap().complete);
}

#[test]
fn astral_characters_count_once() {
    let window = window("😀é́x", json!({"limit_chars": 3})).unwrap();
    assert_eq!(window.text, "😀é\u{301}");
    assert_eq!((window.end_chars, window.total_chars), (3, 4));
}

#[test]
fn a_match_stands_in_its_context() {
    let text = format!(
        "{}service total overdraft fee 42 EUR{}",
        "x".repeat(100),
        "y".repeat(100)
    );
    let window = window(
        &text,
        json!({"q": "OVERDRAFT", "before_chars": 10, "after_chars": 10}),
    )
    .unwrap();
    assert_eq!(window.text, "ice total overdraft fee 42 EU");
    assert_eq!((window.start_chars, window.end_chars), (104, 133));
    assert_eq!(window.limit_chars, 29);
    assert_eq!(
        (window.match_start_chars, window.match_end_chars),
        (Some(114), Some(123))
    );
    assert_eq!(window.previous_offset_chars, Some(75));
}

#[test]
fn a_match_near_the_start_has_the_context_there_is() {
    let window = window("ab needle", json!({"q": "needle", "before_chars": 100})).unwrap();
    assert_eq!(window.text, "ab needle");
    assert_eq!(window.limit_chars, 106);
    assert!(window.complete);
}

#[test]
fn a_match_without_context_takes_the_default_length() {
    let text = format!("{}needle{}", "x".repeat(10), "y".repeat(5000));
    let found = window(&text, json!({"q": "needle"})).unwrap();
    assert_eq!((found.start_chars, found.limit_chars), (10, 4096));
    let limited = window(
        &text,
        json!({"q": "needle", "limit_chars": 6, "before_chars": 0}),
    )
    .unwrap();
    assert_eq!(limited.text, "needle");
}

#[test]
fn case_is_ignored_in_every_script_and_offsets_stay_exact() {
    for (text, q, start) in [
        ("İİİ Straße", "straße", 4),
        ("😀 ÉCOLE", "école", 2),
        ("до ПРИВЕТ", "привет", 3),
        ("aaab", "AAB", 1),
        ("ababac", "abac", 2),
        ("İstanbul", "istanbul", 0),
    ] {
        let found = window(text, json!({"q": q})).unwrap();
        assert_eq!(found.match_start_chars, Some(start), "{text}");
        assert_eq!(
            found.match_end_chars,
            Some(start + q.chars().count()),
            "{text}"
        );
    }
}

#[test]
fn a_text_that_does_not_occur_is_not_found() {
    let error = window("body", json!({"q": "soul"})).unwrap_err();
    assert_eq!(error, WindowError::QueryNotFound);
    let error = error.for_field("body");
    assert_eq!(error.code, ErrorCode::QueryNotFound);
    assert_eq!(error.message, "q was not found in field 'body'");
}

#[test]
fn selectors_that_exclude_one_another_are_refused() {
    assert_eq!(fault(json!({"limit_chars": 0})), "limit_chars");
    assert_eq!(fault(json!({"q": ""})), "q");
    assert_eq!(fault(json!({"before_chars": 1})), "q");
    assert_eq!(fault(json!({"after_chars": 0})), "q");
    for cursor in ["", "-1", "x", "1.5", " 1", "٣"] {
        assert_eq!(fault(json!({"cursor": cursor})), "cursor");
    }
    for (selector, param) in [
        (json!({"q": "q", "offset_chars": 0}), "q"),
        (json!({"q": "q", "cursor": "0"}), "q"),
        (json!({"q": "q", "before_chars": 8193}), "before_chars"),
        (json!({"q": "q", "after_chars": usize::MAX}), "after_chars"),
        (json!({"cursor": "0", "offset_chars": 0}), "cursor"),
    ] {
        assert_eq!(fault(selector), param);
    }
    let error = selected(json!({"limit_chars": 0})).unwrap_err();
    assert_eq!(error.for_field("body").code, ErrorCode::InvalidWindow);
}

#[test]
fn a_limit_over_the_cap_is_cut_and_said() {
    let request = selected(json!({"limit_chars": 16_385})).unwrap();
    assert!(request.limit_clamped());
    assert_eq!(request.limit_chars(), 16_384);
    assert!(
        !selected(json!({"limit_chars": 16_384}))
            .unwrap()
            .limit_clamped()
    );
}

#[test]
fn a_repetitive_search_is_not_slow() {
    let text = "a".repeat(2_000_000);
    let q = format!("{}b", "a".repeat(100_000));
    let found = window(&text, json!({"q": q}));
    assert_eq!(found, Err(WindowError::QueryNotFound));
}

#[test]
fn the_wire_form_names_what_does_not_apply_as_null() {
    let wire = serde_json::to_value(window("ab", json!({})).unwrap()).unwrap();
    assert_eq!(wire["match_start_chars"], Value::Null);
    assert_eq!(wire["next_offset_chars"], Value::Null);
    assert_eq!(wire.as_object().unwrap().len(), 11);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn following_the_windows_reads_the_field_exactly(text in "[a-cé😀\\u{301}\\n]{0,80}", limit in 1_usize..12) {
        let mut read = String::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let window = window(&text, json!({"offset_chars": offset, "limit_chars": limit})).unwrap();
            prop_assert_eq!(window.start_chars, offset);
            prop_assert_eq!(window.text.chars().count(), window.end_chars - window.start_chars);
            prop_assert_eq!(window.has_more, window.next_offset_chars.is_some());
            read.push_str(&window.text);
            next = window.next_offset_chars;
        }
        prop_assert_eq!(read, text);
    }

    #[test]
    fn the_first_match_is_the_one_a_plain_search_finds(text in "[abAB😀]{0,30}", q in "[abAB😀]{1,4}") {
        let folded: Vec<char> = text.to_lowercase().chars().collect();
        let pattern: Vec<char> = q.to_lowercase().chars().collect();
        let expected = folded.windows(pattern.len()).position(|part| part == pattern);
        let found = window(&text, json!({"q": q})).ok().and_then(|window| window.match_start_chars);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_selectors_on_any_text_never_panic(text in "\\PC{0,60}", numbers in prop::array::uniform4(prop::option::of(any::<usize>())), q in prop::option::of("\\PC{0,3}"), cursor in prop::option::of("[0-9x]{0,22}")) {
        let [offset_chars, limit_chars, before_chars, after_chars] = numbers;
        let selector = WindowSelector { offset_chars, limit_chars, cursor, q, before_chars, after_chars };
        if let Ok(request) = selector.request() {
            let _ = cut(&text, &request);
        }
        let _ = cut(&text, &WindowRequest::at(offset_chars.unwrap_or(0)));
    }
}
