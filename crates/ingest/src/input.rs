//! Inputs: a file or a pipe, compressed or not, and what format it is in.
//! Compression is told by the first bytes, never by the name. A known export is told by its content; else the name without
//! `.gz` tells the format, and where it does not, the first character does.

mod packed;

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::account;
use crate::database_copy::{is_database, is_log};
use crate::error::{ImportError, InputError};
use crate::exports::{Export, Recognised};
use crate::importers::Text;
use crate::lines::BYTE_ORDER_MARK;
use crate::{sheets, singer};
pub(crate) use packed::{Compression, decompress};

const BUFFER_BYTES: usize = 256 * 1024;
const PEEKED_BYTES: usize = 16 * 1024;
/// Of a database, whose pages may be larger than that and begin with what says nothing.
const PEEKED_OF_DATABASE: usize = 128 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// A JSON array of objects.
    Json,
    /// A table as text, with a header.
    Csv,
    /// Sheets of tables (xlsx).
    Workbook,
    /// Tables of a database that is a file, or what was written beside one and is not yet in it.
    Database,
    /// What a Singer tap prints.
    Singer,
    /// What a known program or service hands out.
    Export(Export),
}

/// An input, opened and decompressed.
pub struct Input {
    name: String,
    inside: Option<String>,
    file: FileName,
    contents: FileContents,
    account: Option<(Export, String)>,
    consumed: Arc<AtomicU64>,
    reader: Box<dyn BufRead>,
}

/// What a file holds, as told by its beginning and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContents {
    Format {
        format: Format,
        /// Its place among the files of an export: those of a lower rank are read before it.
        rank: u8,
    },
    /// It is part of a known export, and nothing in it becomes a record, because of this.
    Left(&'static str),
    /// Nothing that is known, because of this.
    Unknown(String),
}

impl FileContents {
    /// Whether it is an export whose importer is given text that is UTF-8, or finds out by itself what it is given.
    fn is_known_export(&self) -> bool {
        let other = [Export::DOCUMENTS, Export::MARKDOWN].map(Format::Export);
        match self {
            Self::Format { format, .. } => {
                matches!(format, Format::Export(_)) && !other.contains(format)
            }
            Self::Left(_) | Self::Unknown(_) => false,
        }
    }
}

impl From<Format> for FileContents {
    fn from(format: Format) -> Self {
        let rank = u8::MAX;
        Self::Format { format, rank }
    }
}

impl Format {
    /// The name of the format, as it travels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Workbook => "workbook",
            Self::Database => "database",
            Self::Singer => "singer",
            Self::Export(export) => export.as_str(),
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Jsonl),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "workbook" => Some(Self::Workbook),
            "database" => Some(Self::Database),
            "singer" => Some(Self::Singer),
            export => Export::parse(export).map(Self::Export),
        }
    }
}

impl Input {
    /// Takes the bytes of a file that somebody else opened. `name` is for messages; `file_name` tells stem and format.
    pub fn from_file(
        name: &str,
        file_name: &str,
        reader: impl Read + 'static,
    ) -> Result<Self, ImportError> {
        Self::read(name, FileName::parse(file_name), None, reader)
    }

    /// The same for a file whose format was recognised before.
    pub fn of_format(
        name: &str,
        file_name: &str,
        format: Format,
        reader: impl Read + 'static,
    ) -> Result<Self, ImportError> {
        Self::read(name, FileName::parse(file_name), Some(format), reader)
    }

    /// Takes bytes from anywhere. `name` is for messages only.
    pub fn from_reader(name: &str, reader: impl Read + 'static) -> Result<Self, ImportError> {
        Self::read(name, FileName::default(), None, reader)
    }

