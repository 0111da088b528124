//! A small mailbox and a ledger to test the store with, and short ways to write and ask.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};

use contract::declaration::Declaration;
use contract::grant::Grant;
use contract::id::{BlobId, ClientId, ConnectionId, FieldName, GrantId, PackageId, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::time::Instant;
use proptest::test_runner::Config as ProptestConfig;
use serde_json::json;
use store::catalog::{Connection, NewConnection};
use store::grants::{Disclosure, NewApproval, NewToken};
use store::records::{Applied, Change, ChangeOp, Direction, OrderBy, PageRequest, StoredRecord};
use store::search::{
    AggregateAnswer, AggregateRequest, Filter, Grouping, Hit, Metric, Rank, Scope, SearchAnswer,
    SearchRequest, Test,
};
use store::{
    BlobPlace, Blobs, Catalog, EmbeddedStore, OpenOptions, PostgresOptions, PostgresStore, Store,
    StreamRef,
};
use tempfile::TempDir;
use text::Expression;

/// A declaration with every kind of field and capability.
pub(crate) const MAIL: &str = include_str!("mail.json");
/// A declaration with every kind of cursor field.
pub(crate) const LEDGER: &str = include_str!("ledger.json");

pub(crate) fn noon() -> Instant {
    instant("2026-06-01T12:00:00Z")
}

/// Runs a rule on a fresh store of every backend.
pub(crate) fn on_every_backend(rule: impl Fn(&dyn Store)) {
    on_every_reopened(|open| rule(&*open()));
}

/// The same for a rule that looks at the folder where the store keeps its files, blobs among them.
pub(crate) fn on_every_folder(rule: impl Fn(&Path, &dyn Store)) {
    let folder = tempfile::tempdir().unwrap();
    rule(folder.path(), &open(folder.path()));
    let folder = tempfile::tempdir().unwrap();
    if let Some(owner) = fresh_owner(folder.path()) {
        rule(folder.path(), &PostgresStore::open(owner).unwrap());
    }
}

/// The same for a rule that opens the store itself, and may do so again after it has dropped it.
pub(crate) fn on_every_reopened(rule: impl Fn(&dyn Fn() -> Box<dyn Store>)) {
    on_every_directory(|_, open| rule(open));
}

/// The same for a rule that looks into the data directory meanwhile.
pub(crate) fn on_every_directory(rule: impl Fn(&Path, &dyn Fn() -> Box<dyn Store>)) {
    let folder = tempfile::tempdir().unwrap();
    rule(folder.path(), &|| Box::new(open(folder.path())));
    let folder = tempfile::tempdir().unwrap();
    if let Some(owner) = fresh_owner(folder.path()) {
        rule(&owner.data_dir, &|| {
            Box::new(PostgresStore::open(owner.clone()).unwrap())
        });
    }
}

/// An owner nobody has used, in the PostgreSQL that the environment names.
#[expect(
    clippy::disallowed_methods,
    reason = "says where tests run, and nothing of the program"
)]
pub(crate) fn fresh_owner(folder: &Path) -> Option<PostgresOptions> {
    static TOLD: Once = Once::new();
    static OWNERS: AtomicU32 = AtomicU32::new(0);
    let Ok(url) = std::env::var("TEST_POSTGRES") else {
        // Not by a macro: what those print is shown of failed tests only.
        TOLD.call_once(|| {
            let told = "TEST_POSTGRES is not set: shared rules run on the embedded store only, those of several nodes not at all";
            let mut out = std::io::stderr();
            writeln!(out, "{told}").unwrap();
        });
        return None;
    };
    let number = OWNERS.fetch_add(1, Ordering::Relaxed);
    let started = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let name = format!(
        "o{}-{number}-{}.example",
        std::process::id(),
        started.as_nanos()
    );
    Some(PostgresOptions {
        url,
        ca: None,
        owner: name.clone(),
        add_owner: true,
        data_dir: folder.join("node"),
        blobs: BlobPlace::Folder(folder.join("blobs")),
        node: format!("a-{name}"),
        holder: "a conformance test".to_owned(),
        clock: Arc::new(noon()),
        secret: [7; 32],
        other_secret: None,
    })
}

