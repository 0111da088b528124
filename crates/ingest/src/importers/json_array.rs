//! A JSON array of objects: each element is a bare record or an envelope, as a line of JSONL is.

use std::io::BufRead;

use super::outline::Outline;
use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode};
use crate::table::RowKeys;

pub struct JsonArrayImporter<'a, R> {
    outline: Outline<R>,
    acceptor: &'a Acceptor<'a>,
    keys: Option<RowKeys>,
    begun: bool,
}

impl<'a, R: BufRead> JsonArrayImporter<'a, R> {
    /// An importer of elements of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self {
            outline: Outline::new(reader),
            acceptor,
            keys: RowKeys::for_stream(acceptor),
            begun: false,
        }
    }
}

impl<R: BufRead> Importer for JsonArrayImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        let outline = &mut self.outline;
        if !self.begun {
            self.begun = true;
            if !outline.enter(b'[')? {
                return Err(outline.broken("the file does not begin with a list"));
            }
        } else if outline.peek()?.is_none() {
            return Ok(None);
        }
        if !outline.element()? {
            return match outline.peek()? {
                None => Ok(None),
                Some(_) => Err(outline.broken("something follows the end of the list")),
            };
        }
        let line = outline.line();
        if !outline.take(MAX_LINE_BYTES)? {
            let message = format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20);
            let rejection = Rejection::new(RejectionCode::LineTooLong, message);
            return Ok(Some(Item::new(line, 0, Err(rejection))));
        }
        let element = outline.taken();
        let outcome = match &mut self.keys {
            Some(keys) => self.acceptor.line(&keys.keyed(element)),
            None => self.acceptor.line(element),
        };
        Ok(Some(Item::new(line, element.len(), outcome)))
    }
}
