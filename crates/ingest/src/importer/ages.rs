//! Of two exports, the later one counts, whichever is imported last: an older one adds what is missing and leaves what is there.
//!
//! 1. A record that says when it was changed is replaced only by one that was not changed before it.
//! 2. Where records do not say so, the export does, if it is the history of an account: it is the older one if something stands in its
//!    conversations that is newer than all it has. That is known at its end, so what it would change waits until then.
//!
//! What is there otherwise becomes as the last import has it: folders of files, and lines and tables, which say what they are.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};

use contract::declaration::{Declaration, StreamDeclaration, thread_field};
use contract::id::{FieldName, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::time::Instant;
use serde_json::Value;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{
    Applied, Change, ChangeOp, Direction, OrderBy, PagePosition, PageRequest, SortValue,
};

use super::waiting::Waiting;
use super::{Destination, as_asked};
use crate::exports::Export;

/// Members in which records say when they were changed, and whether one without it is older than one with it.
const CHANGED: [(&str, bool); 3] = [
    ("edited_at", true),
    ("balance_on", true),
    ("updated_at", false),
];

/// Exports of what is as its files are now, whatever these say.
const AS_THEY_ARE: [Export; 2] = [Export::MARKDOWN, Export::DOCUMENTS];

/// Exports that hold all that an account has had until then.
const HISTORIES: [Export; 20] = [
    Export::MAIL,
    Export::TELEGRAM,
    Export::WHATSAPP,
    Export::CHATGPT,
    Export::CLAUDE,
    Export::CLAUDE_CODE,
    Export::CODEX,
    Export::SLACK,
    Export::GITHUB,
    Export::X,
    Export::FACEBOOK,
    Export::INSTAGRAM,
    Export::LINKEDIN,
    Export::REDDIT,
    Export::MASTODON,
    Export::DISCORD,
    Export::APPLE_HEALTH,
    Export::GOOGLE_FIT,
    Export::GOODREADS,
    Export::LETTERBOXD,
];

/// Records that are looked at to find a newer one in the same conversations.
const LOOKED_AT: usize = 100_000;
const LOOKED_AT_ONCE: usize = 500;

/// What an import knows of how old its export is.
pub(super) struct Ages<'a> {
    declaration: &'a Declaration,
    now: Instant,
    /// By stream: whether something was there before the file that is read.
    held: HashMap<StreamName, bool>,
    has_begun: bool,
    history: Option<History>,
}

/// What came so far of the history of an account.
#[derive(Default)]
struct History {
    /// The streams whose records have times, with those of which something came marked.
    dated: HashMap<StreamName, (Dated, bool)>,
    newest: Option<Instant>,
    /// Whether it is mail, and whether it is of a folder, beside which others have newer messages of its conversations. Only Gmail hands out
    /// all, and numbers its conversations.
    is_mail: bool,
    is_folder: bool,
    /// Hashes of the conversations.
    threads: HashSet<u64>,
    /// Hashes of the records that this import added.
    added: HashSet<u64>,
    waiting: Option<Waiting>,
}

/// Where a record says when it was, and to which conversation it belongs.
struct Dated {
    time: FieldName,
    thread: Option<FieldName>,
}

impl Dated {
    /// A conversation belongs to itself. Parts of other records, such as attachments, are as old as those.
    fn of(stream: &StreamDeclaration, declaration: &Declaration) -> Option<Self> {
        let thread_of =
            |stream: &StreamDeclaration| Some(thread_field(stream.fields.iter())?.name.clone());
        let is_conversation = stream.relationships.iter().any(|one| {
            let said = declaration.stream(one.stream.as_str());
            said.and_then(thread_of).as_ref() == Some(&one.foreign_key)
        });
        let own = stream.primary_key.first().filter(|_| is_conversation);
        let thread = thread_of(stream).or_else(|| own.cloned());
        let mut relationships = declaration
            .streams
            .iter()
            .flat_map(|one| &one.relationships);
        if thread.is_none() && relationships.any(|one| one.stream == stream.name) {
            return None;
        }
        Some(Self {
            time: stream.cursor_field.clone()?,
            thread,
        })
    }

    fn thread<'b>(&self, body: &'b RecordBody) -> Option<Cow<'b, str>> {
        body.text(self.thread.as_ref()?.as_str())
    }
}

/// What is to become of a record that is there with other content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Replace,
    Leave,
    /// Only the end of the import tells.
    Wait,
}

