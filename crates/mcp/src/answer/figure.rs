//! An aggregate: one number, or one per group.

use contract::page::Page;
use serde_json::{Value, json};

use super::fields::FieldValue;
use super::naming::text;
use super::page;

/// One number, or groups of them.
#[derive(Debug)]
pub(crate) struct Figure<'a> {
    pub(crate) value: Option<FieldValue<'a>>,
    pub(crate) groups: Option<Vec<Group<'a>>>,
    pub(crate) record_count: Option<u64>,
    pub(crate) approximate: bool,
    /// How many groups are left out; none where the server does not say.
    pub(crate) other_count: Option<u64>,
    /// How many groups the server sent that are left out here.
    pub(crate) omitted: usize,
    pub(crate) granularity: Option<&'a str>,
    pub(crate) time_zone: Option<&'a str>,
    /// Cursors and warnings, where a server has them.
    pub(crate) page: Page<()>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) key: FieldValue<'a>,
    pub(crate) value: Option<FieldValue<'a>>,
    pub(crate) count: Option<FieldValue<'a>>,
}

impl<'a> Figure<'a> {
    /// Reads an answer, also one wrapped in `data`. None where it holds neither a value nor groups.
    pub(super) fn read(envelope: &'a Value) -> Option<Self> {
        let body = body(envelope)?;
        let groups = body.get("groups").and_then(Value::as_array);
        let zones = ["effective_time_zone", "time_zone"];
        Some(Self {
            value: body.get("value").map(FieldValue::new),
            groups: groups.map(|groups| groups.iter().map(Group::read).collect()),
            record_count: body.get("filtered_record_count").and_then(Value::as_u64),
            approximate: body.get("approximate") == Some(&Value::Bool(true)),
            other_count: body.get("other_count").and_then(Value::as_u64),
            omitted: body
                .get("groups_omitted")
                .and_then(Value::as_u64)
                .and_then(|omitted| usize::try_from(omitted).ok())
                .unwrap_or(0),
            granularity: text(body, "granularity"),
            time_zone: zones.iter().find_map(|name| text(body, name)),
            page: page::page(envelope, Vec::new()),
        })
    }
}

fn body(envelope: &Value) -> Option<&Value> {
    let tells = |body: &&Value| {
        let members = ["value", "groups", "filtered_record_count"];
        members.iter().any(|name| body.get(name).is_some())
    };
    let places = [Some(envelope), envelope.get("data")];
    places.into_iter().flatten().find(tells)
}

impl<'a> Group<'a> {
    fn read(group: &'a Value) -> Self {
        Self {
            key: FieldValue::new(group.get("key").unwrap_or(&Value::Null)),
            value: group.get("value").map(FieldValue::new),
            count: group.get("count").map(FieldValue::new),
        }
    }
}

/// Keeps so many groups of what a server sent that heeds no limit, and says how many were left out.
pub(super) fn truncate_groups(envelope: &mut Value, most: usize) {
    for place in ["", "/data"] {
        if let Some(Value::Object(figure)) = envelope.pointer_mut(place)
            && let Some(Value::Array(groups)) = figure.get_mut("groups")
        {
            let omitted = groups.len().saturating_sub(most);
            groups.truncate(most);
            if omitted > 0 {
                figure.insert("groups_omitted".to_owned(), json!(omitted));
            }
        }
    }
}

pub(super) fn group_sizes(envelope: &Value) -> Vec<usize> {
    let groups = body(envelope).and_then(|body| body.get("groups")?.as_array());
    groups.map_or_else(Vec::new, |groups| {
        groups.iter().map(super::shrink::size).collect()
    })
}
