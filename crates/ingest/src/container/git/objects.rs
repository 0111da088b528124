//! The objects of a repository: single files, and packs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read as _};
use std::sync::Arc;

use flate2::bufread::ZlibDecoder;

use super::Repository;
use super::pack::{Entry, Pack, patch};
use crate::container::bytes::Bytes;

/// Larger ones are neither commits nor folders that anybody made.
pub(super) const MAX_OBJECT_BYTES: u64 = 32 << 20;
/// Differences to differences.
const MAX_CHAIN: usize = 4_096;
/// How much of what was unpacked is kept to make others of.
const CACHE_BYTES: usize = 32 << 20;

/// The name of an object.
pub(super) type Id = [u8; 20];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    pub(super) fn from_number(number: u8) -> io::Result<Self> {
        match number {
            1 => Ok(Self::Commit),
            2 => Ok(Self::Tree),
            3 => Ok(Self::Blob),
            4 => Ok(Self::Tag),
            _ => Err(damaged("an object is of a kind that nobody knows")),
        }
    }
}

#[derive(Clone)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) bytes: Arc<Vec<u8>>,
}

pub(super) struct Objects {
    repository: Arc<Repository>,
    /// Those that are compressed where they stand.
    held: HashMap<String, Bytes>,
    packs: Vec<Pack>,
    cache: HashMap<(usize, u64), Object>,
    cached_bytes: usize,
}

impl Objects {
    pub(super) fn new(repository: &Arc<Repository>) -> io::Result<Self> {
        let mut objects = Self {
            repository: Arc::clone(repository),
            held: repository.held_objects()?,
            packs: Vec::new(),
            cache: HashMap::new(),
            cached_bytes: 0,
        };
        for path in repository.paths("objects/pack/", ".idx") {
            let data = format!("{}pack", path.strip_suffix("idx").unwrap_or(path));
            let (index, data) = (objects.bytes(path), objects.bytes(&data));
            if let (Some(index), Some(data)) = (index, data) {
                objects.packs.push(Pack::new(index, data)?);
            }
        }
        Ok(objects)
    }

    fn bytes(&self, path: &str) -> Option<Bytes> {
        let held = self.held.get(path).cloned();
        held.or_else(|| self.repository.files.get(path)?.bytes())
    }

    /// An object, if the repository has it; one that was cloned in part lacks some.
    pub(super) fn get(&mut self, id: &Id) -> io::Result<Option<Object>> {
        if let Some(object) = self.loose(id)? {
            return Ok(Some(object));
        }
        for nth in 0..self.packs.len() {
            if let Some(at) = self.find(nth, id)? {
                return self.packed(nth, at).map(Some);
            }
        }
        Ok(None)
    }

    fn find(&self, nth: usize, id: &Id) -> io::Result<Option<u64>> {
        match self.packs.get(nth) {
            Some(pack) => pack.find(id),
            None => Ok(None),
        }
    }

    fn loose(&self, id: &Id) -> io::Result<Option<Object>> {
        let name = hex(id);
        let (folder, file) = name.split_at_checked(2).unwrap_or_default();
        let path = format!("objects/{folder}/{file}");
        let Some(bytes) = self.bytes(&path) else {
            return Ok(None);
        };
        let reader = BufReader::new(bytes.reader());
        let mut bytes = Vec::new();
        let unpacked = ZlibDecoder::new(reader);
        unpacked.take(MAX_OBJECT_BYTES).read_to_end(&mut bytes)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| damaged("an object has no header"))?;
        let header = bytes.drain(..=end).collect::<Vec<u8>>();
        let kind = match header.split(|byte| *byte == b' ').next() {
            Some(b"commit") => Kind::Commit,
            Some(b"tree") => Kind::Tree,
            Some(b"tag") => Kind::Tag,
            _ => Kind::Blob,
        };
        let bytes = Arc::new(bytes);
        Ok(Some(Object { kind, bytes }))
    }

    /// The object at a place of a pack: a whole one, and what makes others of it, one after the other.
    fn packed(&mut self, nth: usize, at: u64) -> io::Result<Object> {
        let mut deltas = Vec::new();
        let (mut nth, mut at) = (nth, at);
        let mut object = loop {
            if let Some(object) = self.cache.get(&(nth, at)) {
                break object.clone();
            }
            let pack = self
                .packs
                .get(nth)
                .ok_or_else(|| damaged("a pack is missing"))?;
            match pack.entry(at)? {
                Entry::Whole(kind, bytes) => {
                    let bytes = Arc::new(bytes);
                    break self.remember(nth, at, Object { kind, bytes });
                }
                Entry::Offset(base, delta) => {
                    deltas.push((nth, at, delta));
                    at = base;
                }
                Entry::Reference(base, delta) => {
                    deltas.push((nth, at, delta));
                    let mut packs = 0..self.packs.len();
                    let found = packs.find_map(|nth| Some((nth, self.find(nth, &base).ok()??)));
                    match (found, self.loose(&base)?) {
                        (Some(place), _) => (nth, at) = place,
                        (None, Some(object)) => break object,
                        (None, None) => return Err(damaged("the base of an object is missing")),
                    }
                }
            }
            if deltas.len() > MAX_CHAIN {
                return Err(damaged(
                    "objects are differences to each other without an end",
                ));
            }
        };
        while let Some((nth, at, delta)) = deltas.pop() {
            let bytes = patch(&object.bytes, &delta);
            let bytes = bytes.ok_or_else(|| damaged("an object does not fit its base"))?;
            let kind = object.kind;
            let bytes = Arc::new(bytes);
            object = self.remember(nth, at, Object { kind, bytes });
        }
        Ok(object)
    }

    fn remember(&mut self, nth: usize, at: u64, object: Object) -> Object {
        if self.cached_bytes > CACHE_BYTES {
            self.cache.clear();
            self.cached_bytes = 0;
        }
        self.cached_bytes += object.bytes.len();
        self.cache.insert((nth, at), object.clone());
        object
    }
}

pub(super) fn damaged(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.to_owned())
}

pub(super) fn hex(id: &[u8]) -> String {
    id.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The name of an object from its forty digits, with whatever behind them.
pub(super) fn parse_id(text: &[u8]) -> Option<Id> {
    let digits = std::str::from_utf8(text.get(..40)?).ok()?;
    let mut id = Id::default();
    for (nth, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * nth..2 * nth + 2)?, 16).ok()?;
    }
    Some(id)
}
