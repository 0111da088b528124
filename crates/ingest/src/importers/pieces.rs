//! Files that fall into pieces: the elements of a JSON array, elements of XML, the lines of a log, or one piece alone. Each piece is
//! held, up to a limit, and made into records; the file as a whole never is.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, Read as _};

use contract::id::BlobId;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use serde_json::Value;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{File, Importer, Item};
use crate::importers::csv::Rows;
use crate::importers::json_pieces::JsonPieces;
use crate::importers::marked::Marked;
use crate::importers::named_rows::HEADER_WITHIN;
use crate::importers::xml::{Cutter, XmlCut};
use crate::lines::{BYTE_ORDER_MARK, Lines, MAX_LINE_BYTES};
use crate::rejection::{Rejection, RejectionCode};

/// Makes records of pieces.
pub(crate) trait Converter {
    /// Makes records of one piece. A rejection refuses the piece as a whole.
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection>;

    /// The same for an element of a list that is this member of the file.
    fn convert_in(
        &mut self,
        _member: &str,
        piece: &[u8],
        made: &mut Made,
    ) -> Result<(), Rejection> {
        self.convert(piece, made)
    }

    /// Makes records of what the pieces said together, after the last one.
    fn finish(&mut self, _made: &mut Made) {}

    /// What refuses the rest of a file that breaks off, where what stood before it is whole. Else the file as a whole counts as broken.
    fn broken_off(&self) -> Option<Rejection> {
        None
    }

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
pub(crate) struct Made {
    items: Vec<MadeItem>,
}

struct MadeItem {
    stream: &'static str,
    record: Result<Value, Rejection>,
    /// What stays as it is stored.
    kept: Option<Kept>,
    /// The bytes that the record refers to, and what they are.
    file: Option<(BlobId, String, Vec<u8>)>,
}

/// What of a record that is there stays, where another file told it before.
pub(crate) enum Kept {
    /// These members.
    Members(&'static [&'static str]),
    /// The key that an earlier release gave it, if these members are the same.
    Key(String, &'static [&'static str]),
    /// All that an earlier release told under this key, if these members are the same.
    Whole(String, &'static [&'static str]),
}

impl Kept {
    /// The record as it is written. What stays as a whole is given as it is there: it has come, though nothing of it changes.
    fn applied(&self, mut record: Value, stream: &str, acceptor: &Acceptor<'_>) -> Value {
        let own = record.get("id").and_then(Value::as_str);
        let key = match self {
            Self::Key(key, _) | Self::Whole(key, _) => Some(key.as_str()),
            Self::Members(_) => own,
        };
        let Some(stored) = key.and_then(|key| acceptor.stored(stream, key)) else {
            return record;
        };
        let are_same = |names: &[&str]| {
            let mut names = names.iter();
            names.all(|name| stored.get(name) == record.get(name))
        };
        match self {
            Self::Whole(_, same) if are_same(same) => return stored,
            Self::Members(names) => keep(&mut record, &stored, names),
            Self::Key(_, same) if are_same(same) => keep(&mut record, &stored, &["id"]),
            Self::Whole(..) | Self::Key(..) => {}
        }
        record
    }
}

/// Gives a record the members that another has.
fn keep(record: &mut Value, stored: &Value, names: &[&str]) {
    let Some(members) = record.as_object_mut() else {
        return;
    };
    for name in names {
        match stored.get(name) {
            Some(value) => drop(members.insert((*name).to_owned(), value.clone())),
            None => drop(members.shift_remove(*name)),
        }
    }
}

impl Made {
    /// Adds a record. Members that are null say nothing and are left out.
    pub(crate) fn add(&mut self, stream: &'static str, mut record: Value) {
        if let Some(members) = record.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        self.push(stream, Ok(record));
    }

    /// The same for one that another file may have told before.
    pub(crate) fn add_keeping(&mut self, stream: &'static str, record: Value, kept: Kept) {
        self.add(stream, record);
        if let Some(item) = self.items.last_mut() {
            item.kept = Some(kept);
        }
    }

