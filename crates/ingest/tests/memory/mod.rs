//! Records kept in memory: the port's rules in their simplest form, and a way to make a write fail.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test program uses a part of it"
)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::declaration::{Declaration, Semantics};
use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use contract::time::Instant;
use ingest::{
    Acceptor, BatchLimits, Export, Import, ImportError, ImportReport, Importer, LineForm,
    StreamChoice,
};
use proptest::prelude::*;
use serde_json::Value;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{
    Applied, Change, ChangeOp, ChangesPage, ChangesRequest, Direction, OrderBy, PagePosition,
    PageRequest, Purged, Records, Revision, SortValue, StoredPage, StoredRecord,
};

/// 2026-03-01T10:00:00Z
pub const NOW: Instant = Instant(1_772_359_200_000_000);

/// What is known of one key: when, and what.
pub type Entry = (String, String);

/// A store of one connection, in memory.
pub struct Memory {
    pub declaration: Arc<Declaration>,
    pub records: RefCell<BTreeMap<(StreamName, RecordKey), Entry>>,
    pub disowned: RefCell<BTreeSet<(StreamName, RecordKey)>>,
    pub writes: Cell<usize>,
    /// The write that fails, counted from 0.
    pub fails_at: Option<usize>,
}

impl Memory {
    pub fn new(declaration: Declaration) -> Self {
        Self {
            declaration: Arc::new(declaration),
            records: RefCell::default(),
            disowned: RefCell::default(),
            writes: Cell::new(0),
            fails_at: None,
        }
    }

    pub fn with_export(export: Export) -> Self {
        Self::new(Declaration::parse(&export.declaration()).unwrap())
    }

    pub fn acceptor(&self) -> Acceptor<'_> {
        self.acceptor_for(StreamChoice::Named)
    }

    pub fn acceptor_for(&self, choice: StreamChoice) -> Acceptor<'_> {
        let form = LineForm::EnvelopeOrBare;
        Acceptor::new(&self.declaration, choice, form, &NOW)
    }

    pub fn import(&self, importer: &mut dyn Importer) -> ImportReport {
        let (report, error) = self.try_import(importer, "a file");
        assert!(error.is_none(), "{error:?}");
        report
    }

    /// Imports a file as far as it can be read.
    pub fn try_import(
        &self,
        importer: &mut dyn Importer,
        file: &str,
    ) -> (ImportReport, Option<ImportError>) {
        let connection = connection();
        let mut import = Import::new(self, &connection, BatchLimits::default());
        let stopped = import.run(importer, None, &mut |_| {}).err();
        let error = stopped.map(|stopped| stopped.named(file));
        (import.into_report(), error)
    }

    /// Imports the same bytes twice: every entry is answered for, and the second time changes nothing.
    pub fn twice_alike(&self, import: impl Fn() -> ImportReport) {
        let first = import();
        let answered = first.added + first.updated + first.unchanged + first.rejected;
        assert_eq!(first.read, answered);
        let kept = self.records.borrow().clone();
        assert_eq!(import().added, 0);
        assert_eq!(kept, *self.records.borrow());
    }

    fn entry(&self, stream: &str, key: &str) -> Option<Entry> {
        let records = self.records.borrow();
        let mut entries = records.iter();
        let found = entries.find(|((s, k), _)| s.as_str() == stream && k.as_str() == key);
        found.map(|(_, entry)| entry.clone())
    }

    pub fn body(&self, stream: &str, key: &str) -> Option<String> {
        self.entry(stream, key).map(|(_, body)| body)
    }

    pub fn emitted_at(&self, stream: &str, key: &str) -> Option<String> {
        self.entry(stream, key).map(|(emitted_at, _)| emitted_at)
    }

    pub fn records_of(&self, stream: &str) -> Vec<Value> {
        let records = self.records.borrow();
        let own = records.iter().filter(|((of, _), _)| of.as_str() == stream);
        own.map(|(_, (_, body))| serde_json::from_str(body).unwrap())
            .collect()
    }

    fn apply(&self, change: Change) -> Applied {
        let append_only = self
            .declaration
            .stream(change.stream.as_str())
            .is_some_and(|stream| stream.semantics == Semantics::AppendOnly);
        let mut records = self.records.borrow_mut();
        let place = (change.stream, change.key);
        let mut disowned = self.disowned.borrow_mut();
        match &change.op {
            ChangeOp::DeleteByOwner => drop(disowned.insert(place.clone())),
            ChangeOp::Revive(_) => drop(disowned.remove(&place)),
            ChangeOp::Upsert(_) | ChangeOp::Add(_) if disowned.contains(&place) => {
                return Applied::KeptDeleted;
            }
            ChangeOp::Upsert(_) | ChangeOp::Add(_) | ChangeOp::Delete => {}
        }
        let adds_only = matches!(change.op, ChangeOp::Add(_));
        match change.op {
            ChangeOp::Delete | ChangeOp::DeleteByOwner => match records.remove(&place) {
                Some(_) => Applied::Deleted,
                None => Applied::AlreadyAbsent,
            },
            ChangeOp::Upsert(body) | ChangeOp::Add(body) | ChangeOp::Revive(body) => {
                let applied = match records.get(&place) {
                    None => Applied::Added,
                    Some((_, held)) if contract::json::same_value(held, body.as_str()) => {
                        return Applied::Unchanged;
                    }
                    Some(_) if append_only => return Applied::AppendOnlyConflict,
                    Some(_) if adds_only => return Applied::LeftAsItIs,
                    Some(_) => Applied::Updated,
                };
                records.insert(place, (change.emitted_at, body.into_string()));
                applied
            }
        }
    }
}

