//! Records that point at one that is deleted, by a relationship its source declares: files of a message, messages of a chat.
//! They stay unless they are asked for: an answer to a mail belongs to it as well, and is a mail of its own.

use contract::handle::RecordHandle;
use contract::page::Page;
use contract::record::Record;
use rest::owner::wire::{RecordName, Relation, Sources};

use super::handle_text;
use crate::failure::{CommandResult, Failure};
use crate::output::{counted, visible};
use crate::owner::{OwnerClient, RequestPath};
use crate::reading::CommandLine;

const PAGE: &str = "100";
/// Ids that are named; of more the count is told.
pub(super) const NAMED: usize = 12;

/// Records that point at deleted ones, by the name of their relationship.
pub(super) struct Related {
    pub(super) relation: String,
    pub(super) records: Vec<RecordName>,
}

/// Finds everything that points at the records.
pub(super) fn find(owner: &OwnerClient, records: &[RecordName]) -> CommandResult<Vec<Related>> {
    let sources = owner.sources()?;
    let mut all: Vec<Related> = Vec::new();
    for record in records {
        for relation in relations(&sources, record) {
            let mut found = pointing_at(owner, record, relation)?;
            found.retain(|one| !records.contains(one));
            match all.iter_mut().find(|one| one.relation == relation.name) {
                Some(known) => known.records.extend(found),
                None => all.push(Related {
                    relation: relation.name.clone(),
                    records: found,
                }),
            }
        }
    }
    Ok(all)
}

fn relations<'s>(sources: &'s Sources, record: &RecordName) -> &'s [Relation] {
    let mut connections = sources.connections.iter();
    let connection = connections.find(|one| one.connection_id == record.connection_id);
    let connector = connection.and_then(|connection| {
        let mut connectors = sources.connectors.iter();
        connectors.find(|one| one.connector_key == connection.connector_key)
    });
    let stream = connector.and_then(|connector| {
        let mut streams = connector.streams.iter();
        streams.find(|one| one.name == record.stream)
    });
    stream.map_or(&[], |stream| &stream.relations)
}

fn pointing_at(
    owner: &OwnerClient,
    record: &RecordName,
    relation: &Relation,
) -> CommandResult<Vec<RecordName>> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let target = RequestPath::new("/v1/streams").segment(relation.stream.as_str());
        let target = target
            .segment("records")
            .param("connection_id", record.connection_id.as_str())
            .param(
                &format!("filter[{}]", relation.foreign_key),
                &record.record_id,
            )
            .param("limit", PAGE)
            .optional_param("cursor", cursor.as_deref());
        let page: Page<Record> = owner.get(&target)?;
        cursor = page.next_cursor().map(str::to_owned);
        found.extend(page.data.into_iter().map(|one| RecordName {
            connection_id: record.connection_id.clone(),
            stream: relation.stream.clone(),
            record_id: one.id,
        }));
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

/// Takes the records of the named relationships out of what was found.
pub(super) fn take(found: &mut Vec<Related>, names: &[String]) -> CommandResult<Vec<RecordName>> {
    let mut taken = Vec::new();
    for name in names {
        let Some(at) = found.iter().position(|one| one.relation == *name) else {
            let known: Vec<&str> = found.iter().map(|one| one.relation.as_str()).collect();
            let failure = Failure::new(format!(
                "nothing is related to these records by '{}'; nothing was deleted",
                visible(name)
            ));
            return Err(match known.as_slice() {
                [] => failure,
                known => failure.hint(format!("relationships: {}", known.join(", "))),
            });
        };
        taken.extend(found.remove(at).records);
    }
    Ok(taken)
}

impl Related {
    /// What stays, by id, and the command that deletes it.
    pub(super) fn describe(&self, delete: &CommandLine) -> String {
        let count = counted(self.records.len() as u64, "record", "records");
        let named: Vec<String> = self.records.iter().take(NAMED).map(handle_text).collect();
        let more = self.records.len() > NAMED;
        let rest = if more { ", …" } else { "" };
        let listed = named.join(", ");
        let command = named.iter().fold(delete.clone(), CommandLine::argument);
        let command = match self.records.first() {
            // The deleted record may be gone when this is read, so the command names what is left.
            Some(first) => command.option("connection-id", beside(first)),
            None => command,
        };
        let those = if more {
            format!("to delete the first {NAMED}")
        } else {
            "to delete them as well".to_owned()
        };
        format!(
            "Related by {} and kept: {count} ({listed}{rest}); {those}: {command}",
            visible(&self.relation)
        )
    }
}

/// The connection, where an id cannot say it.
fn beside(record: &RecordName) -> Option<String> {
    let handle = super::handle_of(record)?;
    let connection = handle.connection().map(str::to_owned);
    connection.filter(|_| !RecordHandle::embeds_connection(&handle))
}
