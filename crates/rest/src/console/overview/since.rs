//! What changed since the owner was here last. When that was, and how many records each stream had, is kept.

use std::collections::BTreeMap;

use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::registry::{Change, EntryKind};
use store::{Result, Store};

use super::readings::Readings;
use crate::console::browse::stream_address;
use crate::console::format::{format_count, format_number, label};
use crate::console::moment::Moment;
use crate::console::sources::Sources;

const MINUTE: i64 = 60 * 1_000_000;
/// Whoever comes back later than this visits anew.
const GAP: i64 = 60 * MINUTE;
/// How often it is noted that a visit goes on.
const NOTED_EVERY: i64 = 5 * MINUTE;
const OWNER: &str = "owner";

/// Records by `connection/stream`.
type Counts = BTreeMap<String, u64>;

/// The visit that goes on, as it was noted last, and the one before.
#[derive(Serialize, Deserialize)]
struct Visits {
    now: Visit,
    before: Option<Visit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Visit {
    pub(super) at: Instant,
    pub(super) counts: Counts,
}

pub(super) struct Since {
    pub(super) at: Option<Moment>,
    /// How many records there are more, or fewer.
    pub(super) difference: String,
    pub(super) lines: Vec<SinceLine>,
}

pub(super) struct SinceLine {
    pub(super) text: String,
    pub(super) subject: String,
    pub(super) address: String,
}

/// Notes this visit, and gives the one before it.
pub(super) fn visit(store: &dyn Store, now: Instant, counts: Counts) -> Result<Option<Visit>> {
    let entry = store.entry(EntryKind::Visit, OWNER, now)?;
    let known = entry.and_then(|entry| serde_json::from_str::<Visits>(&entry.document).ok());
    let now_visit = Visit { at: now, counts };
    let visits = match known {
        None => Visits {
            now: now_visit,
            before: None,
        },
        Some(known) => match now.0.saturating_sub(known.now.at.0) {
            ..NOTED_EVERY => return Ok(known.before),
            NOTED_EVERY..=GAP => Visits {
                now: now_visit,
                before: known.before,
            },
            _ => Visits {
                now: now_visit,
                before: Some(known.now),
            },
        },
    };
    // A visit that cannot be noted is noted next time.
    if let Ok(document) = serde_json::to_string(&visits) {
        store.apply(&[Change::put(EntryKind::Visit, OWNER, document)], now)?;
    }
    Ok(visits.before)
}

pub(super) fn counts(sources: &Sources) -> Counts {
    let streams = sources.0.iter().flat_map(|source| {
        let name = |stream: &str| format!("{}/{stream}", source.id);
        let streams = source.streams.iter();
        streams.map(move |stream| (name(stream.name.as_str()), stream.records))
    });
    streams.collect()
}

/// What there is more or fewer of since a visit, and who was shown something.
pub(super) fn since(
    before: &Visit,
    sources: &Sources,
    readings: &Readings,
    client: impl Fn(&str) -> String,
) -> Since {
    let mut lines = Vec::new();
    let (mut more, mut fewer) = (0, 0);
    for source in &sources.0 {
        for stream in &source.streams {
            let name = stream.name.as_str();
            let known = before.counts.get(&format!("{}/{name}", source.id));
            let known = known.copied().unwrap_or_default();
            let text = match stream.records.checked_sub(known) {
                Some(0) => continue,
                Some(new) => {
                    more += new;
                    format!("{} more", format_number(new))
                }
                None => {
                    fewer += known - stream.records;
                    format!("{} fewer", format_number(known - stream.records))
                }
            };
            lines.push(SinceLine {
                text,
                subject: format!("{}, {}", source.name, stream.label),
                address: stream_address(&source.id, name).to_string(),
            });
        }
    }
    for (call, calls) in readings.since(before.at) {
        lines.push(SinceLine {
            text: format!(
                "was shown {} in {}",
                format_count(call.records, "record"),
                format_count(calls, "call")
            ),
            subject: label(&client(&call.client)),
            address: format!("/grants/{}/activity", call.grant),
        });
    }
    Since {
        at: Moment::new(before.at),
        difference: match more.checked_sub(fewer) {
            Some(more) => format!("+{}", format_number(more)),
            None => format!("−{}", format_number(fewer - more)),
        },
        lines,
    }
}