    fn read(
        name: &str,
        file: FileName,
        known: Option<Format>,
        reader: impl Read + 'static,
    ) -> Result<Self, ImportError> {
        let failed = |error: io::Error| InputError::from(error).named(name);
        let consumed = Arc::new(AtomicU64::new(0));
        let mut reader = CountingReader {
            reader,
            consumed: Arc::clone(&consumed),
        };
        let mut head = peek(&mut reader, &file).map_err(failed)?;
        let mut plain: Box<dyn Read> = Box::new(reader);
        if let Some(compression) = Compression::detect(&head) {
            let whole = Cursor::new(head).chain(BufReader::with_capacity(BUFFER_BYTES, plain));
            plain = compression.unpack(whole).map_err(failed)?;
            head = peek(&mut plain, &file).map_err(failed)?;
        }
        let mut contents = file.contents(&head, name);
        let text = of_utf_16(&head).filter(|_| !contents.is_known_export());
        let inside = text
            .as_ref()
            .map(|text| file.contents(text.as_bytes(), name));
        let inside = inside.filter(FileContents::is_known_export);
        let text = text.filter(|_| inside.is_some());
        contents = inside.unwrap_or(contents);
        if let Some(format) = known {
            contents = format.into();
        }
        let begin = text
            .as_ref()
            .map_or(head.as_slice(), |text| text.as_bytes());
        let account = account::named_in(begin, if file.is_pipe() { "" } else { name });
        let whole = Cursor::new(head).chain(BufReader::with_capacity(BUFFER_BYTES, plain));
        let reader: Box<dyn BufRead> = match text {
            Some(_) => Box::new(BufReader::new(Text::begin(whole).map_err(failed)?)),
            None => Box::new(whole),
        };
        Ok(Self {
            name: name.to_owned(),
            inside: None,
            file,
            contents,
            account,
            consumed,
            reader,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the file is, as the owner named it; empty for a pipe.
    pub fn path(&self) -> &str {
        if self.file.is_pipe() { "" } else { &self.name }
    }

    /// The same for a file of a folder or an archive, of which it is known where inside it stands.
    #[must_use]
    pub fn standing_inside(mut self, inside: Option<&str>) -> Self {
        self.inside = inside.map(str::to_owned);
        self
    }

    /// Where the file stands in its folder or archive; its name if it stands in none.
    pub fn inside(&self) -> &str {
        self.inside.as_deref().unwrap_or(&self.file.unpacked)
    }

    /// The file's name without the endings that tell compression and format; empty for a pipe.
    pub fn stem(&self) -> &str {
        &self.file.stem
    }

    /// Counts the bytes read so far, as stored. It goes on counting while an importer reads.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    pub fn contents(&self) -> &FileContents {
        &self.contents
    }

    /// The account that it names, and the export that is of it.
    pub fn account(&self) -> Option<&(Export, String)> {
        self.account.as_ref()
    }

    pub fn format(&self) -> Result<Format, ImportError> {
        let why = match &self.contents {
            FileContents::Format { format, .. } => return Ok(*format),
            FileContents::Left(why) => (*why).to_owned(),
            FileContents::Unknown(why) => why.clone(),
        };
        Err(InputError::UnknownFormat(why).named(&self.name))
    }

    /// The bytes, decompressed.
    pub fn into_reader(self) -> Box<dyn BufRead> {
        self.reader
    }
}

/// The beginning of a file that says by a mark that it is UTF-16.
fn of_utf_16(head: &[u8]) -> Option<String> {
    let (encoding, mark) = encoding_rs::Encoding::for_bom(head)?;
    let text = head
        .get(mark..)
        .filter(|_| encoding != encoding_rs::UTF_8)?;
    Some(encoding.decode_without_bom_handling(text).0.into_owned())
}

/// Reads just enough to see what this is.
fn peek(reader: &mut dyn Read, file: &FileName) -> io::Result<Vec<u8>> {
    let mut head = vec![0; PEEKED_BYTES];
    let mut length = 0;
    while let Some(room) = head.get_mut(length..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(0) => break,
            Ok(more) => {
                length += more;
                if head.len() < PEEKED_OF_DATABASE && is_database(&head) {
                    head.resize(PEEKED_OF_DATABASE, 0);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if is_enough(head.get(..length).unwrap_or_default(), file) {
            break;
        }
    }
    head.truncate(length);
    Ok(head)
}

/// Whether the format is decided. A person or program that sends lines one by one may wait for an answer to the first, so
/// more is read only where a known export is possible.
fn is_enough(head: &[u8], file: &FileName) -> bool {
    let text = trim_start(head);
    // What stands in a zip or a database is told by more than its first bytes, whatever the name says.
    if head.len() < BYTE_ORDER_MARK.len() || text.is_empty() || is_binary(head) {
        return false;
    }
    let mut lines = text.splitn(2, |byte| *byte == b'\n');
    let (first, ended) = (lines.next().unwrap_or_default(), lines.next().is_some());
    let is_line_of_json = first.starts_with(b"{") && first.trim_ascii().len() > 1 && ended;
    Compression::detect(head).is_some()
        || file.is_pipe()
        || file.format.is_some()
        || is_line_of_json
}

fn is_binary(head: &[u8]) -> bool {
    head.starts_with(b"PK") || is_database(head)
}

/// The text from its first character that is not white space.
fn trim_start(head: &[u8]) -> &[u8] {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    text.trim_ascii_start()
}

#[derive(Debug, Default)]
struct FileName {
    /// Without the ending that tells compression; empty for a pipe.
    unpacked: String,
    /// Without the one that tells the format as well.
    stem: String,
    format: Option<Format>,
}

impl FileName {
    fn parse(file_name: &str) -> Self {
        let unpacked = match split_ending(file_name) {
            (stem, ending) if matches!(ending.as_str(), "gz" | "gzip" | "zst") => stem,
            _ => file_name,
        };
        let (stem, ending) = split_ending(unpacked);
        let format = match ending.as_str() {
            "jsonl" | "ndjson" | "json-lines" | "jsonlines" => Some(Format::Jsonl),
            "csv" | "tsv" => Some(Format::Csv),
            _ => None,
        };
        Self {
            unpacked: unpacked.to_owned(),
            stem: stem.to_owned(),
            format,
        }
    }

    fn is_pipe(&self) -> bool {
        self.unpacked.is_empty()
    }

    /// What the file holds that begins like this.
    fn contents(&self, head: &[u8], path: &str) -> FileContents {
        let path = if self.is_pipe() { "" } else { path };
        match Export::recognise(head, path) {
            Some(Recognised::Export { export, rank }) => FileContents::Format {
                format: Format::Export(export),
                rank,
            },
            Some(Recognised::Left(why)) => FileContents::Left(why),
            None if trim_start(head).trim_ascii_end() == b"[]" => FileContents::Left("empty lists"),
            None if singer::recognise(head) => Format::Singer.into(),
            None if sheets::is_workbook(head, &self.unpacked) => Format::Workbook.into(),
            None if is_database(head) => Format::Database.into(),
            // It is read before its database.
            None if is_log(head) && self.unpacked.ends_with("-wal") => FileContents::Format {
                format: Format::Database,
                rank: 0,
            },
            None => match (self.format, trim_start(head)) {
                (Some(format), _) => format.into(),
                // Nothing inside is no lines.
                (None, [] | [b'{', ..]) => Format::Jsonl.into(),
                (None, [b'[', ..]) => Format::Json.into(),
                (None, _) => FileContents::Unknown(self.why_unknown(head, path)),
            },
        }
    }

    fn why_unknown(&self, head: &[u8], path: &str) -> String {
        let misses = Export::near_misses(head, path);
        if !misses.is_empty() {
            return misses.join("; ");
        }
        if let Some(why) = sheets::near_miss(head, &self.unpacked) {
            return why.to_owned();
        }
        let titles = Export::all_titles();
        if self.is_pipe() {
            return format!(
                "its content does not tell what it holds. From a pipe, JSON lines are read, and known exports: {titles}. \
                 Write anything else to a file first, CSV to one named .csv, an archive to one of any name"
            );
        }
        format!(
            "neither its name nor its content tells what it holds; name it .jsonl, .ndjson or .csv. \
             Known exports are recognised by themselves: {titles}"
        )
    }
}

fn split_ending(name: &str) -> (&str, String) {
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, ending.to_ascii_lowercase()),
        _ => (name, String::new()),
    }
}

struct CountingReader<R> {
    reader: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.consumed.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::packed::Gzip;
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
            let file = FileName::parse(name);
            assert_eq!((file.stem.as_str(), file.format), (stem, format), "{name}");
        }
    }

