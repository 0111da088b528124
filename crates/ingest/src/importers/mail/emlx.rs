//! Messages as Apple Mail keeps them, one to a file: the length of the message on a line of its own, the message, and a property
//! list with what Apple Mail knows of it.

use std::io::{self, BufRead, Cursor, Read};

use crate::lines::MAX_LINE_BYTES;

/// The bit of `flags` that marks a message as deleted.
const DELETED: u64 = 1 << 1;
/// The longest first line: digits, and the blanks that fill it up.
const LENGTH_BYTES: usize = 32;
/// The property list has a few members; of a longer one the beginning is read.
const LIST_BYTES: u64 = 64 * 1024;

/// The first line without its end, and what follows it, where the line is a number.
pub(super) fn split(head: &[u8]) -> Option<(u64, &[u8])> {
    let end = head
        .iter()
        .take(LENGTH_BYTES)
        .position(|byte| *byte == b'\n')?;
    let (line, rest) = head.split_at_checked(end + 1)?;
    let digits = std::str::from_utf8(line).ok()?.trim_end();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| is_number)?, rest))
}

/// The message of such a file; nothing if it is marked as deleted. Any other file is read as it is.
pub(super) struct MessageReader<R> {
    file: Option<R>,
    message: Cursor<Vec<u8>>,
    /// What follows the part that was looked at, where the file is no such message.
    rest: Option<R>,
}

impl<R: BufRead> MessageReader<R> {
    pub(super) fn new(file: R) -> Self {
        Self {
            file: Some(file),
            message: Cursor::default(),
            rest: None,
        }
    }

    fn begin(&mut self, mut file: R) -> io::Result<()> {
        let Some((length, _)) = split(file.fill_buf()?) else {
            self.rest = Some(file);
            return Ok(());
        };
        file.read_until(b'\n', &mut Vec::new())?;
        let mut message = Vec::new();
        // One byte more than may be is enough to be refused as too long.
        let held = length.min(MAX_LINE_BYTES as u64 + 1);
        (&mut file).take(held).read_to_end(&mut message)?;
        let mut list = Vec::new();
        if held == length {
            file.take(LIST_BYTES).read_to_end(&mut list)?;
        }
        if !marks_deleted(&list) {
            self.message = Cursor::new(message);
        }
        Ok(())
    }
}

/// Whether a file of which this is the beginning is marked as deleted, as far as that can be seen.
pub(super) fn is_deleted(head: &[u8]) -> bool {
    let list = split(head).and_then(|(length, rest)| rest.get(usize::try_from(length).ok()?..));
    list.is_some_and(marks_deleted)
}

fn marks_deleted(list: &[u8]) -> bool {
    flags(list).is_some_and(|flags| flags & DELETED != 0)
}

/// The member `flags` of a property list.
fn flags(list: &[u8]) -> Option<u64> {
    let list = String::from_utf8_lossy(list);
    let (_, behind) = list.split_once("<key>flags</key>")?;
    let number = behind.trim_start().strip_prefix("<integer>")?;
    number.split('<').next()?.trim().parse().ok()
}

impl<R: BufRead> Read for MessageReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for MessageReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(file) = self.file.take() {
            self.begin(file)?;
        }
        match &mut self.rest {
            Some(rest) => rest.fill_buf(),
            None => self.message.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match &mut self.rest {
            Some(rest) => rest.consume(amount),
            None => self.message.consume(amount),
        }
    }
}
