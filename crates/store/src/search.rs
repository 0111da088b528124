//! Search and aggregates: questions answered from the derived index, restricted to what the caller may see.

use std::sync::Arc;

pub use contract::aggregate::{Granularity, Metric};
pub use contract::condition::Test;
use contract::id::FieldName;
use contract::key::RecordKey;
use contract::time::{Instant, TimeRange};
use text::Expression;

use crate::Result;
use crate::catalog::StreamRef;
use crate::meaning::NearestWindow;
use crate::records::{Direction, PageRequest, StoredPage, StoredRecord};

/// Which records of one stream may count, and which of its fields may be looked at.
#[derive(Debug, Clone)]
pub struct Scope {
    pub stream: StreamRef,
    /// Lexical fields that may match; ignored by aggregates.
    pub fields: Vec<FieldName>,
    /// Only records whose field lies in the range. A missing or unreadable time is outside.
    pub time: Option<(FieldName, TimeRange)>,
    pub keys: Option<Vec<RecordKey>>,
    pub rules: Rules,
    /// The caller's own conditions: all must hold.
    pub filters: Vec<Filter>,
    /// Fields that say when a record happened; the first with a value decides. A search by time or in a period uses them.
    pub times: Vec<FieldName>,
    /// The caller's own period: only records of this time, by `times`.
    pub period: TimeRange,
    /// The lexical field that names the author, whose words count double.
    pub author: Option<FieldName>,
    /// Where a record stands among others, if the stream holds conversations.
    pub conversation: Option<Conversation>,
}

/// The fields that make conversations of a stream's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Records with the same value belong together.
    pub thread: FieldName,
    /// In this order: an integer, a number or a time.
    pub order: FieldName,
}

impl Scope {
    pub fn whole(stream: StreamRef, fields: Vec<FieldName>) -> Self {
        Self {
            stream,
            fields,
            time: None,
            keys: None,
            rules: Rules::default(),
            filters: Vec::new(),
            times: Vec::new(),
            period: TimeRange::default(),
            author: None,
            conversation: None,
        }
    }

    /// Whether every record of the stream passes.
    pub fn is_whole_stream(&self) -> bool {
        !self.is_limited() && self.filters.is_empty()
    }

    /// Whether records are hidden from the caller, whatever they ask.
    pub fn is_limited(&self) -> bool {
        self.time.is_some() || self.keys.is_some() || !self.rules.is_empty()
    }
}

/// What a grant demands of the records it shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// All must hold.
    pub only: Vec<Filter>,
    /// None may hold. A record without a value meets none of them.
    pub except: Vec<Filter>,
}

impl Rules {
    pub fn is_empty(&self) -> bool {
        self.only.is_empty() && self.except.is_empty()
    }
}

/// A condition on one top-level field. Null and absent values never match.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub field: FieldName,
    pub test: Test,
}

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    pub expression: Expression,
    /// Where; each stream at most once.
    pub scopes: Vec<Scope>,
    /// At most this many hits; a page that ends by its bytes has fewer.
    pub limit: usize,
    pub after: Option<SearchPosition>,
    pub count: bool,
    /// Whether what is counted is counted by year too.
    pub by_year: bool,
    pub order: SearchOrder,
}

impl SearchRequest {
    /// Whether times of hits are looked at.
    pub(crate) fn is_timed(&self) -> bool {
        self.by_year || self.order != SearchOrder::Relevance
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchOrder {
    /// The best match first.
    #[default]
    Relevance,
    /// By [`Scope::times`], records without one last; of equal times by connection, stream and key.
    Time(Direction),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rank {
    /// How well it matches; more is better.
    Score(f32),
    /// When it happened, if it says so.
    Time(Option<Instant>),
}

/// The position of a hit in a ranking, and the state of the index that ranked it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchPosition {
    pub rank: Rank,
    /// The hit's row, which orders equal scores, and names the record that equal times follow.
    pub row: u64,
    /// Which state of the index this position belongs to.
    pub generation: u64,
    /// Every change up to this version was in it.
    pub version: u64,
}

#[derive(Debug, Clone)]
pub struct Hit {
    pub stream: StreamRef,
    pub record: StoredRecord,
    pub position: SearchPosition,
    /// For a record that holds nothing of the question: the record of the same stream next to which it stands.
    pub near: Option<RecordKey>,
    /// For a record without a word of the question: the part that comes nearest to what it means.
    pub window: Option<NearestWindow>,
}

/// Up to how many records with every word are counted: more would cost more than the search.
pub const EVERY_WORD: u64 = 1000;

#[derive(Debug, Clone)]
pub struct SearchAnswer {
    /// Best first.
    pub hits: Vec<Hit>,
    pub has_more: bool,
    pub total: Option<u64>,
    /// How the total is made up.
    pub by_stream: Vec<(StreamRef, u64)>,
    /// The same by the year of [`Scope::times`], where that was asked; records without a time are in none.
    pub by_year: Vec<(i16, u64)>,
    /// How many records hold every word, in one form or another; [`EVERY_WORD`] means that or more.
    pub with_every_word: u64,
    /// The question with the other words that stood for its words.
    pub expression: Expression,
    /// Which clauses it wants occur anywhere in the scopes.
    pub occurring: Vec<bool>,
    /// The page continues a ranking made on another state of the index.
    pub ranking_changed: bool,
    /// Streams whose newly declared fields are still being indexed.
    pub rebuilding: Vec<StreamRef>,
    /// How far indexing again is, while there are such streams: records that are done, of all.
    pub reindexed: Option<(u64, u64)>,
    /// How far the index is, while it is being built.
    pub building: Option<Building>,
    /// Streams with changes that have no vectors yet, each with the version up to which it has them.
    pub behind: Vec<(StreamRef, u64)>,
    /// A phrase that ends in a prefix stood for more words than are looked for.
    pub prefix_truncated: bool,
}

/// The progress of an index that is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Building {
    /// Changes it has taken.
    pub indexed: u64,
    pub written: u64,
}

/// What finding is made of beside any word that occurs. A store can leave parts out to measure what each of them brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// How much of the question a record covers.
    Coverage,
    /// Other forms of a word.
    Forms,
    /// Near spellings of a word that is nowhere.
    Spellings,
    /// What the best answers lend to their neighbours in a conversation.
    Lending,
    /// That authors count double.
    Authors,
}

