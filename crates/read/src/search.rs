//! A search over every row at once, with one ranking: which rows can answer, what is asked of the index, and what each hit
//! says.

use std::collections::{BTreeSet, HashMap};

use contract::error::{ErrorCode, ReadError};
use contract::id::{ConnectionId, FieldName, StreamName};
use contract::json::RecordBody;
use contract::page::Page;
use contract::query::Count;
use contract::seal::{Binding, digest};
use contract::search::{Matching, SearchHit, SearchMode, SearchOrder, SearchQuery};
use contract::time::{Instant, TimeRange};
use contract::words::WordsFound;
use serde_json::json;
use store::StreamRef;
use store::meaning::MeaningQuestion;
use store::records::{ByteBudget, Direction};
use store::search::{self, Hit, Rank, Scope, SearchAnswer, SearchPosition, SearchRequest};
use text::Expression;

use crate::ambiguity::{connection_not_found, stream_not_there};
use crate::conditions::{self, Conditions, refused};
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::measure::written_bytes;
use crate::reader::{Answer, Session};
use crate::visible_history;
use crate::words;

mod meaning;
mod meta;
mod neighbours;
mod served;
mod short;

/// A hit below this share of the best score is far weaker.
const FAR_WEAKER: f32 = 0.5;

/// A row that can answer, with the fields it searches and the caller's conditions as it understands them.
struct Searched {
    row: Row,
    fields: Vec<FieldName>,
    conditions: Conditions,
    period: TimeRange,
}

/// The rows that can answer, and the rows of connections that have none that can.
struct Plan {
    searched: Vec<Searched>,
    skipped: Vec<Row>,
}

pub(crate) fn search(session: &Session, query: &SearchQuery) -> Answer<Page<SearchHit>> {
    let mode = meaning::check(session, query)?;
    let plan = plan(query, addressed(session, query)?)?;
    let question = meaning::question(query, &plan);
    let filter = fingerprint(query, &mode);
    let tokens = session.tokens(Binding {
        stream: None,
        connection: query.connection_id.as_deref(),
        filter: &filter,
        order: query.order.as_str(),
        grant: authority_id(session),
    });
    let searched = plan.fingerprint();
    let last = match &query.cursor {
        Some(cursor) => Some(tokens.open_search(cursor)?),
        None => None,
    };
    let mut request = plan.request(query, last.map(|(position, _)| position));
    let mut answer = meaning::ask(session, &request, question.as_ref())?;
    let behind = meaning::behind(session, &plan, &answer)?;
    // While the index is being built, hits appear that were written before the last page.
    if let (true, None, Some((position, before))) = (answer.ranking_changed, answer.building, last)
    {
        let mut rows = plan.searched.iter().map(|one| &one.row);
        answer.ranking_changed = before != searched
            || visible_history::changed_since(session, &mut rows, position.version)?;
    }
    let mut hits = Hits::new(session, &plan, query);
    hits.meaning = question;
    let has_more = hits.fill(session, &mut request, &mut answer)?;
    hits.add_neighbours(session, query.cursor.is_none())?;
    let Hits {
        data,
        mut last,
        shown,
        weaker_follow,
        ..
    } = hits;
    let mut page = Page::new(data);
    page.url = Some(query.mode.route().to_owned());
    page.links = short::links(session);
    if let (Some(last), Some(behind)) = (&mut last, behind) {
        // What gets its vectors meanwhile changes the ranking.
        last.version = last.version.min(behind);
    }
    if let (true, Some(last)) = (has_more, last) {
        page = page.continued(tokens.search(last, searched)?);
    }
    let mut meta = meta::meta(query, &plan, &request, &answer);
    meta.weaker_follow = weaker_follow;
    if query.mode != SearchMode::Lexical {
        meta::ranked_by_meaning(&mut meta, behind.is_some());
    }
    if !plan.searched.is_empty() && query.mode != SearchMode::Semantic {
        let mut found = words::summary(&answer);
        // An empty page after others is the end of a list, and says nothing about the words.
        if query.cursor.is_none() && page.data.is_empty() && last.is_none() {
            plan.count_words(session, query, &request.expression, &mut found)?;
        }
        meta.words = Some(found);
    }
    shown.damaged.warn_in(&mut meta);
    page.meta = Some(short::meta(session, meta));
    Ok((page, shown))
}

