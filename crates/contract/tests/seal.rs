//! Cursors open for the request that made them and for nothing else.

use contract::{
    Binding, CursorError, ErrorCode, ReadError, Scalar, SealingKey, TokenKind,
    seal::{open, seal},
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

const KINDS: [TokenKind; 5] = [
    TokenKind::Page,
    TokenKind::Changes,
    TokenKind::ChangesPage,
    TokenKind::Search,
    TokenKind::Groups,
];

const BINDING: Binding<'static> = Binding {
    stream: Some("messages"),
    connection: Some("mail"),
    filter: "from=alice",
    order: "sent_at:desc",
    grant: Some("g1"),
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Position {
    cursor: Option<Scalar>,
    key: String,
}

fn key(byte: u8) -> SealingKey {
    SealingKey::from_bytes([byte; 32])
}

fn position(text: &str) -> Position {
    Position {
        cursor: Some(Scalar::Number(0.1 + 0.2)),
        key: text.to_owned(),
    }
}

fn opened(kind: TokenKind, binding: &Binding<'_>, token: &str) -> Result<Position, CursorError> {
    open(&key(1), kind, binding, token)
}

#[test]
fn equal_positions_have_equal_cursors_and_others_do_not() {
    let token = |binding: &Binding<'_>, text: &str| {
        seal(&key(1), TokenKind::Page, binding, &position(text)).unwrap()
    };
    assert_eq!(token(&BINDING, "m1"), token(&BINDING, "m1"));
    assert_ne!(token(&BINDING, "m1"), token(&BINDING, "m2"));
    let other = Binding {
        order: "sent_at:asc",
        ..BINDING
    };
    // Not even the beginning is shared: nothing of the position shows.
    assert_ne!(token(&BINDING, "m1")[..16], token(&other, "m1")[..16]);
}

#[test]
fn a_bookmark_of_an_earlier_release_opens() {
    let token = "4FcJfOXurjFCVjDd-QNZmxLec1lfwBA1_MFOc5VtLkkrHzY741Ln-I8xVMMIu6sgpNwDhoUXyud4UmVw9Qa4HrlMuiWr9tax_Nh8DThfmK6JRiH6RsfqwAt5vcs";
    assert_eq!(
        opened(TokenKind::Changes, &BINDING, token),
        Ok(position("m1"))
    );
    let other = Binding {
        grant: None,
        ..BINDING
    };
    assert_eq!(
        opened(TokenKind::Changes, &other, token),
        Err(CursorError::Foreign)
    );
}

#[test]
fn a_cursor_shows_nothing_of_what_it_carries() {
    let token = seal(&key(1), TokenKind::Page, &BINDING, &"secret-key").unwrap();
    let bytes =
        base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, &token).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    assert_eq!(format!("{:?}", key(7)), "SealingKey(secret)");
}

#[test]
fn a_cursor_of_another_kind_or_server_never_opens() {
    let token = seal(&key(1), TokenKind::Page, &BINDING, &position("m1")).unwrap();
    for kind in KINDS.into_iter().skip(1) {
        assert_eq!(opened(kind, &BINDING, &token), Err(CursorError::Foreign));
    }
    let elsewhere: Result<Position, _> = open(&key(2), TokenKind::Page, &BINDING, &token);
    assert_eq!(elsewhere, Err(CursorError::Foreign));
}

#[test]
fn a_cursor_that_carries_something_else_does_not_open() {
    let token = seal(&key(1), TokenKind::Page, &BINDING, &42).unwrap();
    assert_eq!(
        opened(TokenKind::Page, &BINDING, &token),
        Err(CursorError::Foreign)
    );
}

#[test]
fn what_was_never_a_cursor_is_malformed() {
    for text in [
        "",
        "x",
        "beginning",
        "????",
        "eyJraW5kIjoicGFnZSJ9",
        "a=",
        "é",
        &"A".repeat(20_000),
    ] {
        assert_eq!(
            opened(TokenKind::Page, &BINDING, text),
            Err(CursorError::Malformed),
            "{text}"
        );
    }
    let error = ReadError::from(CursorError::Foreign);
    assert_eq!(error.code, ErrorCode::InvalidCursor);
    assert_eq!(
        ReadError::from(CursorError::Payload).code,
        ErrorCode::InternalError
    );
}

