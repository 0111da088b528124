//! Immutable consent, and on whose behalf a read runs.
//!
//! A grant is closed: what it does not name it does not give, and an empty selection is an error, never "everything".
//! An [`Authority`] is what a token resolves to: the owner, or the rows of one grant or of several.

mod redaction;
mod rule;
mod widening;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::declaration::{
    Declaration, PROTOCOL_VERSION, Source, StreamDeclaration, connector_key_of,
};
use crate::id::{ClientId, ConnectionId, ConnectorKey, FieldName, GrantId, PackageId, StreamName};
use crate::time::{Instant, TimeRange};

pub use redaction::Redaction;
pub use rule::{RowRule, RuleDocument, RuleMistake, TypedRule, Via};

/// A resolved grant. Reading one from JSON checks every rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GrantDocument", into = "GrantDocument")]
pub struct Grant(GrantDocument);

/// A grant as written, unchecked. [`Grant::try_from`] is the way to a [`Grant`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantDocument {
    /// `0.1.0`.
    pub version: String,
    pub grant_id: GrantId,
    /// When it was issued, RFC 3339.
    pub issued_at: String,
    pub subject: Subject,
    pub client: GrantClient,
    pub source: Source,
    /// Against which declaration it was resolved.
    pub source_declaration: SourceDeclarationVersion,
    /// Why, as a URI.
    pub purpose_code: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose_description: Option<String>,
    /// Once or until it ends.
    pub access_mode: AccessMode,
    /// What may be read; closed.
    pub streams: Vec<GrantedStream>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_preset: Option<String>,
    /// What the client promises about keeping data; recorded, never enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<serde_json::Value>,
    /// When it ends, RFC 3339; null when only revocation ends it.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// The sentence that was agreed to. It names what is hidden, so it is never told to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<AgreedWords>,
}

/// What a grant gives, in the words in which it was shown when it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgreedWords {
    pub lines: Vec<String>,
    /// The SHA-256 of the lines, each ended by a line feed.
    pub digest: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub id: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantClient {
    pub client_id: ClientId,
    /// What it showed of itself at consent.
    pub client_display: Option<serde_json::Value>,
    /// Whether it has no client of its own: the owner made it for programs on the machine of the data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceDeclarationVersion {
    /// Opaque.
    pub version: String,
}

crate::names! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AccessMode {
        SingleUse = "single_use",
        /// Until it expires or is revoked.
        Continuous = "continuous",
    }
}

/// One stream of a grant. All lists are closed and none is empty.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantedStream {
    pub name: StreamName,
    /// The connections; on the wire of reads they are `connection_id`s.
    pub instance_ids: Vec<ConnectionId>,
    pub fields: Vec<FieldName>,
    pub time_constraint: Option<TimeConstraint>,
    /// Only these records, by canonical key.
    pub resources: Option<Vec<String>>,
    /// Only records that meet all of these.
    #[serde(rename = "where")]
    pub only: Option<Vec<RowRule>>,
    /// No record that meets any of these, whatever else allows it.
    pub except: Option<Vec<RowRule>>,
    /// The fields of which only a part is shown. Nothing else looks at them: no filter, order, search or figure.
    pub redact: Option<BTreeMap<FieldName, Redaction>>,
}

impl GrantedStream {
    /// The first rule that the declaration does not allow. As long as there is one, nothing of the stream can be read.
    pub fn broken_rule(
        &self,
        declaration: &Declaration,
        declared: &StreamDeclaration,
    ) -> Option<(&RowRule, RuleMistake)> {
        let rules = self.only.iter().chain(&self.except).flatten();
        rules
            .map(|rule| (rule, rule.typed(declaration, declared)))
            .find_map(|(rule, typed)| Some((rule, typed.err()?)))
    }
}

/// Only records of this time. A record whose field holds no time is invisible.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeConstraint {
    pub field: FieldName,
    /// From then on, inclusive.
    pub since: Option<String>,
    /// Until then, exclusive.
    pub until: Option<String>,
}

impl TimeConstraint {
    /// The range, or why there is none.
    pub fn range(&self) -> Result<TimeRange, GrantError> {
        let read = |bound: &Option<String>| match bound {
            None => Ok(None),
            Some(text) => match Instant::parse(text) {
                Some(moment) => Ok(Some(moment)),
                None => Err(GrantError::NotATime(text.clone())),
            },
        };
        let range = TimeRange {
            since: read(&self.since)?,
            until: read(&self.until)?,
        };
        match (range.since, range.until) {
            (None, None) => Err(GrantError::NoBound),
            (Some(since), Some(until)) if since > until => Err(GrantError::EmptyTime),
            _ => Ok(range),
        }
    }
}

