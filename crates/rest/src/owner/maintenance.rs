//! Backups, rebuilding the index, purging, inspection, and the clock.

use axum::http::{HeaderValue, StatusCode};
use contract::error::ErrorCode;
use contract::id::BlobId;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::inspection::Depth;
use store::keeping::KeepRules;

use super::progress::{stream_bytes, stream_progress};
use super::wire::{
    Accepted, BACKUP_NUMBER, BackupDamage, Indexed, MISSING_BLOB_IDS, MISSING_BLOBS, Purged,
    Refusal,
};
use super::{answer, json_body, owner_blocking};
use crate::history;
use crate::problem::{self, Problem};
use crate::table::{HandlerResult, RequestContext};

const NAMED: usize = 10;

/// A backup as a tar archive. It is sent, not written here: the client knows where it may write. Missing blobs are
/// known before it begins and named in headers.
pub(crate) async fn backup(context: RequestContext) -> HandlerResult {
    let (store, now) = (Arc::clone(&context.service.store), context.service.now());
    let outcomes = Arc::clone(&context.service.backups);
    let beside = context.params.text("beside").map(PathBuf::from);
    let missing = owner_blocking(context.service, |service| {
        Ok(service.store.missing_blobs()?)
    });
    let missing = missing.await?;
    let count = HeaderValue::from(missing.len());
    let named: Vec<&str> = missing.iter().take(NAMED).map(BlobId::as_str).collect();
    let named = HeaderValue::from_str(&named.join(","));
    let number = outcomes.begin();
    let mut response = stream_bytes("application/x-tar", move |out| {
        let saved = store.backup_beside(out, &missing, beside.as_deref());
        let damaged = saved.map_err(|error| Refusal::from(&error))?;
        outcomes.end(number, damaged);
        history::keep_backup(&*store, now);
        Ok(())
    })
    .await?;
    let headers = response.headers_mut();
    headers.insert(BACKUP_NUMBER, HeaderValue::from(number));
    headers.insert(MISSING_BLOBS, count);
    if let Ok(named) = named {
        headers.insert(MISSING_BLOB_IDS, named);
    }
    Ok(response)
}

/// What the last backups found damaged: known only when everything was sent.
#[derive(Debug, Default)]
pub(crate) struct BackupOutcomes(Mutex<BackupList>);

#[derive(Debug, Default)]
struct BackupList {
    begun: u64,
    ended: VecDeque<(u64, Vec<String>)>,
}

impl BackupOutcomes {
    fn begin(&self) -> u64 {
        let mut list = self.list();
        list.begun += 1;
        list.begun
    }

    fn end(&self, number: u64, damaged: Vec<String>) {
        let mut list = self.list();
        list.ended.push_back((number, damaged));
        if list.ended.len() > NAMED {
            list.ended.pop_front();
        }
    }

    fn list(&self) -> MutexGuard<'_, BackupList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn backup_damage(context: RequestContext) -> HandlerResult {
    let number = context
        .params
        .text("number")
        .and_then(|text| text.parse().ok());
    let list = context.service.backups.list();
    let found = list.ended.iter().find(|(ended, _)| Some(*ended) == number);
    let damaged = found.map(|(_, damaged)| damaged.clone());
    drop(list);
    let damaged = damaged.ok_or_else(|| {
        Problem::new(
            ErrorCode::NotFound,
            "no backup of that number has come to its end",
        )
    })?;
    problem::json(StatusCode::OK, &BackupDamage { damaged })
}

pub(super) async fn rebuild_index(context: RequestContext) -> HandlerResult {
    let store = Arc::clone(&context.service.store);
    Ok(stream_progress(move |progress| {
        let mut indexed = Indexed { records: 0 };
        let rebuilt = store.rebuild_index(&mut |records| {
            indexed = Indexed { records };
            progress.report(indexed);
        });
        rebuilt
            .map(|()| indexed)
            .map_err(|error| Refusal::from(&error))
    }))
}

pub(super) async fn purge(mut context: RequestContext) -> HandlerResult {
    let rules: Option<KeepRules> = json_body(&mut context).await?;
    let rules = rules.unwrap_or_default();
    answer(context.service, move |service| {
        // First, because the purge also frees the space.
        let dropped = service.store.drop_old(rules)?;
        let purged = service.store.purge()?;
        Ok(Purged {
            tombstones: purged.tombstones,
            blobs: purged.blobs,
            dropped,
        })
    })
    .await
}

/// Sizes of what grows by itself: the log and old versions.
pub(super) async fn grown(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| Ok(service.store.grown()?)).await
}

/// Inspects the store. A thorough inspection reads everything.
pub(super) async fn inspect(context: RequestContext) -> HandlerResult {
    let depth = match context.params.text("thorough") {
        Some("true") => Depth::Thorough,
        _ => Depth::Glance,
    };
    answer(context.service, move |service| {
        Ok(service.store.inspect(depth)?)
    })
    .await
}

/// Accepts a store that was rolled back, so that clients are served again.
pub(super) async fn accept_rollback(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        let accepted = service.store.accept_rollback()?;
        Ok(Accepted {
            rolled_back: accepted.map(|rollback| rollback.to_string()),
        })
    })
    .await
}

pub(super) async fn time(context: RequestContext) -> HandlerResult {
    problem::json(StatusCode::OK, &context.service.store.time())
}

pub(super) async fn reset_time(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| Ok(service.store.reset_time()?)).await
}
