//! One JSON object per line. Blank lines are no lines; everything else is answered for.

use std::io::BufRead;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::lines::{Line, Lines, MAX_LINE_BYTES};
use crate::rejection::{Rejection, RejectionCode};
use crate::table::RowKeys;

pub struct JsonlImporter<'a, R> {
    lines: Lines<R>,
    acceptor: &'a Acceptor<'a>,
    keys: Option<RowKeys>,
}

impl<'a, R: BufRead> JsonlImporter<'a, R> {
    /// An importer of lines of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            lines: Lines::new(reader, limit),
            acceptor,
            keys: RowKeys::for_stream(acceptor),
        }
    }
}

impl<R: BufRead> Importer for JsonlImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        while let Some(line) = self.lines.read()? {
            match line.bytes {
                Some(bytes) if is_blank(bytes) => {}
                Some(bytes) => {
                    let outcome = match &mut self.keys {
                        Some(keys) => self.acceptor.line(&keys.keyed(bytes)),
                        None => self.acceptor.line(bytes),
                    };
                    return Ok(Some(Item::new(line.number, bytes.len(), outcome)));
                }
                None => return Ok(Some(too_long(&line))),
            }
        }
        Ok(None)
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

fn too_long(line: &Line<'_>) -> Item {
    Item::new(
        line.number,
        0,
        Err(Rejection::new(
            RejectionCode::LineTooLong,
            format!("the line is longer than {} MiB", MAX_LINE_BYTES >> 20),
        )),
    )
}
