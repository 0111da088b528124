//! JSON for a model: on one line, through the boundary, and shortened inside its values, so that quotes and brackets
//! always close and what is missing shows as `…`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::fields::{Content, FieldValue, is_scalar};
use crate::text::plain;

/// How much of a value is written.
#[derive(Clone, Copy)]
struct Level {
    text: usize,
    /// Entries of a list, members of an object below the first.
    entries: usize,
}

const WHOLE: Level = Level {
    text: usize::MAX,
    entries: usize::MAX,
};

impl Level {
    /// How long these members are at least, so that what cannot fit need not be written to find out.
    fn least_of(self, members: &Ordered<'_>) -> usize {
        let least = |(place, (name, value)): (usize, &Member<'_>)| {
            name.len() + "\"\":,".len() + members.level(place, self).least(value)
        };
        let all = members.all.iter().enumerate().map(least);
        "{}".len() + all.sum::<usize>() - usize::from(!members.all.is_empty())
    }

    fn least(self, value: &Value) -> usize {
        match value {
            Value::String(text) if text.len() <= self.text => {
                match FieldValue::new(value).content() {
                    Content::Binary => 0,
                    _ => text.len() + "\"\"".len(),
                }
            }
            // A cut may fall a few bytes short, so that it splits no character.
            Value::String(_) => match FieldValue::new(value).content() {
                Content::Binary => 0,
                _ => self.text.saturating_sub("…".len()),
            },
            Value::Array(_) | Value::Object(_) => "{}".len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        }
    }
}

type Member<'a> = (&'a String, &'a Value);

/// The members of a payload in the order in which they are shown.
struct Ordered<'a> {
    all: Vec<Member<'a>>,
    /// How many of them, from the first on, say what the record is.
    leading: usize,
    /// Whether the last one is a long text.
    ends_in_text: bool,
    key: Option<&'a str>,
}

/// What is known of a payload that is to be shown.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    /// The members that say what the record is.
    pub(crate) leading: &'a [&'a str],
    /// The key of the record, which stands in its handle: a member that repeats it tells nothing.
    pub(crate) key: Option<&'a str>,
}

impl Ordered<'_> {
    fn leads(&self, place: usize) -> bool {
        place < self.leading
    }

    fn repeats_key(&self, place: usize, value: &Value) -> bool {
        self.key.is_some() && value.as_str() == self.key && !self.leads(place)
    }

    /// What says what a record is, is not cut to a few letters to make room for the rest.
    fn level(&self, place: usize, level: Level) -> Level {
        let text = if self.leads(place) { SHORT } else { 0 };
        Level {
            text: level.text.max(text),
            ..level
        }
    }
}

/// From much to little: text bytes and entries.
const LEVELS: [(usize, usize); 7] = [
    (400, 30),
    (200, 20),
    (120, 12),
    (80, 8),
    (48, 5),
    (24, 3),
    (12, 2),
];

/// A text within this many bytes says what it says.
const SHORT: usize = 64;
/// What a long text keeps for its beginning where not all members fit.
const BEGINNING: usize = 56;

#[derive(Debug)]
pub(crate) struct CompactText {
    pub(crate) text: String,
    /// The members that are not there whole.
    pub(crate) cut: Vec<String>,
}

/// A payload within so many bytes: what says what the record is first, where names are given that do, its longest text last.
/// Bytes written as base64 are never shown.
pub(super) fn payload(members: &Map<String, Value>, about: About<'_>, width: usize) -> CompactText {
    let ordered = ordered(members, about);
    let levels = LEVELS
        .iter()
        .map(|(text, entries)| Level {
            text: *text,
            entries: *entries,
        })
        .filter(|level| level.text <= width);
    for level in std::iter::once(WHOLE).chain(levels) {
        if let Some(shown) = try_level(&ordered, level, width) {
            return shown;
        }
    }
    first_members(&ordered, width)
}

