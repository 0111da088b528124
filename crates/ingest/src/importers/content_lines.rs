//! Content lines, which calendar and contact files are made of: `NAME;PARAMETER=VALUE:VALUE`.
//!
//! A long line is *folded*: it goes on in the next line of the file if that one begins with a blank or a tab. A quoted
//! printable text of the oldest dialect goes on after a `=` at the end of the line instead. Folding may split a
//! character, so lines are put together as bytes and decoded after.

mod components;
mod property;
mod record;

use std::io::{self, BufRead};

use crate::lines::Lines;

pub(crate) use components::{Component, Components, Found, Layout};
pub(crate) use property::{Escapes, Property};
pub(crate) use record::{filled, key_of};

/// What the buffer shrinks back to after a long line.
const KEPT_BYTES: usize = 1024 * 1024;

/// Whether this is the first line of a file, in whatever case.
pub(crate) fn begins_with(head: &[u8], line: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let (begin, rest) = head.split_at_checked(line.len()).unwrap_or_default();
    begin.eq_ignore_ascii_case(line) && rest.first().is_none_or(u8::is_ascii_whitespace)
}

/// Puts folded lines together again.
struct ContentLines<R> {
    lines: Lines<R>,
    limit: usize,
    buffer: Vec<u8>,
    /// Whether the blank at a fold belongs to the text, as in version 2.1 of contact files.
    keeps_blank: bool,
}

/// One content line: where it begins in the file, from 1, how many bytes it took there, and what it says. Of a line that
/// is too long only a part is held.
struct Unfolded<'b> {
    number: u64,
    size: usize,
    bytes: &'b [u8],
    is_whole: bool,
}

impl<R: BufRead> ContentLines<R> {
    fn new(reader: R, limit: usize) -> Self {
        Self {
            lines: Lines::new(reader, limit),
            limit,
            buffer: Vec::new(),
            keeps_blank: false,
        }
    }

    /// The next line that is not empty, or nothing at the end.
    fn read(&mut self) -> io::Result<Option<Unfolded<'_>>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        let Some(number) = self.begin()? else {
            return Ok(None);
        };
        let is_quoted = property::is_quoted_printable(&self.buffer);
        let mut size = self.buffer.len();
        let mut too_long = self.buffer.is_empty();
        loop {
            let soft_break = is_quoted && !too_long && self.buffer.last() == Some(&b'=');
            let skipped = match self.lines.next_byte()? {
                Some(_) if soft_break => {
                    self.buffer.pop();
                    0
                }
                Some(b' ' | b'\t') => usize::from(!self.keeps_blank),
                _ => break,
            };
            let Some(line) = self.lines.read()? else {
                break;
            };
            let bytes = line.bytes.and_then(|bytes| bytes.get(skipped..));
            size += bytes.map_or(self.limit, <[u8]>::len);
            match bytes {
                Some(bytes) if !too_long && self.buffer.len() + bytes.len() <= self.limit => {
                    self.buffer.extend(bytes);
                }
                _ => too_long = true,
            }
        }
        Ok(Some(Unfolded {
            number,
            size,
            bytes: &self.buffer,
            is_whole: !too_long,
        }))
    }

    /// Reads the first line of the file that belongs to a content line. The buffer stays empty if it is too long.
    fn begin(&mut self) -> io::Result<Option<u64>> {
        while let Some(line) = self.lines.read()? {
            match line.bytes {
                Some(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                bytes => {
                    self.buffer.extend(bytes.unwrap_or_default());
                    return Ok(Some(line.number));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], keeps_blank: bool, limit: usize) -> Vec<(u64, Option<String>)> {
        let mut lines = ContentLines::new(input, limit);
        lines.keeps_blank = keeps_blank;
        let mut read = Vec::new();
        while let Some(line) = lines.read().unwrap() {
            let text = String::from_utf8(line.bytes.to_vec()).unwrap();
            read.push((line.number, line.is_whole.then_some(text)));
        }
        read
    }

    fn line(number: u64, text: &str) -> (u64, Option<String>) {
        (number, Some(text.to_owned()))
    }

    #[test]
    fn folded_lines_are_one_line_even_where_a_character_was_split() {
        let input = b"A:Caf\xC3\r\n \xA9 au\r\n  lait\n\n\tB:x\r\n\n";
        assert_eq!(
            all(input, false, 99),
            [line(1, "A:Café au lait"), line(5, "\tB:x")]
        );
        assert_eq!(
            all(b"A:Caf\n au lait", true, 99),
            [line(1, "A:Caf au lait")]
        );
    }

    #[test]
    fn quoted_printable_goes_on_after_an_equals_sign_and_nothing_else_does() {
        let input = b"N;ENCODING=QUOTED-PRINTABLE:a=\r\nb=\r\nc\r\nX:QUOTED-PRINTABLE=\r\nY:1\r\nZ;quoted-printable:=";
        assert_eq!(
            all(input, true, 99),
            [
                line(1, "N;ENCODING=QUOTED-PRINTABLE:abc"),
                line(4, "X:QUOTED-PRINTABLE="),
                line(5, "Y:1"),
                line(6, "Z;quoted-printable:=")
            ]
        );
    }

    #[test]
    fn a_line_beyond_the_limit_is_stepped_over_with_all_its_folds() {
        assert_eq!(
            all(b"A:1234567890\n 1\nB:1\n 23456\n 7890\nC:1", false, 8),
            [(1, None), (3, None), line(6, "C:1")]
        );
    }
}
