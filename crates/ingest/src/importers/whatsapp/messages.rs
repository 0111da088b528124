//! Putting the lines of an export together into messages.

use std::io::BufRead;

use super::stamp::{self, Stamp, Style, is_mark};
use crate::error::InputError;
use crate::lines::{Lines, MAX_LINE_BYTES};
use crate::rejection::{Rejection, RejectionCode};

pub(super) struct Message {
    pub(super) line: u64,
    /// When; nothing for lines before the first message.
    pub(super) stamp: Option<Stamp>,
    /// What follows, all lines.
    pub(super) rest: String,
    pub(super) fault: Option<Rejection>,
}

/// Puts lines together into messages, of which it holds one.
pub(super) struct Messages<R> {
    lines: Lines<R>,
    limit: usize,
    /// How the first message began; so do the others.
    style: Option<Style>,
    current: Option<Message>,
}

impl<R: BufRead> Messages<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            lines: Lines::new(reader, limit),
            limit,
            style: None,
            current: None,
        }
    }

    /// The next message, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<Message>, InputError> {
        while let Some(line) = self.lines.read()? {
            let (number, fault) = (line.number, fault(line.bytes));
            let unseen = line.bytes.is_none();
            let text = String::from_utf8_lossy(line.bytes.unwrap_or_default());
            let begun = stamp::read(&text)
                .filter(|(stamp, _)| self.style.is_none_or(|style| style == stamp.style));
            let stamp = begun.map(|(stamp, _)| stamp);
            self.style = self.style.or(stamp.map(|stamp| stamp.style));
            if let (None, false, Some(current)) = (stamp, unseen, &mut self.current) {
                current.append(&text, fault, self.limit);
                continue;
            }
            if stamp.is_none() && fault.is_none() && text.trim_matches(is_mark).is_empty() {
                continue;
            }
            let message = Message {
                line: number,
                stamp,
                rest: begun.map_or(&*text, |(_, rest)| rest).to_owned(),
                fault,
            };
            // What comes before the first message stands alone. A line that was too long to be looked at may have begun
            // a message, to which the lines after it belong.
            if stamp.is_none() && !unseen {
                return Ok(Some(message));
            }
            if let Some(ended) = self.current.replace(message) {
                return Ok(Some(ended));
            }
        }
        Ok(self.current.take())
    }
}

impl Message {
    /// Adds a line. A message that grows too long is let go of.
    fn append(&mut self, line: &str, fault: Option<Rejection>, limit: usize) {
        if self.fault.is_some() {
            return;
        }
        self.fault = fault;
        if self.rest.len() + line.len() >= limit {
            self.fault = Some(too_long());
        }
        if self.fault.is_some() {
            self.rest = String::new();
            return;
        }
        self.rest.push('\n');
        self.rest.push_str(line);
    }
}

fn fault(bytes: Option<&[u8]>) -> Option<Rejection> {
    let Some(bytes) = bytes else {
        return Some(too_long());
    };
    let error = std::str::from_utf8(bytes).err()?;
    let message = format!("the line is not UTF-8 (at byte {})", error.valid_up_to());
    Some(Rejection::new(RejectionCode::InvalidUtf8, message))
}

fn too_long() -> Rejection {
    let message = format!("the message is longer than {} MiB", MAX_LINE_BYTES >> 20);
    Rejection::new(RejectionCode::LineTooLong, message)
}
