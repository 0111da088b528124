//! The segment guard: which texts may be one segment of a record id. A segment never contains a separator or a dot segment,
//! so an id that passed the guard cannot be read as the name of anything else.

use thiserror::Error;

/// Why a text cannot stand as one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SegmentError {
    #[error("is empty")]
    Empty,
    /// It holds `/` or `\`.
    #[error("contains '/' or '\\'")]
    Separator,
    /// It is `.`, or holds `..`.
    #[error("is '.' or contains '..'")]
    Traversal,
    #[error("contains a control character")]
    Control,
}

/// Passes a text that is safe as one segment of an id, a path or a handle.
pub fn guard(text: &str) -> Result<(), SegmentError> {
    printable(text)?;
    if text.contains(['/', '\\']) {
        return Err(SegmentError::Separator);
    }
    if text == "." || text.contains("..") {
        return Err(SegmentError::Traversal);
    }
    Ok(())
}

/// Passes a text that may hold separators, but no part of which is `.` or `..`.
///
/// This is the rule for record keys and field names inside a URI handle: they travel as one percent-encoded segment, so
/// a separator is data there, while a dot segment could still be resolved by something on the way.
pub fn guard_parts(text: &str) -> Result<(), SegmentError> {
    printable(text)?;
    if text
        .split(['/', '\\'])
        .any(|part| matches!(part, "." | ".."))
    {
        return Err(SegmentError::Traversal);
    }
    Ok(())
}

/// Passes a text that is not empty and holds no control character.
pub fn printable(text: &str) -> Result<(), SegmentError> {
    if text.is_empty() {
        return Err(SegmentError::Empty);
    }
    if text.chars().any(char::is_control) {
        return Err(SegmentError::Control);
    }
    Ok(())
}

/// Quotes caller input for a message: escaped, and cut so that a hostile text cannot fill a log or a reply.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 64;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("'{}'", shown.replace("\\'", "'").replace("\\\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_names_what_is_wrong() {
        // ID-25
        assert_eq!(guard(""), Err(SegmentError::Empty));
        assert_eq!(guard("a/b"), Err(SegmentError::Separator));
        assert_eq!(guard("a\\b"), Err(SegmentError::Separator));
        assert_eq!(guard("."), Err(SegmentError::Traversal));
        assert_eq!(guard("a..b"), Err(SegmentError::Traversal));
        assert_eq!(guard("a\0"), Err(SegmentError::Control));
        assert_eq!(guard("a.b"), Ok(()));
    }

    #[test]
    fn parts_may_be_separated_but_never_dots() {
        for good in ["a/b", "a..b", "/", "...", "a\\b", ".a/b."] {
            assert_eq!(guard_parts(good), Ok(()), "{good}");
        }
        for bad in [".", "..", "a/..", "../a", "a\\..\\b", "a/./b"] {
            assert_eq!(guard_parts(bad), Err(SegmentError::Traversal), "{bad}");
        }
    }

    #[test]
    fn quoted_input_is_escaped_and_cut() {
        assert_eq!(quoted("it's \"so\"\n"), "'it's \"so\"\\n'");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 67);
    }
}
