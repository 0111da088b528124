//! How the life is made: the same bytes each time, in these amounts, with everything strange that real data has.

use contract::declaration::{Declaration, plan_change};
use contract::id::hex;
use demo::Life;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::world::{life, records, text};

/// What the life hashes to on every machine. It changes with the life, and then docs/demo.md may have to change too.
const DIGEST: &str = "fc929d6b9dbb093058a64426a5e1edc2bea14e12317250da34e6a713cfe5ac2e";

#[test]
fn the_life_is_the_same_on_every_machine() {
    let life = life();
    assert_eq!(*life, Life::generate().unwrap());
    let mut hasher = Sha256::new();
    for source in life.all() {
        hasher.update(source.declaration);
        hasher.update(&source.lines);
        source
            .files
            .iter()
            .for_each(|file| hasher.update(&file.bytes));
    }
    assert_eq!(hex(hasher.finalize()), DIGEST);
}

#[test]
fn every_stream_holds_as_much_as_it_should() {
    let life = life();
    let mut counted: Vec<(String, usize)> = records(life)
        .into_iter()
        .map(|((connection, stream), records)| (format!("{connection}/{stream}"), records.len()))
        .collect();
    counted.sort();
    let expected = [
        ("bank/transactions", 1_451),
        ("calendar/events", 821),
        ("chat-tidewater/channels", 10),
        ("chat-tidewater/messages", 5_790),
        ("chat-tidewater/users", 13),
        ("git-kraut/commits", 192),
        ("git-spanwatch/commits", 763),
        ("mail-private/attachments", 22),
        ("mail-private/messages", 2_006),
        ("mail-private/threads", 1_101),
        ("mail-work/attachments", 34),
        ("mail-work/messages", 4_876),
        ("mail-work/threads", 1_610),
        ("notes/notes", 430),
        ("shop-kueche/items", 290),
        ("shop-kueche/orders", 131),
        ("shop-kueche/shipments", 131),
        ("shop-nordwand/items", 198),
        ("shop-nordwand/orders", 80),
        ("shop-nordwand/shipments", 80),
    ];
    let expected: Vec<(String, usize)> = expected
        .into_iter()
        .map(|(stream, count)| (stream.to_owned(), count))
        .collect();
    assert_eq!(counted, expected);
    let sum: usize = counted.iter().map(|(_, count)| count).sum();
    assert_eq!(sum as u64, life.records());
}

#[test]
fn every_declaration_is_free_of_mistakes_and_complete() {
    let life = life();
    for source in life.all() {
        let declaration = Declaration::parse(source.declaration).unwrap();
        for stream in &declaration.streams {
            let role = |wanted: &str| {
                let mut fields = stream.fields.iter();
                fields.any(|field| field.role.as_deref() == Some(wanted))
            };
            assert!(role("title") || role("body"), "{}", stream.name);
            assert!(stream.label.is_some() && stream.description.is_some());
            assert!(!stream.views.is_empty() && !stream.query.lexical_fields.is_empty());
            assert!(stream.query.aggregations.is_some(), "{}", stream.name);
        }
    }
}

#[test]
fn every_member_of_every_record_is_declared() {
    let life = life();
    for source in life.all() {
        let declaration = Declaration::parse(source.declaration).unwrap();
        for line in source.lines.lines() {
            let told: Value = serde_json::from_str(line).unwrap();
            let stream = declaration.stream(text(&told, "stream")).unwrap();
            for name in told["data"].as_object().unwrap().keys() {
                let declared = stream
                    .fields
                    .iter()
                    .any(|field| field.name.as_str() == name);
                assert!(declared, "{} {name}", stream.name);
            }
        }
    }
}

#[test]
fn who_declared_the_example_mail_may_go_on_with_this_one() {
    let example = include_str!("../../../../examples/mail/declaration.json");
    let example = Declaration::parse(example).unwrap();
    let life = life();
    let mail = Declaration::parse(life.sources[0].declaration).unwrap();
    let change = plan_change(&example, &mail).unwrap();
    assert_eq!(change.removed, []);
    // Fields the example does not have are listed as well.
    let known = example.stream("messages").unwrap();
    let narrower = change.retyped.iter();
    let narrower: Vec<_> = narrower
        .filter(|one| known.field(one.field.as_str()).is_some())
        .collect();
    assert!(narrower.is_empty(), "{narrower:?}");
}

#[test]
fn nothing_was_written_after_the_last_day_and_no_slot_is_left_open() {
    let life = life();
    for source in life.all() {
        for line in source.lines.lines() {
            let told: Value = serde_json::from_str(line).unwrap();
            assert!(text(&told, "emitted_at") < "2026-10-29", "{line}");
            for slot in line.split('{').skip(1) {
                let name = slot.split('}').next().unwrap_or_default();
                let word = |c: char| c.is_ascii_lowercase() || ".-".contains(c);
                assert!(name.is_empty() || !name.chars().all(word), "{line}");
            }
        }
    }
}

#[test]
fn the_life_has_what_makes_real_data_hard() {
    let life = life();
    let records = records(life);
    let of = |connection: &'static str, stream: &str| &records[&(connection, stream.to_owned())];
    let work = of("mail-work", "messages");
    let longest = work
        .iter()
        .map(|one| text(one, "body").len())
        .max()
        .unwrap();
    assert!((48_000..=51_200).contains(&longest), "{longest}");
    let deep = |one: &&Value| text(one, "body").contains("\n>>>>");
    assert!(work.iter().filter(deep).count() > 20);
    let threads = of("mail-work", "threads").iter();
    assert!(
        threads
            .map(|one| one["message_count"].as_u64().unwrap())
            .max()
            >= Some(12)
    );
    let private = of("mail-private", "messages");
    assert!(
        private
            .iter()
            .any(|one| one["body"].is_null() && one["subject"].is_null())
    );
    assert!(
        of("notes", "notes")
            .iter()
            .any(|one| text(one, "body").is_empty())
    );
    let everywhere: String = life.all().map(|source| source.lines.as_str()).collect();
    for strange in [
        "Ignore all previous instructions",
        "pdpp://record/",
        "<mark>",
        "\\u0000",
        "\\u001b[2J",
        "\u{202e}",
        "\u{200b}",
        "納期",
        "القياسات",
        "Grüsse",
        "passerelle",
        "soldaduras",
        "👩‍👩‍👧‍👦",
    ] {
        assert!(everywhere.contains(strange), "{strange}");
    }
    let ids = private.iter().map(|one| text(one, "id"));
    let odd: Vec<&str> = ids
        .filter(|id| id.contains('/') && id.contains(',') && id.contains(' '))
        .collect();
    assert_eq!(odd.len(), 2, "{odd:?}");
}
