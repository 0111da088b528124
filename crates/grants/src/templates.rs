//! Templates: named selections that the owner keeps, to be used for one grant after another.
//!
//! A template names its connections. One that is added later is no part of it until the owner saves it anew.

use contract::id::ConnectionId;
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::registry::{Change, EntryKind};
use store::{Store, StoreError};
use thiserror::Error;

use crate::documents::{all, find, put};
use crate::issue::IssuedStream;
use crate::listing::{ShowError, show};
use crate::selection::ChosenStream;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    pub name: String,
    pub streams: Vec<ChosenStream>,
    /// When it was saved, RFC 3339.
    pub saved_at: String,
    /// The connections there were, part of it or not.
    connections: Vec<ConnectionId>,
}

/// A template, and the connections that were added after it was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTemplate {
    #[serde(flatten)]
    pub template: Template,
    pub added_since: Vec<ConnectionId>,
}

#[derive(Debug, Error)]
pub enum TemplateError {
    #[error(
        "the name {0:?} cannot be used: it takes 1 to {MAX_NAME_BYTES} bytes without control characters"
    )]
    Name(String),
    #[error("nothing is selected, and a template of nothing grants nothing")]
    Empty,
    #[error("there is no template {0:?}; `pdpp grant template list` lists them")]
    Unknown(String),
    #[error(transparent)]
    Show(#[from] ShowError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps a selection under a name, in place of what it named before.
pub fn save_template(
    store: &dyn Store,
    name: &str,
    streams: Vec<ChosenStream>,
    now: Instant,
) -> Result<Template, TemplateError> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        return Err(TemplateError::Name(name.to_owned()));
    }
    if streams.is_empty() {
        return Err(TemplateError::Empty);
    }
    let connections = store.connections().into_iter().map(|one| one.id).collect();
    let template = Template {
        name: name.to_owned(),
        streams,
        saved_at: now.to_rfc3339_millis(),
        connections,
    };
    store.apply(&[put(EntryKind::Template, name, &template)], now)?;
    Ok(template)
}

/// Keeps what a grant or package gives.
pub fn save_template_from(
    store: &dyn Store,
    name: &str,
    grant: &str,
    now: Instant,
) -> Result<Template, TemplateError> {
    let shown = show(store, grant, now, 0)?;
    let streams = shown.overview.streams.iter().map(IssuedStream::chosen);
    save_template(store, name, streams.collect(), now)
}

pub fn templates(store: &dyn Store, now: Instant) -> Result<Vec<OfferedTemplate>, StoreError> {
    let connections = store.connections();
    let found = all::<Template>(store, EntryKind::Template, now)?;
    let offered = found.into_iter().map(|found| {
        let template = found.value;
        let mut added = connections
            .iter()
            .map(|one| one.id.clone())
            .collect::<Vec<_>>();
        added.retain(|id| !template.connections.contains(id));
        OfferedTemplate {
            template,
            added_since: added,
        }
    });
    Ok(offered.collect())
}

pub fn template(store: &dyn Store, name: &str, now: Instant) -> Result<Template, TemplateError> {
    let found = find::<Template>(store, EntryKind::Template, name.trim(), now)?;
    let found = found.ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
    Ok(found.value)
}

pub fn remove_template(
    store: &dyn Store,
    name: &str,
    now: Instant,
) -> Result<Template, TemplateError> {
    let removed = template(store, name, now)?;
    store.apply(&[Change::remove(EntryKind::Template, &removed.name)], now)?;
    Ok(removed)
}
