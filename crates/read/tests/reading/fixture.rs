//! A store with mail and chat, grants over it, and short ways to ask.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

use contract::aggregate::{AggregateQuery, Grouping, Metric};
use contract::declaration::Declaration;
use contract::error::{ErrorCode, ReadError};
use contract::grant::{Authority, Grant, GrantedAuthority};
use contract::id::{ConnectionId, FieldName, PackageId, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::query::{
    Filter, ListOptions, PageLimit, Projection, Reading, RecordQuery, RecordsQuery, WindowQuery,
};
use contract::reader::ReadContract;
use contract::seal::SealingKey;
use contract::search::SearchQuery;
use contract::time::Instant;
use contract::window::WindowSelector;
use read::{Disclosures, GrantReader, NotNoted, ReaderSettings};
use serde::Serialize;
use serde_json::{Value, json};
use store::catalog::NewConnection;
use store::grants::Disclosure;
use store::records::{Change, ChangeOp};
use store::{EmbeddedStore, OpenOptions, Store};

pub(crate) const MAIL: &str = include_str!("mail.json");
pub(crate) const CHAT: &str = include_str!("chat.json");

/// 2026-06-01T12:00:00Z
pub(crate) const NOON: Instant = Instant(1_780_315_200_000_000);

#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<Disclosure>>);

impl Disclosures for Notes {
    fn note(&self, disclosure: Disclosure) -> Result<(), NotNoted> {
        self.0.lock().unwrap().push(disclosure);
        Ok(())
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) notes: Arc<Notes>,
    folder: tempfile::TempDir,
}

fn open(folder: &tempfile::TempDir) -> Arc<dyn Store> {
    let options = OpenOptions::new("a test of the reader", Arc::new(NOON));
    Arc::new(EmbeddedStore::open(folder.path(), options).unwrap())
}

impl World {
    /// Everything that was shown to clients, by its names.
    pub(crate) fn noted(&self) -> Vec<Disclosure> {
        self.notes.0.lock().unwrap().clone()
    }

    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::on(open(&folder), folder)
    }

    /// A store, with the folder that it is in.
    pub(crate) fn on(store: Arc<dyn Store>, folder: tempfile::TempDir) -> Self {
        Self {
            store,
            notes: Arc::default(),
            folder,
        }
    }

    /// The same after a disk has changed a letter of a text, wherever it stands.
    pub(crate) fn with_a_changed_letter(self, text: &str) -> Self {
        let Self {
            store,
            notes,
            folder,
        } = self;
        drop(store);
        let path = folder.path().join("records.db");
        let mut bytes = std::fs::read(&path).unwrap();
        let at: Vec<usize> = bytes
            .windows(text.len())
            .enumerate()
            .filter(|(_, window)| *window == text.as_bytes())
            .map(|(at, _)| at)
            .collect();
        assert!(!at.is_empty());
        for at in at {
            bytes[at] ^= 1;
        }
        std::fs::write(&path, bytes).unwrap();
        Self {
            store: open(&folder),
            notes,
            folder,
        }
    }

    /// Mail in one connection, `work`.
    pub(crate) fn mail() -> Self {
        let world = Self::empty();
        world.connect(MAIL, "work", "Work mail");
        world
    }

    /// Adds a sentence model for which the words of each group mean the same.
    pub(crate) fn add_model(&self, groups: &[&[&str]]) {
        let folder = tempfile::tempdir().unwrap();
        testkit::tiny_model::write_with(folder.path(), groups).unwrap();
        self.store.add_model(folder.path()).unwrap();
    }

    /// Makes all vectors, on a thread of its own: its priority is lowered, and that of a test must not be.
    pub(crate) fn embed(&self) {
        std::thread::scope(|scope| drop(scope.spawn(|| while self.store.embed_some().unwrap() {})));
    }

    pub(crate) fn connect(&self, declaration: &str, id: &str, name: &str) {
        let declaration = Declaration::parse(declaration).unwrap();
        self.store.declare(&declaration).unwrap();
        let new = NewConnection {
            connector: declaration.connector_key().clone(),
            name: name.to_owned(),
            id: Some(ConnectionId::parse(id).unwrap()),
        };
        self.store.add_connection(new).unwrap();
    }

    /// Writes a record; its key is its `id`, or the day and number of an event.
    pub(crate) fn put(&self, connection: &str, stream: &str, record: &Value) {
        self.put_text(connection, stream, &record.to_string());
    }

    pub(crate) fn attachment(&self, record: &Value) {
        self.put("work", "attachments", record);
    }

    pub(crate) fn message(&self, record: &Value) {
        self.put("work", "messages", record);
    }

    pub(crate) fn put_text(&self, connection: &str, stream: &str, text: &str) {
        let body = RecordBody::parse(text).unwrap();
        let key = match body.text("id") {
            Some(id) => RecordKey::single(id.into_owned()).unwrap(),
            None => RecordKey::compound(&[
                body.text("day").unwrap().into_owned(),
                body.text("number").unwrap().into_owned(),
            ])
            .unwrap(),
        };
        self.change(connection, stream, key, ChangeOp::Upsert(body));
    }

    pub(crate) fn delete(&self, connection: &str, stream: &str, id: &str) {
        let key = RecordKey::single(id).unwrap();
        self.change(connection, stream, key, ChangeOp::Delete);
    }

    fn change(&self, connection: &str, name: &str, key: RecordKey, op: ChangeOp) {
        self.change_at("2026-05-01T00:00:00Z", (connection, name), key, op);
    }

    /// Writes a directive that the source emitted then.
    pub(crate) fn change_at(
        &self,
        emitted_at: &str,
        (connection, name): (&str, &str),
        key: RecordKey,
        op: ChangeOp,
    ) {
        let change = Change {
            stream: stream(name),
            key,
            emitted_at: emitted_at.to_owned(),
            op,
        };
        let connection = ConnectionId::parse(connection).unwrap();
        self.store.write(&connection, vec![change]).unwrap();
    }

    pub(crate) fn owner(&self) -> Reader {
        self.reader(Authority::Owner)
    }

    pub(crate) fn client(&self, source: &str, streams: Value) -> Reader {
        let granted = GrantedAuthority::from_grant(&grant("grt_1", source, streams)).unwrap();
        self.reader(Authority::Granted(granted))
    }

    /// A client with one grant of mail, of the connection `work` where the streams do not say otherwise.
    pub(crate) fn mail_client(&self, mut streams: Value) -> Reader {
        for stream in streams.as_array_mut().unwrap() {
            let members = stream.as_object_mut().unwrap();
            members.entry("instance_ids").or_insert(json!(["work"]));
        }
        self.client("demo_mail", streams)
    }

    pub(crate) fn package(&self, grants: &[Grant]) -> Reader {
        let package = PackageId::parse("gpkg_1").unwrap();
        let granted = GrantedAuthority::from_package(package, grants).unwrap();
        self.reader(Authority::Granted(granted))
    }

    pub(crate) fn reader(&self, authority: Authority) -> Reader {
        let settings = ReaderSettings {
            sealing_key: SealingKey::from_bytes([3; 32]),
            public_url: "https://me.example".to_owned(),
            clock: Arc::new(NOON),
            disclosures: Some(self.notes.clone()),
            max_bytes: None,
        };
        Reader(GrantReader::new(self.store.clone(), authority, settings))
    }
}

