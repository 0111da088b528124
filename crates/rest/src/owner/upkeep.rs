//! Backups, the index, and what deleted records held.

use axum::http::StatusCode;
use std::sync::Arc;

use super::telling::{told, written};
use super::wire::{Indexed, Purged, Refusal};
use super::{blocking, store_problem};
use crate::problem;
use crate::table::{Ask, Outcome};

/// Everything, as a tar archive. It is sent and not written here: whoever asked for it knows where they may write.
pub(super) async fn backup(ask: Ask) -> Outcome {
    let store = Arc::clone(&ask.service.store);
    Ok(written("application/x-tar", move |out| {
        store.backup(out).map_err(|error| Refusal::from(&error))
    }))
}

pub(super) async fn rebuild_index(ask: Ask) -> Outcome {
    let store = Arc::clone(&ask.service.store);
    Ok(told(move |teller| {
        let mut indexed = Indexed { records: 0 };
        let rebuilt = store.rebuild_index(&mut |records| {
            indexed = Indexed { records };
            teller.progress(indexed);
        });
        rebuilt
            .map(|()| indexed)
            .map_err(|error| Refusal::from(&error))
    }))
}

pub(super) async fn purge(ask: Ask) -> Outcome {
    let purged = blocking(ask.service, |service| {
        let purged = service
            .store
            .purge()
            .map_err(|error| store_problem(&error))?;
        Ok(Purged {
            tombstones: purged.tombstones,
            blobs: purged.blobs,
        })
    });
    problem::json(StatusCode::OK, &purged.await?)
}