    #[test]
    fn the_first_character_tells_where_the_name_does_not() {
        let format = |bytes: &'static [u8]| Input::from_reader("pipe", bytes).unwrap().format();
        assert_eq!(format(b"\xEF\xBB\xBF\n {\"a\":1}").unwrap(), Format::Jsonl);
        assert_eq!(format(b"").unwrap(), Format::Jsonl);
        assert_eq!(format(b" [1]").unwrap(), Format::Json);
        for unknown in [b"a,b".as_slice(), b"x"] {
            assert!(format(unknown).is_err());
        }
    }

    #[test]
    fn a_known_export_is_told_by_its_content_whatever_its_name() {
        let mail = b"From - Mon Mar 04 10:11:12 2024\nSubject: x\n\nHello\n";
        let format = |name| Input::from_file(name, name, &mail[..]).unwrap().format();
        let export = Format::Export(Export::MAIL);
        assert_eq!(format("Inbox").unwrap(), export);
        assert_eq!(format("Inbox.jsonl").unwrap(), export);
        assert_eq!(format("Inbox.csv").unwrap(), export);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(mail).unwrap();
        let packed = Cursor::new(encoder.finish().unwrap());
        let input = Input::from_file("Inbox.gz", "Inbox.gz", packed).unwrap();
        assert_eq!(input.format().unwrap(), export);
        let packed = Cursor::new(zstd::encode_all(&mail[..], 1).unwrap());
        let input = Input::from_file("Inbox.zst", "Inbox.zst", packed).unwrap();
        assert_eq!(input.format().unwrap(), export);
        let input = Input::from_file("x", "x", &b"Dear diary"[..]).unwrap();
        let error = input.format().unwrap_err().to_string();
        assert!(
            error.contains("mail (mbox, eml, emlx or a Maildir)"),
            "{error}"
        );
    }