/// The parts of a binding. Short texts of two letters, so that many are equal.
fn parts() -> impl Strategy<Value = Vec<Option<String>>> {
    prop::collection::vec(prop::option::of("[ab]{0,2}"), 5)
}

fn binding(parts: &[Option<String>]) -> Binding<'_> {
    Binding {
        stream: parts[0].as_deref(),
        connection: parts[1].as_deref(),
        filter: parts[2].as_deref().unwrap_or(""),
        order: parts[3].as_deref().unwrap_or(""),
        grant: parts[4].as_deref(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_position_survives_for_any_binding(text in "\\PC{0,60}", stream in prop::option::of("\\PC{0,8}"), filter in "\\PC{0,20}", number: f64, kind in 0..5_usize) {
        let binding = Binding { stream: stream.as_deref(), filter: &filter, ..BINDING };
        let cursor = number.is_finite().then_some(Scalar::Number(number));
        let before = Position { cursor, key: text };
        let token = seal(&key(1), KINDS[kind], &binding, &before).unwrap();
        prop_assert_eq!(opened(KINDS[kind], &binding, &token), Ok(before));
    }

    #[test]
    fn no_changed_bit_opens(text in "\\PC{0,20}", at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let token = seal(&key(1), TokenKind::Search, &BINDING, &position(&text)).unwrap();
        let mut bytes = token.into_bytes();
        let index = at.index(bytes.len());
        bytes[index] ^= 1 << bit;
        let changed = String::from_utf8_lossy(&bytes);
        prop_assert!(opened(TokenKind::Search, &BINDING, &changed).is_err());
    }

    #[test]
    fn no_cut_or_lengthened_cursor_opens(text in "\\PC{0,20}", at in any::<prop::sample::Index>(), more in "[A-Za-z0-9_-]{1,8}") {
        let token = seal(&key(1), TokenKind::Changes, &BINDING, &position(&text)).unwrap();
        let cut = &token[..at.index(token.len())];
        prop_assert!(opened(TokenKind::Changes, &BINDING, cut).is_err());
        let longer = format!("{token}{more}");
        prop_assert!(opened(TokenKind::Changes, &BINDING, &longer).is_err());
    }

    #[test]
    fn any_text_is_refused_without_panic(text in "\\PC{0,120}|[A-Za-z0-9_-]{0,200}") {
        for kind in KINDS {
            prop_assert!(opened(kind, &BINDING, &text).is_err());
        }
    }

    #[test]
    fn different_bindings_never_open_one_another(made in parts(), other in parts(), changed in 0..6_usize) {
        // One part changed, or any of them, also so that the same texts are divided otherwise.
        let mut asked = if changed == 5 { other.clone() } else { made.clone() };
        if let Some(part) = asked.get_mut(changed) {
            part.clone_from(&other[changed]);
        }
        let (made, asked) = (binding(&made), binding(&asked));
        let token = seal(&key(1), TokenKind::Page, &made, &position("m")).unwrap();
        prop_assert_eq!(opened(TokenKind::Page, &asked, &token).is_ok(), made == asked);
    }
}

#[test]
fn while_a_key_is_replaced_seals_of_both_open_and_those_of_a_third_do_not() {
    let replaced = key(2).accepting(key(1));
    let sealed = |key: &SealingKey| seal(key, TokenKind::Page, &BINDING, &position("m1")).unwrap();
    for token in [sealed(&key(1)), sealed(&key(2)), sealed(&replaced)] {
        let opened = open(&replaced, TokenKind::Page, &BINDING, &token);
        assert_eq!(opened, Ok(position("m1")));
    }
    assert_eq!(sealed(&replaced), sealed(&key(2)));
    let third: Result<Position, _> = open(&replaced, TokenKind::Page, &BINDING, &sealed(&key(3)));
    assert_eq!(third, Err(CursorError::Foreign));
}