/// The rows the caller addressed.
fn addressed(session: &Session, query: &SearchQuery) -> Result<Vec<Row>, ReadError> {
    let reach = session.reach();
    let mut rows = reach.rows();
    if let Some(connection) = query.connection_id.as_deref() {
        if !reach.reaches_connection(connection) {
            return Err(connection_not_found(connection));
        }
        rows.retain(|row| row.connection().id.as_str() == connection);
    }
    for stream in &query.streams {
        // For the owner a stream that does not exist is merely empty.
        if !reach.is_owner() && !rows.iter().any(|row| row.stream().name == *stream) {
            return Err(stream_not_there(reach, stream).with_param("streams"));
        }
    }
    if !query.streams.is_empty() {
        rows.retain(|row| query.streams.contains(&row.stream().name));
    }
    Ok(rows)
}

/// Which rows can answer. A field of a condition must be visible in at least one row; rows without it are skipped.
fn plan(query: &SearchQuery, rows: Vec<Row>) -> Result<Plan, ReadError> {
    let mut plan = Plan {
        searched: Vec::new(),
        skipped: Vec::new(),
    };
    let mut refusal = None;
    let (mut understood, mut timed) = (query.filters.is_empty(), query.period.is_open());
    for row in rows {
        let conditions = match Conditions::new(&row, &query.filters) {
            Ok(conditions) => conditions,
            Err(error)
                if matches!(
                    error.code,
                    ErrorCode::FieldNotGranted | ErrorCode::UnknownField
                ) =>
            {
                refusal.get_or_insert(error);
                plan.skipped.push(row);
                continue;
            }
            Err(error) => return Err(error),
        };
        understood = true;
        if !query.period.is_open() && row.dated_by().is_empty() {
            plan.skipped.push(row);
            continue;
        }
        timed = true;
        let fields = row.lexical_fields();
        let can_answer = match query.mode {
            SearchMode::Lexical => !fields.is_empty(),
            SearchMode::Semantic => !row.semantic_fields().is_empty(),
            SearchMode::Hybrid => !fields.is_empty() || !row.semantic_fields().is_empty(),
        };
        if can_answer {
            plan.searched.push(Searched {
                row,
                fields,
                conditions,
                period: query.period,
            });
        } else {
            plan.skipped.push(row);
        }
    }
    if let (false, Some(error)) = (understood, refusal) {
        return Err(error);
    }
    if !timed && !plan.skipped.is_empty() {
        let message =
            "nothing here shows when its records are from, so that no period can be searched";
        let hint = "repeat the search without since and until";
        return Err(refused("since", message).with_hint(hint));
    }
    let answering: BTreeSet<ConnectionId> = plan.connections();
    plan.skipped
        .retain(|row| !answering.contains(&row.connection().id));
    Ok(plan)
}

impl Plan {
    fn request(&self, query: &SearchQuery, after: Option<SearchPosition>) -> SearchRequest {
        SearchRequest {
            scopes: self.searched.iter().map(Searched::scope).collect(),
            limit: page_limit(query),
            after,
            count: query.count != Count::None,
            by_year: query.by_year,
            order: store_order(query.order),
            expression: match query.matching {
                Matching::Any => Expression::parse(&query.q),
                Matching::All => Expression::parse_all(&query.q),
            },
        }
    }

    fn connections(&self) -> BTreeSet<ConnectionId> {
        let searched = self.searched.iter();
        searched
            .map(|one| one.row.connection().id.clone())
            .collect()
    }

