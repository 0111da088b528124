//! How a record is shown: projection and relations.

use serde_json::{Map, Value, json};

use super::call::Call;
use super::filter::granted;
use super::reply::Failure;
use super::sources::connection_json;
use super::state::{Quirk, State};
use super::world::{Expand, Record, Source, Stream};

/// Which part of a record is shown, and what is brought along.
pub(crate) struct Projection<'a> {
    fields: Option<Vec<String>>,
    expands: Vec<(&'a Expand, usize)>,
}

impl<'a> Projection<'a> {
    pub(crate) fn read(
        state: &State,
        call: &Call,
        stream: &'a Stream,
    ) -> Result<Projection<'a>, Failure> {
        refuse_client_extras(state, call)?;
        let listed = call.list("fields", |name| stream.granted(name).is_some());
        let fields = match (call.once("view")?, listed.is_empty()) {
            (Some(_), false) => {
                return Err(Failure::invalid(
                    "view",
                    "view and fields are mutually exclusive",
                ));
            }
            (Some(id), true) => {
                let view = stream.views.iter().find(|view| view.id == id);
                let view =
                    view.ok_or_else(|| Failure::invalid("view", format!("Unknown view: {id}")))?;
                Some(view.fields.clone())
            }
            (None, false) => Some(listed),
            (None, true) => None,
        };
        for name in fields.iter().flatten() {
            granted(stream, name)?;
        }
        Ok(Projection {
            fields,
            expands: expands(call, stream)?,
        })
    }

    pub(crate) fn record(
        &self,
        state: &State,
        source: Source<'_>,
        record: &Record,
    ) -> Map<String, Value> {
        let projects = self.fields.is_some() && !state.is(Quirk::IgnoresFields);
        let is_shown = |name: &str| match &self.fields {
            Some(fields) if projects => fields.iter().any(|field| field == name),
            _ => source.stream.granted(name).is_some(),
        };
        let data: Map<String, Value> = record
            .data
            .iter()
            .filter(|(name, _)| is_shown(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut body = if projects {
            Map::new()
        } else {
            record.extra.clone()
        };
        body.extend(connection_json(&source));
        body.insert("object".to_owned(), json!("record"));
        body.insert("id".to_owned(), json!(record.key));
        body.insert("stream".to_owned(), json!(record.stream));
        body.insert(
            "connector_instance_id".to_owned(),
            json!(record.connection_id),
        );
        body.insert("connector_key".to_owned(), json!(source.connector.key));
        body.insert("emitted_at".to_owned(), json!(record.emitted_at));
        body.insert("data".to_owned(), Value::Object(data));
        if !self.expands.is_empty() {
            let relations: Map<String, Value> = self
                .expands
                .iter()
                .map(|(expand, limit)| {
                    let children = children(state, source, record, expand, *limit);
                    (expand.name.clone(), children)
                })
                .collect();
            body.insert("expanded".to_owned(), Value::Object(relations));
        }
        body
    }
}

/// Filters, views and relations, where the server has none for clients.
pub(crate) fn refuse_client_extras(state: &State, call: &Call) -> Result<(), Failure> {
    if !state.is(Quirk::RefusesClientFilters) {
        return Ok(());
    }
    for param in ["expand", "expand_limit", "filter", "view"] {
        if !call.values(param).is_empty() || !call.bracketed(param).is_empty() {
            return Err(Failure::invalid(
                param,
                format!("{param} is not supported for client-token reads"),
            ));
        }
    }
    Ok(())
}

fn expands<'a>(call: &Call, stream: &'a Stream) -> Result<Vec<(&'a Expand, usize)>, Failure> {
    let refused =
        |message: String| Failure::new(400, "invalid_expand", message).with("param", "expand");
    let names = call.list("expand", |name| {
        stream.expands.iter().any(|known| known.name == name)
    });
    let limits = call.bracketed("expand_limit");
    let mut expands = Vec::new();
    for name in &names {
        let expand = stream.expands.iter().find(|known| known.name == *name);
        let expand = expand.ok_or_else(|| refused(format!("Relation '{name}' is not declared")))?;
        let limit = limits
            .iter()
            .find(|(brackets, _)| brackets.as_slice() == [name.as_str()]);
        let limit = match limit {
            None => expand.default_limit,
            Some((_, text)) => text
                .parse()
                .ok()
                .filter(|limit| (1..=expand.max_limit).contains(limit))
                .ok_or_else(|| refused(format!("expand_limit[{name}] is out of range")))?,
        };
        expands.push((expand, limit));
    }
    let is_stray = |(brackets, _): &(Vec<&str>, &str)| {
        !names
            .iter()
            .any(|name| brackets.as_slice() == [name.as_str()])
    };
    if limits.iter().any(is_stray) {
        return Err(refused(
            "expand_limit names a relation that is not expanded".to_owned(),
        ));
    }
    Ok(expands)
}

fn children(
    state: &State,
    source: Source<'_>,
    record: &Record,
    expand: &Expand,
    limit: usize,
) -> Value {
    let target = state.world.sources().find(|found| {
        found.connection.id == source.connection.id && found.stream.name == expand.target
    });
    let shown = Projection {
        fields: None,
        expands: Vec::new(),
    };
    let all: Vec<Value> = target
        .into_iter()
        .flat_map(|target| {
            let belongs = |child: &&Record| {
                child.data.get(&expand.foreign_key).and_then(Value::as_str) == Some(&record.key)
            };
            let shown = &shown;
            target
                .records(&state.world)
                .filter(belongs)
                .map(move |child| Value::Object(shown.record(state, target, child)))
        })
        .collect();
    let has_more = all.len() > limit;
    let data: Vec<Value> = all.into_iter().take(limit).collect();
    json!({"object": "list", "data": data, "has_more": has_more})
}