/// Why a grant, or an authority made of grants, does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GrantError {
    /// Another format.
    #[error("grant version must be {PROTOCOL_VERSION}, found {0:?}; issue the grant again")]
    Version(String),
    #[error("{0} is empty, and an empty selection grants nothing; name what is granted")]
    Empty(String),
    #[error("{list} names {value:?} more than once")]
    Repeated { list: String, value: String },
    #[error("{0:?} is not an RFC 3339 time or date")]
    NotATime(String),
    /// A constraint that constrains nothing.
    #[error("a time constraint needs since or until")]
    NoBound,
    /// A constraint nothing can meet.
    #[error("since is later than until")]
    EmptyTime,
    #[error("{0} is not granted, so no part of it can be")]
    RedactsUngranted(FieldName),
    /// A source id without a connector key.
    #[error("source.id {0}")]
    Source(String),
    #[error(
        "grants {first} and {second} both give {stream} of {connection}; issue one grant for it"
    )]
    Overlap {
        first: GrantId,
        second: GrantId,
        connection: ConnectionId,
        stream: StreamName,
    },
    /// Grants of different clients cannot be read together.
    #[error("grant {0} belongs to another client")]
    OtherClient(GrantId),
}

impl TryFrom<GrantDocument> for Grant {
    type Error = GrantError;

    fn try_from(document: GrantDocument) -> Result<Self, GrantError> {
        if document.version != PROTOCOL_VERSION {
            return Err(GrantError::Version(document.version));
        }
        connector_key_of(&document.source.id).map_err(GrantError::Source)?;
        for time in std::iter::once(&document.issued_at).chain(&document.expires_at) {
            Instant::parse(time).ok_or_else(|| GrantError::NotATime(time.clone()))?;
        }
        closed(
            "streams",
            document.streams.iter().map(|stream| stream.name.as_str()),
        )?;
        for stream in &document.streams {
            check_stream(stream)?;
        }
        Ok(Grant(document))
    }
}

impl From<Grant> for GrantDocument {
    fn from(grant: Grant) -> Self {
        grant.0
    }
}

impl Grant {
    pub fn document(&self) -> &GrantDocument {
        &self.0
    }

    pub fn id(&self) -> &GrantId {
        &self.0.grant_id
    }

    pub fn client_id(&self) -> &ClientId {
        &self.0.client.client_id
    }

    pub fn streams(&self) -> &[GrantedStream] {
        &self.0.streams
    }

    /// When it ends, if it does by itself.
    pub fn expires_at(&self) -> Option<Instant> {
        self.0.expires_at.as_deref().and_then(Instant::parse)
    }

    /// The rows it gives, one per connection and stream.
    fn rows(&self) -> Result<Vec<GrantedRow>, GrantError> {
        let connector = connector_key_of(&self.0.source.id).map_err(GrantError::Source)?;
        let mut rows = Vec::new();
        for stream in &self.0.streams {
            for connection in &stream.instance_ids {
                rows.push(GrantedRow::new(
                    &self.0.grant_id,
                    &connector,
                    connection,
                    stream,
                ));
            }
        }
        Ok(rows)
    }
}

fn check_stream(stream: &GrantedStream) -> Result<(), GrantError> {
    let list = |member: &str| format!("{member} of stream {}", stream.name);
    closed(
        &list("instance_ids"),
        stream.instance_ids.iter().map(ConnectionId::as_str),
    )?;
    closed(&list("fields"), stream.fields.iter().map(FieldName::as_str))?;
    if let Some(resources) = &stream.resources {
        closed(&list("resources"), resources.iter().map(String::as_str))?;
    }
    if let Some(constraint) = &stream.time_constraint {
        constraint.range()?;
    }
    for (member, rules) in [("where", &stream.only), ("except", &stream.except)] {
        if rules.as_ref().is_some_and(Vec::is_empty) {
            return Err(GrantError::Empty(list(member)));
        }
    }
    if let Some(redact) = &stream.redact {
        closed(&list("redact"), redact.keys().map(FieldName::as_str))?;
        if let Some(field) = redact.keys().find(|field| !stream.fields.contains(field)) {
            return Err(GrantError::RedactsUngranted(field.clone()));
        }
    }
    Ok(())
}

