//! Whether a regular expression holds together.
//!
//! Patterns are written in the dialect of ECMA-262 and are not run here, so only what cannot be meant is refused.

/// What is wrong with a pattern, if anything.
pub(super) fn fault(pattern: &str) -> Option<&'static str> {
    let mut groups = 0_usize;
    let mut in_class = false;
    let mut repeatable = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return Some("a backslash at the end"),
            '\\' => repeatable = true,
            ']' if in_class => {
                in_class = false;
                repeatable = true;
            }
            _ if in_class => {}
            '[' => in_class = true,
            '(' => {
                groups += 1;
                repeatable = false;
                // What a group begins with is not repeated: (?:…), (?=…), (?<name>…).
                if characters.as_str().starts_with('?') {
                    characters.next();
                }
            }
            ')' if groups == 0 => return Some("a group is closed that was not opened"),
            ')' => {
                groups -= 1;
                repeatable = true;
            }
            '|' | '^' => repeatable = false,
            '*' | '+' | '?' if !repeatable => return Some("nothing stands before a repetition"),
            // A repetition may be followed by the '?' that makes it short.
            '*' | '+' | '?' => repeatable = characters.as_str().starts_with('?'),
            _ => repeatable = true,
        }
    }
    if in_class {
        return Some("a class of characters is not closed");
    }
    (groups > 0).then_some("a group is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_patterns_are_left_alone() {
        for pattern in [
            "",
            "^[a-z0-9_-]{1,32}$",
            r"^\d{4}-\d{2}(?:-\d{2})?$",
            r"(?<year>\d+)(?=x)(?!y)(?<=a)",
            r"\(\[\)",
            "[(]?",
            "[^\\]]*?a+?b??",
            "a{2}?|b",
            "x{",
            r"^\p{L}+$",
        ] {
            assert_eq!(fault(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        for pattern in ["(", "(a", "a)", "[a", "a\\", "*a", "a|+", "a**"] {
            assert!(fault(pattern).is_some(), "{pattern}");
        }
    }
}
