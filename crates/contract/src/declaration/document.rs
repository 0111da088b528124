//! Walks a JSON document while collecting every mistake in it.
//!
//! A [`Node`] is a value with its JSON Pointer; an [`Object`] is a closed set of members: what was not asked for by
//! name when it is finished is a mistake. Reading goes on after a mistake, so one pass reports them all.

use serde_json::value::RawValue;

use super::{DeclarationError, DeclarationErrors};
use crate::json::{self, JsonErrorCode, JsonKind, RecordBody};

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes(Vec<DeclarationError>);

impl Mistakes {
    pub(super) fn add(&mut self, path: impl Into<String>, rule: impl Into<String>) {
        self.0.push(DeclarationError {
            path: path.into(),
            rule: rule.into(),
        });
    }

    pub(super) fn into_errors(self) -> Option<DeclarationErrors> {
        (!self.0.is_empty()).then_some(DeclarationErrors(self.0))
    }
}

/// Extends a JSON Pointer by one step.
pub(super) fn step(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A JSON value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) raw: String,
    pub(super) path: String,
}

impl Node {
    /// The beginning of the value, for a message.
    pub(super) fn found(&self) -> String {
        let shown: String = self.raw.chars().take(40).collect();
        let more = if shown.len() < self.raw.len() {
            "…"
        } else {
            ""
        };
        format!("found {shown}{more}")
    }

    fn refuse(&self, wanted: &str, mistakes: &mut Mistakes) {
        mistakes.add(&self.path, format!("must be {wanted}, {}", self.found()));
    }

    /// The text of a non-empty string.
    pub(super) fn text(&self, mistakes: &mut Mistakes) -> Option<String> {
        match json::decode_string(&self.raw) {
            Some(text) if !text.trim().is_empty() => Some(text.into_owned()),
            _ => {
                self.refuse("a non-empty string", mistakes);
                None
            }
        }
    }

    pub(super) fn boolean(&self, mistakes: &mut Mistakes) -> Option<bool> {
        match self.raw.trim() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.refuse("true or false", mistakes);
                None
            }
        }
    }

    pub(super) fn positive(&self, mistakes: &mut Mistakes) -> Option<u32> {
        match self.raw.trim().parse::<u32>() {
            Ok(number) if number > 0 => Some(number),
            _ => {
                self.refuse("a positive integer", mistakes);
                None
            }
        }
    }

    pub(super) fn array(&self, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(&self.raw) {
            let node = |(at, item): (usize, &&RawValue)| Node {
                raw: item.get().to_owned(),
                path: format!("{}/{at}", self.path),
            };
            return Some(items.iter().enumerate().map(node).collect());
        }
        self.refuse("an array", mistakes);
        None
    }

    /// An array of at least one element.
    pub(super) fn filled_array(&self, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
        let items = self.array(mistakes)?;
        if items.is_empty() {
            mistakes.add(&self.path, "must name at least one element, found []");
        }
        Some(items)
    }

    pub(super) fn object(&self, mistakes: &mut Mistakes) -> Option<Object> {
        if json::kind_of(&self.raw) == JsonKind::Object
            && let Ok(body) = RecordBody::parse(self.raw.clone())
        {
            return Some(Object {
                body,
                path: self.path.clone(),
                known: Vec::new(),
            });
        }
        self.refuse("an object", mistakes);
        None
    }

    /// One of a fixed set of words.
    pub(super) fn choice<T: Copy>(
        &self,
        options: &[(&str, T)],
        mistakes: &mut Mistakes,
    ) -> Option<T> {
        let text = json::decode_string(&self.raw);
        let text = text.as_deref().unwrap_or_default();
        if let Some((_, value)) = options.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        let hint = did_you_mean(text, names.iter().copied());
        self.refuse(&format!("one of {}{hint}", names.join(", ")), mistakes);
        None
    }
}

/// A JSON object whose members are all accounted for.
#[derive(Debug)]
pub(super) struct Object {
    body: RecordBody,
    pub(super) path: String,
    known: Vec<&'static str>,
}