/// Checks that a selection names something, and nothing twice.
fn closed<'a>(list: &str, values: impl Iterator<Item = &'a str>) -> Result<(), GrantError> {
    let mut seen = BTreeSet::new();
    for value in values {
        if !seen.insert(value) {
            return Err(GrantError::Repeated {
                list: list.to_owned(),
                value: value.to_owned(),
            });
        }
    }
    if seen.is_empty() {
        Err(GrantError::Empty(list.to_owned()))
    } else {
        Ok(())
    }
}

/// On whose behalf a read runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Authority {
    /// The owner, who may read everything.
    Owner,
    /// A client, who may read exactly the granted rows.
    Granted(GrantedAuthority),
}

/// What a client may read: the rows of one grant, or of several in a package.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantedAuthority {
    client_id: ClientId,
    package_id: Option<PackageId>,
    rows: Vec<GrantedRow>,
}

/// One stream of one connection, as far as it is granted.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantedRow {
    pub grant_id: GrantId,
    pub connector: ConnectorKey,
    pub connection: ConnectionId,
    pub stream: StreamName,
    pub fields: Vec<FieldName>,
    pub time_constraint: Option<TimeConstraint>,
    /// Only these records, by canonical key.
    pub resources: Option<BTreeSet<String>>,
    /// Only records that meet all of these.
    pub only: Vec<RowRule>,
    /// No record that meets any of these.
    pub except: Vec<RowRule>,
    /// The fields of which only a part is shown.
    pub redact: BTreeMap<FieldName, Redaction>,
}

impl GrantedRow {
    /// One connection of a granted stream.
    pub fn new(
        grant: &GrantId,
        connector: &ConnectorKey,
        connection: &ConnectionId,
        stream: &GrantedStream,
    ) -> Self {
        let keys = stream.resources.as_ref();
        Self {
            grant_id: grant.clone(),
            connector: connector.clone(),
            connection: connection.clone(),
            stream: stream.name.clone(),
            fields: stream.fields.clone(),
            time_constraint: stream.time_constraint.clone(),
            resources: keys.map(|keys| keys.iter().cloned().collect()),
            only: stream.only.clone().unwrap_or_default(),
            except: stream.except.clone().unwrap_or_default(),
            redact: stream.redact.clone().unwrap_or_default(),
        }
    }
}

impl GrantedAuthority {
    pub fn from_grant(grant: &Grant) -> Result<GrantedAuthority, GrantError> {
        GrantedAuthority::together(None, std::slice::from_ref(grant))
    }

    /// The authority of several grants of one client. No two may give the same stream of the same connection.
    pub fn from_package(
        package_id: PackageId,
        grants: &[Grant],
    ) -> Result<GrantedAuthority, GrantError> {
        GrantedAuthority::together(Some(package_id), grants)
    }

    fn together(
        package_id: Option<PackageId>,
        grants: &[Grant],
    ) -> Result<GrantedAuthority, GrantError> {
        let first = grants
            .first()
            .ok_or_else(|| GrantError::Empty("the package".to_owned()))?;
        let client_id = first.client_id().clone();
        let mut rows: Vec<GrantedRow> = Vec::new();
        for grant in grants {
            if *grant.client_id() != client_id {
                return Err(GrantError::OtherClient(grant.id().clone()));
            }
            for row in grant.rows()? {
                if let Some(known) = rows
                    .iter()
                    .find(|known| known.connection == row.connection && known.stream == row.stream)
                {
                    return Err(GrantError::Overlap {
                        first: known.grant_id.clone(),
                        second: row.grant_id,
                        connection: row.connection,
                        stream: row.stream,
                    });
                }
                rows.push(row);
            }
        }
        Ok(GrantedAuthority {
            client_id,
            package_id,
            rows,
        })
    }

    pub fn client_id(&self) -> &ClientId {
        &self.client_id
    }

    pub fn package_id(&self) -> Option<&PackageId> {
        self.package_id.as_ref()
    }

    /// The same authority with other rows.
    #[must_use]
    pub fn with_rows(self, rows: Vec<GrantedRow>) -> Self {
        Self { rows, ..self }
    }

    /// Everything that may be read, in the order of the grants.
    pub fn rows(&self) -> &[GrantedRow] {
        &self.rows
    }

    pub fn rows_of<'a>(&'a self, stream: &'a str) -> impl Iterator<Item = &'a GrantedRow> {
        self.rows
            .iter()
            .filter(move |row| row.stream.as_str() == stream)
    }

    pub fn row(&self, connection: &str, stream: &str) -> Option<&GrantedRow> {
        self.rows
            .iter()
            .find(|row| row.connection.as_str() == connection && row.stream.as_str() == stream)
    }
}

#[cfg(test)]
mod tests;
