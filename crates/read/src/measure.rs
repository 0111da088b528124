//! How many bytes an answer has: pages end by what they show, as it is sent.

use std::io::{self, Write};

use serde::Serialize;
use store::records::{PAGE_BYTES, Room};

/// What a page has around its records: its links, with the address as it was asked, and what is to be known about it.
const AROUND_BYTES: usize = 128 * 1024;

/// The room of a page, so that with everything around its entries it is no larger than [`PAGE_BYTES`].
pub(crate) fn page_room() -> Room {
    Room::of(PAGE_BYTES - AROUND_BYTES)
}

/// The bytes of one entry of a page as JSON, with what separates it from the next.
pub(crate) fn written_bytes(entry: &impl Serialize) -> usize {
    let mut counted = Counted(1);
    // Counting cannot fail, and an entry that cannot be written fails where it is.
    let _ = serde_json::to_writer(&mut counted, entry);
    counted.0
}

/// Keeps nothing but the number.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