impl<'a> Ages<'a> {
    /// Nothing where what is imported last counts.
    pub(super) fn new(declaration: &'a Declaration, now: Instant) -> Option<Self> {
        (!is_of(declaration, &AS_THEY_ARE)).then(|| Self {
            declaration,
            now,
            held: HashMap::new(),
            has_begun: false,
            history: None,
        })
    }

    /// Begins with a file. What earlier files of the import brought is there too, from here on.
    pub(super) fn begin_file(&mut self, destination: &Destination<'_>) -> Result<(), StoreError> {
        self.held.retain(|_, held| *held);
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let declaration = self.declaration;
        let mut is_new = true;
        for stream in &declaration.streams {
            is_new &= !self.holds(destination, &stream.name)?;
        }
        if !is_new && is_of(declaration, &HISTORIES) {
            let dated = declaration.streams.iter().filter_map(|stream| {
                let dated = Dated::of(stream, declaration)?;
                Some((stream.name.clone(), (dated, false)))
            });
            self.history = Some(History {
                dated: dated.collect(),
                is_mail: is_of(declaration, &[Export::MAIL]),
                ..History::default()
            });
        }
        Ok(())
    }

    /// Whether something is there in a stream that may be older or newer.
    fn holds(
        &mut self,
        destination: &Destination<'_>,
        stream: &StreamName,
    ) -> Result<bool, StoreError> {
        if let Some(held) = self.held.get(stream) {
            return Ok(*held);
        }
        let Some((store, connection)) = destination.stored() else {
            return Ok(false);
        };
        let request = PageRequest::first(OrderBy::Key, Direction::Ascending, 1);
        let page = store.page(&StreamRef::new(connection, stream), &request)?;
        let held = !page.records.is_empty();
        self.held.insert(stream.clone(), held);
        Ok(held)
    }

    /// Writes a batch, but nothing over what is newer. Says what became of each change.
    pub(super) fn write(
        &mut self,
        destination: &mut Destination<'_>,
        batch: Vec<Change>,
        revives: bool,
    ) -> Result<Vec<Applied>, StoreError> {
        let mut asked = Vec::new();
        for (at, change) in batch.iter().enumerate() {
            let ChangeOp::Add(body) = &change.op else {
                continue;
            };
            if let Some(history) = &mut self.history {
                history.note(&change.stream, body, self.now);
            }
            if self.holds(destination, &change.stream)? {
                asked.push((at, change.clone()));
            }
        }
        let holds = |stream: &StreamName| self.held.get(stream) == Some(&true);
        let mut applied = destination.write(as_asked(batch, revives, &holds))?;
        if let Some(history) = &mut self.history {
            let added = asked.iter();
            let added = added.filter(|(at, _)| applied.get(*at) == Some(&Applied::Added));
            history.added.extend(added.map(|(_, change)| id_of(change)));
        }
        let (mut places, mut again) = (Vec::new(), Vec::new());
        for (at, change) in asked {
            let is_next = match applied.get(at) {
                Some(Applied::KeptDeleted) => revives,
                Some(Applied::LeftAsItIs) => match self.verdict(destination, &change)? {
                    Verdict::Replace => true,
                    Verdict::Leave => false,
                    Verdict::Wait => {
                        self.wait(&change)?;
                        false
                    }
                },
                _ => false,
            };
            if is_next {
                places.push(at);
                again.push(change);
            }
        }
        if !again.is_empty() {
            let outcomes = destination.write(as_asked(again, revives, &|_| false))?;
            for (at, outcome) in places.into_iter().zip(outcomes) {
                if let Some(place) = applied.get_mut(at) {
                    *place = outcome;
                }
            }
        }
        Ok(applied)
    }

    fn verdict(
        &self,
        destination: &Destination<'_>,
        change: &Change,
    ) -> Result<Verdict, StoreError> {
        let stored = match destination.stored() {
            Some((store, connection)) => {
                store.get(&StreamRef::new(connection, &change.stream), &change.key)?
            }
            None => None,
        };
        let stored = stored.and_then(|stored| RecordBody::parse(stored.body).ok());
        let (ChangeOp::Add(come), Some(stored)) = (&change.op, stored) else {
            return Ok(Verdict::Replace);
        };
        let time_in = |body: &RecordBody, name: &str| Instant::parse(&body.text(name)?);
        let is_older = is_older_by(|name| (time_in(come, name), time_in(&stored, name)));
        Ok(match (is_older, &self.history) {
            (Some(true), _) => Verdict::Leave,
            (Some(false), _) | (None, None) => Verdict::Replace,
            (None, Some(history)) if history.added.contains(&id_of(change)) => Verdict::Replace,
            (None, Some(_)) => Verdict::Wait,
        })
    }

