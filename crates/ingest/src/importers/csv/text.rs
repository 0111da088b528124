//! The text of a table or of another file, whatever its bytes mean: found out from its beginning, and read on without holding it.
//!
//! What is split into cells is UTF-8 or an encoding that has ASCII in common with it, so that delimiters, quotes and line
//! ends are the same bytes. UTF-16 is decoded on the way; Windows-1252 where a cell is looked at.

use std::borrow::Cow;
use std::io::{self, BufRead, ErrorKind, Read};

use encoding_rs::{Decoder, DecoderResult, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::lines::BYTE_ORDER_MARK;

/// How much of a file is looked at, unless its first line ends before.
const HEAD_BYTES: usize = 64 * 1024;

/// A byte that no UTF-8 text has: it stands for what could not be decoded, and makes its cell no text.
const UNREADABLE: u8 = 0xff;

/// What bytes beyond ASCII mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// None was seen yet.
    Undecided,
    Utf8,
    Utf16,
    Windows1252,
}

impl Encoding {
    /// What the beginning of a file tells, if it is not UTF-16.
    fn detect(head: &[u8]) -> Self {
        let (mut texts, mut faults) = (0_usize, 0_usize);
        let mut chunks = head.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            texts += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            // What is cut by the end of the head may be whole in the file.
            let is_cut = chunks.peek().is_none();
            faults += usize::from(!chunk.invalid().is_empty() && !is_cut);
        }
        match (texts, faults) {
            (0, 0) => Self::Undecided,
            // Few bytes that happen to be UTF-8 mean nothing among many that are not, and the other way round.
            _ if texts >= faults => Self::Utf8,
            _ => Self::Windows1252,
        }
    }

    /// Decides by the first row that tells.
    pub(super) fn decided_by(self, row: &[u8]) -> Self {
        match self {
            Self::Undecided if row.is_ascii() => Self::Undecided,
            Self::Undecided if std::str::from_utf8(row).is_ok() => Self::Utf8,
            Self::Undecided => Self::Windows1252,
            decided => decided,
        }
    }

    /// The text of a cell; nothing if it is none.
    pub(super) fn decode(self, cell: &[u8]) -> Option<Cow<'_, str>> {
        match (self, std::str::from_utf8(cell)) {
            (Self::Windows1252, _) => {
                WINDOWS_1252.decode_without_bom_handling_and_without_replacement(cell)
            }
            (_, text) => text.ok().map(Cow::Borrowed),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Undecided | Self::Utf8 => "UTF-8",
            Self::Utf16 => "UTF-16",
            Self::Windows1252 => "Windows-1252",
        }
    }
}

pub(crate) struct Text<R> {
    reader: R,
    /// What was read and not yet taken.
    ahead: Vec<u8>,
    taken: usize,
    decoder: Option<Decoder>,
    pub(super) encoding: Encoding,
}

impl<R: BufRead> Text<R> {
    /// Looks at the beginning of a file.
    pub(crate) fn begin(mut reader: R) -> io::Result<Self> {
        let mut head = Vec::new();
        while head.len() < HEAD_BYTES && !head.contains(&b'\n') {
            let bytes = filled(&mut reader)?;
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len();
            head.extend_from_slice(bytes);
            reader.consume(length);
        }
        let mut text = Self {
            reader,
            ahead: Vec::new(),
            taken: 0,
            decoder: utf_16(&head),
            encoding: Encoding::Utf16,
        };
        if text.decoder.is_some() {
            text.decode(&head, false);
        } else if let Some(rest) = head.strip_prefix(BYTE_ORDER_MARK) {
            text.encoding = Encoding::Utf8;
            text.ahead = rest.to_owned();
        } else {
            text.encoding = Encoding::detect(&head);
            text.ahead = head;
        }
        Ok(text)
    }

    /// What is known of the beginning before anything was taken.
    pub(super) fn head(&self) -> &[u8] {
        self.ahead.get(self.taken..).unwrap_or_default()
    }

    /// The next bytes; none at the end.
    pub(super) fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.head().is_empty() && self.decoder.is_some() {
            let bytes = filled(&mut self.reader)?.to_owned();
            self.reader.consume(bytes.len());
            self.decode(&bytes, bytes.is_empty());
            if bytes.is_empty() {
                self.decoder = None;
            }
        }
        if self.head().is_empty() {
            return filled(&mut self.reader);
        }
        Ok(self.ahead.get(self.taken..).unwrap_or_default())
    }

    pub(super) fn consume(&mut self, count: usize) {
        if self.head().is_empty() {
            self.reader.consume(count);
        } else {
            self.taken += count;
        }
    }

    fn decode(&mut self, mut bytes: &[u8], is_last: bool) {
        self.ahead.clear();
        self.taken = 0;
        let Some(decoder) = &mut self.decoder else {
            return;
        };
        loop {
            let mut room = [0_u8; 4096];
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(bytes, &mut room, is_last);
            self.ahead.extend(room.get(..written).unwrap_or_default());
            bytes = bytes.get(read..).unwrap_or_default();
            match result {
                DecoderResult::InputEmpty => return,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => self.ahead.push(UNREADABLE),
            }
        }
    }
}

impl<R: BufRead> Read for Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = Text::fill_buf(self)?.read(buffer)?;
        Text::consume(self, length);
        Ok(length)
    }
}

fn filled<R: BufRead>(reader: &mut R) -> io::Result<&[u8]> {
    while let Err(error) = reader.fill_buf() {
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    reader.fill_buf()
}

/// A decoder for a file that begins as UTF-16 does: with its mark, or with letters of which nearly each second byte is zero.
fn utf_16(head: &[u8]) -> Option<Decoder> {
    let seen = head.len().min(64);
    let zeros = |from: usize| {
        let bytes = head.iter().take(seen).skip(from).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    let nearly_all = |zeros: usize| zeros > 0 && 8 * zeros >= 3 * seen;
    let encoding = match (head, zeros(0), zeros(1)) {
        ([0xff, 0xfe, ..], ..) => UTF_16LE,
        ([0xfe, 0xff, ..], ..) => UTF_16BE,
        (_, 0, second) if nearly_all(second) => UTF_16LE,
        (_, first, 0) if nearly_all(first) => UTF_16BE,
        _ => return None,
    };
    Some(encoding.new_decoder_with_bom_removal())
}