    #[test]
    fn what_follows_compressed_data_is_more_of_it_or_zeros_or_named() {
        let packed = |text: &[u8]| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let read = |bytes: Vec<u8>| {
            let mut text = String::new();
            Gzip::new(BufReader::with_capacity(3, Cursor::new(bytes)))
                .read_to_string(&mut text)
                .map(|_| text)
                .map_err(|error| InputError::from(error).to_string())
        };
        let (one, two, zeros) = (packed(b"one"), packed(b"two"), vec![0; 700]);
        assert_eq!(read([&one[..], &two, &zeros].concat()).unwrap(), "onetwo");
        assert_eq!(read([&one[..], &zeros, &two].concat()).unwrap(), "onetwo");
        for garbage in [b"x".as_slice(), b"garbage that is longer than a header"] {
            let error = read([&one[..], &zeros, garbage].concat()).unwrap_err();
            assert!(error.contains("something else follows"), "{error}");
        }
        let cut = read([&one[..], &two[..12]].concat()).unwrap_err();
        assert!(cut.contains("ends too early"), "{cut}");
    }

    #[test]
    fn the_first_line_of_json_is_enough_to_begin_with() {
        /// Gives one line, and fails on every later read.
        struct OneLine(&'static [u8]);
        impl Read for OneLine {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if self.0.is_empty() {
                    return Err(io::Error::other("nobody should have asked for more"));
                }
                self.0.read(buffer)
            }
        }
        for (file_name, line) in [
            ("63", b"{\"id\":1}\n".as_slice()),
            ("any.csv", b"id,subject\n"),
            ("", b"{\"id\""),
        ] {
            let input = Input::from_file("pipe", file_name, OneLine(line));
            assert!(input.is_ok(), "{file_name}");
        }
        assert!(Input::from_file("export", "result.json", OneLine(b"{\n")).is_err());
    }
}
