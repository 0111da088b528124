//! Related records inside a fetched document: a bounded preview of each, with the id that fetches it.

use serde::Serialize;
use serde_with::skip_serializing_none;

use super::expand::{Relation, WayOn};
use crate::answer::{Related, RelatedRecord, size};
use crate::budget;
use crate::identity::Identity;
use crate::ladder::Next;
use crate::text::plain;
use crate::tool_call::ToolCall;

const ALL: usize = 16_384;
const SHOWN: usize = 10;
/// The ids of those that are not shown, where no call lists them.
const IDS: usize = 4_096;

#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct RelationContent {
    #[serde(skip)]
    pub(super) relation: String,
    count: usize,
    records: Vec<Preview>,
    has_more: Option<bool>,
    not_shown: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more_ids: Vec<String>,
    next: Option<Next>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Preview {
    #[serde(rename = "preview_text")]
    text: String,
    #[serde(rename = "preview_status")]
    status: &'static str,
    size_bytes: usize,
    id: Option<String>,
    read: Option<Next>,
}

impl RelationContent {
    /// Whether a relation holds more than is written of it.
    pub(super) fn is_cut(&self) -> bool {
        self.has_more.is_some() || self.not_shown.is_some()
    }

    /// Says how to read on in a relation that was cut.
    pub(super) fn lead_on(
        &mut self,
        related: &Related<'_>,
        relation: &Relation,
        parent: &Identity,
    ) {
        let way_on = relation.way_on(parent, related);
        if !matches!(way_on, WayOn::List(_)) {
            self.more_ids = ids(related.records.iter().skip(self.records.len()));
            if self.has_more.is_none() {
                self.next = Some(Next::Words(if self.more_ids.is_empty() {
                    "no call shows the others"
                } else {
                    "call fetch with one of more_ids"
                }));
                return;
            }
        }
        self.next = Some(way_on.into_next());
    }
}

pub(super) fn contents(related: &[Related<'_>], relations: &[Relation]) -> Vec<RelationContent> {
    let mut room = ALL;
    let asked = relations.iter();
    let found = asked.filter_map(|asked| related.iter().find(|one| one.relation == asked.name));
    found.map(|related| relation(related, &mut room)).collect()
}

fn relation(related: &Related<'_>, room: &mut usize) -> RelationContent {
    let mut records = Vec::new();
    for record in related.records.iter().take(SHOWN) {
        let preview = preview(record);
        let size = size(&preview);
        if size > *room {
            break;
        }
        *room -= size;
        records.push(preview);
    }
    let not_shown = related.records.len() - records.len();
    RelationContent {
        relation: related.relation.to_owned(),
        count: related.records.len(),
        records,
        has_more: related.has_more.then_some(true),
        not_shown: (not_shown > 0).then_some(not_shown),
        more_ids: Vec::new(),
        next: None,
    }
}

/// Ids that fetch takes as they are, as many as there is room for.
fn ids<'a>(records: impl Iterator<Item = &'a RelatedRecord<'a>>) -> Vec<String> {
    let mut room = IDS;
    let callable = |record: &RelatedRecord<'_>| {
        let identity = named(record)?;
        let is_whole = identity.separate_connection().is_none();
        is_whole.then(|| identity.id.clone())
    };
    records
        .filter_map(callable)
        .take_while(|id| {
            let fits = id.len() + 3 <= room;
            room = room.saturating_sub(id.len() + 3);
            fits
        })
        .collect()
}

/// Who it is, where its id is not too long to be listed.
fn named<'a>(record: &'a RelatedRecord<'_>) -> Option<&'a Identity> {
    let identity = record.identity.as_ref();
    identity.filter(|identity| identity.id.len() <= budget::PREVIEW)
}

fn preview(record: &RelatedRecord<'_>) -> Preview {
    let preview = plain::cut(&record.json, budget::PREVIEW);
    let is_whole = preview.len() == record.json.len();
    let identity = named(record);
    let how = "call schema with this stream to see the relation's stream, then query_records";
    Preview {
        status: if is_whole { "complete" } else { "truncated" },
        size_bytes: record.json.len(),
        id: identity.map(|identity| identity.id.clone()),
        read: match identity {
            Some(identity) => Some(Next::Call(ToolCall::fetch(identity))),
            None => (!is_whole).then_some(Next::Words(how)),
        },
        text: preview.into_owned(),
    }
}
