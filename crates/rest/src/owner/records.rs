//! Deleting single records.

use std::collections::BTreeMap;

use contract::error::ErrorCode;
use contract::id::ConnectionId;
use contract::key::RecordKey;
use ingest::Export;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{Applied, Change, ChangeOp};

use super::wire::{Deleted, Deletion, RecordName};
use super::{OwnerResult, answer, json_body};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// Deletes all named records, or none if one does not exist.
pub(super) async fn delete(mut context: RequestContext) -> HandlerResult {
    let deletion: Deletion = json_body(&mut context).await?;
    answer(context.service, move |service| deleted(service, &deletion)).await
}

/// Deletes all named records, or none if one does not exist.
pub(crate) fn delete_records(service: &Service, deletion: &Deletion) -> Result<Deleted, Problem> {
    deleted(service, deletion).map_err(|problem| problem.0)
}

fn deleted(service: &Service, deletion: &Deletion) -> OwnerResult<Deleted> {
    let now = service.now().to_rfc3339_millis();
    let mut batches: BTreeMap<&ConnectionId, Vec<Change>> = BTreeMap::new();
    for name in &deletion.records {
        let keys = keys_of(service, name)?;
        let deletions = keys.into_iter().map(|key| Change {
            stream: name.stream.clone(),
            key,
            emitted_at: now.clone(),
            op: ChangeOp::DeleteByOwner,
        });
        let batch = batches.entry(&name.connection_id).or_default();
        batch.extend(deletions);
    }
    let mut count = 0;
    for (connection, batch) in batches {
        let applied = service.store.write(connection, batch)?;
        let gone = applied.iter().filter(|one| **one == Applied::Deleted);
        count += gone.count() as u64;
    }
    Ok(Deleted { records: count })
}

/// The key of an existing record, and another under which it could come back.
fn keys_of(service: &Service, name: &RecordName) -> OwnerResult<Vec<RecordKey>> {
    let missing = || {
        let message = format!(
            "there is no record {:?} in {} of {}",
            name.record_id, name.stream, name.connection_id
        );
        Problem::new(ErrorCode::NotFound, message)
    };
    let connection = service.store.connection(&name.connection_id);
    let connection =
        connection.ok_or_else(|| StoreError::UnknownConnection(name.connection_id.clone()))?;
    let declaration = service.store.declaration(&connection.connector);
    let declared = declaration
        .as_deref()
        .and_then(|one| one.stream(name.stream.as_str()));
    let parts = declared.map_or(1, |stream| stream.primary_key.len());
    let key = RecordKey::from_wire(&name.record_id, parts).map_err(|_| missing())?;
    let stream = StreamRef::new(&name.connection_id, &name.stream);
    let found = service.store.get(&stream, &key)?.ok_or_else(missing)?;
    let connector = connection.connector.as_str();
    let other = Export::other_key(connector, name.stream.as_str(), &key, &found.body);
    Ok(std::iter::once(key).chain(other).collect())
}
