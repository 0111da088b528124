//! Tar archives, plain or compressed: a sequence of headers and files. A compressed one can only be read forward, so a reader
//! that is dropped leaves its position to the next.

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::bytes::Bytes;
use super::{Limits, SkipReason};
use crate::input::{self, Compression};

const BLOCK: usize = 512;
const MAGIC: &[u8] = b"ustar";
const MAGIC_AT: usize = 257;
/// The longest name, and the longest list of attributes, that is read.
const EXTENSION_BYTES: u64 = 64 * 1024;

/// How a tape is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Compressed(Compression),
}

pub(super) struct Tape {
    bytes: Bytes,
    packing: Packing,
    /// Where the last reader of compressed bytes left.
    position: Mutex<Option<Position>>,
}

struct Position {
    at: u64,
    reader: Box<dyn Read + Send>,
}

/// A header: the name as written, and where the file begins and how long it is, or why it is not read.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) place: Result<(u64, u64), SkipReason>,
}

impl Packing {
    /// Tells how a tape is packed; `None` if the bytes are no tape.
    pub(super) fn detect(bytes: &Bytes) -> io::Result<Option<Self>> {
        let head = read_head(bytes.reader())?;
        if is_tape(&head) {
            return Ok(Some(Self::Plain));
        }
        let Some(compression) = Compression::detect(&head) else {
            return Ok(None);
        };
        let unpacked = input::decompress(compression, BufReader::new(bytes.reader()));
        // What is damaged is told when it is read as a file.
        let head = unpacked.and_then(read_head).unwrap_or_default();
        Ok(is_tape(&head).then_some(Self::Compressed(compression)))
    }
}