/// The same on a store with the mail connection `work`.
pub(crate) fn on_every_mailbox(rule: impl Fn(&dyn Store)) {
    on_every_backend(|store| {
        add_mail(store, "work");
        rule(store);
    });
}

/// An open store with the mail connection `work`, and the folder it is in.
pub(crate) fn mailbox() -> (TempDir, EmbeddedStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    add_mail(&store, "work");
    (folder, store)
}

/// So many random cases; a store is too slow to shrink one for long.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::with_cases(count)
    }
}

pub(crate) fn open(path: &Path) -> EmbeddedStore {
    try_open(path).unwrap()
}

pub(crate) fn try_open(path: &Path) -> store::Result<EmbeddedStore> {
    EmbeddedStore::open(
        path,
        OpenOptions::new("a conformance test", Arc::new(noon())),
    )
}

pub(crate) fn add_mail(store: &(impl Catalog + ?Sized), id: &str) -> Connection {
    add(store, MAIL, id)
}

pub(crate) fn add_ledger(store: &(impl Catalog + ?Sized), id: &str) -> Connection {
    add(store, LEDGER, id)
}

pub(crate) fn add(store: &(impl Catalog + ?Sized), declaration: &str, id: &str) -> Connection {
    let declaration = Declaration::parse(declaration).unwrap();
    store.declare(&declaration).unwrap();
    store
        .add_connection(NewConnection {
            connector: declaration.connector_key().clone(),
            name: "Work mail".to_owned(),
            id: Some(connection(id)),
        })
        .unwrap()
}

pub(crate) fn connection(id: &str) -> ConnectionId {
    ConnectionId::parse(id).unwrap()
}

pub(crate) fn stream(id: &str, stream: &str) -> StreamRef {
    StreamRef::new(&connection(id), &StreamName::parse(stream).unwrap())
}

pub(crate) fn key(text: &str) -> RecordKey {
    RecordKey::single(text).unwrap()
}

pub(crate) fn compound(parts: &[&str]) -> RecordKey {
    let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    RecordKey::compound(&parts).unwrap()
}

pub(crate) fn field(name: &str) -> FieldName {
    FieldName::parse(name).unwrap()
}

pub(crate) fn instant(text: &str) -> Instant {
    Instant::parse(text).unwrap()
}

/// A directive to add or replace a record given as JSON; the key is its `id`.
pub(crate) fn put(stream: &str, json: &str) -> Change {
    let body = RecordBody::parse(json).unwrap();
    let id = body.text("id").unwrap().into_owned();
    put_at(stream, key(&id), json)
}

/// A directive to add or replace a record under a key.
pub(crate) fn put_at(stream: &str, key: RecordKey, json: &str) -> Change {
    Change {
        stream: StreamName::parse(stream).unwrap(),
        key,
        emitted_at: "2026-05-01T00:00:00Z".to_owned(),
        op: ChangeOp::Upsert(RecordBody::parse(json).unwrap()),
    }
}

pub(crate) fn delete(stream: &str, id: &str) -> Change {
    delete_at(stream, key(id))
}

pub(crate) fn delete_at(stream: &str, key: RecordKey) -> Change {
    Change {
        stream: StreamName::parse(stream).unwrap(),
        key,
        emitted_at: "2026-05-02T00:00:00Z".to_owned(),
        op: ChangeOp::Delete,
    }
}

pub(crate) fn write(store: &dyn Store, id: &str, batch: Vec<Change>) -> Vec<Applied> {
    store.write(&connection(id), batch).unwrap()
}

