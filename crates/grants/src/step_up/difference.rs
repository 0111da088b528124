//! What an ask comes to as things are now: the rows and fields it would add, each with everything that limits it.
//!
//! The limits of the grant hold for what is added wherever they can be said of it. Fields that are added to a row keep the
//! row's. The stream of another connection gets the fields and limits that the grant has for that stream. Of any other
//! stream, records that point at a limited one are seen where that one is, and a time that limits the whole grant limits it too.

use std::collections::BTreeMap;

use contract::declaration::{Declaration, Pointing, StreamDeclaration};
use contract::grant::{GrantedAuthority, GrantedRow, RowRule, RuleDocument, TimeConstraint};
use contract::id::{FieldName, GrantId};
use contract::step_up::Beyond;
use contract::time::Instant;
use store::catalog::Connection;
use store::{Store, StoreError};

use super::ExtendedRow;
use crate::issue::IssuedStream;
use crate::token;

/// What can be read already, before anything is added.
pub(super) struct Base {
    /// The grant that would be extended, and what it gives by itself.
    grant: GrantId,
    own: Vec<GrantedRow>,
    /// With the other grants of its package, and what was allowed beside them.
    authority: Option<GrantedAuthority>,
}

impl Base {
    pub(super) fn new(
        store: &dyn Store,
        grant: &GrantId,
        now: Instant,
    ) -> Result<Self, StoreError> {
        let mut authority = token::given(store, grant, now)?;
        let rows = authority.iter().flat_map(GrantedAuthority::rows);
        let own = rows.filter(|row| row.grant_id == *grant).cloned().collect();
        if let Some(authority) = &mut authority {
            super::widen(store, authority, now)?;
        }
        Ok(Self {
            grant: grant.clone(),
            own,
            authority,
        })
    }

    fn all(&self) -> &[GrantedRow] {
        self.authority.as_ref().map_or(&[], GrantedAuthority::rows)
    }

    /// Whether the grant limits its own records.
    pub(super) fn has_limits(&self) -> bool {
        self.own.iter().any(|row| {
            let is_listed = row.time_constraint.is_some() || row.resources.is_some();
            is_listed || !(row.only.is_empty() && row.except.is_empty() && row.redact.is_empty())
        })
    }

    /// The rows that a difference comes to.
    pub(super) fn rows(&self, store: &dyn Store, beyond: &Beyond) -> Vec<ExtendedRow> {
        let named = beyond.connection_id.as_deref();
        let connections = store.connections().into_iter();
        let connections = connections.filter(|one| named.is_none_or(|id| one.id.as_str() == id));
        let mut rows = Vec::new();
        for connection in connections {
            let Some(declaration) = store.declaration(&connection.connector) else {
                continue;
            };
            let Some(stream) = declaration.stream(&beyond.stream) else {
                continue;
            };
            let source = Source {
                base: self,
                connection: &connection,
                declaration: &declaration,
            };
            match &beyond.relation {
                None => rows.extend(source.stream(stream, beyond.fields.as_deref())),
                Some(relation) => rows.extend(source.relation(stream, relation)),
            }
        }
        rows
    }

    /// When every record of the grant must be of, if all its streams have the same bounds.
    fn shared_time(&self) -> Option<&TimeConstraint> {
        let bounds = |time: &TimeConstraint| (time.since.clone(), time.until.clone());
        let mut times = self.own.iter().map(|row| row.time_constraint.as_ref());
        let first = times.next().flatten()?;
        times
            .all(|time| time.map(bounds) == Some(bounds(first)))
            .then_some(first)
    }
}

/// One connection of which something is asked for.
struct Source<'a> {
    base: &'a Base,
    connection: &'a Connection,
    declaration: &'a Declaration,
}

