//! Numbers as they were written, in answers that are read as values.
//!
//! A [`Value`] holds a number in 64 bits: `1E400` not at all, of thirty digits seventeen, and `2.50` as `2.5`. Records are
//! kept as written, and whoever passes them on may not change them. So [`read`] makes of every number that would not come
//! out as it went in a *numeral*: a list of one text, the digits behind a mark. The mark is drawn by lot when the process
//! starts, so that nothing which was written before, or by somebody else, can hold one. To code that looks for texts and
//! objects a numeral is neither, like a number; what cares for numbers asks [`digits`].
//!
//! A value that may hold numerals is written with [`write()`], and measured with [`surplus`] taken off. Where somebody else
//! writes it, as a part of a message, [`restored`] puts the numbers back into the bytes.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

use serde_json::{Number, Value};

use crate::json::{is_number, plain_run};

/// What a mark begins with: it stands for itself in JSON, and hardly ever stands in a text.
const RARE: u8 = 0x7f;
/// What a numeral takes around its mark and its digits: `["` and `"]`.
const BRACKETS: usize = 4;
/// So many digits a float keeps, whatever they are.
const SAFE_DIGITS: usize = 15;

/// The keys of the hash are random, so its values are a secret of this process.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let lot = RandomState::new();
    let (one, two) = (lot.hash_one("one"), lot.hash_one("two"));
    format!("{}{one:016x}{two:016x}", char::from(RARE))
});

/// Reads JSON and keeps every number as it is written: as a number if it comes out the same, else as a numeral.
pub fn read(text: &str) -> serde_json::Result<Value> {
    match marked(text) {
        None => serde_json::from_str(text),
        // An error is reported with its position in the given text.
        Some(marked) => serde_json::from_str(&marked).or_else(|_| serde_json::from_str(text)),
    }
}

/// The number that a numeral stands for, as it was written.
pub fn digits(value: &Value) -> Option<&str> {
    match value.as_array()?.as_slice() {
        [Value::String(text)] => text.strip_prefix(MARK.as_str()),
        _ => None,
    }
}

/// A value as compact JSON, its numerals as numbers.
pub fn write(value: &Value) -> String {
    let text = value.to_string();
    match restored(text.as_bytes()) {
        Cow::Borrowed(_) => text,
        // What was taken out is ASCII.
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// By how many bytes a value is shorter in [`write()`] than a serializer counts.
pub fn surplus(value: &Value) -> usize {
    match value {
        Value::Array(entries) if digits(value).is_none() => entries.iter().map(surplus).sum(),
        Value::Array(_) => BRACKETS + MARK.len(),
        Value::Object(members) => members.values().map(surplus).sum(),
        _ => 0,
    }
}

/// JSON as a serializer wrote it, with numbers in place of its numerals, also of those inside a text that is JSON itself.
pub fn restored(json: &[u8]) -> Cow<'_, [u8]> {
    // Almost always this is all there is to do, and the library looks at many bytes at once.
    if !json.contains(&RARE) {
        return Cow::Borrowed(json);
    }
    let mut written = Vec::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(ahead) = json.get(at..).and_then(|rest| find(rest, RARE)) {
        at += ahead;
        let Some((start, number, end)) = numeral_at(json, at) else {
            at += 1;
            continue;
        };
        written.extend_from_slice(json.get(copied..start).unwrap_or_default());
        written.extend_from_slice(number);
        (copied, at) = (end, end);
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    written.extend_from_slice(json.get(copied..).unwrap_or_default());
    Cow::Owned(written)
}

fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

/// Where the numeral whose mark is here begins, its digits, and where it ends.
fn numeral_at(json: &[u8], at: usize) -> Option<(usize, &[u8], usize)> {
    let behind = json.get(at..)?.strip_prefix(MARK.as_bytes())?;
    let before = json.get(..at)?.strip_suffix(b"\"")?;
    // Inside a text the quotes are escaped, as often as texts stand in texts.
    let escapes = before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count();
    let (before, escape) = before.split_at(before.len() - escapes);
    let start = before.strip_suffix(b"[")?.len();
    let length = behind
        .iter()
        .take_while(|byte| is_of_number(**byte))
        .count();
    let (number, rest) = behind.split_at(length);
    let rest = rest.strip_prefix(escape)?.strip_prefix(b"\"]")?;
    Some((start, number, json.len() - rest.len()))
}

/// The text with a numeral in place of every number that needs one, or nothing if none does. A text that is no JSON does
/// not become any.
fn marked(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut marked = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = behind_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let end = at + rest.iter().take_while(|byte| is_of_number(**byte)).count();
                let number = text.get(at..end).unwrap_or_default();
                if !survives(number) && is_number(number) {
                    marked.reserve(text.len() - copied + BRACKETS + MARK.len());
                    marked.push_str(text.get(copied..at).unwrap_or_default());
                    for piece in ["[\"", &MARK, number, "\"]"] {
                        marked.push_str(piece);
                    }
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    marked.push_str(text.get(copied..).unwrap_or_default());
    Some(marked)
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// The place behind the quote that ends the string whose content begins here.
fn behind_string(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = plain_run(bytes, at);
        match bytes.get(at) {
            None | Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Whether a value writes this number as it reads it.
fn survives(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let is_short = unsigned.len() <= SAFE_DIGITS;
    let Some((whole, fraction)) = unsigned.split_once('.') else {
        let is_whole = unsigned.bytes().all(|byte| byte.is_ascii_digit());
        return (is_whole && is_short && number != "-0") || comes_out(number);
    };
    // Neither small enough to be written with an exponent, nor with a zero that says nothing.
    let is_plain = is_short
        && (whole != "0" || !fraction.starts_with('0'))
        && (fraction == "0" || !fraction.ends_with('0'))
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_plain || comes_out(number)
}

fn comes_out(number: &str) -> bool {
    serde_json::from_str::<Number>(number).is_ok_and(|read| read.to_string() == number)
}

#[cfg(test)]
mod tests;
