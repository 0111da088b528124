//! What stands between the cells of a table.

use csv_core::{ReadRecordResult, ReaderBuilder};

use super::text::Encoding;

/// What tables are written with, the most usual first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The delimiter, and how many bytes stand before the header to say so.
pub(super) struct Found {
    pub(super) delimiter: u8,
    pub(super) said_in: usize,
}

/// Finds the delimiter of a table by its first row: the one that yields most names that `is_known`, and among those that
/// yield as many, most cells. A first line `sep=;`, as spreadsheets write it, decides by itself.
pub(super) fn find(head: &[u8], encoding: Encoding, is_known: impl Fn(&str) -> bool) -> Found {
    if let [
        b's' | b'S',
        b'e' | b'E',
        b'p' | b'P',
        b'=',
        delimiter,
        rest @ ..,
    ] = head
        && DELIMITERS.contains(delimiter)
        && matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..])
    {
        let line = head.split_inclusive(|byte| *byte == b'\n').next();
        return Found {
            delimiter: *delimiter,
            said_in: line.map_or(0, <[u8]>::len),
        };
    }
    let mut best = (b',', (0, 0));
    for delimiter in DELIMITERS {
        let cells = first_row(head, delimiter);
        let names = cells.iter().filter_map(|cell| encoding.decode(cell));
        let known = names.filter(|name| is_known(name)).count();
        if (known, cells.len()) > best.1 {
            best = (delimiter, (known, cells.len()));
        }
    }
    Found {
        delimiter: best.0,
        said_in: 0,
    }
}

pub(super) fn described(delimiter: u8) -> &'static str {
    match delimiter {
        b';' => "semicolons",
        b'\t' => "tabs",
        b'|' => "vertical bars",
        _ => "commas",
    }
}

/// The cells of the first row, as far as the head goes.
fn first_row(head: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let mut engine = ReaderBuilder::new().delimiter(delimiter).build();
    let mut text = vec![0; head.len() + 1];
    let mut ends = vec![0; head.len() + 1];
    let (result, read, written, mut fields) = engine.read_record(head, &mut text, &mut ends);
    let mut written = written;
    if result == ReadRecordResult::InputEmpty && read == head.len() {
        // The row goes on beyond the head, or ends with the file: what is there ends here.
        let rest_text = text.get_mut(written..).unwrap_or_default();
        let rest_ends = ends.get_mut(fields..).unwrap_or_default();
        let (_, _, more, ended) = engine.read_record(&[], rest_text, rest_ends);
        written += more;
        fields += ended;
    }
    let mut start = 0;
    let mut cells = Vec::new();
    for end in ends.into_iter().take(fields) {
        let end = end.min(written);
        cells.push(text.get(start..end).unwrap_or_default().to_owned());
        start = end;
    }
    cells
}