    /// Keeps bytes that the last record refers to.
    pub(crate) fn keep_file(&mut self, blob: BlobId, media_type: &str, bytes: &[u8]) {
        if let Some(item) = self.items.last_mut() {
            item.file = Some((blob, media_type.to_owned(), bytes.to_vec()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn reject(&mut self, message: impl Into<String>) {
        self.refuse(malformed(message));
    }

    pub(crate) fn refuse(&mut self, rejection: Rejection) {
        self.push("", Err(rejection));
    }

    fn push(&mut self, stream: &'static str, record: Result<Value, Rejection>) {
        self.items.push(MadeItem {
            stream,
            record,
            kept: None,
            file: None,
        });
    }
}

pub(crate) fn malformed(message: impl Into<String>) -> Rejection {
    Rejection::new(RejectionCode::MalformedExport, message)
}

/// Parses a piece that is JSON.
pub(crate) fn parse_json(piece: &[u8]) -> Result<Value, Rejection> {
    serde_json::from_slice(piece).map_err(|error| malformed(format!("it is not JSON: {error}")))
}

/// The text of a file or a piece of it, as its byte order mark or its declaration says; else UTF-8, or what it can be instead.
pub(crate) fn read_text(bytes: &[u8]) -> Cow<'_, str> {
    let declared = || {
        let head = String::from_utf8_lossy(bytes.get(..1024).unwrap_or(bytes));
        let (_, label) = head.split_once("charset=")?;
        let label = label.trim_start_matches(['"', '\'']);
        let label = label.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
        Encoding::for_label(label.into_iter().next()?.as_bytes())
    };
    if Encoding::for_bom(bytes).is_none()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return text.into();
    }
    let encoding = declared().filter(|encoding| *encoding != UTF_8);
    encoding.unwrap_or(WINDOWS_1252).decode(bytes).0
}

/// Whether a file begins with this, white space aside. Nothing of it is consumed.
pub(crate) fn begins_with(reader: &mut impl BufRead, what: &[u8]) -> bool {
    let head = reader.fill_buf().unwrap_or_default();
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    head.trim_ascii_start().starts_with(what)
}

/// Whether the first row of a table names these columns, among others.
pub(crate) fn has_columns(head: &[u8], columns: &[&str]) -> bool {
    let Ok(mut rows) = Rows::with_delimiter(head, MAX_LINE_BYTES, b',') else {
        return false;
    };
    let names = rows.next_cells().ok().flatten().unwrap_or_default();
    let mut columns = columns.iter();
    columns.all(|column| names.iter().any(|name| name.trim() == *column))
}

/// Whether a row names the columns of a table.
pub(crate) type IsHeader = fn(&[String]) -> bool;

/// How a file falls into pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// The elements of the array that the file is, or the file itself if it is an object.
    Elements,
    /// The same, or the elements of these members if the file is an object.
    Members(&'static [&'static str]),
    Lines,
    /// Elements of XML.
    Xml(XmlCut),
    /// The rows of a table, each as an object with the names of its first row.
    Rows,
    /// The same with the names of the header, which is one of the first rows.
    Named(IsHeader),
    /// What begins with this.
    Marked(&'static str),
    Whole,
}

impl Cut {
    /// What makes records of the pieces of a file.
    pub(crate) fn importer<'a>(
        self,
        reader: Box<dyn BufRead>,
        acceptor: &'a Acceptor<'a>,
        converter: impl Converter + 'a,
    ) -> Box<dyn Importer + 'a> {
        Box::new(PieceImporter {
            pieces: Pieces::new(reader, self),
            acceptor,
            converter,
            ready: VecDeque::new(),
            files: Vec::new(),
            line: 1,
            is_finished: false,
        })
    }
}

enum Pieces<R> {
    Json(JsonPieces<R>),
    Lines(Lines<R>),
    Xml(Box<Cutter<R>>),
    Rows(Box<Table<R>>),
    Marked(Marked<R>),
    Whole { reader: Option<R>, held: Vec<u8> },
}

