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
fn a_cursor_opens_for_the_request_that_made_it() {
    let token = seal(&key(1), TokenKind::Page, &BINDING, &position("m1")).unwrap();
    assert_eq!(
        opened(TokenKind::Page, &BINDING, &token),
        Ok(position("m1"))
    );
    assert!(
        token
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    );
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
fn a_cursor_shows_nothing_of_what_it_carries() {
    let token = seal(&key(1), TokenKind::Page, &BINDING, &"secret-key").unwrap();
    let bytes =
        base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, &token).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    assert_eq!(format!("{:?}", key(7)), "SealingKey(secret)");
}

#[test]
fn a_cursor_of_another_query_or_grant_never_opens() {
    let token = seal(&key(1), TokenKind::Page, &BINDING, &position("m1")).unwrap();
    let others = [
        Binding {
            stream: Some("orders"),
            ..BINDING
        },
        Binding {
            stream: None,
            ..BINDING
        },
        Binding {
            connection: Some("mail2"),
            ..BINDING
        },
        Binding {
            connection: None,
            ..BINDING
        },
        Binding {
            filter: "",
            ..BINDING
        },
        Binding {
            filter: "from=bob",
            ..BINDING
        },
        Binding {
            order: "sent_at:asc",
            ..BINDING
        },
        Binding {
            grant: Some("g2"),
            ..BINDING
        },
        Binding {
            grant: None,
            ..BINDING
        },
        // The same texts, divided otherwise.
        Binding {
            stream: Some("messagesmail"),
            connection: Some(""),
            ..BINDING
        },
        Binding {
            filter: "from=alicesent_at:",
            order: "desc",
            ..BINDING
        },
    ];
    for other in others {
        assert_eq!(
            opened(TokenKind::Page, &other, &token),
            Err(CursorError::Foreign),
            "{other:?}"
        );
    }
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
    fn different_bindings_never_open_one_another(a in "[ab]{0,3}", b in "[ab]{0,3}", c in "[ab]{0,3}", d in "[ab]{0,3}") {
        let made = Binding { stream: Some(&a), filter: &b, ..Binding::default() };
        let asked = Binding { stream: Some(&c), filter: &d, ..Binding::default() };
        let token = seal(&key(1), TokenKind::Page, &made, &position("m")).unwrap();
        prop_assert_eq!(opened(TokenKind::Page, &asked, &token).is_ok(), made == asked);
    }
}
