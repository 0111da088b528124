//! Zip archives, read by their directory: stored, deflate and zstd members, in archives of any size (zip64).

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, RECOMMENDED_BUFFER_SIZE, ReaderAt as _, ZipArchive,
    ZipArchiveEntryWayfinder, ZipFileHeaderRecord, ZipLocator,
};

use super::bytes::Bytes;
use super::{Limits, SkipReason};

const FIRST_MEMBER: &[u8] = b"PK\x03\x04";
const NO_MEMBER: &[u8] = b"PK\x05\x06";

/// The list of what is in an archive stands at its end.
const NO_END: &str =
    "the end of the archive is missing, as where a download broke off; get the whole archive";

/// A member of an archive.
#[derive(Clone)]
pub(super) struct ZipPart {
    archive: Arc<ZipArchive<Bytes>>,
    entry: ZipArchiveEntryWayfinder,
    method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Stored,
    Deflate,
    Zstd,
}

/// An entry of the directory: its name as written, and where it is or why it is not read.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) part: Result<ZipPart, SkipReason>,
}

pub(super) fn is_zip(bytes: &Bytes) -> io::Result<bool> {
    let mut head = [0; 4];
    let read = bytes.read_at(&mut head, 0)?;
    let head = head.get(..read).unwrap_or_default();
    Ok(head == FIRST_MEMBER || head == NO_MEMBER)
}

/// The files in the directory of an archive.
pub(super) fn list(bytes: &Bytes, limits: &Limits) -> io::Result<Vec<Entry>> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let located = ZipLocator::new().locate_in_reader(bytes.clone(), &mut buffer, bytes.len());
    let archive = Arc::new(located.map_err(|_| io::Error::other(NO_END))?);
    let mut listed = Vec::new();
    let mut entries = archive.entries(&mut buffer);
    let mut ranges = Vec::new();
    while let Some(record) = entries.next_entry().map_err(io::Error::other)? {
        if record.is_dir() {
            continue;
        }
        // Beyond the limit an entry says that there are more, and that is all.
        if listed.len() > limits.members {
            break;
        }
        let name = String::from_utf8_lossy(record.file_path().as_bytes()).into_owned();
        let part = part(&archive, &record, limits);
        if let Ok(part) = &part
            && let Ok(entry) = archive.get_entry(part.entry)
        {
            ranges.push((entry.compressed_data_range(), listed.len()));
        }
        listed.push(Entry { name, part });
    }
    // Small archives that unpack to immense sizes let many members use the same bytes.
    ranges.sort_unstable();
    let mut end = 0;
    for ((from, to), index) in ranges {
        if from < end
            && from < to
            && let Some(entry) = listed.get_mut(index)
        {
            entry.part = Err(SkipReason::Overlap);
        }
        end = end.max(to);
    }
    Ok(listed)
}

fn part(
    archive: &Arc<ZipArchive<Bytes>>,
    record: &ZipFileHeaderRecord<'_>,
    limits: &Limits,
) -> Result<ZipPart, SkipReason> {
    if record.flags().is_encrypted() {
        return Err(SkipReason::Encrypted);
    }
    if record.mode().is_symlink() {
        return Err(SkipReason::Link);
    }
    let method = match record.compression_method() {
        CompressionMethod::STORE => Method::Stored,
        CompressionMethod::DEFLATE => Method::Deflate,
        CompressionMethod::ZSTD => Method::Zstd,
        _ => return Err(SkipReason::UnknownMethod),
    };
    let (size, packed) = (
        record.uncompressed_size_hint(),
        record.compressed_size_hint(),
    );
    if size > limits.ratio_from && size / limits.ratio > packed {
        return Err(SkipReason::TooLarge);
    }
    let entry = record.wayfinder();
    archive.get_entry(entry).map_err(|_| SkipReason::Broken)?;
    Ok(ZipPart {
        archive: Arc::clone(archive),
        entry,
        method,
    })
}

impl ZipPart {
    pub(super) fn size(&self) -> u64 {
        self.entry.uncompressed_size_hint()
    }

    /// The bytes, if they stand in the archive as they are.
    pub(super) fn stored(&self) -> Option<Bytes> {
        let entry = self.archive.get_entry(self.entry).ok()?;
        let (from, to) = entry.compressed_data_range();
        (self.method == Method::Stored).then(|| self.archive.get_ref().part(from..to))
    }

    /// The bytes, unpacked. Reading ends in an error if they are more or others than the directory says.
    pub(super) fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let entry = self
            .archive
            .get_entry(self.entry)
            .map_err(io::Error::other)?;
        let (from, to) = entry.compressed_data_range();
        let packed =
            BufReader::with_capacity(64 * 1024, self.archive.get_ref().part(from..to).reader());
        let plain: Box<dyn Read + Send> = match self.method {
            Method::Stored => Box::new(packed),
            Method::Deflate => Box::new(DeflateDecoder::new(packed)),
            Method::Zstd => Box::new(zstd::Decoder::with_buffer(packed)?),
        };
        Ok(Box::new(entry.verifying_reader(plain)))
    }
}
