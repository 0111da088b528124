//! Inputs: a file or a pipe, compressed or not, and what format it is in.
//! Compression is told by the first bytes, never by the name. The format is told by the name without `.gz`, and where
//! the name does not tell, by the first character.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::error::{ImportError, InputError};
use crate::lines::BYTE_ORDER_MARK;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 256 * 1024;
const PEEKED_BYTES: usize = 16 * 1024;

/// What an input holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
}

/// An input, opened and decompressed.
pub struct Input {
    name: String,
    stem: String,
    named_format: Option<Format>,
    /// The first character that is not white space.
    first: Option<u8>,
    length: Option<u64>,
    consumed: Arc<AtomicU64>,
    reader: Box<dyn BufRead>,
}

impl Input {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        let failed = |error: io::Error| InputError::from(error).named(&name);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            let message = "it is a folder; name the files inside it";
            return Err(InputError::UnknownFormat(message).named(&name));
        }
        let length = metadata.is_file().then_some(metadata.len());
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut input = Self::from_file(&name, &file_name, file)?;
        input.length = length;
        Ok(input)
    }

    /// Takes the bytes of a file that somebody else opened. `name` is for messages; `file_name` tells stem and format.
    pub fn from_file(
        name: &str,
        file_name: &str,
        reader: impl Read + 'static,
    ) -> Result<Self, ImportError> {
        let mut input = Self::from_reader(name, reader)?;
        (input.stem, input.named_format) = read_name(file_name);
        Ok(input)
    }

    /// Takes bytes from anywhere. `name` is for messages only.
    pub fn from_reader(name: &str, reader: impl Read + 'static) -> Result<Self, ImportError> {
        let failed = |error: io::Error| InputError::from(error).named(name);
        let consumed = Arc::new(AtomicU64::new(0));
        let mut reader = Counted {
            reader,
            consumed: Arc::clone(&consumed),
        };
        let mut head = peek(&mut reader).map_err(failed)?;
        let mut plain: Box<dyn Read> = Box::new(reader);
        if head.starts_with(&GZIP) {
            let whole = Cursor::new(head).chain(BufReader::with_capacity(BUFFER_BYTES, plain));
            let mut gzip = Gzip(MultiGzDecoder::new(whole));
            head = peek(&mut gzip).map_err(failed)?;
            plain = Box::new(gzip);
        }
        let first = first_character(&head);
        let reader = Cursor::new(head).chain(BufReader::with_capacity(BUFFER_BYTES, plain));
        Ok(Self {
            name: name.to_owned(),
            stem: String::new(),
            named_format: None,
            first,
            length: None,
            consumed,
            reader: Box::new(reader),
        })
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's name without the endings that tell compression and format; empty for a pipe.
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// How many bytes there are to read, as stored; unknown for a pipe.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Counts the bytes read so far, as stored. It goes on counting while an importer reads.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// What the input holds.
    pub fn format(&self) -> Result<Format, ImportError> {
        let unknown = |message| Err(InputError::UnknownFormat(message).named(&self.name));
        match (self.named_format, self.first) {
            (Some(format), _) => Ok(format),
            // Nothing inside is no lines.
            (None, Some(b'{') | None) => Ok(Format::Jsonl),
            (None, Some(b'[')) => {
                unknown("it begins with '['; one JSON object per line is read, not an array")
            }
            (None, Some(_)) => unknown(
                "neither its name nor its content tells what it holds; name it .jsonl, .ndjson or .csv",
            ),
        }
    }

    /// The bytes, decompressed.
    pub fn into_reader(self) -> Box<dyn BufRead> {
        self.reader
    }
}

/// Reads just enough to see what this is: the first character that is not white space, and room for a mark before it.
fn peek(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = vec![0; PEEKED_BYTES];
    let mut length = 0;
    while let Some(room) = head.get_mut(length..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let seen = head.get(..length).unwrap_or_default();
        if length >= BYTE_ORDER_MARK.len() && first_character(seen).is_some() {
            break;
        }
    }
    head.truncate(length);
    Ok(head)
}

fn first_character(head: &[u8]) -> Option<u8> {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first.copied()
}

/// Splits a file name into its stem and the format its ending tells.
fn read_name(file_name: &str) -> (String, Option<Format>) {
    let (stem, ending) = split_ending(file_name);
    let (stem, ending) = match ending.as_str() {
        "gz" | "gzip" => split_ending(stem),
        _ => (stem, ending),
    };
    let format = match ending.as_str() {
        "jsonl" | "ndjson" | "json-lines" | "jsonlines" => Some(Format::Jsonl),
        "csv" => Some(Format::Csv),
        _ => None,
    };
    (stem.to_owned(), format)
}

fn split_ending(name: &str) -> (&str, String) {
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, ending.to_ascii_lowercase()),
        _ => (name, String::new()),
    }
}

/// Counts what passes.
struct Counted<R> {
    reader: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.consumed.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// Decompression whose errors say what they mean for the file.
struct Gzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => io::Error::other(InputError::Truncated),
            ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                io::Error::other(InputError::Damaged(error))
            }
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_without_gz_tells_the_format() {
        for (name, stem, format) in [
            ("messages.jsonl", "messages", Some(Format::Jsonl)),
            ("messages.NDJSON.gz", "messages", Some(Format::Jsonl)),
            ("a.b.csv.gzip", "a.b", Some(Format::Csv)),
            ("messages.json-lines", "messages", Some(Format::Jsonl)),
            ("messages.gz", "messages", None),
            ("messages", "messages", None),
            (".csv", ".csv", None),
        ] {
            assert_eq!(read_name(name), (stem.to_owned(), format), "{name}");
        }
    }

    #[test]
    fn the_first_character_tells_where_the_name_does_not() {
        let format = |bytes: &'static [u8]| Input::from_reader("pipe", bytes).unwrap().format();
        assert_eq!(format(b"\xEF\xBB\xBF\n {\"a\":1}").unwrap(), Format::Jsonl);
        assert_eq!(format(b"").unwrap(), Format::Jsonl);
        for unknown in [b"[1]".as_slice(), b"a,b", b"x"] {
            assert!(format(unknown).is_err());
        }
    }
}
