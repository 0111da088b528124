//! Text on pages: labels that cannot imitate anything else, counts, and shortened values.

use std::fmt::Write as _;

use contract::steering::is_steering;
use contract::wire::OrderedMap;
use serde_json::value::RawValue;

use crate::problem::Problem;

/// The longest label, in characters.
const LABEL_CHARS: usize = 300;

/// A label of somebody else: shortened, with invisible and direction-changing characters escaped.
pub(super) fn label(text: &str) -> String {
    match text.char_indices().nth(LABEL_CHARS) {
        None => visible(text),
        Some((end, _)) => format!("{}…", visible(text.get(..end).unwrap_or_default())),
    }
}

/// Like [`label`] without shortening, for what is granted or was disclosed.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if is_steering(c) {
            let _ = write!(shown, "\\u{{{:04x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The text of a record: it keeps its lines and what emoji are made of; what would turn or hide the text around it is
/// escaped.
pub(super) fn readable(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        let is_layout = matches!(c, '\n' | '\t' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
        if c == '\r' {
            continue;
        }
        if is_steering(c) && !is_layout {
            let _ = write!(shown, "\\u{{{:04x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A text on one line, at most so many characters of it.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.chars().nth(most).is_some() {
            let cut: String = words.chars().take(most).collect();
            return format!("{}…", readable(&cut));
        }
    }
    readable(&words)
}

#[derive(PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) value: String,
}

/// The members of a record: numbers as written, strings unquoted, each shortened to `most` characters.
pub(super) fn members(data: Option<&RawValue>, most: usize) -> Result<Vec<Member>, Problem> {
    let text = data.map_or("{}", RawValue::get);
    let members: OrderedMap<Box<RawValue>> = serde_json::from_str(text)
        .map_err(|error| Problem::internal("a record is no JSON object", &error))?;
    let mut shown = Vec::new();
    for (name, raw) in members.iter() {
        shown.push(Member {
            name: label(name),
            value: cut(&value(raw.get()), most),
        });
    }
    Ok(shown)
}

fn value(raw: &str) -> String {
    serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned())
}

fn cut(text: &str, most: usize) -> String {
    let begins: String = text.chars().take(most).collect();
    let mut shown = readable(&begins);
    let more = text.chars().count().saturating_sub(most);
    if more > 0 {
        let more = format_number(u64::try_from(more).unwrap_or(u64::MAX));
        let _ = write!(shown, "… ({more} more characters)");
    }
    shown
}

/// A count with its noun, in singular or plural.
pub(super) fn format_count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", format_number(number)),
    }
}

/// A number with thin spaces between thousands.
pub(super) fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_shows_what_it_is_made_of() {
        assert_eq!(label("Work\u{202e}liam\n"), "Work\\u{202e}liam\\u{000a}");
        assert_eq!(label(&"x".repeat(400)).chars().count(), 301);
    }

    #[test]
    fn values_stand_as_written() {
        let data =
            RawValue::from_string("{\"n\":1.50,\"t\":\"a\\nb\",\"o\":{\"x\":[1]}}".to_owned());
        let data = data.unwrap();
        let members = members(Some(&*data), 3).unwrap();
        let values: Vec<&str> = members.iter().map(|member| member.value.as_str()).collect();
        assert_eq!(
            values,
            [
                "1.5… (1 more characters)",
                "a\nb",
                "{\"x… (6 more characters)"
            ]
        );
    }

    #[test]
    fn a_sample_cannot_turn_the_text_around_it() {
        let data = "{\"t\":\"a\u{202e}b\",\"o\":[\"\u{2066}\"],\"e\":\"\\u202e\"}";
        let data = RawValue::from_string(data.to_owned()).unwrap();
        let members = members(Some(&*data), 100).unwrap();
        let values: Vec<&str> = members.iter().map(|member| member.value.as_str()).collect();
        assert_eq!(values, ["a\\u{202e}b", "[\"\\u{2066}\"]", "\\u{202e}"]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(format_count(1, "record"), "1 record");
        assert_eq!(
            format_count(1_234_567, "record"),
            "1\u{202f}234\u{202f}567 records"
        );
    }
}
