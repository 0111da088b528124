//! Changes that wait for the end of an import, in a file of which nobody else knows: there may be more of them than memory holds.

use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};

use contract::id::StreamName;
use contract::json::RecordBody;
use contract::key::RecordKey;
use store::StoreError;
use store::records::{Change, ChangeOp};

use super::BatchLimits;

/// Changes in their order.
pub(super) struct Waiting {
    file: BufWriter<std::fs::File>,
}

impl Waiting {
    pub(super) fn new() -> Result<Self, StoreError> {
        let file = tempfile::tempfile().map_err(failed)?;
        Ok(Self {
            file: BufWriter::new(file),
        })
    }

    pub(super) fn push(&mut self, change: &Change) -> Result<(), StoreError> {
        let ChangeOp::Add(body) = &change.op else {
            return Ok(());
        };
        let key = change.key.ordering_form();
        let line = (&change.stream, key, &change.emitted_at, body.as_str());
        serde_json::to_writer(&mut self.file, &line).map_err(|error| failed(error.into()))?;
        self.file.write_all(b"\n").map_err(failed)
    }

    /// Gives the changes in their order, a batch at a time.
    pub(super) fn give(
        self,
        limits: BatchLimits,
        mut take: impl FnMut(Vec<Change>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut file = self
            .file
            .into_inner()
            .map_err(|error| failed(error.into()))?;
        file.rewind().map_err(failed)?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for line in BufReader::new(file).lines() {
            let line = line.map_err(failed)?;
            let change = change_of(&line);
            batch.push(change.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?);
            bytes += line.len();
            if batch.len() >= limits.lines || bytes >= limits.bytes {
                take(std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        take(batch)
    }
}

fn change_of(line: &str) -> Option<Change> {
    let (stream, key, emitted_at, body): (String, String, String, String) =
        serde_json::from_str(line).ok()?;
    Some(Change {
        stream: StreamName::parse(&stream).ok()?,
        key: RecordKey::from_ordering_form(&key),
        emitted_at,
        op: ChangeOp::Upsert(RecordBody::parse(body).ok()?),
    })
}

fn failed(source: io::Error) -> StoreError {
    StoreError::Io {
        path: std::env::temp_dir(),
        source,
    }
}
