//! Whether the quotes of a row fit.
//!
//! The engine that splits rows forgives everything: it ends an open quote with the file, and takes what follows a closed
//! one for more of the cell. Both would store text that is not in the file, so the same bytes are checked here.

use crate::rejection::{Rejection, RejectionCode};

/// Follows the quotes through the bytes of a file.
#[derive(Debug)]
pub(super) struct Quotes {
    state: QuoteState,
    /// The line of the last quote that opened a cell.
    opened: u64,
    /// The line in which something followed a closed quote.
    followed: Option<u64>,
    /// Whether the last byte ended a line.
    line_ended: bool,
    delimiter: u8,
}

/// Where in a row the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// At the beginning of a cell.
    Begin,
    /// In a cell without quotes, where a quote is a character like others.
    Plain,
    /// Between the quotes of a cell.
    Quoted,
    /// After a quote within quotes: the last one, or the first of a pair that means one.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misquoted {
    /// A quote is open at the end of the file.
    Open {
        /// Where it was opened.
        line: u64,
        /// The last line of the file.
        end: u64,
    },
    /// A cell goes on after its closing quote.
    Followed { line: u64 },
}

impl Quotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Self {
            state: QuoteState::Begin,
            opened: 0,
            followed: None,
            line_ended: false,
            delimiter,
        }
    }

    pub(super) fn begin_row(&mut self) {
        self.state = QuoteState::Begin;
        self.followed = None;
    }

    /// Follows the next bytes of the row, and says how many lines have ended after them.
    pub(super) fn follow(&mut self, bytes: &[u8], mut line_ends: u64) -> u64 {
        for byte in bytes {
            self.state = match (self.state, *byte) {
                (QuoteState::Begin, b'"') => {
                    self.opened = line_ends + 1;
                    QuoteState::Quoted
                }
                (QuoteState::Quoted, b'"') => QuoteState::Closed,
                (QuoteState::Closed, b'"') | (QuoteState::Quoted, _) => QuoteState::Quoted,
                (_, b'\r' | b'\n') => QuoteState::Begin,
                (_, other) if other == self.delimiter => QuoteState::Begin,
                (QuoteState::Closed, _) => {
                    self.followed.get_or_insert(line_ends + 1);
                    QuoteState::Plain
                }
                (QuoteState::Begin | QuoteState::Plain, _) => QuoteState::Plain,
            };
            self.line_ended = *byte == b'\n';
            line_ends += u64::from(self.line_ended);
        }
        line_ends
    }

    pub(super) fn misquoted(&self, line_ends: u64) -> Option<Misquoted> {
        if let Some(line) = self.followed {
            return Some(Misquoted::Followed { line });
        }
        (self.state == QuoteState::Quoted).then(|| Misquoted::Open {
            line: self.opened,
            end: line_ends + u64::from(!self.line_ended),
        })
    }
}

impl Misquoted {
    /// As a fault of the header row.
    pub(super) fn in_header(self) -> String {
        match self {
            Misquoted::Open { line, .. } => {
                format!("has a quote that is opened in line {line} and never closed")
            }
            Misquoted::Followed { line } => {
                format!(
                    "goes on after a closing quote in line {line}; write a quote inside a cell twice"
                )
            }
        }
    }

    /// As a fault of a row.
    pub(super) fn rejection(self) -> Rejection {
        let message = match self {
            Misquoted::Open { line, end } => format!(
                "the quote opened in line {line} is never closed; \
                 nothing from this row to the end of the file in line {end} was imported"
            ),
            Misquoted::Followed { line } => format!(
                "a cell goes on after its closing quote in line {line}; \
                 write a quote inside a cell twice, and close each at the end of its cell"
            ),
        };
        Rejection::new(RejectionCode::MalformedCsv, message)
    }
}