impl Source<'_> {
    fn row(&self, stream: &StreamDeclaration) -> Option<&GrantedRow> {
        let authority = self.base.authority.as_ref()?;
        authority.row(self.connection.id.as_str(), stream.name.as_str())
    }

    /// The named fields of a stream, or what can be added without naming any.
    fn stream(&self, stream: &StreamDeclaration, named: Option<&[String]>) -> Option<ExtendedRow> {
        match (self.row(stream), named) {
            (None, named) => self.new_row(stream, named),
            // It is given by another grant of the package, which is paused.
            (Some(row), _) if row.grant_id != self.base.grant => None,
            // It is given, and closed by a rule that the declaration does not allow.
            (Some(_), None) => None,
            (Some(row), Some(named)) => self.more_of(row, stream, named),
        }
    }

    /// What lets a relation be followed: the related stream, and the foreign key on whichever side it is.
    fn relation(&self, stream: &StreamDeclaration, name: &str) -> Vec<ExtendedRow> {
        let is_offered = stream.query.expand.iter().any(|one| one.name == name);
        let relationship = stream.relationship(name).filter(|_| is_offered);
        let Some(relationship) = relationship else {
            return Vec::new();
        };
        let Some(child) = self.declaration.stream(relationship.stream.as_str()) else {
            return Vec::new();
        };
        let key = [relationship.foreign_key.to_string()];
        let mut rows = Vec::new();
        if self.row(child).is_none() {
            rows.extend(self.new_row(child, None));
        } else if relationship.pointing == Pointing::Here {
            rows.extend(self.stream(child, Some(&key)));
        }
        if relationship.pointing == Pointing::There {
            rows.extend(self.stream(stream, Some(&key)));
        }
        rows
    }

    fn more_of(
        &self,
        row: &GrantedRow,
        stream: &StreamDeclaration,
        named: &[String],
    ) -> Option<ExtendedRow> {
        let is_new = |name: &FieldName| !row.fields.contains(name) || row.redact.contains_key(name);
        let fields = declared(stream, |name| {
            is_new(name) && named.iter().any(|one| one == name.as_str())
        });
        let parts = row.redact.iter();
        let parts = parts.filter(|(field, _)| fields.contains(field));
        let until_now = parts.map(|(field, part)| (field.clone(), *part)).collect();
        let given = IssuedStream {
            redact: None,
            fields,
            ..IssuedStream::from_row(row)
        };
        self.extended(given, until_now)
    }

    /// A stream of which nothing is given yet.
    fn new_row(&self, stream: &StreamDeclaration, named: Option<&[String]>) -> Option<ExtendedRow> {
        let is_named = |name: &FieldName| {
            named.is_none_or(|named| named.iter().any(|one| one == name.as_str()))
        };
        let rows =
            self.base.all().iter().filter(|row| {
                row.connector == self.connection.connector && row.stream == stream.name
            });
        let elsewhere = rows.min_by_key(|row| row.grant_id != self.base.grant);
        let given = match elsewhere {
            Some(row) => {
                let fields = declared(stream, |name| {
                    is_named(name) && (named.is_some() || row.fields.contains(name))
                });
                let mut given = IssuedStream::from_row(row);
                if let Some(redact) = &mut given.redact {
                    redact.retain(|field, _| fields.contains(field));
                }
                IssuedStream { fields, ..given }
            }
            None => self.pointing_at_limited(stream, declared(stream, is_named)),
        };
        let connection_id = self.connection.id.clone();
        let given = IssuedStream {
            connection_id,
            ..given
        };
        self.extended(given, BTreeMap::new())
    }

    fn pointing_at_limited(
        &self,
        stream: &StreamDeclaration,
        fields: Vec<FieldName>,
    ) -> IssuedStream {
        let (mut only, mut except) = (Vec::new(), Vec::new());
        for (key, target) in self.declaration.pointed_at_by(&stream.name) {
            let target = self.declaration.stream(target.as_str());
            let Some(row) = target.and_then(|target| self.row(target)) else {
                continue;
            };
            only.extend(row.only.iter().filter_map(|rule| through(rule, &key)));
            only.extend(
                row.time_constraint
                    .iter()
                    .filter_map(|time| in_time(time, &key)),
            );
            only.extend(row.resources.iter().filter_map(|keys| {
                let mut rule = RuleDocument::new(key.clone());
                rule.one_of = Some(keys.iter().cloned().collect());
                RowRule::try_from(rule).ok()
            }));
            except.extend(row.except.iter().filter_map(|rule| through(rule, &key)));
        }
        let is_allowed = |rule: &RowRule| rule.typed(self.declaration, stream).is_ok();
        only.retain(is_allowed);
        except.retain(is_allowed);
        let time = self
            .base
            .shared_time()
            .zip(stream.consent_time_field.as_ref());
        IssuedStream {
            connection_id: self.connection.id.clone(),
            stream: stream.name.clone(),
            fields,
            time_constraint: time.map(|(time, field)| TimeConstraint {
                field: field.clone(),
                ..time.clone()
            }),
            resources: None,
            only: (!only.is_empty()).then_some(only),
            except: (!except.is_empty()).then_some(except),
            redact: None,
            closed: None,
        }
    }

    fn extended(
        &self,
        given: IssuedStream,
        until_now: BTreeMap<FieldName, contract::grant::Redaction>,
    ) -> Option<ExtendedRow> {
        (!given.fields.is_empty()).then(|| ExtendedRow {
            connector: self.connection.connector.clone(),
            given,
            until_now,
        })
    }
}

fn declared(stream: &StreamDeclaration, is_wanted: impl Fn(&FieldName) -> bool) -> Vec<FieldName> {
    let names = stream.fields.iter().map(|field| &field.name);
    names.filter(|name| is_wanted(name)).cloned().collect()
}

/// A rule of the record that a foreign key names. One that looks at a further record already cannot look two away.
fn through(rule: &RowRule, key: &FieldName) -> Option<RowRule> {
    let is_own = rule.document().via.is_none();
    is_own.then(|| rule.clone().through(key.clone(), rule.field().clone()))
}

fn in_time(time: &TimeConstraint, key: &FieldName) -> Option<RowRule> {
    let mut rule = RuleDocument::new(time.field.clone());
    rule.via = Some(key.clone());
    rule.gte.clone_from(&time.since);
    rule.lt.clone_from(&time.until);
    RowRule::try_from(rule).ok()
}
