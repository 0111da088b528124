//! The digest that every record carries, checked whenever it is read.
//!
//! It is a CRC-32, which the processor helps to compute: it finds every flipped bit, and is no proof against somebody who can
//! write the file.

/// What a digest covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) stream: i64,
    pub(crate) key: &'a str,
    pub(crate) version: u64,
    pub(crate) emitted_at: &'a str,
    pub(crate) data: Option<&'a str>,
}

impl Content<'_> {
    pub(crate) fn digest(&self) -> i64 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.stream.to_le_bytes());
        hasher.update(&self.version.to_le_bytes());
        for part in [self.key, self.emitted_at] {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        if let Some(data) = self.data {
            hasher.update(&[1]);
            hasher.update(data.as_bytes());
        }
        hasher.finalize().into()
    }

    /// Whether this is what was written with the digest. A row without one cannot be checked.
    pub(crate) fn is_written_with(&self, digest: Option<i64>) -> bool {
        digest.is_none_or(|digest| digest == self.digest())
    }
}

/// The digest of a record, for those who measure what it costs.
pub fn record_digest(data: &str) -> i64 {
    let content = Content {
        stream: 1,
        key: "",
        version: 1,
        emitted_at: "",
        data: Some(data),
    };
    content.digest()
}