impl Reader {
    /// The same reader, with pages of at most so many bytes.
    pub(crate) fn bounded(&self, max_bytes: usize) -> Reader {
        self.clear_after(max_bytes, 0)
    }

    /// The same, whose searches may end after so many hits.
    pub(crate) fn clear_after(&self, max_bytes: usize, clear: usize) -> Reader {
        let max_bytes = contract::upstream::PageBytes {
            all: max_bytes,
            beside_each: 0,
            handles: 0,
            clear,
        };
        Reader(self.0.clone().with_max_bytes(Some(max_bytes)))
    }
}

pub(crate) fn grant(id: &str, source: &str, streams: Value) -> Grant {
    serde_json::from_value(json!({
        "version": "0.1.0", "grant_id": id, "issued_at": "2026-01-01T00:00:00Z",
        "subject": {"id": "owner_local"}, "client": {"client_id": "longview"},
        "source": {"kind": "connector", "id": format!("https://sources.example/{source}")},
        "source_declaration": {"version": "1"}, "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous", "expires_at": null, "streams": streams
    }))
    .unwrap()
}

pub(crate) fn stream(name: &str) -> StreamName {
    StreamName::parse(name).unwrap()
}

pub(crate) fn field(name: &str) -> FieldName {
    FieldName::parse(name).unwrap()
}

pub(crate) fn fields(names: &[&str]) -> Projection {
    Projection::Fields(names.iter().map(|name| field(name)).collect())
}

pub(crate) struct Reader(pub(crate) GrantReader);

pub(crate) type Answered = Result<Value, ReadError>;

pub(crate) fn wait<T>(answer: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    });
    runtime.block_on(answer)
}

fn as_json<T: Serialize>(answer: impl Future<Output = Result<T, ReadError>>) -> Answered {
    wait(answer).map(|answer| serde_json::to_value(answer).unwrap())
}

impl Reader {
    pub(crate) fn records(&self, query: RecordsQuery) -> Answered {
        as_json(self.0.records(query))
    }

    pub(crate) fn record(&self, query: RecordQuery) -> Answered {
        as_json(self.0.record(query))
    }

    pub(crate) fn search(&self, query: SearchQuery) -> Answered {
        as_json(self.0.search(query))
    }

