//! Members of JSON values, as exports write them: absent, null and empty mean the same.

use contract::time::Instant;
use serde_json::Value;

use super::outline::first_members;

/// The names of the members of the object that a file begins with, or of the first one of the list that it is.
pub(crate) fn members_of(head: &[u8]) -> Vec<String> {
    first_members(head, "").0
}

/// A text that says something.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    let text = value.get(name).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

pub(crate) fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The texts that a member of each element of a list says.
pub(crate) fn each_text(list: &[Value], name: &str) -> Vec<String> {
    let texts = list.iter().filter_map(|element| text(element, name));
    texts.map(str::to_owned).collect()
}

/// A time that is written as a text, as it is written.
pub(crate) fn moment(value: &Value, name: &str) -> Option<String> {
    let text = text(value, name)?;
    Instant::parse(text).map(|_| text.to_owned())
}

/// A time in seconds since 1970, as a number or a text, with a fraction or without.
pub(crate) fn unix_seconds(value: &Value, name: &str) -> Option<String> {
    match value.get(name)? {
        Value::Number(number) => seconds_to_moment(&number.to_string()),
        Value::String(text) => seconds_to_moment(text),
        _ => None,
    }
}

/// Seconds since 1970 in digits become a time.
pub(crate) fn seconds_to_moment(digits: &str) -> Option<String> {
    let seconds: f64 = digits.trim().parse().ok()?;
    // Within the years that can be written; a time of zero was never set.
    if !(1.0..=250_000_000_000.0).contains(&seconds) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "microseconds of the years above fit"
    )]
    let micros = (seconds * 1e6).round() as i64;
    Some(Instant(micros).to_rfc3339_millis())
}

/// The texts joined, or nothing where there are none. An empty list says nothing.
pub(crate) fn some_list(list: Vec<String>) -> Option<Vec<String>> {
    (!list.is_empty()).then_some(list)
}

/// A text that says something, from one that was put together.
pub(crate) fn some_text(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

/// The first characters of a text, up to its first line end, for a title.
pub(crate) fn first_words(text: &str) -> String {
    const LONGEST: usize = 100;
    let line = text.trim().lines().next().unwrap_or_default();
    let mut words: String = line.chars().take(LONGEST).collect();
    if line.chars().nth(LONGEST).is_some() {
        words.push('…');
    }
    words
}
