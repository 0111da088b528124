//! Where one message of a file ends and the next begins. Only one message is in memory at a time; one that is too long is skipped.

use std::io::{self, BufRead, Read};

use super::date;
use crate::lines::BYTE_ORDER_MARK;

/// A longer line is taken in pieces.
const PIECE_BYTES: u64 = 64 * 1024;

pub(super) struct Messages<R> {
    reader: R,
    limit: usize,
    /// Known once the first line was seen.
    shape: Option<Shape>,
    line: u64,
    at_line_start: bool,
    after_blank: bool,
    piece: Vec<u8>,
    current: Option<Open>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Mbox,
    Single,
}

pub(super) struct RawMessage {
    pub(super) line: u64,
    pub(super) bytes: usize,
    /// Headers and body, unquoted; nothing if they were too much to hold.
    pub(super) content: Option<Vec<u8>>,
    /// When it came into the mailbox, if its `From ` line says so.
    pub(super) delivered_at: Option<String>,
}

struct Open {
    message: RawMessage,
    in_headers: bool,
}

impl<R: BufRead> Messages<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            shape: None,
            line: 0,
            at_line_start: true,
            after_blank: true,
            piece: Vec::new(),
            current: None,
        }
    }

    /// The next message, or nothing at the end.
    pub(super) fn read(&mut self) -> io::Result<Option<RawMessage>> {
        loop {
            self.piece.clear();
            let mut piece = (&mut self.reader).take(PIECE_BYTES);
            if piece.read_until(b'\n', &mut self.piece)? == 0 {
                return Ok(self.current.take().map(|open| self.closed(open)));
            }
            let starts_line = self.at_line_start;
            self.at_line_start = self.piece.ends_with(b"\n");
            if starts_line {
                self.line += 1;
                if self.line == 1 && self.piece.starts_with(BYTE_ORDER_MARK) {
                    self.piece.drain(..BYTE_ORDER_MARK.len());
                }
                if let Some(from) = self.separator() {
                    let next = Open::new(self.line, from.date);
                    let finished = self.current.replace(next);
                    if let Some(open) = finished {
                        return Ok(Some(self.closed(open)));
                    }
                    continue;
                }
            }
            self.take_piece(starts_line);
        }
    }

    /// The `From ` line that the piece is, if it is one.
    fn separator(&mut self) -> Option<FromLine> {
        let is_blank = self.piece.trim_ascii().is_empty();
        let after_blank = std::mem::replace(&mut self.after_blank, is_blank);
        if self.shape == Some(Shape::Single) {
            return None;
        }
        let from = FromLine::parse(&self.piece, after_blank);
        if self.shape.is_none() && !is_blank {
            let shape = from.as_ref().map_or(Shape::Single, |_| Shape::Mbox);
            self.shape = Some(shape);
        }
        from
    }

    fn take_piece(&mut self, starts_line: bool) {
        if self.shape.is_none() {
            // Blank lines before anything.
            return;
        }
        let open = self
            .current
            .get_or_insert_with(|| Open::new(self.line, None));
        let mut piece = self.piece.as_slice();
        open.message.bytes += piece.len();
        if starts_line && self.shape == Some(Shape::Mbox) && is_quoted_from(piece) {
            if open.in_headers {
                // Left there by a program that put one mailbox into another.
                return;
            }
            piece = piece.get(1..).unwrap_or_default();
        }
        if starts_line && piece.trim_ascii().is_empty() {
            open.in_headers = false;
        }
        let taken = open.message.content.take();
        open.message.content = taken.filter(|content| content.len() + piece.len() <= self.limit);
        if let Some(content) = &mut open.message.content {
            content.extend(piece);
        }
    }

    /// A message without the blank line that the format adds to it.
    fn closed(&self, open: Open) -> RawMessage {
        let mut message = open.message;
        if self.shape == Some(Shape::Mbox)
            && let Some(content) = &mut message.content
        {
            for blank in [b"\r\n\r\n".as_slice(), b"\n\n"] {
                if content.ends_with(blank) {
                    content.truncate(content.len() - blank.len() / 2);
                    break;
                }
            }
        }
        message
    }
}

impl Open {
    fn new(line: u64, delivered_at: Option<String>) -> Self {
        Self {
            message: RawMessage {
                line,
                bytes: 0,
                content: Some(Vec::new()),
                delivered_at,
            },
            in_headers: true,
        }
    }
}

/// Whether the line is `From `, quoted once or more.
fn is_quoted_from(line: &[u8]) -> bool {
    let quotes = line.iter().take_while(|byte| **byte == b'>').count();
    quotes > 0
        && line
            .get(quotes..)
            .is_some_and(|rest| rest.starts_with(b"From "))
}

/// A line that separates messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FromLine {
    /// When the message came, RFC 3339. A line that says no offset is taken to be in UTC.
    pub(super) date: Option<String>,
}

impl FromLine {
    /// Reads a line. It separates if it ends like one, with a date; without, it must follow a blank line and say nothing
    /// that a text would say.
    pub(super) fn parse(line: &[u8], after_blank: bool) -> Option<Self> {
        let rest = line.strip_prefix(b"From ")?.trim_ascii();
        if rest.is_empty() || rest == b"-" {
            return after_blank.then_some(Self { date: None });
        }
        // Any more would be no such line.
        let rest = std::str::from_utf8(rest.get(..rest.len().min(1_000))?).ok()?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let date = (0..words.len()).find_map(|at| date_of(words.get(at..)?))?;
        Some(Self { date: Some(date) })
    }
}

/// Parses the text after the sender, if it is a date and nothing else.
fn date_of(words: &[&str]) -> Option<String> {
    let (weekday, rest) = words.split_first()?;
    let is_date = date::is_weekday(weekday) && rest.len() <= 6;
    is_date.then(|| date::read(rest)).flatten()
}