/// A number, or groups of numbers, over the visible records of one stream.
#[derive(Debug, Clone)]
pub struct AggregateRequest {
    pub scope: Scope,
    pub metric: Metric,
    pub grouping: Option<Grouping>,
}

impl AggregateRequest {
    /// Whether it asks how many records there are, and the caller has no conditions.
    pub(crate) fn is_plain_count(&self) -> bool {
        let counts = self.metric == Metric::Count && self.grouping.is_none();
        counts && self.scope.filters.is_empty()
    }
}

#[derive(Debug, Clone)]
pub enum Grouping {
    /// By the values of a field: the `limit` largest groups.
    Values { field: FieldName, limit: usize },
    /// By calendar buckets: the `limit` earliest.
    Time {
        field: FieldName,
        granularity: Granularity,
        zone: jiff::tz::TimeZone,
        limit: usize,
    },
}

/// A computed value. Exact: integers never pass through floating point.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No record had a value.
    None,
    Integer(i128),
    /// A floating-point sum.
    Number(f64),
    /// The value as the record holds it, in JSON.
    Json(String),
}

#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum GroupKey {
    /// Records without a value.
    Missing,
    /// A text, or the start of a calendar bucket as local date (and time).
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub key: GroupKey,
    pub count: u64,
    /// The metric within the group; `None` for a plain count.
    pub value: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AggregateAnswer {
    /// Records that passed scope and filters.
    pub matched: u64,
    /// The number, when not grouped.
    pub value: Value,
    pub groups: Vec<Group>,
    /// Records in groups beyond the limit; one with several values counts in each of its groups.
    pub other_count: u64,
    /// Records that were left out because they are not what was written.
    pub damaged: Vec<RecordKey>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extent {
    pub records: u64,
    /// Those emitted latest, latest first; records without a readable date are left out.
    pub latest: Vec<StoredRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexStatus {
    /// The newest acknowledged change.
    pub written: u64,
    /// The newest change the index holds on disk.
    pub indexed: u64,
    /// The newest change the index has taken, on disk or not.
    pub taken: u64,
    /// So much is missing that it takes long: the index is absent, or was cut off.
    pub building: bool,
    /// Records waiting to be indexed again after a declaration changed.
    pub rebuilding: u64,
    pub records: u64,
}

pub trait Search {
    /// Ranks the records that match. Sees every acknowledged write.
    fn search(&self, request: &SearchRequest) -> Result<SearchAnswer>;
    /// For each of some records of the scope, those right before and right after it in its conversation, of those that pass.
    fn neighbours(&self, scope: &Scope, rows: &[u64]) -> Result<Vec<[Option<StoredRecord>; 2]>>;
    /// Computes over the records that pass. Sees every acknowledged write.
    fn aggregate(&self, request: &AggregateRequest) -> Result<AggregateAnswer>;
    /// One page of the records that pass, in order; `fields` of the scope do not matter.
    fn select(&self, scope: &Scope, request: &PageRequest) -> Result<StoredPage>;
    /// How many records pass, and so many of those emitted latest. Sees every acknowledged write.
    fn extent(&self, scope: &Scope, latest: usize) -> Result<Extent>;
    /// The keys of all records that pass the rules of a scope that has nothing else. Sees every acknowledged write.
    fn passing_keys(&self, scope: &Scope) -> Result<Arc<Vec<RecordKey>>>;
    fn index_status(&self) -> Result<IndexStatus>;
    /// Brings the index up to date and onto disk.
    fn settle_index(&self) -> Result<()>;
    /// Works off everything that takes long: replays what the index misses, and indexes again what is queued. To be called
    /// repeatedly by one background thread. From the first call on no read waits for such work: searches answer from what
    /// is indexed, pages are read from the records, and what must be exact fails with [`crate::StoreError::IndexBuilding`].
    fn tend_index(&self) -> Result<()>;
    /// Throws the index away and derives it anew from the records.
    fn rebuild_index(&self, progress: &mut dyn FnMut(u64)) -> Result<()>;
}
