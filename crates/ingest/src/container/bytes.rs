//! Bytes that can be read at any place, by several readers at once: a file, a part of one, or memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rawzip::{FileReader, RangeReader, ReaderAt};

#[derive(Clone)]
pub(super) struct Bytes {
    source: Source,
    range: Range<u64>,
}

#[derive(Clone)]
enum Source {
    File(Arc<FileReader>),
    Memory(Arc<Vec<u8>>),
}

impl Bytes {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::of_file(File::open(path)?)
    }

    pub(super) fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            source: Source::File(Arc::new(FileReader::from(file))),
            range: 0..length,
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// A part of them. What lies beyond the end is no part.
    pub(super) fn part(&self, range: Range<u64>) -> Self {
        let at = |offset: u64| self.range.start.saturating_add(offset).min(self.range.end);
        let (start, end) = (at(range.start), at(range.end));
        Self {
            source: self.source.clone(),
            range: start..end.max(start),
        }
    }

    pub(super) fn reader(&self) -> RangeReader<Self> {
        RangeReader::new(self.clone(), 0..self.len())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            range: 0..bytes.len() as u64,
            source: Source::Memory(Arc::new(bytes)),
        }
    }
}

impl ReaderAt for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.len().saturating_sub(offset);
        let length = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let room = buffer.get_mut(..length).unwrap_or_default();
        if room.is_empty() {
            return Ok(0);
        }
        let at = self.range.start + offset;
        match &self.source {
            Source::File(file) => file.read_at(room, at),
            Source::Memory(bytes) => bytes.read_at(room, at),
        }
    }
}
