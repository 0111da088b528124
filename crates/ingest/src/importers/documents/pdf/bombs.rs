//! How large the packed parts of a PDF become, found without keeping them. A part may be packed in several ways, one inside the other.

use std::borrow::Cow;
use std::io::{self, Read as _};

use flate2::read::ZlibDecoder;

/// What one part may unpack to.
pub(super) const LARGEST_PART: usize = 64 << 20;
/// What all parts may unpack to, looked at one after the other.
const LARGEST_DOCUMENT: usize = 2 << 30;
/// Where the description of a part is looked for before it.
const DESCRIPTION_BYTES: usize = 2048;
/// Filters of one part; no honest one has as many.
const MOST_FILTERS: usize = 4;
const MARK: &[u8] = b"stream";

/// Whether a part unpacks to more than is read, or all of them together do. They begin behind the word `stream`.
pub(super) fn has_bomb(bytes: &[u8]) -> bool {
    let mut all = 0_usize;
    let mut words = bytes.windows(MARK.len()).enumerate();
    words.any(|(at, word)| {
        let before = bytes.get(..at).unwrap_or_default();
        if word != MARK || before.ends_with(b"end") {
            return false;
        }
        let part = bytes.get(at + MARK.len()..).unwrap_or_default();
        let part = part.strip_prefix(b"\r").unwrap_or(part);
        let part = part.strip_prefix(b"\n").unwrap_or(part);
        let size = unpacked_size(&filters(before), part);
        all = all.saturating_add(size);
        size > LARGEST_PART || all > LARGEST_DOCUMENT
    })
}

/// The names of the filters of the part that begins here, in the order in which they are undone.
fn filters(before: &[u8]) -> Vec<String> {
    let description = before.len().saturating_sub(DESCRIPTION_BYTES);
    let description = String::from_utf8_lossy(before.get(description..).unwrap_or_default());
    let description = description.rsplit("obj").next().unwrap_or_default();
    let Some((_, named)) = description.split_once("/Filter") else {
        return Vec::new();
    };
    let named = named.trim_start();
    let named = if let Some(list) = named.strip_prefix('[') {
        list.split(']').next().unwrap_or_default()
    } else {
        let name = named.get(1..).unwrap_or_default();
        let end = name.find(|c: char| c.is_whitespace() || "/<>[".contains(c));
        let end = end.map_or(named.len(), |end| end + 1);
        named.get(..end).unwrap_or_default()
    };
    let found = named.split('/').skip(1);
    found.map(|name| plain_name(name.trim())).collect()
}

/// A name in which `#46` stands for a letter.
fn plain_name(name: &str) -> String {
    let mut parts = name.split('#');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => plain.push(char::from(code)),
            None => plain.push('#'),
        }
        let used = if code.is_some() { 2 } else { 0 };
        plain.push_str(part.get(used..).unwrap_or_default());
    }
    plain
}

/// How many bytes a part becomes, counted up to a little more than is read.
fn unpacked_size(filters: &[String], part: &[u8]) -> usize {
    if filters.len() > MOST_FILTERS {
        return usize::MAX;
    }
    // Where the filters stand elsewhere, what looks packed is taken for it.
    let looks_packed = part.first().is_some_and(|first| first & 0x0f == 8);
    if filters.is_empty() && looks_packed {
        return inflated(part).len();
    }
    let mut held = Cow::Borrowed(part);
    let mut largest = 0;
    for (at, filter) in filters.iter().enumerate() {
        let next = match filter.as_str() {
            "FlateDecode" | "Fl" => inflated(&held),
            "RunLengthDecode" | "RL" => run_lengths(&held),
            "ASCII85Decode" | "A85" => ascii85(&held),
            "ASCIIHexDecode" | "AHx" => hexadecimal(&held),
            // Nothing honest is packed again before it.
            "LZWDecode" | "LZW" if at + 1 < filters.len() => return usize::MAX,
            "LZWDecode" | "LZW" => return largest.max(lzw_size(&held)),
            // Pictures, which are not unpacked to be read.
            _ => break,
        };
        largest = largest.max(next.len());
        if largest > LARGEST_PART {
            break;
        }
        held = Cow::Owned(next);
    }
    largest
}

/// What breaks off is read up to there.
fn inflated(part: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let room = LARGEST_PART as u64 + 1;
    let _: io::Result<usize> = ZlibDecoder::new(part).take(room).read_to_end(&mut unpacked);
    unpacked
}

fn run_lengths(part: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let mut rest = part;
    while let [length, after @ ..] = rest
        && *length != 128
        && unpacked.len() <= LARGEST_PART
    {
        let length = usize::from(*length);
        if length < 128 {
            let (copied, behind) = after.split_at(after.len().min(length + 1));
            unpacked.extend_from_slice(copied);
            rest = behind;
        } else {
            let [byte, behind @ ..] = after else { break };
            unpacked.resize(unpacked.len() + 257 - length, *byte);
            rest = behind;
        }
    }
    unpacked
}

fn ascii85(part: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let mut group: Vec<u8> = Vec::new();
    let take = |group: &[u8], unpacked: &mut Vec<u8>| {
        let digits = group.iter().copied().chain([84; 5]).take(5);
        let number = digits.fold(0_u32, |sum, digit| {
            sum.wrapping_mul(85).wrapping_add(u32::from(digit))
        });
        let known = group.len().saturating_sub(1);
        unpacked.extend(number.to_be_bytes().iter().take(known));
    };
    for byte in part.iter().take_while(|byte| **byte != b'~') {
        match byte {
            b'z' if group.is_empty() => unpacked.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ => {}
        }
        if group.len() == 5 {
            take(&group, &mut unpacked);
            group.clear();
        }
        if unpacked.len() > LARGEST_PART {
            break;
        }
    }
    take(&group, &mut unpacked);
    unpacked
}

