//! The sentence model: which one there is, adding and removing it, and making vectors of what has none.

use std::path::PathBuf;
use std::sync::Arc;

use store::{Store, StoreError};

use super::progress::{ProgressSender, stream_progress};
use super::wire::{Embedded, ModelFolder, ModelState, Refusal};
use super::{answer, json_body};
use crate::table::{HandlerResult, RequestContext};

pub(super) async fn show(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| Ok(state(&*service.store)?)).await
}

pub(super) async fn add(mut context: RequestContext) -> HandlerResult {
    let asked: ModelFolder = json_body(&mut context).await?;
    answer(context.service, move |service| {
        service.store.add_model(&PathBuf::from(asked.folder))?;
        Ok(state(&*service.store)?)
    })
    .await
}

pub(super) async fn remove(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        let removed = service.store.remove_model()?;
        let removed = removed.ok_or(StoreError::NoModel)?;
        Ok(ModelState {
            name: removed.name,
            dimensions: removed.dimensions,
            ..ModelState::default()
        })
    })
    .await
}

pub(super) async fn embed(context: RequestContext) -> HandlerResult {
    let store = Arc::clone(&context.service.store);
    Ok(stream_progress(move |progress| {
        // Making vectors lowers the priority of its thread, and this one serves others afterwards.
        let embedding = std::thread::scope(|scope| {
            let thread = scope.spawn(|| embed_all(&*store, progress));
            thread.join()
        });
        embedding.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }))
}

fn embed_all(store: &dyn Store, progress: &ProgressSender) -> Result<ModelState, Refusal> {
    let refused = |error: StoreError| Refusal::from(&error);
    loop {
        let state = state(store).map_err(refused)?;
        progress.report(Embedded {
            records: state.embedded,
        });
        if !store.embed_some().map_err(refused)? {
            return self::state(store).map_err(refused);
        }
    }
}

fn state(store: &dyn Store) -> Result<ModelState, StoreError> {
    let status = store.meaning_status()?.ok_or(StoreError::NoModel)?;
    Ok(ModelState {
        name: status.model.name,
        dimensions: status.model.dimensions,
        embedded: status.embedded,
        records: status.records,
        vectors: status.vectors,
    })
}
