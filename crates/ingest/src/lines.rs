//! Lines of bounded length from any reader. A line that is too long is stepped over without being held in memory.

use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes without its end.
pub const MAX_LINE_BYTES: usize = 50 * 1024 * 1024;

/// What the buffer shrinks back to after a long line.
const KEPT_BYTES: usize = 1024 * 1024;

/// What some programs put before text that is UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    number: u64,
    buffer: Vec<u8>,
}

/// One line: its number in the file, from 1, and its bytes without the end, or nothing if there were too many.
pub(crate) struct Line<'b> {
    pub(crate) number: u64,
    pub(crate) bytes: Option<&'b [u8]>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            number: 0,
            buffer: Vec::new(),
        }
    }

    /// The first byte of the next line, or nothing at the end.
    pub(crate) fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.reader.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next line, or nothing at the end. A byte order mark at the very beginning is no part of the first line.
    pub(crate) fn read(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        // One byte more than the limit, so that a line of just that length still brings its end along.
        let most = u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_add(1));
        let length = (&mut self.reader)
            .take(most)
            .read_until(b'\n', &mut self.buffer)?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        let ended = self.buffer.last() == Some(&b'\n');
        if !ended && length > self.limit {
            self.reader.skip_until(b'\n')?;
            return Ok(Some(Line {
                number: self.number,
                bytes: None,
            }));
        }
        let mut bytes = self.buffer.as_slice();
        if self.number == 1 {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        Ok(Some(Line {
            number: self.number,
            bytes: Some(bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], limit: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Lines::new(input, limit);
        let mut read = Vec::new();
        while let Some(line) = lines.read().unwrap() {
            read.push((line.number, line.bytes.map(<[u8]>::to_vec)));
        }
        read
    }

    #[test]
    fn lines_lose_their_ends_and_the_first_its_byte_order_mark() {
        assert_eq!(
            all(b"\xEF\xBB\xBFa\r\n\nbc", 10),
            [
                (1, Some(b"a".to_vec())),
                (2, Some(Vec::new())),
                (3, Some(b"bc".to_vec()))
            ]
        );
    }

    #[test]
    fn a_line_beyond_the_limit_is_stepped_over() {
        assert_eq!(
            all(b"1234\n12345\n123456\nx", 5),
            [
                (1, Some(b"1234".to_vec())),
                (2, Some(b"12345".to_vec())),
                (3, None),
                (4, Some(b"x".to_vec()))
            ]
        );
        assert_eq!(all(b"123456", 5), [(1, None)]);
        assert_eq!(all(b"12345", 5), [(1, Some(b"12345".to_vec()))]);
    }
}