    fn wait(&mut self, change: &Change) -> Result<(), StoreError> {
        let Some(history) = &mut self.history else {
            return Ok(());
        };
        let waiting = match &mut history.waiting {
            Some(waiting) => waiting,
            none => none.insert(Waiting::new()?),
        };
        waiting.push(change)
    }

    /// What waited, where the export turned out to be no older one.
    pub(super) fn take_waiting(
        &mut self,
        destination: &Destination<'_>,
    ) -> Result<Option<Waiting>, StoreError> {
        let Some(history) = &mut self.history else {
            return Ok(None);
        };
        let Some(waiting) = history.waiting.take() else {
            return Ok(None);
        };
        let is_older = history.is_older(destination, self.now)?;
        Ok((!is_older).then_some(waiting))
    }
}

fn is_of(declaration: &Declaration, exports: &[Export]) -> bool {
    let key = declaration.connector_key().as_str();
    exports.iter().any(|export| export.connector_key() == key)
}

impl History {
    fn note(&mut self, stream: &StreamName, body: &RecordBody, now: Instant) {
        let Some((dated, has_come)) = self.dated.get_mut(stream) else {
            return;
        };
        *has_come = true;
        let time = body.text(dated.time.as_str());
        let time = time.and_then(|time| Instant::parse(&time));
        // What lies ahead, as spam does, tells nothing.
        self.newest = self.newest.max(time.filter(|time| *time <= now));
        let thread = dated.thread(body);
        let is_number = |thread: &Cow<'_, str>| thread.bytes().all(|byte| byte.is_ascii_digit());
        self.is_folder |= self.is_mail && !thread.as_ref().is_some_and(is_number);
        self.threads.extend(thread.map(|thread| hash(&thread)));
    }

    /// Whether something is there that is newer than all that came, and would have come with it.
    fn is_older(&self, destination: &Destination<'_>, now: Instant) -> Result<bool, StoreError> {
        let (Some(newest), Some((store, connection))) = (self.newest, destination.stored()) else {
            return Ok(false);
        };
        for (stream, (dated, has_come)) in &self.dated {
            if !has_come || self.is_folder {
                continue;
            }
            let stream = StreamRef::new(connection, stream);
            let mut request =
                PageRequest::first(OrderBy::Cursor, Direction::Descending, LOOKED_AT_ONCE);
            request.after = Some(PagePosition {
                sort: SortValue::Integer(now.0),
                key: RecordKey::from_ordering_form(""),
            });
            for _ in 0..LOOKED_AT / LOOKED_AT_ONCE {
                let page = store.page(&stream, &request)?;
                for record in &page.records {
                    match record.position.sort {
                        SortValue::Integer(at) if at > newest.0 => {}
                        _ => break,
                    }
                    let body = RecordBody::parse(record.body.as_str()).ok();
                    let thread = body.as_ref().and_then(|body| dated.thread(body));
                    if dated.thread.is_none()
                        || thread.is_some_and(|thread| self.threads.contains(&hash(&thread)))
                    {
                        return Ok(true);
                    }
                }
                let last = page.records.last().map(|record| record.position.clone());
                let is_beyond = match last.as_ref().map(|last| last.sort) {
                    Some(SortValue::Integer(at)) => at <= newest.0,
                    _ => true,
                };
                if page.is_last || is_beyond {
                    break;
                }
                request.after = last;
            }
        }
        Ok(false)
    }
}

/// Whether one of two versions of a record was changed before the other, as they say; nothing if they do not. `times` gives what both have
/// in a member.
fn is_older_by(times: impl Fn(&str) -> (Option<Instant>, Option<Instant>)) -> Option<bool> {
    let mut told = CHANGED
        .iter()
        .filter_map(|(name, is_lasting)| match times(name) {
            (Some(come), Some(stored)) if come != stored => Some(come < stored),
            (Some(_), None) => Some(false),
            (None, Some(_)) if *is_lasting => Some(true),
            _ => None,
        });
    told.next()
}

/// Whether a record says that it was changed before the one that is there.
pub(crate) fn is_older(come: &Value, stored: &Value) -> bool {
    let time_in = |record: &Value, name: &str| Instant::parse(record.get(name)?.as_str()?);
    is_older_by(|name| (time_in(come, name), time_in(stored, name))) == Some(true)
}

fn id_of(change: &Change) -> u64 {
    hash(&(change.stream.as_str(), change.key.ordering_form()))
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
