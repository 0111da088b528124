//! Values of a record as a page shows them: times, numbers, web addresses, lists and objects, each readable.

use contract::wire::OrderedMap;
use serde_json::value::RawValue;

use super::body_text::web_address;
use super::format::{format_number, readable};
use super::moment::Moment;
use super::stream_shape::{CURRENCY, FieldShape, title};

/// The members of a record, as written.
pub(super) type Members = OrderedMap<Box<RawValue>>;

/// The most entries of a list that are shown.
const MAX_ENTRIES: usize = 100;
/// The longest text of a value, in characters; the raw record has the rest.
const MAX_CHARS: usize = 20_000;

pub(super) enum FieldValue {
    One(Part),
    Many(Vec<Part>),
    /// An object, member by member.
    Pairs(Vec<(String, Part)>),
}

pub(super) enum Part {
    Text(String),
    Link(String),
    Time(Moment),
}

impl Part {
    /// The same on one line of a table.
    pub(super) fn into_text(self) -> String {
        match self {
            Part::Text(text) | Part::Link(text) => text,
            Part::Time(moment) => moment.shown,
        }
    }
}

/// The members of a record. What is no object has none.
pub(super) fn members(data: Option<&RawValue>) -> Members {
    let text = data.map_or("{}", RawValue::get);
    serde_json::from_str(text).unwrap_or(OrderedMap(Vec::new()))
}

/// A member that is a text.
pub(super) fn text(members: &Members, name: &str) -> Option<String> {
    let raw = members.get(name)?;
    let text: String = serde_json::from_str(raw.get()).ok()?;
    (!text.trim().is_empty()).then_some(text)
}

/// A value in the words of a page; nothing where it is null, empty, or an empty text.
pub(super) fn shown(raw: &RawValue, field: Option<&FieldShape>) -> Option<FieldValue> {
    let value: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
    match value {
        serde_json::Value::Array(entries) => {
            let more = entries.len().saturating_sub(MAX_ENTRIES);
            let entries = entries.iter().take(MAX_ENTRIES);
            let mut parts: Vec<Part> = entries.filter_map(|one| part(one, field)).collect();
            if more > 0 {
                let more = format_number(u64::try_from(more).unwrap_or(u64::MAX));
                parts.push(Part::Text(format!("and {more} more")));
            }
            (!parts.is_empty()).then_some(FieldValue::Many(parts))
        }
        serde_json::Value::Object(inner) => {
            let pairs = inner.iter();
            let pairs =
                pairs.filter_map(|(name, one)| Some((readable(&title(name)), part(one, None)?)));
            let pairs: Vec<(String, Part)> = pairs.collect();
            (!pairs.is_empty()).then_some(FieldValue::Pairs(pairs))
        }
        single => part(&single, field).map(FieldValue::One),
    }
}

/// Puts behind an amount the currency that its record names.
pub(super) fn add_currency(value: &mut FieldValue, members: &Members) {
    if let FieldValue::One(Part::Text(amount)) = value
        && let Some(currency) = text(members, CURRENCY)
    {
        amount.push(' ');
        amount.push_str(&readable(&currency));
    }
}

fn part(value: &serde_json::Value, field: Option<&FieldShape>) -> Option<Part> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(true) => Part::Text("Yes".to_owned()),
        serde_json::Value::Bool(false) => Part::Text("No".to_owned()),
        serde_json::Value::Number(number) => {
            let number = number.to_string();
            let in_cents = field.is_some_and(FieldShape::is_in_cents);
            Part::Text(figure(&number, in_cents))
        }
        serde_json::Value::String(text) if text.is_empty() => return None,
        serde_json::Value::String(text) => {
            let is_time = field.is_some_and(|field| field.is_time);
            match Moment::parse(text).filter(|_| is_time) {
                Some(moment) => Part::Time(moment),
                None if web_address(text).is_some() => Part::Link(text.clone()),
                None => Part::Text(cut(text)),
            }
        }
        serde_json::Value::Array(entries) => {
            let parts = entries.iter().take(MAX_ENTRIES);
            let parts = parts.filter_map(|one| Some(part(one, None)?.into_text()));
            Part::Text(parts.collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Object(members) => {
            let pairs = members.iter().filter_map(|(name, one)| {
                let value = part(one, None)?.into_text();
                Some(format!("{}: {value}", readable(&title(name))))
            });
            Part::Text(pairs.collect::<Vec<_>>().join(" · "))
        }
    })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => readable(text),
        Some((end, _)) => {
            let rest = text.get(end..).unwrap_or_default().chars().count();
            let shown = readable(text.get(..end).unwrap_or_default());
            let rest = format_number(u64::try_from(rest).unwrap_or(u64::MAX));
            format!("{shown}… ({rest} more characters)")
        }
    }
}

/// A number for people; a whole number of hundredths as what it is hundredths of.
pub(super) fn figure(number: &str, in_cents: bool) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    if !in_cents || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return grouped(number);
    }
    let digits = format!("{digits:0>3}");
    let (whole, cents) = digits.split_at(digits.len() - 2);
    grouped(&format!("{sign}{whole}.{cents}"))
}

/// A number with its digits grouped from five on; every digit stays.
fn grouped(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("−", digits),
        None => ("", number),
    };
    let (whole, fraction) = match digits.find(['.', 'e', 'E']) {
        Some(at) => digits.split_at(at),
        None => (digits, ""),
    };
    if whole.len() < 5 {
        return format!("{sign}{whole}{fraction}");
    }
    let mut shown = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    format!("{sign}{shown}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: &str) -> Option<String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let texts = |parts: Vec<Part>| {
            let parts: Vec<String> = parts.into_iter().map(Part::into_text).collect();
            parts.join("|")
        };
        shown(&raw, None).map(|value| match value {
            FieldValue::One(part) => part.into_text(),
            FieldValue::Many(parts) => texts(parts),
            FieldValue::Pairs(pairs) => {
                let pairs = pairs.into_iter();
                let pairs = pairs.map(|(name, part)| format!("{name}={}", part.into_text()));
                pairs.collect::<Vec<_>>().join("|")
            }
        })
    }

    #[test]
    fn cents_are_shown_as_what_they_are_hundredths_of() {
        for (number, shown) in [
            ("-9240", "−92.40"),
            ("5", "0.05"),
            ("1234567", "12\u{202f}345.67"),
            ("1.5", "1.5"),
        ] {
            assert_eq!(figure(number, true), shown);
        }
        assert_eq!(figure("9240", false), "9240");
    }

    #[test]
    fn values_are_readable_and_keep_their_digits() {
        assert_eq!(said("-1234567.50").unwrap(), "−1\u{202f}234\u{202f}567.50");
        assert_eq!(said("2026").unwrap(), "2026");
        assert_eq!(said("true").unwrap(), "Yes");
        assert_eq!(said(r#"["a","b"]"#).unwrap(), "a|b");
        assert_eq!(
            said(r#"[{"name":"ok","count":2}]"#).unwrap(),
            "Name: ok · Count: 2"
        );
        assert_eq!(
            said(r#"{"street_name":"Main"}"#).unwrap(),
            "Street name=Main"
        );
        for empty in ["null", "\"\"", "[]", "{}", "[null]"] {
            assert!(said(empty).is_none(), "{empty}");
        }
    }
}