impl Object {
    /// Whether there is such a member, whether it is asked for or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.body.get(name).is_some()
    }

    /// A member that may be absent.
    pub(super) fn optional(&mut self, name: &'static str) -> Option<Node> {
        self.known.push(name);
        let raw = self.body.get(name)?.to_owned();
        Some(Node {
            raw,
            path: step(&self.path, name),
        })
    }

    /// A member that must be there.
    pub(super) fn required(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Node> {
        let node = self.optional(name);
        if node.is_none() {
            mistakes.add(&self.path, format!("{name} is required and missing"));
        }
        node
    }

    /// Every member, for objects whose names are free.
    pub(super) fn members(&self) -> Vec<(String, Node)> {
        let node = |(name, raw): (&str, &str)| {
            (
                name.to_owned(),
                Node {
                    raw: raw.to_owned(),
                    path: step(&self.path, name),
                },
            )
        };
        self.body.members().map(node).collect()
    }

    /// Reports the members nobody asked for. Members beginning with `x_` are always welcome.
    pub(super) fn finish(self, mistakes: &mut Mistakes) {
        for (name, _) in self.body.members() {
            if name.starts_with("x_") || self.known.contains(&name) {
                continue;
            }
            let hint = did_you_mean(name, self.known.iter().copied());
            let allowed = self.known.join(", ");
            let rule = format!(
                "unknown member {name:?}{hint}; allowed here: {allowed}, and names beginning with x_"
            );
            mistakes.add(step(&self.path, name), rule);
        }
    }
}

/// Opens the whole file, or says why it is not one JSON object.
pub(super) fn open(text: &str) -> Result<Object, DeclarationErrors> {
    let error = match RecordBody::parse(text) {
        Ok(body) => {
            return Ok(Object {
                body,
                path: String::new(),
                known: Vec::new(),
            });
        }
        Err(error) => error,
    };
    let (line, column) = line_and_column(text, error.offset);
    let path = match error.code {
        JsonErrorCode::DuplicateMember => pointer_at(text, error.offset),
        _ => String::new(),
    };
    Err(DeclarationErrors::one(
        path,
        format!("{} (line {line}, column {column})", error.message),
    ))
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.split(|byte| *byte == b'\n').count();
    let line_start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[line_start..])
        .chars()
        .count()
        + 1;
    (line, column)
}

/// The pointer of the container that holds `offset`, extended by the member name that begins there, if one does.
/// The text before `offset` is well-formed JSON that simply stops.
fn pointer_at(text: &str, offset: usize) -> String {
    let mut stack: Vec<Level> = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() && at <= offset {
        match bytes[at] {
            b'{' => stack.push(Level::Object(None)),
            b'[' => stack.push(Level::Array(0)),
            b'}' | b']' => drop(stack.pop()),
            b',' => match stack.last_mut() {
                Some(Level::Object(name)) => *name = None,
                Some(Level::Array(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let end = string_end(bytes, at);
                if let Some(Level::Object(name @ None)) = stack.last_mut() {
                    *name = text
                        .get(at..end)
                        .and_then(json::decode_string)
                        .map(std::borrow::Cow::into_owned);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    stack.iter().fold(String::new(), |path, level| match level {
        Level::Object(Some(name)) => step(&path, name),
        Level::Object(None) => path,
        Level::Array(index) => format!("{path}/{index}"),
    })
}

enum Level {
    Object(Option<String>),
    Array(usize),
}

/// The offset just past the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `; did you mean "…"?` when one of the candidates is close enough to be a slip of the fingers.
pub(super) fn did_you_mean<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    let given_length = given.chars().count();
    if given_length == 0 || given_length > 64 {
        return String::new();
    }
    let allowed = (given_length / 3).clamp(1, 3);
    let near = candidates
        .map(|candidate| (edit_distance(given, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min();
    near.map_or_else(String::new, |(_, name)| {
        format!(" (did you mean {name:?}?)")
    })
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if right.len() > 64 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let substituted = rows[i][j] + usize::from(a != b);
            let mut best = substituted.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last()
        .and_then(|row| row.last())
        .copied()
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_named_and_a_different_word_is_not() {
        let names = ["cursor_field", "primary_key"];
        assert_eq!(
            did_you_mean("cursor_feild", names.into_iter()),
            " (did you mean \"cursor_field\"?)"
        );
        assert_eq!(did_you_mean("colour", names.into_iter()), "");
        assert_eq!(did_you_mean("", names.into_iter()), "");
    }

    #[test]
    fn the_pointer_of_an_offset_names_members_and_elements() {
        let text = r#"{"a":[1,{"b/c":"x\"}","d":{"e":1,"e":2}}]}"#;
        let second = text.rfind("\"e\"").unwrap();
        assert_eq!(pointer_at(text, second), "/a/1/d/e");
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        assert_eq!(line_and_column("{\n é?", 5), (2, 3));
        assert_eq!(line_and_column("", 9), (1, 1));
    }
}
