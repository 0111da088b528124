//! Generated records, the same each time: keys that fit no simple grammar, texts in many scripts, two connections that
//! carry the same stream with the same keys.

use serde_json::{Value, json};

pub(crate) const ARCHIVE: &str = include_str!("archive.json");
/// Both have the stream `entries` and the same keys in it.
pub(crate) const CONNECTIONS: [&str; 2] = ["archive-east", "archive-west"];
/// A word that stands in the field `secret` of every entry and nowhere else.
pub(crate) const SECRET: &str = "quodlibetum";

/// Keys that a path, a shell, a query or an id may take for something else.
const KEYS: [&str; 18] = [
    "plain",
    "with space",
    "a/b/c",
    "colon:colon",
    "-dash",
    "--limit",
    "quote'\"`",
    "$HOME $(id)",
    "per%2Fcent",
    "question?x=1&y=2#z",
    "[\"x\",\"1\"]",
    "ключ",
    "東京/都",
    "e\u{301}te\u{301}",
    "👩\u{200d}👩\u{200d}👧",
    "pdpp://record/none",
    "report..final",
    "back\\slash",
];

/// Pieces of text, one script each.
const SCRIPTS: [&str; 7] = [
    "Neutral words stand here, one after the other. ",
    "Grüße aus Zürich, naïve café à la carte. ",
    "昨日は会議がありました。議事録は明日送ります。",
    "قلت للجميع مساء الخير قبل السفر. ",
    "אמרתי לכולם ערב טוב לפני הנסיעה. ",
    "👩\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 e\u{301}te\u{301} ",
    "<mark>not ours</mark> & `fence` ``` *** \n\tnext line ",
];

/// Words that stand in the long texts, each at another place; the middle one of the three in two of them.
pub(crate) const WORDS: [&str; 3] = ["zanzibarix", "überfähre", "龍宮城"];

const KINDS: [&str; 5] = ["letter", "memo", "list", "memo", "note"];
const MORE: usize = 44;

/// Those among the keys that are hard to carry.
pub(crate) fn hard_keys() -> Vec<String> {
    let mut keys = keys();
    keys.truncate(KEYS.len() + 1);
    keys
}

pub(crate) fn keys() -> Vec<String> {
    let numbered = (0..MORE).map(|number| format!("e-{number:03}"));
    let long = "long-".repeat(90);
    KEYS.iter()
        .map(|key| (*key).to_owned())
        .chain([long])
        .chain(numbered)
        .collect()
}

/// A long text of one record; every seventh has all words in it.
fn text(place: usize, connection: usize) -> String {
    let mut text = String::new();
    let mut turn = place * 3 + connection;
    let pieces = if place.is_multiple_of(7) { 260 } else { 2 };
    for piece in 0..pieces {
        // A step that shares no factor with the number of scripts visits all of them.
        turn += 3;
        text.push_str(SCRIPTS[turn % SCRIPTS.len()]);
        if pieces > 2 && piece % 90 == 40 {
            text.push_str(WORDS[piece / 90 % WORDS.len()]);
            text.push(' ');
        }
    }
    text
}

pub(crate) fn entry(key: &str, connection: usize) -> Value {
    let keys = keys();
    let place = keys.iter().position(|known| known == key).unwrap();
    let (day, hour) = (place % 28 + 1, place % 24);
    let title = (!place.is_multiple_of(5)).then(|| format!("Entry {place} of {connection}"));
    json!({
        "id": key,
        "title": title,
        "text": text(place, connection),
        "secret": format!("{SECRET} {place}"),
        "kind": KINDS[(place + connection) % KINDS.len()],
        "size": place * 37 % 101,
        "at": format!("2026-0{}-{day:02}T{hour:02}:00:00Z", place % 6 + 1),
        "marks": ["m", KINDS[place % KINDS.len()]],
    })
}

pub(crate) fn lines(connection: usize) -> String {
    let line = |key: &String| {
        let data = entry(key, connection);
        json!({"key": key, "emitted_at": "2026-09-01T00:00:00Z", "data": data}).to_string()
    };
    keys().iter().map(line).collect::<Vec<_>>().join("\n")
}