    pub(crate) fn aggregate(&self, query: AggregateQuery) -> Answered {
        as_json(self.0.aggregate(query))
    }

    pub(crate) fn window(&self, query: WindowQuery) -> Answered {
        as_json(self.0.field_window(query))
    }

    pub(crate) fn verify(&self, query: contract::citation::VerifyQuery) -> Answered {
        as_json(self.0.verify(query))
    }

    pub(crate) fn schema(&self, query: contract::schema::SchemaQuery) -> Answered {
        as_json(self.0.schema(query))
    }

    pub(crate) fn metadata(&self, query: contract::query::StreamQuery) -> Answered {
        as_json(self.0.stream(query))
    }

    pub(crate) fn stream(&self, name: &str) -> Answered {
        self.metadata(contract::query::StreamQuery {
            stream: stream(name),
            connection_id: None,
        })
    }

    pub(crate) fn streams(&self, connection: Option<&str>) -> Answered {
        let connection_id = connection.map(str::to_owned);
        as_json(
            self.0
                .streams(contract::query::StreamsQuery { connection_id }),
        )
    }

    pub(crate) fn blob(
        &self,
        id: &str,
        connection: Option<&str>,
    ) -> Result<(String, Vec<u8>), ReadError> {
        let mut blob = wait(self.0.blob(contract::query::BlobQuery {
            blob_id: id.to_owned(),
            connection_id: connection.map(str::to_owned),
        }))?;
        let mut bytes = Vec::new();
        blob.content.read_to_end(&mut bytes).unwrap();
        assert_eq!(blob.size_bytes, bytes.len() as u64);
        Ok((blob.media_type, bytes))
    }

    /// A page of a stream with these options.
    pub(crate) fn list(&self, name: &str, options: ListOptions) -> Answered {
        self.records(list(name, options))
    }

    /// The keys of a whole stream, page by page.
    pub(crate) fn keys(&self, mut query: RecordsQuery) -> Vec<String> {
        let mut keys = Vec::new();
        loop {
            let page = self.records(query.clone()).unwrap();
            keys.extend(ids(&page));
            let Some(next) = page["next_cursor"].as_str() else {
                assert_eq!(page["has_more"], false);
                return keys;
            };
            assert_eq!(page["has_more"], true);
            let cursor = Some(next.to_owned());
            match &mut query.reading {
                Reading::List(options) => options.cursor = cursor,
                Reading::Changes(_) => {
                    query.reading = Reading::List(ListOptions {
                        cursor,
                        ..ListOptions::default()
                    });
                }
            }
        }
    }

    /// The hits of a search for these words.
    pub(crate) fn find(&self, q: &str) -> Vec<Value> {
        self.find_with(q, 1)
    }

    /// The hits of a search for these words, with so many excerpts.
    pub(crate) fn find_with(&self, q: &str, excerpts: usize) -> Vec<Value> {
        let mut query = words(q);
        query.excerpts = excerpts;
        let page = self.search(query).unwrap();
        page["data"].as_array().unwrap().clone()
    }
}

pub(crate) fn one(id: &str) -> RecordQuery {
    RecordQuery::new(stream("messages"), id)
}

pub(crate) fn every() -> RecordsQuery {
    RecordsQuery::new(stream("messages"))
}

pub(crate) fn words(q: &str) -> SearchQuery {
    SearchQuery::new(q).unwrap()
}

pub(crate) fn list(name: &str, options: ListOptions) -> RecordsQuery {
    let mut query = RecordsQuery::new(stream(name));
    query.reading = Reading::List(options);
    query
}

pub(crate) fn limited(name: &str, limit: u32) -> RecordsQuery {
    let mut query = RecordsQuery::new(stream(name));
    query.limit = PageLimit::new(limit);
    query
}

pub(crate) fn filtered(name: &str, filters: Vec<Filter>) -> RecordsQuery {
    let mut query = RecordsQuery::new(stream(name));
    query.filters = filters;
    query
}

pub(crate) fn window(id: &str, name: &str, selector: WindowSelector) -> WindowQuery {
    WindowQuery {
        stream: stream("messages"),
        record_id: id.to_owned(),
        field: field(name),
        connection_id: None,
        selector,
    }
}

pub(crate) fn aggregate(metric: Metric, grouping: Option<Grouping>) -> AggregateQuery {
    AggregateQuery::new(stream("messages"), metric, grouping).unwrap()
}

pub(crate) fn ids(page: &Value) -> Vec<String> {
    let data = page["data"].as_array().unwrap().iter();
    data.map(|record| record["id"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn refusal(answered: Answered) -> (ErrorCode, Option<String>) {
    let error = answered.unwrap_err();
    (error.code, error.param)
}

pub(crate) fn code(answered: Answered) -> ErrorCode {
    answered.unwrap_err().code
}