/// Keeps bytes for a message of a connection.
pub(crate) fn put_bytes(
    store: &(impl Blobs + ?Sized),
    id: &str,
    key: &RecordKey,
    bytes: &[u8],
) -> BlobId {
    let owner = stream(id, "messages");
    let mut bytes = bytes;
    let blob = store.put_blob(&owner, key, "text/plain", &mut bytes);
    blob.unwrap().id
}

/// What most rules do: write into the connection `work`, and search its messages.
pub(crate) trait Work {
    fn put(&self, batch: Vec<Change>) -> Vec<Applied>;
    fn put_bytes(&self, id: &str, bytes: &[u8]) -> BlobId;
    /// The keys found, best first.
    fn found(&self, query: &str) -> Vec<String>;
    /// The keys found, in key order.
    fn found_sorted(&self, query: &str) -> Vec<String> {
        let mut keys = self.found(query);
        keys.sort();
        keys
    }
}

impl Work for dyn Store + '_ {
    fn put(&self, batch: Vec<Change>) -> Vec<Applied> {
        write(self, "work", batch)
    }

    fn put_bytes(&self, id: &str, bytes: &[u8]) -> BlobId {
        put_bytes(self, "work", &key(id), bytes)
    }

    fn found(&self, query: &str) -> Vec<String> {
        found(self, query, vec![messages("work")])
    }
}

impl Work for EmbeddedStore {
    fn put(&self, batch: Vec<Change>) -> Vec<Applied> {
        write(self, "work", batch)
    }

    fn put_bytes(&self, id: &str, bytes: &[u8]) -> BlobId {
        put_bytes(self, "work", &key(id), bytes)
    }

    fn found(&self, query: &str) -> Vec<String> {
        found(self, query, vec![messages("work")])
    }
}

pub(crate) fn message(id: &str, subject: &str, body: &str) -> Change {
    let json = json!({ "id": id, "subject": subject, "body": body });
    put("messages", &json.to_string())
}

pub(crate) fn message_with(id: &str, members: &str) -> Change {
    put("messages", &format!("{{\"id\":\"{id}\",{members}}}"))
}

pub(crate) fn body(store: &dyn Store, stream: &StreamRef, key: &RecordKey) -> Option<String> {
    store.get(stream, key).unwrap().map(|record| record.body)
}

pub(crate) fn all(store: &dyn Store, stream: &StreamRef) -> Vec<StoredRecord> {
    let mut request = PageRequest::first(OrderBy::Key, Direction::Ascending, 1_000_000);
    let mut records = Vec::new();
    loop {
        let page = store.page(stream, &request).unwrap();
        records.extend(page.records);
        if page.is_last {
            return records;
        }
        request.after = records.last().map(|last| last.position.clone());
    }
}

/// All records of a stream's lexical fields.
pub(crate) fn messages(id: &str) -> Scope {
    scope(id, "messages", &["subject", "body"])
}

/// All records of a stream, of which some fields may match.
pub(crate) fn scope(id: &str, name: &str, fields: &[&str]) -> Scope {
    let fields = fields.iter().map(|name| field(name)).collect();
    Scope::whole(stream(id, name), fields)
}

pub(crate) fn filtered(mut scope: Scope, name: &str, test: Test) -> Scope {
    scope.filters.push(Filter {
        field: field(name),
        test,
    });
    scope
}

/// A search for up to a thousand records that hold every word, counted.
pub(crate) fn request(query: &str, scopes: Vec<Scope>) -> SearchRequest {
    SearchRequest {
        expression: Expression::parse_all(query),
        scopes,
        limit: 1_000,
        count: true,
        ..SearchRequest::default()
    }
}

pub(crate) fn search(store: &dyn Store, query: &str, scopes: Vec<Scope>) -> SearchAnswer {
    store.search(&request(query, scopes)).unwrap()
}