    /// Says of each word how many records have it, within the grant and without the caller's conditions.
    fn count_words(
        &self,
        session: &Session,
        query: &SearchQuery,
        expression: &Expression,
        found: &mut WordsFound,
    ) -> Result<()> {
        let scopes: Vec<_> = self.searched.iter().map(Searched::granted).collect();
        let filtered = !query.filters.is_empty() || !query.period.is_open();
        words::count_each(session, expression, &scopes, filtered, found)
    }

    /// A digest of what is searched: rows and fields may be removed or added between two pages.
    fn fingerprint(&self) -> u64 {
        let whole = digest(self.searched.iter().flat_map(|one| {
            let source = [
                one.row.connection().id.as_str(),
                one.row.stream().name.as_str(),
            ];
            let fields = one.fields.iter().map(FieldName::as_str);
            // A name is never empty, so an empty text ends a row.
            source.into_iter().chain(fields).chain([""])
        }));
        // As much of it as a cursor holds.
        whole >> 24
    }
}

impl Searched {
    /// Everything the grant lets the caller search, without the caller's conditions.
    fn granted(&self) -> Scope {
        self.row.scope(self.fields.clone(), Vec::new())
    }

    /// Whether a record is still what the caller asked for.
    fn admits(&self, body: &RecordBody) -> bool {
        let is_within = || {
            let fields = self.row.dated_by().into_iter();
            let mut times = fields.filter_map(|name| Instant::parse(&body.text(name.as_str())?));
            times.next().is_some_and(|time| self.period.contains(time))
        };
        self.conditions.pass(body) && (self.period.is_open() || is_within())
    }

    fn scope(&self) -> Scope {
        let mut scope = self
            .row
            .scope(self.fields.clone(), self.conditions.filters());
        scope.times = self.row.dated_by();
        scope.period = self.period;
        scope.conversation = self.row.conversation();
        if scope.conversation.is_some() {
            let author = self.row.speaker_field().cloned();
            scope.author = author.filter(|author| self.fields.contains(author));
        }
        scope
    }
}

fn store_order(order: SearchOrder) -> search::SearchOrder {
    match order {
        SearchOrder::Relevance => search::SearchOrder::Relevance,
        SearchOrder::Newest => search::SearchOrder::Time(Direction::Descending),
        SearchOrder::Oldest => search::SearchOrder::Time(Direction::Ascending),
    }
}

fn fingerprint(query: &SearchQuery, mode: &str) -> String {
    let mut streams: Vec<&str> = query.streams.iter().map(StreamName::as_str).collect();
    streams.sort_unstable();
    streams.dedup();
    let filters = conditions::fingerprint(&query.filters);
    let mut parts = vec![
        json!(query.q),
        json!(query.matching.as_str()),
        json!(streams),
        json!(filters),
    ];
    if !mode.is_empty() {
        parts.push(json!(mode));
    }
    if !query.period.is_open() {
        parts.push(json!(query.period));
    }
    json!(parts).to_string()
}

/// The grant or package that a search's cursor belongs to.
fn authority_id(session: &Session) -> Option<&str> {
    let client = session.reach().client()?;
    match client.package_id() {
        Some(package) => Some(package.as_str()),
        None => client.rows().first().map(|row| row.grant_id.as_str()),
    }
}

fn page_limit(query: &SearchQuery) -> usize {
    usize::try_from(query.limit.effective()).unwrap_or(usize::MAX)
}

/// What a hit has to show.
struct Asked<'a> {
    expression: &'a Expression,
    excerpts: usize,
    mode: SearchMode,
}

/// The hits of a page while it is being filled.
struct Hits<'p> {
    by_stream: HashMap<StreamRef, &'p Searched>,
    limit: usize,
    excerpts: usize,
    mode: SearchMode,
    /// What is asked beside the words.
    meaning: Option<MeaningQuestion>,
    /// The stream and row of each hit.
    places: Vec<(StreamRef, u64)>,
    /// The score of the first hit, where the page may end before weaker ones.
    best: Option<f32>,
    /// Whether it did.
    weaker_follow: bool,
    room: ByteBudget,
    data: Vec<SearchHit>,
    /// The position of the last hit that was looked at.
    last: Option<SearchPosition>,
    shown: Shown,
}

