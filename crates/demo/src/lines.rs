//! Records as lines of an import: one envelope each, members in a fixed order.

use serde::Serialize;

use crate::error::DemoError;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) text: String,
    pub(crate) count: u64,
}

#[derive(Serialize)]
struct Envelope<'a, K, T> {
    stream: &'a str,
    key: K,
    emitted_at: &'a str,
    data: &'a T,
}

impl Lines {
    /// Adds a record. A compound key is an array of its parts.
    pub(crate) fn add<T: Serialize>(
        &mut self,
        stream: &str,
        key: impl Serialize,
        emitted_at: &str,
        data: &T,
    ) -> Result<(), DemoError> {
        let line = serde_json::to_string(&Envelope {
            stream,
            key,
            emitted_at,
            data,
        })?;
        self.text.push_str(&line);
        self.text.push('\n');
        self.count += 1;
        Ok(())
    }
}
