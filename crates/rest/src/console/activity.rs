//! What was read under a grant: what its client knows by now, and call by call.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::grant::Authority;
use contract::handle::RecordHandle;
use contract::id::GrantId;
use contract::query::PageLimit;
use contract::reader::ReadContract as _;
use contract::search::SearchQuery;
use contract::time::Instant;
use grants::{DisclosedCall, Overview};
use read::GrantReader;
use store::grants::LoggedDisclosure;

use super::address::Address;
use super::format::{format_count, visible};
use super::frame::{Frame, Section};
use super::grant::{CallRow, RECORDS, RecordLink, problem, record_link};
use super::moment;
use super::titles::Titles;
use super::viewer::client;
use super::{html, session};
use crate::form::Form;
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// Calls on a page.
const CALLS: usize = 25;
/// Records of a call that is looked at alone.
const CALL_RECORDS: usize = 100;
/// How many calls the summary counts, and how many are read at once.
const COUNTED: usize = 100_000;
const PAGE: usize = 1_000;
/// How many records of the summary are listed.
const KNOWN: usize = 50;
/// How many hits of a search are looked for among them.
const HITS: u32 = 100;
const HIT_PAGES: usize = 10;

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityPage {
    frame: Frame,
    id: String,
    client: String,
    records_known: String,
    fields_known: String,
    calls_counted: String,
    /// Whether there are more calls than are counted.
    is_cut: bool,
    q: String,
    known: Vec<KnownRecord>,
    /// Further known records; empty where there are none.
    next_known: String,
    /// All calls, where one is looked at alone.
    all_calls: String,
    days: Vec<DayOfCalls>,
    earlier: String,
    proof: String,
}

struct KnownRecord {
    link: RecordLink,
    times: String,
}

struct DayOfCalls {
    name: String,
    total: String,
    calls: Vec<CallRow>,
}

struct ActivityQuery {
    id: String,
    q: String,
    before: Option<u64>,
    /// The call that is looked at alone, and from which of its records on.
    call: Option<u64>,
    from: usize,
    /// From which known record on.
    known: usize,
    verifies: bool,
}

impl ActivityQuery {
    fn new(id: &str, form: &Form) -> Self {
        Self {
            id: id.to_owned(),
            q: form.value("q").trim().to_owned(),
            before: form.value("before").parse().ok(),
            call: form.value("call").parse().ok(),
            from: form.value("from").parse().unwrap_or_default(),
            known: form.value("known").parse().unwrap_or_default(),
            verifies: !form.value("verify").is_empty(),
        }
    }

    /// Where the next known records are; empty where these are the last of `all`.
    fn next_known(&self, all: usize) -> String {
        let next = self.known.saturating_add(KNOWN);
        if next >= all {
            return String::new();
        }
        let address = self.address().with("q", &self.q);
        format!("{}#known", address.with("known", &next.to_string()))
    }

    fn address(&self) -> Address {
        Address::of_parts("/grants", &[&self.id, "activity"])
    }

    /// Which records of a call are shown.
    fn shown(&self) -> Range<usize> {
        match self.call {
            Some(_) => self.from..self.from.saturating_add(CALL_RECORDS),
            None => 0..RECORDS,
        }
    }
}

/// `GET /grants/{id}/activity`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let asked = ActivityQuery::new(context.part(0), &Form::from_query(context.query())?);
    let service = Arc::clone(&context.service);
    let read = blocking(Arc::clone(&service), move |service| {
        Ok((read(service, &asked)?, asked))
    });
    let (read, asked) = read.await?;
    let found = found_by_words(&service, &asked.q).await;
    let matching = matching(&read.known, &asked.q, &found);
    let shown = asked.shown();
    let listed: Vec<DisclosedCall> = read.listed.into_iter().map(DisclosedCall::from).collect();
    let of_calls = listed
        .iter()
        .flat_map(|call| call.records.iter().skip(shown.start).take(shown.len()));
    let known = matching
        .iter()
        .skip(asked.known)
        .take(KNOWN)
        .map(|(handle, _)| handle.as_str());
    let titles = Titles::read(&service, known.chain(of_calls.map(String::as_str))).await;
    let known = matching
        .iter()
        .skip(asked.known)
        .take(KNOWN)
        .map(|(handle, times)| KnownRecord {
            link: record_link(handle, &titles),
            times: format_count(*times, "time"),
        });
    let page = ActivityPage {
        frame: Frame::new(&session, Section::Grants),
        id: read.overview.id.clone(),
        client: client(&read.overview),
        records_known: format_count(count(read.known.records.len()), "record"),
        fields_known: read.known.fields_in_words(),
        calls_counted: format_count(count(read.known.calls), "call"),
        is_cut: read.known.calls >= COUNTED,
        next_known: asked.next_known(matching.len()),
        all_calls: match asked.call {
            Some(_) => asked.address().to_string(),
            None => String::new(),
        },
        known: known.collect(),
        days: days(&listed, &asked, &titles),
        q: asked.q,
        earlier: read.earlier,
        proof: read.proof,
    };
    html(StatusCode::OK, &page)
}

