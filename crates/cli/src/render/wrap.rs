//! Lines as wide as the screen: broken between words, aligned by what characters take up and not by how many there are.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::style::Style;

/// With less room than this beside its indent, a text is left to the terminal.
const LEAST_ROOM: usize = 20;

/// How many columns a text takes up.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text, filled up with spaces.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// A line that starts in the column `at`, broken where the screen ends; what follows is indented. Colour may be in it.
pub(crate) fn wrap_hanging(line: &str, at: usize, indent: usize, style: Style) -> String {
    match style.width() {
        Some(end) if end >= indent + LEAST_ROOM && at < end => {
            let mut lines = LineBreaker::new(at, indent, end);
            for (place, word) in line.split(' ').enumerate() {
                lines.word(word, place > 0);
            }
            lines.text
        }
        _ => line.to_owned(),
    }
}

struct LineBreaker {
    text: String,
    column: usize,
    indent: usize,
    end: usize,
    colour: String,
}

impl LineBreaker {
    fn new(at: usize, indent: usize, end: usize) -> Self {
        Self {
            text: String::new(),
            column: at,
            indent,
            end,
            colour: String::new(),
        }
    }

    fn word(&mut self, word: &str, after_space: bool) {
        let needed = shown_width(word);
        let space = usize::from(after_space);
        if self.column + space + needed <= self.end {
            self.text.push_str(if after_space { " " } else { "" });
            self.column += space;
        } else if self.column > self.indent {
            self.next_line();
        }
        let mut rest = word;
        while let Some(c) = rest.chars().next() {
            if let Some((code, after)) = colour_code(rest) {
                self.text.push_str(code);
                let ends = code == "\u{1b}[0m";
                code.clone_into(&mut self.colour);
                if ends {
                    self.colour.clear();
                }
                rest = after;
                continue;
            }
            let columns = c.width().unwrap_or(0);
            // A word wider than the screen, or a script that puts no space between them.
            if self.column + columns > self.end {
                self.next_line();
            }
            self.text.push(c);
            self.column += columns;
            rest = &rest[c.len_utf8()..];
        }
    }

    /// Colour ends with its line, for a pager shows lines by themselves.
    fn next_line(&mut self) {
        if !self.colour.is_empty() {
            self.text.push_str("\u{1b}[0m");
        }
        self.text.push('\n');
        self.text.push_str(&" ".repeat(self.indent));
        self.text.push_str(&self.colour);
        self.column = self.indent;
    }
}

/// A colour code at the start of a text, and what follows it.
fn colour_code(text: &str) -> Option<(&str, &str)> {
    let end = text.strip_prefix("\u{1b}[")?.find('m')?;
    // The two characters before, and the one found.
    text.split_at_checked(end + 3)
}

fn shown_width(word: &str) -> usize {
    let (mut columns, mut rest) = (0, word);
    while let Some(c) = rest.chars().next() {
        if let Some((_, after)) = colour_code(rest) {
            rest = after;
        } else {
            columns += c.width().unwrap_or(0);
            rest = &rest[c.len_utf8()..];
        }
    }
    columns
}

/// How many lines a text takes up on a screen of so many columns.
pub(crate) fn height(text: &str, columns: usize) -> usize {
    let columns = columns.max(1);
    let lines = text.lines();
    lines
        .map(|line| shown_width(line).div_ceil(columns).max(1))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(columns: usize) -> Style {
        Style::new(true).within(Some(columns))
    }

    #[test]
    fn a_line_is_broken_between_words_and_indented() {
        assert_eq!(
            wrap_hanging("one two three four five six", 4, 2, on(24)),
            "one two three four\n  five six"
        );
        assert_eq!(wrap_hanging("one two", 4, 2, Style::new(false)), "one two");
        // Too little room to be of use.
        assert_eq!(
            wrap_hanging("one two three", 4, 10, on(20)),
            "one two three"
        );
    }

    #[test]
    fn wide_characters_take_two_columns_and_need_no_space() {
        let text = "\u{6771}\u{4eac}".repeat(7);
        let broken = wrap_hanging(&text, 2, 2, on(24));
        let lines: Vec<&str> = broken.split("\n  ").collect();
        assert_eq!(lines.concat(), text);
        assert_eq!(lines.iter().map(|line| width(line)).max(), Some(22));
        assert_eq!(padded("\u{6771}\u{4eac}", 6), "\u{6771}\u{4eac}  ");
        assert_eq!(height("\u{6771}\u{4eac}\n\nabcde", 3), 2 + 1 + 2);
    }

    #[test]
    fn colour_takes_no_room_and_ends_with_its_line() {
        let text = on(22).highlight("aaaa bbbb cccc dddd eeee ffff");
        assert_eq!(
            wrap_hanging(&text, 0, 2, on(22)),
            "\u{1b}[1;33maaaa bbbb cccc dddd\u{1b}[0m\n  \u{1b}[1;33meeee ffff\u{1b}[0m"
        );
        assert_eq!(height(&text, 30), 1);
    }

    #[test]
    fn nothing_but_space_is_lost_at_any_width() {
        let text = "a bb  ccc \u{6771}\u{4eac}\u{6771}\u{4eac} https://example.org/a/very/long/path?that=goes&on e\u{301}";
        for columns in 20..70 {
            let broken = wrap_hanging(text, 0, 0, on(columns));
            let bare = |text: &str| text.replace([' ', '\n'], "");
            assert_eq!(bare(&broken), bare(text));
            assert!(
                broken.lines().all(|line| width(line) <= columns),
                "{broken}"
            );
        }
    }
}
