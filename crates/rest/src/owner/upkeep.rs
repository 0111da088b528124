//! Backups, the index, and what deleted records held.

use axum::http::{HeaderValue, StatusCode};
use contract::id::BlobId;
use std::path::PathBuf;
use std::sync::Arc;
use store::inspection::{Damage, Depth};
use store::keeping::{CountedTime, KeepRules};

use super::telling::{told, written};
use super::wire::{
    Accepted, Damaged, Indexed, Inspected, MISSING_BLOB_IDS, MISSING_BLOBS, Purged, Refusal, Time,
};
use super::{blocking, question, store_problem};
use crate::problem;
use crate::table::{Ask, Outcome};

/// How many missing blobs are named.
const NAMED: usize = 10;

/// Everything, as a tar archive. It is sent and not written here: whoever asked for it knows where they may write. What is
/// missing is known before it begins, and named in headers.
pub(super) async fn backup(ask: Ask) -> Outcome {
    let store = Arc::clone(&ask.service.store);
    let beside = ask.params.text("beside").map(PathBuf::from);
    let missing = blocking(ask.service, |service| {
        let missing = service.store.missing_blobs();
        missing.map_err(|error| store_problem(&error))
    });
    let missing = missing.await?;
    let count = HeaderValue::from(missing.len());
    let named: Vec<&str> = missing.iter().take(NAMED).map(BlobId::as_str).collect();
    let named = HeaderValue::from_str(&named.join(","));
    let mut response = written("application/x-tar", move |out| {
        let saved = store.backup_beside(out, &missing, beside.as_deref());
        saved.map_err(|error| Refusal::from(&error))
    })
    .await?;
    let headers = response.headers_mut();
    headers.insert(MISSING_BLOBS, count);
    if let Ok(named) = named {
        headers.insert(MISSING_BLOB_IDS, named);
    }
    Ok(response)
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

pub(super) async fn purge(mut ask: Ask) -> Outcome {
    let rules: Option<KeepRules> = question(&mut ask).await?;
    let rules = rules.unwrap_or_default();
    let purged = blocking(ask.service, move |service| {
        // Before the rest, which also gives back the room.
        let dropped = service.store.drop_old(rules);
        let dropped = dropped.map_err(|error| store_problem(&error))?;
        let purged = service
            .store
            .purge()
            .map_err(|error| store_problem(&error))?;
        Ok(Purged {
            tombstones: purged.tombstones,
            blobs: purged.blobs,
            dropped,
        })
    });
    problem::json(StatusCode::OK, &purged.await?)
}

/// How much there is of what grows by itself.
pub(super) async fn grown(ask: Ask) -> Outcome {
    let grown = blocking(ask.service, |service| {
        service.store.grown().map_err(|error| store_problem(&error))
    });
    problem::json(StatusCode::OK, &grown.await?)
}

/// Whether all is whole. It may take as long as reading everything does.
pub(super) async fn inspect(ask: Ask) -> Outcome {
    let depth = match ask.params.text("thorough") {
        Some("true") => Depth::Thorough,
        _ => Depth::Glance,
    };
    let inspected = blocking(ask.service, move |service| {
        let found = service
            .store
            .inspect(depth)
            .map_err(|error| store_problem(&error))?;
        Ok(Inspected {
            records: found.records,
            blobs: found.blobs,
            damaged_records: told_of(found.damaged_records),
            damaged_blobs: told_of(found.damaged_blobs),
            damaged_index: told_of(found.damaged_index),
            traces_left: found.traces_left,
            room_to_erase: found.room_to_erase,
            rolled_back: found.rolled_back.map(|rollback| rollback.to_string()),
            unmarked: found.unmarked,
        })
    });
    problem::json(StatusCode::OK, &inspected.await?)
}

/// Takes a store that went back in time as it is, so that clients are answered again.
pub(super) async fn accept_rollback(ask: Ask) -> Outcome {
    let accepted = blocking(ask.service, |service| {
        let accepted = service.store.accept_rollback();
        let accepted = accepted.map_err(|error| store_problem(&error))?;
        Ok(Accepted {
            rolled_back: accepted.map(|rollback| rollback.to_string()),
        })
    });
    problem::json(StatusCode::OK, &accepted.await?)
}

/// The time as it is counted, and the machine's.
pub(super) async fn time(ask: Ask) -> Outcome {
    problem::json(StatusCode::OK, &Time::from(ask.service.store.time()))
}

/// Counts from the machine's time again.
pub(super) async fn reset_time(ask: Ask) -> Outcome {
    let before = blocking(ask.service, |service| {
        let before = service.store.reset_time();
        before.map_err(|error| store_problem(&error))
    });
    problem::json(StatusCode::OK, &Time::from(before.await?))
}

impl From<CountedTime> for Time {
    fn from(time: CountedTime) -> Self {
        Self {
            counted: time.counted,
            machine: time.machine,
        }
    }
}

fn told_of(damages: Vec<Damage>) -> Vec<Damaged> {
    let told = |damage: Damage| Damaged {
        path: damage.path.display().to_string(),
        detail: damage.detail,
    };
    damages.into_iter().map(told).collect()
}
