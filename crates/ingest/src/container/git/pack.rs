//! A pack and its index (version 2): objects one after the other, compressed, many of them as the difference to another.

use std::io::{self, BufReader, Read};

use flate2::bufread::ZlibDecoder;
use rawzip::ReaderAt;

use super::objects::{Id, Kind, MAX_OBJECT_BYTES, damaged};
use crate::container::bytes::Bytes;

const INDEX_BEGINS: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const IDS_AT: u64 = 8 + 256 * 4;
const ID_BYTES: u64 = 20;

pub(super) struct Pack {
    index: Bytes,
    data: Bytes,
    count: u64,
}

/// What stands at a place of a pack.
pub(super) enum Entry {
    Whole(Kind, Vec<u8>),
    /// The difference to the object at this place.
    Offset(u64, Vec<u8>),
    /// The difference to another object.
    Reference(Id, Vec<u8>),
}

impl Pack {
    pub(super) fn new(index: Bytes, data: Bytes) -> io::Result<Self> {
        let begin: [u8; 8] = array_at(&index, 0)?;
        if begin != INDEX_BEGINS {
            return Err(damaged("the index of a pack is of another version"));
        }
        let mut pack = Self {
            index,
            data,
            count: 0,
        };
        pack.count = pack.number(8 + 255 * 4)?;
        if IDS_AT + pack.count * (ID_BYTES + 8) > pack.index.len() {
            return Err(damaged("the index of a pack ends too early"));
        }
        Ok(pack)
    }

    fn number(&self, at: u64) -> io::Result<u64> {
        Ok(u64::from(u32::from_be_bytes(array_at(&self.index, at)?)))
    }

    /// Where an object stands in the pack.
    pub(super) fn find(&self, id: &Id) -> io::Result<Option<u64>> {
        let first = u64::from(id.first().copied().unwrap_or_default());
        let mut low = match first {
            0 => 0,
            first => self.number(8 + (first - 1) * 4)?,
        };
        let mut high = self.number(8 + first * 4)?.min(self.count);
        while low < high {
            let middle = low.midpoint(high);
            let found: Id = array_at(&self.index, IDS_AT + middle * ID_BYTES)?;
            match found.cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle).map(Some),
            }
        }
        Ok(None)
    }

    fn offset(&self, nth: u64) -> io::Result<u64> {
        const LARGE: u64 = 1 << 31;
        let offsets = IDS_AT + self.count * (ID_BYTES + 4);
        let offset = self.number(offsets + nth * 4)?;
        if offset < LARGE {
            return Ok(offset);
        }
        let large = offsets + self.count * 4 + (offset - LARGE) * 8;
        Ok(u64::from_be_bytes(array_at(&self.index, large)?))
    }

    pub(super) fn entry(&self, at: u64) -> io::Result<Entry> {
        let mut reader = BufReader::new(self.data.part(at..self.data.len()).reader());
        let first = byte(&mut reader)?;
        let (mut size, mut shift, mut last) = (u64::from(first & 0x0f), 4, first);
        while last & 0x80 != 0 {
            last = byte(&mut reader)?;
            size |= u64::from(last & 0x7f)
                .checked_shl(shift)
                .unwrap_or(u64::MAX);
            shift += 7;
        }
        let kind = (first >> 4) & 7;
        match kind {
            6 => {
                let back = distance(&mut reader)?;
                let base = at.checked_sub(back).filter(|_| back > 0);
                let base = base.ok_or_else(|| damaged("a base lies outside of its pack"))?;
                Ok(Entry::Offset(base, inflate(reader, size)?))
            }
            7 => {
                let mut base = Id::default();
                reader.read_exact(&mut base)?;
                Ok(Entry::Reference(base, inflate(reader, size)?))
            }
            kind => {
                let kind = Kind::from_number(kind)?;
                Ok(Entry::Whole(kind, inflate(reader, size)?))
            }
        }
    }
}

fn array_at<const N: usize>(bytes: &Bytes, at: u64) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    bytes.read_exact_at(&mut array, at)?;
    Ok(array)
}

fn byte(reader: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    let [byte] = byte;
    Ok(byte)
}

/// How far back the base of a difference stands.
fn distance(reader: &mut impl Read) -> io::Result<u64> {
    let mut last = byte(reader)?;
    let mut value = u64::from(last & 0x7f);
    while last & 0x80 != 0 {
        last = byte(reader)?;
        let next = value
            .checked_add(1)
            .and_then(|value| value.checked_mul(128));
        let next = next.and_then(|value| value.checked_add(u64::from(last & 0x7f)));
        value = next.ok_or_else(|| damaged("a base lies outside of its pack"))?;
    }
    Ok(value)
}

/// Unpacks exactly so many bytes.
fn inflate(reader: impl io::BufRead, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_OBJECT_BYTES {
        return Err(damaged("an object is larger than is read"));
    }
    let mut bytes = Vec::new();
    ZlibDecoder::new(reader)
        .take(size)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 != size {
        return Err(damaged("an object ends too early"));
    }
    Ok(bytes)
}

/// Makes an object of its base and its difference to it.
pub(super) fn patch(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut delta = delta.iter().copied();
    let size = |delta: &mut dyn Iterator<Item = u8>| -> Option<u64> {
        let (mut size, mut shift) = (0_u64, 0);
        loop {
            let byte = delta.next()?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(size);
            }
        }
    };
    let (of_base, of_result) = (size(&mut delta)?, size(&mut delta)?);
    if of_base != base.len() as u64 || of_result > MAX_OBJECT_BYTES {
        return None;
    }
    let of_result = usize::try_from(of_result).ok()?;
    let mut result = Vec::new();
    while let Some(command) = delta.next() {
        if command & 0x80 != 0 {
            let mut number = |bits: std::ops::Range<u32>| -> Option<usize> {
                let mut number = 0;
                for (place, bit) in bits.enumerate() {
                    if command & (1 << bit) != 0 {
                        number |= usize::from(delta.next()?) << (8 * place);
                    }
                }
                Some(number)
            };
            let (from, length) = (number(0..4)?, number(4..7)?);
            let length = if length == 0 { 0x1_0000 } else { length };
            result.extend(base.get(from..from.checked_add(length)?)?);
        } else if command != 0 {
            let before = result.len();
            result.extend(delta.by_ref().take(usize::from(command)));
            if result.len() - before < usize::from(command) {
                return None;
            }
        } else {
            return None;
        }
        if result.len() > of_result {
            return None;
        }
    }
    (result.len() == of_result).then_some(result)
}
