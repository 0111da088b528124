//! XML whose first line declares an encoding, given as UTF-8.

use std::io::{self, BufRead, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

/// A byte that no UTF-8 text has: it stands for what could not be decoded.
const UNREADABLE: u8 = 0xff;

/// What is read. Where nothing else is declared, it is given as it is. The declaration must stand in what is read at first.
pub(super) struct Decoded<R> {
    reader: R,
    is_begun: bool,
    decoder: Option<Decoder>,
    text: Vec<u8>,
    taken: usize,
    is_ended: bool,
}

impl<R: BufRead> Decoded<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            is_begun: false,
            decoder: None,
            text: Vec::new(),
            taken: 0,
            is_ended: false,
        }
    }
}

/// The encoding that is declared, if it has the letters of the declaration in common with UTF-8. Some programs declare UTF-16, and write UTF-8.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = declaration.iter().position(|byte| *byte == b'>')?;
    let declaration = str::from_utf8(declaration.get(..end)?).ok()?;
    let (_, label) = declaration.split_once("encoding")?;
    let label = label.trim_start().strip_prefix('=')?.trim_start();
    let label = label.strip_prefix(['"', '\''])?.split(['"', '\'']).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    (encoding != UTF_8 && encoding.is_ascii_compatible()).then_some(encoding)
}

impl<R: BufRead> BufRead for Decoded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.is_begun {
            let encoding = declared(self.reader.fill_buf()?);
            self.decoder = encoding.map(Encoding::new_decoder_without_bom_handling);
            self.is_begun = true;
        }
        let Some(decoder) = &mut self.decoder else {
            return self.reader.fill_buf();
        };
        while self.taken == self.text.len() && !self.is_ended {
            let bytes = self.reader.fill_buf()?;
            let is_last = bytes.is_empty();
            let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
            let mut text = String::with_capacity(room.unwrap_or(bytes.len()));
            let (result, read) =
                decoder.decode_to_string_without_replacement(bytes, &mut text, is_last);
            self.reader.consume(read);
            self.text = text.into_bytes();
            self.taken = 0;
            match result {
                DecoderResult::Malformed(..) => self.text.push(UNREADABLE),
                DecoderResult::InputEmpty => self.is_ended = is_last,
                DecoderResult::OutputFull => {}
            }
        }
        Ok(self.text.get(self.taken..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        if self.decoder.is_some() {
            self.taken = self.text.len().min(self.taken + amount);
        } else {
            self.reader.consume(amount);
        }
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}