/// What the log says about a grant.
struct Read {
    overview: Overview,
    known: Known,
    listed: Vec<LoggedDisclosure>,
    earlier: String,
    proof: String,
}

fn read(service: &Service, asked: &ActivityQuery) -> Result<Read, Problem> {
    flush_disclosures(service);
    let shown = grants::show(&*service.store, &asked.id, service.now(), 0);
    let overview = shown.map_err(|error| problem(&error))?.overview;
    let known = known(service, &overview)?;
    let mut listed = match asked.call {
        Some(call) => calls(service, &overview, call.checked_add(1), 1)?,
        None => calls(service, &overview, asked.before, CALLS + 1)?,
    };
    listed.retain(|one| asked.call.is_none_or(|call| one.sequence == call));
    let has_more = listed.len() > CALLS;
    listed.truncate(CALLS);
    let earlier = listed.last().filter(|_| has_more).map(|last| {
        let address = asked.address().with("q", &asked.q);
        address
            .with("before", &last.sequence.to_string())
            .to_string()
    });
    Ok(Read {
        proof: if asked.verifies {
            proof(service)?
        } else {
            String::new()
        },
        earlier: earlier.unwrap_or_default(),
        overview,
        known,
        listed,
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The calls of a grant, or of all grants of a package, newest first.
fn calls(
    service: &Service,
    overview: &Overview,
    before: Option<u64>,
    most: usize,
) -> Result<Vec<LoggedDisclosure>, Problem> {
    let mut calls: BTreeMap<u64, LoggedDisclosure> = BTreeMap::new();
    let read = |grant: &GrantId| service.store.disclosures(Some(grant), before, most);
    for grant in &overview.grant_ids {
        let read = read(grant);
        let read = read.map_err(|error| Problem::internal("the log could not be read", &error))?;
        calls.extend(read.into_iter().map(|call| (call.sequence, call)));
    }
    Ok(calls.into_values().rev().take(most).collect())
}

/// What a client was given, however often.
#[derive(Default)]
struct Known {
    calls: usize,
    /// Records, and how often each was given.
    records: BTreeMap<String, u64>,
    fields: BTreeSet<String>,
}

impl Known {
    fn add(&mut self, call: LoggedDisclosure) {
        self.calls += 1;
        self.fields.extend(call.disclosure.fields);
        for record in call.disclosure.records {
            *self.records.entry(record).or_default() += 1;
        }
    }

    fn fields_in_words(&self) -> String {
        let fields: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        visible(&fields.join(", "))
    }
}

/// Everything that was given under a grant, or under all grants of a package.
fn known(service: &Service, overview: &Overview) -> Result<Known, Problem> {
    let (mut known, mut before) = (Known::default(), None);
    while known.calls < COUNTED {
        let page = calls(service, overview, before, PAGE)?;
        let is_last = page.len() < PAGE;
        before = page.last().map(|call| call.sequence);
        for call in page {
            known.add(call);
        }
        if is_last {
            break;
        }
    }
    Ok(known)
}

/// The records that the owner finds by these words.
async fn found_by_words(service: &Arc<Service>, q: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Ok(mut query) = SearchQuery::new(q.to_owned()) else {
        return found;
    };
    query.limit = PageLimit::new(HITS);
    let store = Arc::clone(&service.store);
    let reader = GrantReader::new(store, Authority::Owner, service.reader_settings.clone());
    for _ in 0..HIT_PAGES {
        // Names are looked at whatever becomes of the search.
        let Ok(page) = reader.search(query.clone()).await else {
            break;
        };
        query.cursor = page.next_cursor().map(str::to_owned);
        for hit in page.data {
            let (stream, key) = (
                hit.stream.unwrap_or_default(),
                hit.record_key.unwrap_or_default(),
            );
            let handle = RecordHandle::new(hit.connection_id.as_deref(), &stream, &key);
            found.extend(handle.map(|handle| handle.to_string()));
        }
        if query.cursor.is_none() {
            break;
        }
    }
    found
}

/// Those that were found, or whose names have this in them, the most given first.
fn matching(known: &Known, q: &str, found: &BTreeSet<String>) -> Vec<(String, u64)> {
    let q = q.to_lowercase();
    let is_named = |handle: &str| {
        let link = record_link(handle, &Titles::default());
        link.name.to_lowercase().contains(&q)
    };
    let records = known.records.iter();
    let records = records.filter(|(handle, _)| found.contains(*handle) || is_named(handle));
    let mut records: Vec<(String, u64)> = records
        .map(|(handle, times)| (handle.clone(), *times))
        .collect();
    records.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    records
}

fn days(calls: &[DisclosedCall], asked: &ActivityQuery, titles: &Titles) -> Vec<DayOfCalls> {
    let mut days: Vec<DayOfCalls> = Vec::new();
    for call in calls {
        let name = Instant::parse(&call.at).map(day_name).unwrap_or_default();
        let row = CallRow::from_call(call, &asked.id, asked.shown(), titles);
        match days.last_mut() {
            Some(day) if day.name == name => day.calls.push(row),
            _ => days.push(DayOfCalls {
                name,
                total: String::new(),
                calls: vec![row],
            }),
        }
    }
    for day in &mut days {
        day.total = format_count(count(day.calls.len()), "call");
    }
    days
}

fn day_name(at: Instant) -> String {
    let local = moment::local(at);
    local.map_or_else(String::new, |at| at.strftime("%A, %-d %B %Y").to_string())
}

fn proof(service: &Service) -> Result<String, Problem> {
    let check = grants::verify(&*service.store);
    let check = check.map_err(|error| Problem::internal("the log could not be checked", &error))?;
    Ok(match check.broken {
        None => format!(
            "The chain of all {} is whole.",
            match check.entries {
                1 => "1 entry".to_owned(),
                entries => format!("{} entries", super::format::format_number(entries)),
            }
        ),
        Some(broken) => format!(
            "The log is not what was written from entry {} on: {}",
            broken.sequence,
            visible(&broken.reason)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::id::ClientId;
    use store::grants::Disclosure;

    #[test]
    fn what_a_client_knows_is_counted_once() {
        let call = |sequence: u64, records: &[&str], fields: &[&str]| LoggedDisclosure {
            sequence,
            disclosure: Disclosure {
                bytes: None,
                at: Instant(0),
                grant_ids: Vec::new(),
                client_id: ClientId::parse("app").unwrap(),
                operation: "search".to_owned(),
                records: records.iter().map(ToString::to_string).collect(),
                fields: fields.iter().map(ToString::to_string).collect(),
            },
        };
        let mut known = Known::default();
        let calls = [
            call(2, &["work/messages:m1", "work/messages:m2"], &["subject"]),
            call(1, &["work/messages:m1"], &["body", "subject"]),
        ];
        for call in calls {
            known.add(call);
        }
        assert_eq!((known.calls, known.records.len()), (2, 2));
        assert_eq!(known.fields_in_words(), "body, subject");
        let nothing = BTreeSet::new();
        let all = matching(&known, "", &nothing);
        assert_eq!(all[0], ("work/messages:m1".to_owned(), 2));
        assert_eq!(matching(&known, "M2", &nothing).len(), 1);
        let found = BTreeSet::from(["work/messages:m1".to_owned(), "home/messages:m9".to_owned()]);
        assert_eq!(matching(&known, "harbour", &found).len(), 1);
    }
}