/// The leading members, then the others, the longest text last.
fn ordered<'a>(members: &'a Map<String, Value>, about: About<'a>) -> Ordered<'a> {
    let About { leading, key } = about;
    let longest = members
        .iter()
        .filter(|(name, _)| !leading.contains(&name.as_str()))
        .filter_map(|(name, value)| Some((value.as_str()?.len(), name)))
        .filter(|(length, _)| *length > SHORT)
        .max_by_key(|(length, _)| *length);
    let longest = longest.map(|(_, name)| name);
    let rank = |(name, _): &Member<'_>| match leading.iter().position(|one| *one == *name) {
        Some(place) => place,
        None if Some(*name) == longest => usize::MAX,
        None => leading.len(),
    };
    let mut all: Vec<Member<'a>> = members.iter().collect();
    all.sort_by_key(rank);
    let count = all.iter().take_while(|one| rank(one) < leading.len());
    Ordered {
        leading: count.count(),
        ends_in_text: longest.is_some(),
        key,
        all,
    }
}

fn try_level(members: &Ordered<'_>, level: Level, width: usize) -> Option<CompactText> {
    if level.least_of(members) > width {
        return None;
    }
    let mut writer = Writer::new(level, width);
    writer.text.push('{');
    let mut cut = Vec::new();
    for (place, (name, value)) in members.all.iter().enumerate() {
        separate(&mut writer.text);
        writer.level = members.level(place, level);
        writer.member(name, value);
        if writer.overflows {
            return None;
        }
        if std::mem::take(&mut writer.was_cut) {
            cut.push((*name).clone());
        }
    }
    let mut text = writer.text;
    text.push('}');
    (text.len() <= width).then_some(CompactText { text, cut })
}

/// As many members as fit: first those that lead, then short texts, which say what a record is, then other short values, then
/// beginnings. A long text keeps room for its beginning, so that something of what was written is seen.
fn first_members(members: &Ordered<'_>, width: usize) -> CompactText {
    let all = &members.all;
    let mut room = width.saturating_sub("{,…}".len());
    let mut pieces = pieces(members, width, room);
    let last = all.len().checked_sub(1).filter(|_| members.ends_in_text);
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|place| {
        let is_whole = pieces[*place].as_ref().is_some_and(|piece| !piece.was_cut);
        let is_text = is_whole && all[*place].1.is_string();
        let leads = members.leads(*place);
        (
            !leads,
            Some(*place) == last,
            !leads && !is_text,
            !leads && !is_whole,
        )
    });
    for place in order {
        let is_last = Some(place) == last;
        if is_last {
            pieces[place] = beginning(all[place], room);
        }
        let keeps_room = last.is_some() && !is_last && !members.leads(place);
        let kept = if keeps_room { BEGINNING } else { 0 };
        match &pieces[place] {
            Some(written) if written.text.len() + kept < room => room -= written.text.len() + 1,
            _ => pieces[place] = None,
        }
    }
    let mut text = String::from("{");
    let mut cut = Vec::new();
    for ((name, _), piece) in all.iter().zip(pieces) {
        if piece.as_ref().is_none_or(|piece| piece.was_cut) {
            cut.push((*name).clone());
        }
        if let Some(piece) = piece {
            separate(&mut text);
            text.push_str(&piece.text);
        }
    }
    separate(&mut text);
    text.push_str("…}");
    CompactText { text, cut }
}

