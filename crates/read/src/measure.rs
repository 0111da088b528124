//! The size of an answer in bytes: pages end by the bytes they send.

use std::io::{self, Write};

use serde::Serialize;
use store::records::{ByteBudget, PAGE_BYTES};

/// What a page needs besides its records: links, which repeat the request, and `meta`.
const AROUND_BYTES: usize = 128 * 1024;

/// The bytes that the entries of a page may take: so many that the whole page stays within [`PAGE_BYTES`], and no more than
/// the caller has room for.
pub(crate) fn page_budget(max_bytes: Option<usize>) -> ByteBudget {
    // The brackets of the list count too.
    let asked = max_bytes.map(|bytes| bytes.saturating_sub(1));
    let most = PAGE_BYTES - AROUND_BYTES;
    ByteBudget::new(asked.map_or(most, |bytes| bytes.min(most)))
}

/// The bytes of one entry of a page as JSON, with its separator.
pub(crate) fn written_bytes(entry: &impl Serialize) -> usize {
    let mut counted = Counted(1);
    // Counting cannot fail; an entry that cannot be serialised fails where it is sent.
    let _ = serde_json::to_writer(&mut counted, entry);
    counted.0
}

/// Counts bytes and keeps none of them.
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
