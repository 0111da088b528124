//! Property lists in Apple's binary form, as JSON: what refers to what is followed from the top, with a bound on depth and number.

use contract::time::Instant;
use serde_json::{Map, Value};

pub(super) const BEGINS: &[u8] = b"bplist00";

const MAX_DEPTH: usize = 64;
/// Objects that are made, counting those that several refer to as often.
const MAX_OBJECTS: usize = 1_000_000;
/// Seconds between 1970 and 2001.
const EPOCH: f64 = 978_307_200.0;

pub(super) fn read(bytes: &[u8]) -> Option<Value> {
    let trailer = bytes.last_chunk::<32>()?;
    let number = |at: usize| usize::try_from(big_endian(trailer.get(at..at + 8)?)?).ok();
    let mut list = List {
        bytes,
        offset_size: usize::from(*trailer.get(6)?),
        reference_size: usize::from(*trailer.get(7)?),
        offsets_at: number(24)?,
        left: MAX_OBJECTS,
    };
    list.object(number(16)?, 0)
}

struct List<'b> {
    bytes: &'b [u8],
    offset_size: usize,
    reference_size: usize,
    offsets_at: usize,
    left: usize,
}

impl List<'_> {
    fn slice(&self, at: usize, length: usize) -> Option<&[u8]> {
        self.bytes.get(at..at.checked_add(length)?)
    }

    fn object(&mut self, nth: usize, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let entry = self
            .offsets_at
            .checked_add(nth.checked_mul(self.offset_size)?)?;
        let at = usize::try_from(big_endian(self.slice(entry, self.offset_size)?)?).ok()?;
        let marker = *self.bytes.get(at)?;
        let (kind, low) = (marker >> 4, usize::from(marker & 0x0f));
        Some(match kind {
            0 => match low {
                8 => false.into(),
                9 => true.into(),
                _ => Value::Null,
            },
            1 => big_endian(self.slice(at + 1, 1 << low.min(4))?)
                .unwrap_or_default()
                .into(),
            2 => self.float(at, low)?.into(),
            3 => {
                let seconds = self.float(at, 3)? + EPOCH;
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "times of this list are of our years"
                )]
                let micros = (seconds * 1e6).round() as i64;
                Instant(micros).to_rfc3339_millis().into()
            }
            // Data and identifiers say nothing to people.
            4 | 8 => Value::Null,
            5 | 6 => self.text(at, low, kind == 6)?.into(),
            10 | 12 => {
                let (from, count) = self.counted(at, low)?;
                let mut items = Vec::new();
                for nth in 0..count {
                    items.push(self.referred(from, nth, depth)?);
                }
                items.into()
            }
            13 => {
                let (from, count) = self.counted(at, low)?;
                let mut members = Map::new();
                for nth in 0..count {
                    let name = self.referred(from, nth, depth)?;
                    let value = self.referred(from, count.checked_add(nth)?, depth)?;
                    members.insert(name.as_str()?.to_owned(), value);
                }
                members.into()
            }
            _ => return None,
        })
    }

    fn referred(&mut self, from: usize, nth: usize, depth: usize) -> Option<Value> {
        let at = from.checked_add(nth.checked_mul(self.reference_size)?)?;
        let nth = usize::try_from(big_endian(self.slice(at, self.reference_size)?)?).ok()?;
        self.object(nth, depth + 1)
    }

    /// Where the content of an object begins and how many it has; a number that does not fit stands behind the marker.
    fn counted(&self, at: usize, low: usize) -> Option<(usize, usize)> {
        if low < 15 {
            return Some((at + 1, low));
        }
        let size = 1 << (usize::from(*self.bytes.get(at + 1)?) & 0x0f).min(3);
        let count = usize::try_from(big_endian(self.slice(at + 2, size)?)?).ok()?;
        Some((at + 2 + size, count))
    }

    fn text(&self, at: usize, low: usize, is_wide: bool) -> Option<String> {
        let (from, count) = self.counted(at, low)?;
        if !is_wide {
            return Some(String::from_utf8_lossy(self.slice(from, count)?).into_owned());
        }
        let bytes = self.slice(from, count.checked_mul(2)?)?;
        let units = bytes.chunks_exact(2).map(|pair| match pair {
            [high, low] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        });
        let units: Vec<u16> = units.collect();
        Some(String::from_utf16_lossy(&units))
    }

    fn float(&self, at: usize, low: usize) -> Option<f64> {
        match low {
            2 => Some(f64::from(f32::from_be_bytes(
                *self.slice(at + 1, 4)?.first_chunk()?,
            ))),
            3 => Some(f64::from_be_bytes(*self.slice(at + 1, 8)?.first_chunk()?)),
            _ => None,
        }
    }
}

/// A number of up to sixteen bytes, of which the last eight count.
fn big_endian(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 16 {
        return None;
    }
    let number = bytes
        .iter()
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    Some(number)
}