/// A piece, or why it is none.
enum Piece<'p> {
    Whole(&'p [u8]),
    /// An element of a list that is this member.
    In(&'static str, &'p [u8]),
    Blank,
    TooLong,
    Refused(Rejection),
}

impl<'p> Piece<'p> {
    fn new(fits: bool, bytes: &'p [u8]) -> Self {
        if fits {
            Self::Whole(bytes)
        } else {
            Self::TooLong
        }
    }
}

impl<R: BufRead> Pieces<R> {
    fn new(reader: R, cut: Cut) -> Self {
        match cut {
            Cut::Elements => Self::Json(JsonPieces::new(reader, &[])),
            Cut::Members(members) => Self::Json(JsonPieces::new(reader, members)),
            Cut::Lines => Self::Lines(Lines::new(reader, MAX_LINE_BYTES)),
            Cut::Xml(cut) => Self::Xml(Box::new(Cutter::new(reader, cut))),
            Cut::Rows => Self::Rows(Box::new(Table::Begin(Some(reader), |_| true))),
            Cut::Named(is_header) => Self::Rows(Box::new(Table::Begin(Some(reader), is_header))),
            Cut::Marked(mark) => Self::Marked(Marked::new(reader, mark)),
            Cut::Whole => Self::Whole {
                reader: Some(reader),
                held: Vec::new(),
            },
        }
    }

    /// The next piece and its line; nothing at the end.
    fn next(&mut self) -> Result<Option<(u64, Piece<'_>)>, InputError> {
        Ok(match self {
            Self::Json(json) => json.take(MAX_LINE_BYTES)?.map(|fits| {
                let piece = match json.member() {
                    Some(member) if fits => Piece::In(member, json.taken()),
                    _ => Piece::new(fits, json.taken()),
                };
                (json.line(), piece)
            }),
            Self::Xml(xml) => xml
                .take(MAX_LINE_BYTES)?
                .map(|fits| (xml.line(), Piece::new(fits, xml.taken()))),
            Self::Marked(text) => text
                .take(MAX_LINE_BYTES)?
                .map(|fits| (text.line(), Piece::new(fits, text.taken()))),
            Self::Lines(lines) => lines.read()?.map(|line| {
                let piece = match line.bytes {
                    Some(bytes) if bytes.trim_ascii().is_empty() => Piece::Blank,
                    Some(bytes) => Piece::Whole(bytes),
                    None => Piece::TooLong,
                };
                (line.number, piece)
            }),
            Self::Rows(table) => table.next_row()?,
            Self::Whole { reader, held } => {
                let Some(reader) = reader.take() else {
                    return Ok(None);
                };
                let room = MAX_LINE_BYTES as u64 + 1;
                reader.take(room).read_to_end(held)?;
                let piece = if held.len() <= MAX_LINE_BYTES {
                    Piece::Whole(held)
                } else {
                    Piece::Refused(too_long_at_once())
                };
                Some((1, piece))
            }
        })
    }
}

enum Table<R> {
    Begin(Option<R>, IsHeader),
    Read {
        rows: Box<Rows<R>>,
        names: Vec<String>,
        row: Vec<u8>,
    },
}

