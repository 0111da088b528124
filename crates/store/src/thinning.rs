//! Which replaced versions of a record an owner's rule drops: the same for every database.
//!
//! The date at which a grant last saw a record change comes from its history and must not move: a date that moved would
//! reveal changes the grant never saw. So for each member the version that changed it last stays, with the one before it,
//! and so do the first version and every one that moved the time a grant may be limited by. These are at most a few per
//! member, however often a record was replaced.

use std::collections::{BTreeSet, HashMap};

use contract::json::{RecordBody, same_value};
use contract::time::Instant;

use crate::index::sources::Sources;
use crate::keeping::Retention;

/// The name under which deletions and revivals are noted; no member can have it.
const PRESENCE: &str = "\0";

/// A version of a record that was replaced.
pub(crate) struct Replaced {
    /// What the database finds it by.
    pub(crate) number: i64,
    pub(crate) next_version: u64,
}

/// The versions of one record, handed over from the oldest to the present one.
pub(crate) struct Thinning<'a> {
    /// The field that grants of the stream may be limited in time by.
    time: Option<&'a str>,
    /// Each with when it was replaced, as the source dated the change.
    versions: Vec<(Replaced, Option<Instant>)>,
    /// The content of the version taken last, as far as it can be parsed.
    before: Option<RecordBody>,
    last_change: HashMap<String, usize>,
    /// Those that dates depend on.
    kept: BTreeSet<usize>,
    at: usize,
}

impl<'a> Thinning<'a> {
    pub(crate) fn of(time: Option<&'a str>) -> Self {
        Self {
            time,
            versions: Vec::new(),
            before: None,
            last_change: HashMap::new(),
            kept: BTreeSet::from([0]),
            at: 0,
        }
    }

    /// Takes the next version; the present one was not replaced.
    pub(crate) fn take(&mut self, replaced: Option<Replaced>, emitted_at: &str, data: String) {
        // A version that cannot be parsed is damage, and not ours to drop.
        let body = RecordBody::parse(data).ok();
        if self.at > 0 {
            if let Some((_, until)) = self.versions.last_mut() {
                *until = Instant::parse(emitted_at);
            }
            for name in changed(self.before.as_ref(), body.as_ref()) {
                if self.time == Some(name.as_str()) || name == PRESENCE {
                    self.kept.extend([self.at - 1, self.at]);
                }
                self.last_change.insert(name, self.at);
            }
        }
        self.before = body;
        self.versions
            .extend(replaced.map(|replaced| (replaced, None)));
        self.at += 1;
    }

    /// The versions that neither the rule keeps nor dates depend on.
    pub(crate) fn dropped(mut self, retention: Retention) -> Vec<Replaced> {
        self.kept
            .extend(self.last_change.values().flat_map(|at| [at - 1, *at]));
        let count = self.versions.len();
        let dropped = self.versions.into_iter().enumerate();
        dropped
            .filter(|(at, (_, until))| {
                !self.kept.contains(at) && !retention.keeps((count - at) as u64, *until)
            })
            .map(|(_, (version, _))| version)
            .collect()
    }
}

/// The field that grants of a stream may be limited in time by.
pub(crate) fn time_field(sources: &Sources, stream: i64) -> Option<String> {
    let stream_ref = &sources.by_id(stream)?.stream;
    let connection = sources.connection(&stream_ref.connection).ok()?;
    let declaration = sources.declarations.get(&connection.connector)?;
    let field = declaration
        .stream(stream_ref.stream.as_str())?
        .consent_time_field
        .as_ref()?;
    Some(field.to_string())
}

/// The members that differ.
fn changed(before: Option<&RecordBody>, after: Option<&RecordBody>) -> Vec<String> {
    let names = |body: Option<&RecordBody>| -> Vec<String> {
        let members = body.into_iter().flat_map(RecordBody::members);
        members.map(|(name, _)| name.to_owned()).collect()
    };
    let (Some(one), Some(other)) = (before, after) else {
        let mut all = names(before.or(after));
        all.extend((before.is_some() != after.is_some()).then(|| PRESENCE.to_owned()));
        return all;
    };
    let mut all = names(before);
    all.extend(names(after));
    all.sort_unstable();
    all.dedup();
    all.retain(|name| match (one.get(name), other.get(name)) {
        (Some(one), Some(other)) => one != other && !same_value(one, other),
        (one, other) => one.is_some() != other.is_some(),
    });
    all
}