/// Each member as short as it is shown beside others, where it fits at all and says more than the key.
fn pieces(members: &Ordered<'_>, width: usize, room: usize) -> Vec<Option<Writer>> {
    let level = |text| Level { text, entries: 2 };
    let all = &members.all;
    // A long title is cut before it takes the place of who and when.
    let leading_fit = |text: &usize| {
        let leading = all.iter().take(members.leading);
        let pieces = leading.filter_map(|(name, value)| member(name, value, level(*text), width));
        pieces.map(|piece| piece.text.len() + 1).sum::<usize>() <= room
    };
    let widths = [SHORT, SHORT * 3 / 4, SHORT / 2];
    let of_leading = widths.into_iter().find(leading_fit).unwrap_or(SHORT);
    let piece = |(place, (name, value)): (usize, &Member<'_>)| {
        if members.repeats_key(place, value) {
            return None;
        }
        let leads = members.leads(place);
        let text = if leads { of_leading } else { SHORT };
        let piece = member(name, value, level(text), width);
        let piece = piece.filter(|piece| leads || !piece.was_cut);
        piece.or_else(|| member(name, value, level(12), width))
    };
    all.iter().enumerate().map(piece).collect()
}

/// As much of the beginning of a long text as fits.
fn beginning((name, value): Member<'_>, room: usize) -> Option<Writer> {
    let most = room.saturating_sub(name.len());
    let mut beginnings = (12..=most).rev().step_by(4).filter_map(|text| {
        let level = Level { text, entries: 2 };
        member(name, value, level, room)
    });
    beginnings.find(|piece| piece.text.len() < room)
}

fn separate(text: &mut String) {
    if text.len() > 1 {
        text.push(',');
    }
}

fn member(name: &str, value: &Value, level: Level, room: usize) -> Option<Writer> {
    let mut writer = Writer::new(level, room);
    writer.member(name, value);
    (!writer.overflows && writer.text.len() <= room).then_some(writer)
}

struct Writer {
    level: Level,
    /// Writing stops somewhere behind this.
    most: usize,
    text: String,
    was_cut: bool,
    overflows: bool,
    bytes_are_shown: bool,
}

impl Writer {
    fn new(level: Level, most: usize) -> Self {
        Self {
            level,
            most,
            text: String::new(),
            was_cut: false,
            overflows: false,
            bytes_are_shown: false,
        }
    }

    fn member(&mut self, name: &str, value: &Value) {
        plain::push_exact(&mut self.text, name);
        self.text.push(':');
        self.value(value);
    }

    fn value(&mut self, value: &Value) {
        if self.overflows || self.text.len() > self.most {
            self.overflows = true;
            return;
        }
        if !self.bytes_are_shown && FieldValue::new(value).content() == Content::Binary {
            return self.binary(value);
        }
        match value {
            Value::String(text) => self.string(text),
            Value::Number(number) => self.digits(number.as_str()),
            Value::Array(entries) => {
                self.text.push('[');
                self.entries(entries.iter(), Self::value);
                self.text.push(']');
            }
            Value::Object(members) => self.members(members),
            scalar => {
                // Writing to a String cannot fail.
                let _ = write!(self.text, "{scalar}");
            }
        }
    }

    fn members(&mut self, members: &Map<String, Value>) {
        self.text.push('{');
        self.entries(members.iter(), |writer, (name, value)| {
            writer.string(name);
            writer.text.push(':');
            writer.value(value);
        });
        self.text.push('}');
    }