impl<R: BufRead> Table<R> {
    /// The line of the next row, and the row as JSON.
    fn next_row(&mut self) -> Result<Option<(u64, Piece<'_>)>, InputError> {
        if let Self::Begin(reader, is_header) = self {
            let Some(reader) = reader.take() else {
                return Ok(None);
            };
            let rows = Rows::with_delimiter(reader, MAX_LINE_BYTES, b',')?;
            let mut rows = Box::new(rows);
            let mut names = rows.next_cells()?.unwrap_or_default();
            for _ in 1..HEADER_WITHIN {
                if is_header(&names) {
                    break;
                }
                names = rows.next_cells()?.unwrap_or_default();
            }
            if !is_header(&names) {
                let why = malformed("none of its first rows names the columns that are known");
                return Ok(Some((1, Piece::Refused(why))));
            }
            let names = names.iter().map(|name| name.trim().to_owned()).collect();
            let row = Vec::new();
            *self = Self::Read { rows, names, row };
        }
        let Self::Read { rows, names, row } = self else {
            return Ok(None);
        };
        let Some((line, texts)) = rows.next_texts()? else {
            return Ok(None);
        };
        let texts = match texts {
            Ok(texts) => texts,
            Err(rejection) => return Ok(Some((line, Piece::Refused(rejection)))),
        };
        let cells = names
            .iter()
            .cloned()
            .zip(texts.into_iter().map(Value::from));
        *row = Value::Object(cells.collect()).to_string().into_bytes();
        Ok(Some((line, Piece::Whole(row))))
    }
}

struct PieceImporter<'a, R, C> {
    pieces: Pieces<R>,
    acceptor: &'a Acceptor<'a>,
    converter: C,
    ready: VecDeque<Item>,
    files: Vec<File>,
    line: u64,
    is_finished: bool,
}

impl<R: BufRead, C: Converter> PieceImporter<'_, R, C> {
    /// Takes the next piece apart. Says no at the end.
    fn advance(&mut self) -> Result<bool, InputError> {
        let mut made = Made::default();
        let next = match self.pieces.next() {
            Err(InputError::Broken { line, message }) => {
                let refused = self.converter.broken_off();
                let refused = refused.ok_or(InputError::Broken { line, message })?;
                self.ready.push_back(Item::new(line, 0, Err(refused)));
                None
            }
            next => next?,
        };
        let Some((line, piece)) = next else {
            return Ok(false);
        };
        self.line = line;
        let done = match piece {
            Piece::Whole(piece) => (piece.len(), self.converter.convert(piece, &mut made)),
            Piece::In(member, piece) => {
                let done = self.converter.convert_in(member, piece, &mut made);
                (piece.len(), done)
            }
            Piece::Blank => (0, Ok(())),
            Piece::TooLong => (0, Err(too_long())),
            Piece::Refused(rejection) => (0, Err(rejection)),
        };
        self.keep(line, done, made);
        Ok(true)
    }

    fn keep(&mut self, line: u64, (bytes, outcome): (usize, Result<(), Rejection>), made: Made) {
        let mut bytes = bytes;
        for item in made.items {
            let record = item.record.map(|record| match &item.kept {
                Some(kept) => kept.applied(record, item.stream, self.acceptor),
                None => record,
            });
            let outcome = record.and_then(|record| self.acceptor.record(item.stream, &record));
            if let (Ok(change), Some((blob, media_type, bytes))) = (&outcome, item.file) {
                self.files.push(File {
                    stream: change.stream.clone(),
                    key: change.key.clone(),
                    blob,
                    media_type,
                    bytes,
                });
            }
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

    fn take_files(&mut self) -> Vec<File> {
        std::mem::take(&mut self.files)
    }
}

fn too_long() -> Rejection {
    let message = format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20);
    Rejection::new(RejectionCode::LineTooLong, message)
}

/// Of a file that is held while it is read.
fn too_long_at_once() -> Rejection {
    let message = format!(
        "the file is longer than {} MiB, and can only be read at once; where a service made it, ask for fewer years at a time",
        MAX_LINE_BYTES >> 20
    );
    Rejection::new(RejectionCode::LineTooLong, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_how_they_are_encoded() {
        for (bytes, expected) in [
            (b"caf\xc3\xa9".as_slice(), "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
            (b"caf\xe9", "café"),
            (b"c\0a\0", "c\0a\0"),
            (b"\xff\xfec\0\xe9\0", "cé"),
            (b"<meta charset='koi8-r'>\xc1", "<meta charset='koi8-r'>а"),
            (b"<meta charset=utf-8>\xe9", "<meta charset=utf-8>é"),
        ] {
            assert_eq!(read_text(bytes), expected);
        }
    }
}