fn hexadecimal(part: &[u8]) -> Vec<u8> {
    let digits = part.iter().take_while(|byte| **byte != b'>');
    let digits = digits.filter_map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u8> = digits
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let pair = |pair: &[u8]| match pair {
        [high, low] => high << 4 | low,
        [high] => high << 4,
        _ => 0,
    };
    digits.chunks(2).map(pair).collect()
}

/// How long what codes stand for becomes: a new code is one longer than the one before it.
fn lzw_size(part: &[u8]) -> usize {
    const CLEAR: u32 = 256;
    let (mut bits, mut held) = (0_u32, 0_u32);
    let mut lengths: Vec<usize> = Vec::new();
    let (mut last, mut size) = (0, 0_usize);
    let mut bytes = part.iter();
    while size <= LARGEST_PART {
        // Some writers widen codes one too late; the longer reading is the one that counts.
        let width = match lengths.len() + 259 {
            ..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
        while bits < width {
            let Some(byte) = bytes.next() else {
                return size;
            };
            held = held << 8 | u32::from(*byte);
            bits += 8;
        }
        bits -= width;
        let code = held >> bits & ((1 << width) - 1);
        held &= (1 << bits) - 1;
        if code == CLEAR {
            lengths.clear();
            last = 0;
            continue;
        }
        if code == CLEAR + 1 {
            return size;
        }
        let known = usize::try_from(code.saturating_sub(258)).unwrap_or(usize::MAX);
        let length = match code {
            0..CLEAR => 1,
            _ => lengths.get(known).copied().unwrap_or(last + 1),
        };
        if last > 0 && lengths.len() < 4096 - 258 {
            lengths.push(last + 1);
        }
        last = length;
        size = size.saturating_add(length);
    }
    size
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn in_hexadecimal(bytes: &[u8]) -> Vec<u8> {
        let digits = bytes
            .iter()
            .fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"));
        format!("{digits}>").into_bytes()
    }

    /// Codes of nine to twelve bits, each for what was said before and one letter more.
    fn lzw_of_zeros(codes: u32) -> Vec<u8> {
        let (mut packed, mut held, mut bits) = (Vec::new(), 0_u64, 0);
        let mut put = |code: u32, width: u32| {
            held = held << width | u64::from(code);
            bits += width;
            while bits >= 8 {
                bits -= 8;
                packed.push(u8::try_from(held >> bits).unwrap());
                held &= (1 << bits) - 1;
            }
        };
        put(256, 9);
        put(0, 9);
        for code in 0..codes {
            let next = 258 + code.min(4095 - 258);
            let width = match next + 1 {
                ..512 => 9,
                512..1024 => 10,
                1024..2048 => 11,
                _ => 12,
            };
            put(next, width);
        }
        packed
    }

    fn document(filter: &str, part: &[u8]) -> Vec<u8> {
        let mut bytes = format!("1 0 obj <</Length 1 /Filter {filter}>> stream\r\n").into_bytes();
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\nendstream endobj");
        bytes
    }

    #[test]
    fn a_part_that_becomes_too_large_is_found_however_it_is_packed() {
        let zeros = vec![0; LARGEST_PART + 1];
        let once = deflated(&zeros);
        let runs = [129, 0].repeat(LARGEST_PART / 128 + 1);
        for (filter, part) in [
            ("/FlateDecode", once.clone()),
            ("/#46lateDecode", once.clone()),
            ("7 0 R", once.clone()),
            ("[/FlateDecode /FlateDecode]", deflated(&once)),
            ("[/ASCIIHexDecode/FlateDecode]", in_hexadecimal(&once)),
            ("[ /FlateDecode /RunLengthDecode ]", deflated(&runs)),
            ("/RunLengthDecode", runs),
            ("/LZWDecode", lzw_of_zeros(40_000)),
            ("/ASCII85Decode", vec![b'z'; LARGEST_PART / 4 + 1]),
        ] {
            assert!(has_bomb(&document(filter, &part)), "{filter}");
        }
        for (filter, part) in [
            ("/FlateDecode", deflated(&zeros[..1_000_000])),
            ("/LZWDecode", lzw_of_zeros(1_000)),
            ("[/ASCII85Decode /FlateDecode]", b"GhQ\\~>".to_vec()),
            ("/DCTDecode", vec![0; 1_000]),
        ] {
            assert!(!has_bomb(&document(filter, &part)), "{filter}");
        }
    }

    #[test]
    fn filters_are_undone_as_they_are_written() {
        assert_eq!(ascii85(b"87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(hexadecimal(b"48 65 6C6c 7>x"), b"Hellp");
        assert_eq!(run_lengths(&[1, b'a', b'b', 254, b'c', 128, 9]), b"abccc");
        // The example of the specification.
        let packed = [0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01];
        assert_eq!(lzw_size(&packed), 10);
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at(
            filter in "(/FlateDecode|/LZWDecode|/RL|/A85|/AHx|#|\\[|\\]| ){0,6}",
            part in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            has_bomb(&document(&filter, &part));
        }
    }
}