    fn entries<T>(&mut self, entries: impl Iterator<Item = T>, write: fn(&mut Self, T)) {
        for (place, entry) in entries.enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            if place >= self.level.entries {
                self.text.push('…');
                self.was_cut = true;
                return;
            }
            write(self, entry);
        }
    }

    fn string(&mut self, text: &str) {
        let room = self.most.saturating_sub(self.text.len());
        if self.level.text == usize::MAX && text.len() > room {
            // It cannot fit, so it need not be written to find out.
            self.overflows = true;
            return;
        }
        let shown = plain::cut(text, self.level.text);
        self.was_cut |= shown != text;
        plain::push_exact(&mut self.text, &shown);
    }

    /// A number as it was written, cut like a text where it is as long as one.
    fn digits(&mut self, digits: &str) {
        let shown = plain::cut(digits, self.level.text);
        self.was_cut |= shown != digits;
        self.text.push_str(&shown);
    }

    fn binary(&mut self, value: &Value) {
        if let Value::Object(blob) = value {
            let known = [
                "blob_id",
                "mime_type",
                "content_type",
                "size_bytes",
                "filename",
            ];
            let known: Map<String, Value> = known
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), blob.get(*name)?.clone())))
                .filter(|(_, value)| is_scalar(value))
                .collect();
            self.bytes_are_shown = true;
            self.value(&Value::Object(known));
            self.bytes_are_shown = false;
        } else {
            let size = value.as_str().map_or(0, str::len);
            self.was_cut = true;
            self.text
                .push_str(&json!({"encoding": "base64", "size_chars": size}).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Value, width: usize) -> CompactText {
        let about = About {
            leading: &[],
            key: None,
        };
        payload(value.as_object().unwrap(), about, width)
    }

    #[test]
    fn what_fits_is_whole_and_valid_json() {
        let value = json!({"a": "x\n\u{202e}y", "n": [1, 2.50, null], "o": {"p": true}});
        let shown = shown(&value, 200);
        assert!(shown.cut.is_empty());
        assert_eq!(
            serde_json::from_str::<Value>(&shown.text).unwrap(),
            value,
            "{}",
            shown.text
        );
        assert!(!shown.text.contains('\u{202e}'));
    }

    #[test]
    fn every_cut_is_named_and_nothing_is_left_open() {
        let value = json!({"id": "m1", "body": "word ".repeat(2_000), "日本": "日本語".repeat(300),
            "list": (0..500).collect::<Vec<_>>(), "raw": "QUJDREVGR0hJSktM".repeat(40)});
        for width in [60, 96, 150, 400, 1_000] {
            let shown = shown(&value, width);
            assert!(shown.text.len() <= width, "{} > {width}", shown.text.len());
            assert!(shown.text.starts_with('{') && shown.text.ends_with('}'));
            assert!(!shown.text.contains("QUJDREVG"), "no bytes: {}", shown.text);
            for name in ["body", "日本", "list", "raw"] {
                assert!(shown.cut.iter().any(|cut| cut == name), "{name}");
            }
            let quotes = shown.text.matches('"').count();
            assert_eq!(quotes % 2, 0, "{}", shown.text);
        }
    }

    #[test]
    fn bytes_are_told_by_what_is_known_of_them() {
        // LG-02
        let value = json!({"attachment": {"object": "blob_ref", "blob_id": "b1", "mime_type": "image/png",
            "size_bytes": 81_234, "data": {"inline": "AAAA"}}});
        let shown = shown(&value, 400);
        assert_eq!(
            shown.text,
            r#"{"attachment":{"blob_id":"b1","mime_type":"image/png","size_bytes":81234}}"#
        );
    }

    #[test]
    fn a_payload_that_just_fits_is_whole_and_a_byte_less_cuts_it() {
        let value = json!({"identifier": "m1", "a_longer_name": "words of it", "n": 12});
        let whole = value.to_string();
        assert_eq!(shown(&value, whole.len()).text, whole);
        assert!(shown(&value, whole.len() - 1).text.ends_with("…}"));
        let long = json!({"text": "w".repeat(500)});
        assert!(shown(&long, 600).cut.is_empty());
    }

    #[test]
    fn where_room_is_scarce_short_texts_come_before_other_values_and_the_long_text_last() {
        // AN-17
        let numbers: Map<String, Value> = (0..6)
            .map(|n| (format!("number_{n}"), json!(n * 10_000)))
            .collect();
        let mut value = Value::Object(numbers);
        value["body"] = json!("Two remarks on the drawing. ".repeat(20));
        value["subject"] = json!("Workshop");
        value["folder"] = json!("sent");
        let text = shown(&value, 120).text;
        for part in [
            r#""subject":"Workshop""#,
            r#""folder":"sent""#,
            r#""body":"Two"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
