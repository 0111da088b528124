//! Rules on related records: a rule on the record that a foreign key names becomes a rule on the foreign key itself, which
//! may hold the keys of the records that meet it.
//!
//! The keys are looked up when a read begins, and once more when it has ended. If they are not the same, it is read again,
//! so nothing is shown by a rule that had ceased to admit it before it was written.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::declaration::Declaration;
use contract::grant::{Authority, GrantedRow, RowRule, RuleDocument, TypedRule, Via};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::scalar::Scalar;
use store::records::{ChangesRequest, Direction, OrderBy, PageRequest};
use store::search::{Filter, Rules, Scope};
use store::{Store, StoreError, StreamRef};

use crate::conditions::{Conditions, values};
use crate::enforce::Row;
use crate::failure::{Result, parse_stored};
use crate::project::admitted;
use crate::reader::Session;
use crate::visible_history::visible;

/// Changes read at a time.
const CHUNK: usize = 256;

/// A rule of a granted row on related records, and the keys of those that meet it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RelatedRule {
    typed: TypedRule,
    via: Via,
    related: StreamRef,
    keys: Arc<Vec<RecordKey>>,
}

/// An authority whose rules look at own fields only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolved {
    pub(crate) authority: Authority,
    pub(crate) related: RelatedRules,
}

/// The granted rows with rules on related records, as granted, each with these rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RelatedRules(Vec<(GrantedRow, Vec<RelatedRule>)>);

impl RelatedRules {
    pub(crate) fn of_row(&self, row: &Row) -> Option<&(GrantedRow, Vec<RelatedRule>)> {
        let StreamRef { connection, stream } = row.stream_ref();
        let mut rows = self.0.iter();
        rows.find(|(granted, _)| granted.connection == connection && granted.stream == stream)
    }
}

fn rules_of(row: &GrantedRow) -> impl Iterator<Item = &RowRule> {
    row.only.iter().chain(&row.except)
}

fn is_related(rule: &RowRule) -> bool {
    rule.document().via.is_some()
}

/// The authority as it is now, unless it has no rules on related records. A row whose rules the declaration does not allow
/// is left out.
pub(crate) fn resolved(store: &dyn Store, authority: &Authority) -> Result<Option<Resolved>> {
    let Authority::Granted(granted) = authority else {
        return Ok(None);
    };
    if !granted.rows().iter().flat_map(rules_of).any(is_related) {
        return Ok(None);
    }
    let mut found = RelatedRules::default();
    let mut rows = Vec::new();
    for row in granted.rows() {
        if !rules_of(row).any(is_related) {
            rows.push(row.clone());
        } else if let Some(related) = RelatedRule::all_of(store, row)? {
            let keys = |rule: usize| Some(related.get(rule)?.keys.as_slice());
            rows.push(on_foreign_keys(row, keys));
            found.0.push((row.clone(), related));
        }
    }
    Ok(Some(Resolved {
        authority: Authority::Granted(granted.clone().with_rows(rows)),
        related: found,
    }))
}

impl RelatedRule {
    /// Every such rule of a row, `only` first; `None` where the declaration does not allow one.
    fn all_of(store: &dyn Store, row: &GrantedRow) -> Result<Option<Vec<Self>>> {
        let Some(declaration) = store.declaration(&row.connector) else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for rule in rules_of(row).filter(|rule| is_related(rule)) {
            let Some((typed, via)) = typed(&declaration, row, rule) else {
                return Ok(None);
            };
            let related = StreamRef::new(&row.connection, &via.stream);
            let mut scope = Scope::whole(related.clone(), Vec::new());
            let filter = Filter {
                field: typed.field.clone(),
                test: typed.test.clone(),
            };
            scope.rules = Rules {
                only: vec![filter],
                except: Vec::new(),
            };
            let keys = match store.passing_keys(&scope) {
                // The connection was removed, or the stream is not there any more.
                Err(StoreError::UnknownConnection(_) | StoreError::UnknownStream { .. }) => {
                    return Ok(None);
                }
                keys => keys?,
            };
            all.push(Self {
                typed,
                via,
                related,
                keys,
            });
        }
        Ok(Some(all))
    }

    fn holds(&self, body: &RecordBody) -> bool {
        let rule = &self.typed;
        let mut values = values(&rule.field, &rule.test, body).into_iter();
        values.any(|raw| {
            let value = Scalar::from_json(rule.kind, raw);
            value.is_some_and(|value| rule.test.holds(&value, text::has_words))
        })
    }

    /// The keys of records that meet the rule now and did not at a version, or the other way round.
    fn moved_since(&self, store: &dyn Store, since: u64) -> Result<BTreeSet<RecordKey>> {
        let now: BTreeSet<&RecordKey> = self.keys.iter().collect();
        let mut moved = BTreeSet::new();
        let mut request = ChangesRequest::since(since, CHUNK);
        loop {
            let page = store.changes(&self.related, &request)?;
            for entry in page.entries {
                let met = |body: Option<String>| -> Result<bool> {
                    let body = body.map(parse_stored).transpose()?;
                    Ok(body.is_some_and(|body| self.holds(&body)))
                };
                let before = met(entry.previous)?;
                if before != now.contains(&entry.key) {
                    moved.insert(entry.key);
                }
                request.after = entry.version;
            }
            request.until = Some(page.until);
            if !page.has_more {
                return Ok(moved);
            }
        }
    }
}