impl<'p> Hits<'p> {
    fn new(session: &Session, plan: &'p Plan, query: &SearchQuery) -> Self {
        let mut shown = Shown::default();
        for searched in &plan.searched {
            shown.row(&searched.row);
            shown.fields(searched.conditions.fields());
        }
        let by_stream = plan.searched.iter();
        Self {
            by_stream: by_stream.map(|one| (one.row.stream_ref(), one)).collect(),
            limit: page_limit(query),
            excerpts: query.excerpts,
            mode: query.mode,
            meaning: None,
            places: Vec::new(),
            best: None,
            weaker_follow: false,
            room: session.page_budget(),
            data: Vec::new(),
            last: None,
            shown,
        }
    }

    /// Takes the hits of an answer, and of the following ones where records are so large that the store did not read all at
    /// once. Returns whether there are more.
    fn fill(
        &mut self,
        session: &Session,
        request: &mut SearchRequest,
        answer: &mut SearchAnswer,
    ) -> Result<bool> {
        loop {
            let found = std::mem::take(&mut answer.hits);
            let read = found.len();
            for hit in found {
                let position = hit.position;
                if self.is_far_weaker(session, position.rank) {
                    self.weaker_follow = true;
                    return Ok(true);
                }
                let asked = Asked {
                    expression: &answer.expression,
                    excerpts: self.excerpts,
                    mode: self.mode,
                };
                if !self.take(session, &asked, hit)? {
                    return Ok(true);
                }
                self.last = Some(position);
            }
            let wanted = request.limit.saturating_sub(read);
            if !answer.has_more || wanted == 0 || read == 0 {
                return Ok(answer.has_more);
            }
            request.after = self.last;
            request.limit = wanted;
            request.count = false;
            let next = meaning::ask(session, request, self.meaning.as_ref())?;
            if let (true, Some(last)) = (next.ranking_changed, self.last) {
                let mut rows = self.by_stream.values().map(|one| &one.row);
                answer.ranking_changed |=
                    visible_history::changed_since(session, &mut rows, last.version)?;
            }
            answer.hits = next.hits;
            answer.has_more = next.has_more;
        }
    }

    /// Whether the page says enough without this hit, which scores far less than its best. What answers a question stands
    /// out; a topic has many hits of one kind.
    fn is_far_weaker(&mut self, session: &Session, rank: Rank) -> bool {
        let clear = session.settings.max_bytes.map_or(0, |bytes| bytes.clear);
        let (Rank::Score(score), SearchMode::Lexical, 1..) = (rank, self.mode, clear) else {
            return false;
        };
        let best = *self.best.get_or_insert(score);
        self.data.len() >= clear && score < best * FAR_WEAKER
    }

    /// Adds a hit, unless its record has left the row since the index was read. Returns whether it fitted.
    fn take(&mut self, session: &Session, asked: &Asked<'_>, hit: Hit) -> Result<bool> {
        let Some(searched) = self.by_stream.get(&hit.stream) else {
            return Ok(true);
        };
        if hit.record.is_damaged {
            self.shown.damaged.note(&searched.row, &hit.record.key);
            return Ok(true);
        }
        let mut beside = Shown::default();
        let place = (hit.stream.clone(), hit.position.row);
        let key = hit.record.key.clone();
        let served = served::served(session, searched, asked, hit, &mut beside);
        let served = self
            .shown
            .damaged
            .pass_over(served, (&searched.row, &key))?;
        let Some(mut served) = served.flatten() else {
            return Ok(true);
        };
        short::shorten(session, &mut served);
        let size = written_bytes(&served) + short::beside(session, &served);
        let fits = self.data.len() < self.limit && self.room.take(size);
        if fits {
            self.shown.add(beside);
            self.places.push(place);
            self.data.push(served);
        }
        Ok(fits)
    }
}
