//! The whole file of a declaration, opened: where in it a mistake of JSON itself stands.

use super::DeclarationErrors;
use crate::document::{Object, step};
use crate::json::{self, JsonErrorCode, RecordBody};

/// Opens the whole file, or says why it is not one JSON object.
pub(super) fn open(text: &str) -> Result<Object, DeclarationErrors> {
    let error = match RecordBody::parse(text) {
        Ok(body) => return Ok(Object::new(body, String::new())),
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
    let (before, _) = text.as_bytes().split_at(offset.min(text.len()));
    let mut lines = before.rsplit(|byte| *byte == b'\n');
    let last = lines.next().unwrap_or(before);
    let column = String::from_utf8_lossy(last).chars().count() + 1;
    (lines.count() + 1, column)
}

/// The pointer of the container that holds `offset`, extended by the member name that begins there, if one does.
/// The text before `offset` is well-formed JSON that simply stops.
fn pointer_at(text: &str, offset: usize) -> String {
    let mut stack: Vec<Level> = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at).filter(|_| at <= offset) {
        match byte {
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

#[cfg(test)]
mod tests {
    use super::*;

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
