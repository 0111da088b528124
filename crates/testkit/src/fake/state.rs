//! What a fake server holds and how it behaves.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::call::Call;
use super::issuer::Issuer;
use super::misbehave::Misbehaviour;
use super::reply::{Failure, Reply};
use super::world::World;

/// The token that every state accepts unless told otherwise.
pub const TOKEN: &str = "scoped-token";

/// A way in which a server differs from the strict, current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// Record reads return every field whatever `fields` says.
    IgnoresFields,
    /// `/v1/schema` answers everything whatever `stream`, `connection_id` and `detail` say.
    IgnoresSchemaSelectors,
    /// Search and lists return more than `limit`.
    IgnoresLimit,
    /// `/v1/search` returns hits of every connection whatever `connection_id` says.
    IgnoresSearchConnection,
    /// The schema stands in `{"data": …}`.
    WrapsSchemaInData,
    /// Streams stand at the top of the schema as well.
    RepeatsStreamsAtTop,
    /// `view=compact` is refused, as by a server that has no compact view.
    RefusesCompactView,
    /// Filters, views and relations are refused and not advertised, as the reference does for clients.
    RefusesClientFilters,
    /// Every list says that there is more, with a cursor.
    ForcesHasMore,
    /// `retry_with` is an object with `field` and `guidance`.
    RetryWithObject,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorShape {
    /// `{error:{type, code, message, …}}`.
    #[default]
    Object,
    /// `{error:"code", error_description}`.
    OAuth,
    Plain,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestId {
    /// `Request-Id`.
    #[default]
    Standard,
    /// `x-request-id`.
    Prefixed,
}

#[derive(Debug, Clone)]
pub struct Access {
    /// The accepted token; `None` accepts anybody.
    pub token: Option<String>,
    /// What `bearer.token_kind` of the schema says.
    pub token_kind: String,
    /// Answers every question of the accepted token with this.
    pub refusal: Option<Failure>,
}

type Hook = Arc<dyn Fn(&Call) -> Option<Reply> + Send + Sync>;

/// Everything a fake server knows.
#[derive(Clone)]
pub struct State {
    pub world: World,
    pub access: Access,
    /// Who gives tokens, in place of the one of `access`.
    pub issuer: Option<Issuer>,
    /// How it differs from the strict server.
    pub quirks: BTreeSet<Quirk>,
    pub error_shape: ErrorShape,
    pub request_id: RequestId,
    /// Hits to answer a search with, as they are, instead of searching the world.
    pub search_hits: Option<Vec<Value>>,
    /// `meta.recall` of a search.
    pub recall: Option<Value>,
    /// `meta.warnings` of every list, search and aggregation.
    pub warnings: Vec<Value>,
    /// How many connections an ambiguity error lists; `None` lists all, as an older server does.
    pub ambiguity_cap: Option<usize>,
    pub(crate) trouble: Vec<(String, Misbehaviour)>,
    pub(crate) hooks: Vec<(String, Hook)>,
}

impl State {
    /// A strict, current server over this world.
    pub fn new(world: World) -> State {
        State {
            world,
            access: Access {
                token: Some(TOKEN.to_owned()),
                token_kind: "client".to_owned(),
                refusal: None,
            },
            issuer: None,
            quirks: BTreeSet::new(),
            error_shape: ErrorShape::default(),
            request_id: RequestId::default(),
            search_hits: None,
            recall: None,
            warnings: Vec::new(),
            ambiguity_cap: Some(12),
            trouble: Vec::new(),
            hooks: Vec::new(),
        }
    }

    /// Makes it behave differently in one way.
    #[must_use]
    pub fn with(mut self, quirk: Quirk) -> State {
        self.quirks.insert(quirk);
        self
    }

    /// Gives tokens as the reference does, whose resource server knows no other.
    #[must_use]
    pub fn issuing(mut self, issuer: Issuer) -> State {
        self.issuer = Some(issuer);
        self
    }

    /// Answers searches with these hits, as they are. Limit, cursor and `connection_id` still apply.
    #[must_use]
    pub fn with_hits(mut self, hits: Vec<Value>) -> State {
        self.search_hits = Some(hits);
        self
    }

    /// Misbehaves where the path, as sent, begins like this.
    #[must_use]
    pub fn misbehaving(mut self, path_prefix: &str, how: Misbehaviour) -> State {
        self.misbehave(path_prefix, how);
        self
    }

    /// Begins to misbehave where the path, as sent, begins like this.
    pub fn misbehave(&mut self, path_prefix: &str, how: Misbehaviour) {
        self.trouble.push((path_prefix.to_owned(), how));
    }

    /// Answers by a function where the path, as sent, begins like this. `None` leaves the question to the server.
    /// The last hook that answers wins; the caller was checked before.
    #[must_use]
    pub fn on<R: Into<Option<Reply>>>(
        mut self,
        path_prefix: &str,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> State {
        let hook: Hook = Arc::new(move |call| answer(call).into());
        self.hooks.push((path_prefix.to_owned(), hook));
        self
    }

    pub(crate) fn is(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("quirks", &self.quirks)
            .field("trouble", &self.trouble)
            .finish_non_exhaustive()
    }
}