/// The keys found, best first.
pub(crate) fn found(store: &dyn Store, query: &str, scopes: Vec<Scope>) -> Vec<String> {
    let answer = search(store, query, scopes);
    assert_eq!(answer.total, Some(answer.hits.len() as u64), "{query}");
    assert!(!answer.has_more);
    let keys = answer.hits.iter().map(|hit| hit.record.key.to_string());
    keys.collect()
}

/// The keys found, in key order.
pub(crate) fn found_sorted(store: &dyn Store, query: &str, scopes: Vec<Scope>) -> Vec<String> {
    let mut keys = found(store, query, scopes);
    keys.sort();
    keys
}

pub(crate) fn compute(
    store: &dyn Store,
    scope: Scope,
    metric: Metric,
    grouping: Option<Grouping>,
) -> AggregateAnswer {
    let request = AggregateRequest {
        scope,
        metric,
        grouping,
    };
    store.aggregate(&request).unwrap()
}

/// How well a hit of a ranking matches.
pub(crate) fn score(hit: &Hit) -> f32 {
    match hit.position.rank {
        Rank::Score(score) => score,
        Rank::Time(_) => panic!("this search was not ranked"),
    }
}

pub(crate) fn blob_path(folder: &Path, id: &BlobId) -> PathBuf {
    let (start, name) = id.hex().split_at(2);
    folder.join("blobs").join(start).join(name)
}

pub(crate) fn backup(store: &dyn Store) -> Vec<u8> {
    let mut archive = Vec::new();
    store.backup(&mut archive, &[]).unwrap();
    archive
}

pub(crate) fn unpacked(archive: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    tar::Archive::new(archive).unpack(folder.path()).unwrap();
    folder
}

pub(crate) fn grant(id: &str, streams: &[(&str, &[&str])]) -> Grant {
    let streams: Vec<_> = streams
        .iter()
        .map(|(name, connections)| {
            json!({ "name": name, "instance_ids": connections, "fields": ["id"] })
        })
        .collect();
    serde_json::from_value(json!({
        "version": "0.1.0", "grant_id": id, "issued_at": "2026-06-01T12:00:00Z",
        "subject": { "id": "owner_local" }, "client": { "client_id": "agent" },
        "source": { "kind": "connector", "id": "https://sources.example/mail" },
        "source_declaration": { "version": "1" },
        "purpose_code": "https://pdpp.dev/purpose/agent_context", "access_mode": "continuous",
        "expires_at": "2026-09-01T00:00:00Z", "streams": streams
    }))
    .unwrap()
}

pub(crate) fn token(number: u8) -> NewToken {
    NewToken {
        id: format!("tok_{number}"),
        hash: [number; 32],
        issued_at: noon(),
        expires_at: Instant(i64::MAX),
        audience: None,
        family: None,
    }
}

pub(crate) fn approval(package: Option<&str>, grants: Vec<Grant>, number: u8) -> NewApproval {
    NewApproval {
        package: package.map(|id| PackageId::parse(id).unwrap()),
        client_id: ClientId::parse("agent").unwrap(),
        grants,
        issued_at: noon(),
        token: Some(token(number)),
        redeem_by: None,
    }
}

pub(crate) fn grant_id(id: &str) -> GrantId {
    GrantId::parse(id).unwrap()
}

pub(crate) fn disclosure(number: i64, grants: &[&str]) -> Disclosure {
    Disclosure {
        bytes: None,
        at: Instant(noon().0 + number),
        grant_ids: grants.iter().map(|id| grant_id(id)).collect(),
        client_id: ClientId::parse("agent").unwrap(),
        operation: "search".to_owned(),
        records: vec![format!("home/messages:m{number}")],
        fields: vec!["subject".to_owned()],
    }
}

/// Small and repeatable random numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    /// Seldom many, mostly one.
    pub(crate) fn skewed(&mut self, most: usize) -> usize {
        let mut number = 1;
        while number < most && self.roll(4) == 0 {
            number += 1;
        }
        number
    }
}
