//! The answer to a batch that came over the wire: how many lines were taken, and a receipt for each that was not.

use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::id::{ConnectionId, StreamName};
use contract::time::Instant;
use serde::Serialize;
use serde_with::skip_serializing_none;
use sha2::{Digest, Sha256};
use store::records::{Applied, Records};

use crate::accept::Acceptor;
use crate::importer::{Batch, BatchLimits, Importer, ItemPosition, Stopped, Tally};
use crate::importers::JsonlImporter;
use crate::rejection::{Rejection, RejectionCode};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    pub stream: StreamName,
    /// Lines that were not blank.
    pub records_attempted: u64,
    /// Lines taken: written, or the store held the same already.
    pub records_accepted: u64,
    /// Lines refused for good.
    pub records_rejected: u64,
    /// Always empty: what is not about one line fails the request.
    pub errors: Vec<String>,
    /// One entry per line refused.
    pub rejections: Vec<ReceiptRejection>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceiptRejection {
    /// Which line, counted from 0 without blank ones.
    pub input_index: u64,
    pub code: RejectionCode,
    /// Names this rejection in logs and questions.
    pub receipt_id: String,
    pub message: String,
    pub field: Option<String>,
    /// What stands in it, as it is but cut, where that is the fault. Whoever shows it escapes it.
    pub value: Option<String>,
}

/// Takes the lines of one request and writes them in durable batches.
///
/// An error means the rest was not taken: lines already written stay, and sending all again is safe.
pub fn receive(
    store: &dyn Records,
    connection: &ConnectionId,
    stream: &StreamName,
    (lines, acceptor): (impl BufRead, &Acceptor<'_>),
    received_at: Instant,
) -> Result<Receipt, Stopped> {
    let mut importer = JsonlImporter::new(lines, acceptor);
    let mut writing = Writing {
        receipt: Receipt {
            stream: stream.clone(),
            records_attempted: 0,
            records_accepted: 0,
            records_rejected: 0,
            errors: Vec::new(),
            rejections: Vec::new(),
        },
        salt: format!("{connection}\n{stream}\n{}", received_at.0),
    };
    let mut batch = Batch::new(BatchLimits::default());
    let mut write = |changes| store.write(connection, changes);
    while let Some(item) = importer.next_item()? {
        batch.add(item);
        if batch.is_full() {
            batch.flush(&mut write, &mut writing)?;
        }
    }
    batch.flush(&mut write, &mut writing)?;
    Ok(writing.receipt)
}

struct Writing {
    receipt: Receipt,
    /// What makes receipt ids of different requests different.
    salt: String,
}

impl Tally for Writing {
    fn applied(&mut self, _: ItemPosition, _: Applied) {
        self.receipt.records_attempted += 1;
        self.receipt.records_accepted += 1;
    }

    fn kept_deleted(&mut self, _: ItemPosition) -> Option<Rejection> {
        Some(Rejection::new(
            RejectionCode::DeletedByOwner,
            "the owner deleted the record of this key, and it stays deleted until they import it with --revive",
        ))
    }

    fn rejected(&mut self, position: ItemPosition, rejection: Rejection) {
        self.receipt.records_attempted += 1;
        self.receipt.records_rejected += 1;
        self.receipt.rejections.push(ReceiptRejection {
            input_index: position.index,
            code: rejection.code,
            receipt_id: self.receipt_id(position.index, &rejection.message),
            message: rejection.message,
            field: rejection.field,
            value: rejection.value,
        });
    }
}

impl Writing {
    /// `rr_` and 24 characters that follow from the request, the line's position and what is wrong with it.
    fn receipt_id(&self, index: u64, message: &str) -> String {
        let digest = Sha256::digest(format!("{}\n{index}\n{message}", self.salt));
        let short = digest.get(..18).unwrap_or_default();
        format!("rr_{}", URL_SAFE_NO_PAD.encode(short))
    }
}
