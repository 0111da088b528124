//! Files that fall into pieces: the elements of a JSON array, the lines of a log, or one piece alone. Each piece is held, up
//! to a limit, and made into records; the file as a whole never is.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, Read as _};

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use serde_json::Value;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::importers::outline::Outline;
use crate::lines::{Lines, MAX_LINE_BYTES};
use crate::rejection::{Rejection, RejectionCode};

/// Makes records of pieces.
pub(crate) trait Converter {
    /// Makes records of one piece. A rejection refuses the piece as a whole.
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection>;

    /// Makes records of what the pieces said together, after the last one.
    fn finish(&mut self, _made: &mut Made) {}

    fn note(&self) -> Option<String> {
        None
    }
}

/// The note on a file that only names what others refer to: that it became no record needs no words.
pub(crate) fn names_only() -> String {
    String::new()
}

/// The records that a piece became.
#[derive(Default)]
pub(crate) struct Made(Vec<(&'static str, Result<Value, Rejection>)>);

impl Made {
    /// Adds a record. Members that are null say nothing and are left out.
    pub(crate) fn add(&mut self, stream: &'static str, mut record: Value) {
        if let Some(members) = record.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        self.0.push((stream, Ok(record)));
    }

    pub(crate) fn reject(&mut self, message: impl Into<String>) {
        self.0.push(("", Err(malformed(message))));
    }
}

pub(crate) fn malformed(message: impl Into<String>) -> Rejection {
    Rejection::new(RejectionCode::MalformedExport, message)
}

/// Parses a piece that is JSON.
pub(crate) fn parse_json(piece: &[u8]) -> Result<Value, Rejection> {
    serde_json::from_slice(piece).map_err(|error| malformed(format!("it is not JSON: {error}")))
}

/// The text of a piece, in whichever encoding it was written: UTF-8, UTF-16 if a mark says so, else Windows-1252.
pub(crate) fn read_text(piece: &[u8]) -> Cow<'_, str> {
    let marked = Encoding::for_bom(piece).map(|(encoding, _)| encoding);
    let encoding = match marked {
        Some(encoding) => encoding,
        None if std::str::from_utf8(piece).is_ok() => UTF_8,
        None => WINDOWS_1252,
    };
    encoding.decode(piece).0
}

/// How a file falls into pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// The elements of the array that the file is, or the file itself if it is an object.
    Elements,
    /// The elements of the array that is this member of the file.
    In(&'static str),
    Lines,
    Whole,
}

enum Pieces<R> {
    Elements {
        outline: Outline<R>,
        /// The member that the array is, if it is one.
        member: Option<&'static str>,
        begun: bool,
    },
    Lines(Lines<R>),
    Whole(Option<R>),
}

pub(crate) struct PieceImporter<'a, R, C> {
    pieces: Pieces<R>,
    acceptor: &'a Acceptor<'a>,
    converter: C,
    ready: VecDeque<Item>,
    line: u64,
    is_finished: bool,
}

impl<'a, R: BufRead, C: Converter> PieceImporter<'a, R, C> {
    pub(crate) fn new(reader: R, cut: Cut, acceptor: &'a Acceptor<'a>, converter: C) -> Self {
        let pieces = match cut {
            Cut::Elements => Pieces::Elements {
                outline: Outline::new(reader),
                member: None,
                begun: false,
            },
            Cut::In(member) => Pieces::Elements {
                outline: Outline::new(reader),
                member: Some(member),
                begun: false,
            },
            Cut::Lines => Pieces::Lines(Lines::new(reader, MAX_LINE_BYTES)),
            Cut::Whole => Pieces::Whole(Some(reader)),
        };
        Self {
            pieces,
            acceptor,
            converter,
            ready: VecDeque::new(),
            line: 1,
            is_finished: false,
        }
    }

    /// Takes the next piece apart. Says no at the end.
    fn advance(&mut self) -> Result<bool, InputError> {
        let mut made = Made::default();
        let converter = &mut self.converter;
        let mut convert = |piece: Option<&[u8]>| {
            let outcome = match piece {
                Some(piece) => converter.convert(piece, &mut made),
                None => Err(too_long()),
            };
            (piece.map_or(0, <[u8]>::len), outcome)
        };
        let done = match &mut self.pieces {
            Pieces::Elements {
                outline,
                member,
                begun,
            } => {
                if !next_element(outline, *member, begun)? {
                    return Ok(false);
                }
                self.line = outline.line();
                let fits = outline.take(MAX_LINE_BYTES)?;
                convert(fits.then_some(outline.taken()))
            }
            Pieces::Lines(lines) => {
                let Some(line) = lines.read()? else {
                    return Ok(false);
                };
                self.line = line.number;
                match line.bytes {
                    Some(bytes) if bytes.trim_ascii().is_empty() => (0, Ok(())),
                    bytes => convert(bytes),
                }
            }
            Pieces::Whole(reader) => {
                let Some(reader) = reader.take() else {
                    return Ok(false);
                };
                let mut piece = Vec::new();
                reader
                    .take(MAX_LINE_BYTES as u64 + 1)
                    .read_to_end(&mut piece)?;
                convert((piece.len() <= MAX_LINE_BYTES).then_some(&piece))
            }
        };
        self.keep(self.line, done, made);
        Ok(true)
    }

    fn keep(&mut self, line: u64, (bytes, outcome): (usize, Result<(), Rejection>), made: Made) {
        let mut bytes = bytes;
        for (stream, record) in made.0 {
            let outcome = record.and_then(|record| self.acceptor.record(stream, &record));
            let taken = std::mem::take(&mut bytes);
            self.ready.push_back(Item::new(line, taken, outcome));
        }
        if let Err(rejection) = outcome {
            self.ready.push_back(Item::new(line, bytes, Err(rejection)));
        }
    }
}

impl<R: BufRead, C: Converter> Importer for PieceImporter<'_, R, C> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.is_finished {
                return Ok(None);
            }
            if !self.advance()? {
                self.is_finished = true;
                let mut made = Made::default();
                self.converter.finish(&mut made);
                self.keep(self.line, (0, Ok(())), made);
            }
        }
    }

    fn note(&self) -> Option<String> {
        self.converter.note()
    }
}

/// Whether another element comes next: of the array that the file is, or that a member of it is. A file that is no array is one element
/// itself.
fn next_element<R: BufRead>(
    outline: &mut Outline<R>,
    member: Option<&str>,
    begun: &mut bool,
) -> Result<bool, InputError> {
    let is_first = !std::mem::replace(begun, true);
    match member {
        Some(member) if is_first && !enter_member(outline, member)? => return Ok(false),
        // What follows the array in its object says nothing.
        Some(_) => return outline.element(),
        None if is_first && !outline.enter(b'[')? => return Ok(true),
        None if !is_first && outline.peek()?.is_none() => return Ok(false),
        None => {}
    }
    if outline.element()? {
        return Ok(true);
    }
    match outline.peek()? {
        None => Ok(false),
        Some(_) => Err(outline.broken("something follows the end of the list")),
    }
}

/// Steps into the array that is a member of the object that comes next. Says no if there is none.
fn enter_member<R: BufRead>(outline: &mut Outline<R>, wanted: &str) -> Result<bool, InputError> {
    if !outline.enter(b'{')? {
        return Err(outline.broken("the file is no object"));
    }
    while let Some(name) = outline.member()? {
        if name == wanted && outline.enter(b'[')? {
            return Ok(true);
        }
        outline.skip()?;
    }
    Ok(false)
}

fn too_long() -> Rejection {
    let message = format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20);
    Rejection::new(RejectionCode::LineTooLong, message)
}