fn typed(declaration: &Declaration, row: &GrantedRow, rule: &RowRule) -> Option<(TypedRule, Via)> {
    let stream = declaration.stream(row.stream.as_str())?;
    let typed = rule.typed(declaration, stream).ok()?;
    let via = typed.via.clone()?;
    Some((typed, via))
}

/// The row with each rule on related records replaced by the keys that its foreign key may hold. `keys` tells those of the
/// rule of that number.
fn on_foreign_keys<'k>(
    row: &GrantedRow,
    keys: impl Fn(usize) -> Option<&'k [RecordKey]>,
) -> GrantedRow {
    let mut resolved = row.clone();
    let (mut number, mut nothing) = (0, false);
    for (rules, is_exception) in [(&mut resolved.only, false), (&mut resolved.except, true)] {
        rules.retain_mut(|rule| {
            let Some(foreign_key) = rule.document().via.clone() else {
                return true;
            };
            let keys = keys(number).unwrap_or_default();
            number += 1;
            let values = keys.iter().map(|key| key.as_str().to_owned()).collect();
            let document = RuleDocument {
                one_of: Some(values),
                ..RuleDocument::new(foreign_key)
            };
            let Ok(on_key) = RowRule::try_from(document) else {
                // No record meets the rule: as an exception it hides nothing, otherwise everything.
                nothing |= !is_exception;
                return false;
            };
            *rule = on_key;
            true
        });
    }
    if nothing {
        resolved.resources = Some(BTreeSet::new());
    }
    resolved
}

/// Whether what a row shows has changed since a version because related records changed: some record is seen by what they
/// are now and was not by what they were, or the other way round. The records themselves may be the same, so a feed of
/// changes cannot report them.
pub(crate) fn moved(session: &Session, row: &Row, since: u64) -> Result<bool> {
    let Some((granted, rules)) = session.related_of(row) else {
        return Ok(false);
    };
    let (mut moved, mut earlier) = (Vec::new(), Vec::new());
    for rule in rules {
        let changed = rule.moved_since(session.store.as_ref(), since)?;
        let now: BTreeSet<RecordKey> = rule.keys.iter().cloned().collect();
        earlier.push(
            now.symmetric_difference(&changed)
                .cloned()
                .collect::<Vec<_>>(),
        );
        let values = changed.iter().map(|key| key.as_str().to_owned()).collect();
        let document = RuleDocument {
            one_of: Some(values),
            ..RuleDocument::new(rule.via.foreign_key.clone())
        };
        moved.extend(RowRule::try_from(document));
    }
    let before = on_foreign_keys(granted, |rule| earlier.get(rule).map(Vec::as_slice));
    let now = on_foreign_keys(granted, |rule| Some(rules.get(rule)?.keys.as_slice()));
    for rule in moved {
        let mut seen = [now.clone(), before.clone()];
        for row in &mut seen {
            row.only.push(rule.clone());
        }
        let [Some(now), Some(before)] = seen.map(|seen| session.reach().row_like(row, &seen))
        else {
            return Ok(true);
        };
        if any_record(session, &now, |_| Ok(true))?
            || any_record(session, &before, |key| saw(session, &before, key, since))?
        {
            return Ok(true);
        }
    }
    match session.reach().row_like(row, &before) {
        Some(before) => any_left(session, row, &before, since),
        None => Ok(true),
    }
}

/// Whether a row shows a record of which something holds.
fn any_record(
    session: &Session,
    row: &Row,
    holds: impl Fn(&RecordKey) -> Result<bool>,
) -> Result<bool> {
    let scope = row.scope(Vec::new(), Vec::new());
    let mut request = PageRequest {
        by: OrderBy::Key,
        direction: Direction::Ascending,
        after: None,
        limit: CHUNK,
    };
    loop {
        let page = session.store.select(&scope, &request)?;
        request.after = page.records.last().map(|last| last.position.clone());
        for record in page.records.into_iter().filter(|one| !one.is_damaged) {
            if admitted(row, &record.key, record.body)?.is_some() && holds(&record.key)? {
                return Ok(true);
            }
        }
        if page.is_last || request.after.is_none() {
            return Ok(false);
        }
    }
}

/// Whether a row showed a record at a version.
fn saw(session: &Session, row: &Row, key: &RecordKey, at: u64) -> Result<bool> {
    let stream = row.stream_ref();
    let then = session.store.history(&stream, key, at, 1)?;
    let body = then.into_iter().next().and_then(|revision| revision.body);
    Ok(visible(row, &Conditions::default(), key, body)?.is_some())
}

/// Whether a record changed that the earlier row showed, and that the row would neither have shown then nor shows now.
fn any_left(session: &Session, row: &Row, before: &Row, since: u64) -> Result<bool> {
    let all = Conditions::default();
    let shows = |row: &Row, key: &RecordKey, body: &Option<String>| -> Result<bool> {
        Ok(visible(row, &all, key, body.clone())?.is_some())
    };
    let mut request = ChangesRequest::since(since, CHUNK);
    loop {
        let page = session.store.changes(&row.stream_ref(), &request)?;
        for entry in page.entries {
            request.after = entry.version;
            if !entry.is_damaged
                && shows(before, &entry.key, &entry.previous)?
                && !shows(row, &entry.key, &entry.previous)?
                && !shows(row, &entry.key, &entry.current)?
            {
                return Ok(true);
            }
        }
        request.until = Some(page.until);
        if !page.has_more {
            return Ok(false);
        }
    }
}