impl Memory {
    /// All records with a time before the one asked for, the newest first.
    fn newest_first(
        &self,
        stream: &StreamRef,
        request: &PageRequest,
    ) -> Result<StoredPage, StoreError> {
        assert_eq!(request.direction, Direction::Descending);
        let Some(SortValue::Integer(before)) = request.after.as_ref().map(|after| after.sort)
        else {
            unreachable!("imports look back from a moment")
        };
        let declared = self.declaration.stream(stream.stream.as_str()).unwrap();
        let time = declared.cursor_field.as_ref().unwrap().as_str();
        let keys = self.records.borrow();
        let keys = keys.keys().filter(|(of, _)| *of == stream.stream);
        let mut dated = Vec::new();
        for (_, key) in keys {
            let mut record = self.get(stream, key)?.unwrap();
            let body: Value = serde_json::from_str(&record.body).unwrap();
            let at = body[time].as_str().and_then(Instant::parse);
            if let Some(at) = at.filter(|at| at.0 < before) {
                record.position.sort = SortValue::Integer(at.0);
                dated.push((at, record));
            }
        }
        dated.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Ok(StoredPage {
            records: dated.into_iter().map(|(_, record)| record).collect(),
            is_last: true,
        })
    }
}

impl Records for Memory {
    fn write(&self, _: &ConnectionId, batch: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        let write = self.writes.replace(self.writes.get() + 1);
        if self.fails_at == Some(write) {
            return Err(StoreError::Full {
                path: "records".into(),
            });
        }
        Ok(batch.into_iter().map(|change| self.apply(change)).collect())
    }

    fn get(&self, stream: &StreamRef, key: &RecordKey) -> Result<Option<StoredRecord>, StoreError> {
        let records = self.records.borrow();
        let found = records.get(&(stream.stream.clone(), key.clone()));
        Ok(found.map(|(emitted_at, body)| StoredRecord {
            is_damaged: false,
            key: key.clone(),
            emitted_at: emitted_at.clone(),
            body: body.clone(),
            version: 1,
            revised: false,
            position: PagePosition {
                sort: SortValue::Missing,
                key: key.clone(),
            },
        }))
    }

    fn is_deleted_by_owner(&self, stream: &StreamRef, key: &RecordKey) -> Result<bool, StoreError> {
        let place = (stream.stream.clone(), key.clone());
        Ok(self.disowned.borrow().contains(&place))
    }

    fn page(&self, stream: &StreamRef, request: &PageRequest) -> Result<StoredPage, StoreError> {
        if request.by == OrderBy::Cursor {
            return self.newest_first(stream, request);
        }
        let after = request.after.as_ref().map(|after| after.key.as_str());
        let records = self.records.borrow();
        let mut keys: Vec<RecordKey> = records
            .keys()
            .filter(|(of, key)| {
                *of == stream.stream && after.is_none_or(|after| key.as_str() > after)
            })
            .map(|(_, key)| key.clone())
            .collect();
        keys.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        let is_last = keys.len() < request.limit;
        keys.truncate(request.limit);
        let found = keys.iter().map(|key| self.get(stream, key));
        let records: Result<Vec<StoredRecord>, StoreError> =
            found.filter_map(Result::transpose).collect();
        Ok(StoredPage {
            records: records?,
            is_last,
        })
    }

    fn changes(&self, _: &StreamRef, _: &ChangesRequest) -> Result<ChangesPage, StoreError> {
        unreachable!("imports read no changes")
    }

    fn history(
        &self,
        _: &StreamRef,
        _: &RecordKey,
        _: u64,
        _: usize,
    ) -> Result<Vec<Revision>, StoreError> {
        unreachable!("imports read no history")
    }

    fn redated(
        &self,
        _: &StreamRef,
        _: Option<Instant>,
        _: usize,
    ) -> Result<Vec<(Instant, StoredRecord)>, StoreError> {
        unreachable!("imports read no dates")
    }

    fn purge(&self) -> Result<Purged, StoreError> {
        unreachable!("imports purge nothing")
    }
}

/// Files put together of known lines and any bytes, with line ends of any kind.
pub fn bytes_of(
    lines: &'static [&'static str],
    ends: &'static [&'static str],
) -> impl Strategy<Value = Vec<u8>> {
    let known = proptest::sample::select(lines).prop_map(|line| line.as_bytes().to_vec());
    let any = proptest::collection::vec(any::<u8>(), 0..20);
    let line = prop_oneof![9 => known, 1 => any];
    let piece = (line, proptest::sample::select(ends))
        .prop_map(|(line, end)| [line.as_slice(), end.as_bytes()].concat());
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// What was refused, a line each: where, why, and what is said.
pub fn refused(report: &ImportReport) -> Vec<String> {
    let rejections = report.rejections.iter();
    rejections
        .map(|one| format!("{} {}: {}", one.line, one.code.as_str(), one.message))
        .collect()
}

/// The same without what is said.
pub fn refused_codes(report: &ImportReport) -> Vec<String> {
    let rejections = report.rejections.iter();
    rejections
        .map(|one| format!("{} {}", one.line, one.code.as_str()))
        .collect()
}

/// A source with a stream of every awkward shape.
pub fn declaration() -> Declaration {
    Declaration::parse(include_str!("declaration.json")).unwrap()
}

pub fn connection() -> ConnectionId {
    ConnectionId::parse("sample").unwrap()
}

pub fn stream(name: &str) -> StreamName {
    StreamName::parse(name).unwrap()
}