pub(super) fn read_head(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(BLOCK as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a file is a tape, plain or packed.
pub(super) fn begins(head: Vec<u8>, rest: impl Read + Send + 'static) -> bool {
    let Some(compression) = Compression::detect(&head) else {
        return is_tape(&head);
    };
    let packed = BufReader::new(io::Cursor::new(head).chain(rest));
    let unpacked = input::decompress(compression, packed).and_then(read_head);
    unpacked.is_ok_and(|head| is_tape(&head))
}

fn is_tape(head: &[u8]) -> bool {
    let magic = head.get(MAGIC_AT..).unwrap_or_default();
    magic.starts_with(MAGIC) && Header(head).is_intact()
}

impl Tape {
    pub(super) fn new(bytes: Bytes, packing: Packing) -> Self {
        Self {
            bytes,
            packing,
            position: Mutex::new(None),
        }
    }

    /// A file of it that stands there as it is.
    pub(super) fn plain(&self, at: u64, size: u64) -> Option<Bytes> {
        let is_plain = self.packing == Packing::Plain;
        is_plain.then(|| self.bytes.part(at..at.saturating_add(size)))
    }

    pub(super) fn open(tape: &Arc<Self>, at: u64, size: u64) -> io::Result<TapeReader> {
        let mut position = tape.position_before(at)?;
        let gap = at - position.at;
        let skipped = io::copy(&mut (&mut position.reader).take(gap), &mut io::sink())?;
        position.at += skipped;
        if skipped < gap {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(TapeReader {
            tape: Arc::clone(tape),
            left: size,
            position: Some(position),
        })
    }

    fn position_before(&self, at: u64) -> io::Result<Position> {
        let Packing::Compressed(compression) = self.packing else {
            let part = self.bytes.part(at..self.bytes.len());
            let reader = Box::new(part.reader());
            return Ok(Position { at, reader });
        };
        let mut left = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(position) = left.take().filter(|position| position.at <= at) {
            return Ok(position);
        }
        let packed = BufReader::with_capacity(64 * 1024, self.bytes.reader());
        let reader = input::decompress(compression, packed)?;
        Ok(Position { at: 0, reader })
    }

    /// The files on it. A tape that ends too early, or is damaged, ends the list with an entry that says so.
    pub(super) fn list(&self, limits: &Limits) -> io::Result<Vec<Entry>> {
        let mut listing = Listing {
            position: self.position_before(0)?,
            longest: self.longest(limits),
            name: None,
            size: None,
            entries: Vec::new(),
        };
        loop {
            match listing.step() {
                Ok(true) if listing.entries.len() <= limits.members => {}
                Ok(_) => break,
                Err(why) => {
                    listing.entries.push(Entry {
                        name: "the rest of the archive".to_owned(),
                        place: Err(why),
                    });
                    break;
                }
            }
        }
        Ok(listing.entries)
    }

    /// How long it may be, unpacked, before it counts as a bomb.
    fn longest(&self, limits: &Limits) -> u64 {
        let by_ratio = self.bytes.len().saturating_mul(limits.ratio);
        limits.total_bytes.min(by_ratio.max(limits.ratio_from))
    }
}

pub(super) struct TapeReader {
    tape: Arc<Tape>,
    left: u64,
    position: Option<Position>,
}

impl Read for TapeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(position) = self.position.as_mut().filter(|_| self.left > 0) else {
            return Ok(0);
        };
        let read = (&mut position.reader).take(self.left).read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        position.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Drop for TapeReader {
    fn drop(&mut self) {
        let mut left = self
            .tape
            .position
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *left = self.position.take();
    }
}

struct Listing {
    position: Position,
    longest: u64,
    /// What an extension said of the next file.
    name: Option<String>,
    size: Option<u64>,
    entries: Vec<Entry>,
}

impl Listing {
    /// Reads one header and passes over what belongs to it. Says no at the end.
    fn step(&mut self) -> Result<bool, SkipReason> {
        let mut block = [0; BLOCK];
        let length = self.fill(&mut block)?;
        if length == 0 || block.iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        let header = Header(&block);
        if length < BLOCK || !header.is_intact() {
            return Err(SkipReason::Broken);
        }
        let size = header.size().ok_or(SkipReason::Broken)?;
        let kind = header.kind();
        match kind {
            b'L' | b'x' => {
                let text = self.extension(size)?;
                self.learn(kind, &text);
                return Ok(true);
            }
            b'g' | b'K' => {}
            _ => {
                let name = self.name.take().unwrap_or_else(|| header.name());
                let size = self.size.take().unwrap_or(size);
                let place = match kind {
                    b'0' | b'7' | 0 if name.ends_with('/') => None,
                    b'0' | b'7' | 0 => Some(Ok((self.position.at, size))),
                    b'5' => None,
                    _ => Some(Err(SkipReason::Link)),
                };
                self.entries
                    .extend(place.map(|place| Entry { name, place }));
                let is_file = matches!(kind, b'0' | b'7' | 0);
                let length = if is_file {
                    size
                } else {
                    header.size().unwrap_or(0)
                };
                self.pass(whole_blocks(length)?, length)?;
                return Ok(true);
            }
        }
        self.pass(whole_blocks(size)?, size)?;
        Ok(true)
    }

    /// Passes over so many bytes, of which at least some must be there: the last block of a tape may be cut.
    fn pass(&mut self, bytes: u64, least: u64) -> Result<(), SkipReason> {
        if self.position.at.saturating_add(bytes) > self.longest {
            return Err(SkipReason::TooLarge);
        }
        let mut rest = (&mut self.position.reader).take(bytes);
        let passed = io::copy(&mut rest, &mut io::sink()).map_err(|_| SkipReason::Broken)?;
        self.position.at += passed;
        if passed < least {
            return Err(SkipReason::Broken);
        }
        Ok(())
    }

    fn fill(&mut self, block: &mut [u8]) -> Result<usize, SkipReason> {
        let mut length = 0;
        while let Some(room) = block.get_mut(length..).filter(|room| !room.is_empty()) {
            match self.position.reader.read(room) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(SkipReason::Broken),
            }
        }
        self.position.at += length as u64;
        Ok(length)
    }

    fn extension(&mut self, size: u64) -> Result<Vec<u8>, SkipReason> {
        let length = usize::try_from(size.min(EXTENSION_BYTES)).unwrap_or_default();
        let mut text = vec![0; length];
        if self.fill(&mut text)? < length {
            return Err(SkipReason::Broken);
        }
        self.pass(whole_blocks(size)? - length as u64, 0)?;
        Ok(text)
    }

    /// What an extension says: a long name by itself, or attributes of the form `LENGTH NAME=VALUE\n`.
    fn learn(&mut self, kind: u8, text: &[u8]) {
        if kind == b'L' {
            let name = text.split(|byte| *byte == 0).next().unwrap_or_default();
            self.name = Some(String::from_utf8_lossy(name).into_owned());
            return;
        }
        for line in String::from_utf8_lossy(text).lines() {
            let attribute = line.split_once(' ').map(|(_, attribute)| attribute);
            match attribute.and_then(|attribute| attribute.split_once('=')) {
                Some(("path", path)) => self.name = Some(path.to_owned()),
                Some(("size", size)) => self.size = size.parse().ok(),
                _ => {}
            }
        }
    }
}

fn whole_blocks(size: u64) -> Result<u64, SkipReason> {
    size.checked_next_multiple_of(BLOCK as u64)
        .ok_or(SkipReason::Broken)
}

struct Header<'h>(&'h [u8]);

impl Header<'_> {
    fn field(&self, at: usize, length: usize) -> &[u8] {
        self.0.get(at..at + length).unwrap_or_default()
    }

    fn text(&self, at: usize, length: usize) -> String {
        let field = self.field(at, length);
        let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    fn kind(&self) -> u8 {
        self.field(156, 1).first().copied().unwrap_or_default()
    }

    fn name(&self) -> String {
        let (prefix, name) = (self.text(345, 155), self.text(0, 100));
        // Only this form has a prefix; the other writes times there.
        if self.field(257, 6) == b"ustar\0" && !prefix.is_empty() {
            return format!("{prefix}/{name}");
        }
        name
    }

    /// In octal digits, or in binary if the first bit is set.
    fn size(&self) -> Option<u64> {
        let field = self.field(124, 12);
        if field.first().is_some_and(|first| first & 0x80 != 0) {
            let low = <[u8; 8]>::try_from(field.get(4..)?).ok()?;
            return Some(u64::from_be_bytes(low));
        }
        let digits = std::str::from_utf8(field).ok()?;
        let digits = digits.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        u64::from_str_radix(if digits.is_empty() { "0" } else { digits }, 8).ok()
    }

    /// Whether the sum of its bytes is as it says.
    fn is_intact(&self) -> bool {
        let given = self.text(148, 8);
        let Ok(given) = u64::from_str_radix(given.trim(), 8) else {
            return false;
        };
        let bytes = self.0.iter().enumerate();
        let sum: u64 = bytes
            .map(|(at, byte)| {
                u64::from(if (148..156).contains(&at) {
                    b' '
                } else {
                    *byte
                })
            })
            .sum();
        sum == given
    }
}
