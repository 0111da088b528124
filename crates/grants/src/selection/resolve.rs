//! Closes one requested stream against its declaration: exact fields, exact connections, canonical keys.

use std::collections::HashSet;

use contract::declaration::{Declaration, StreamDeclaration};
use contract::grant::{GrantedStream, TimeConstraint};
use contract::id::{ConnectionId, FieldName};
use contract::key::RecordKey;
use contract::time::Instant;
use store::catalog::Connection;

use super::{
    FieldsRequest, Mistakes, Named, RuleRequest, StreamRequest, TimeRequest, known, redact, rules,
};

/// A time span, or `None` with its mistakes. `paths` are where the span, its start and its end were given.
pub(super) fn time_request(
    [whole, since_path, until_path]: [&str; 3],
    since: Option<&str>,
    until: Option<&str>,
    mistakes: &mut Mistakes,
) -> Option<TimeRequest> {
    let mut read = |path: &str, text: Option<&str>| {
        let moment = text.and_then(Instant::parse);
        if let (Some(text), None) = (text, moment) {
            let rule =
                "is not an RFC 3339 time or date, such as 2026-03-01T10:00:00Z or 2026-03-01";
            mistakes.add(path, format!("{text:?} {rule}"));
        }
        moment
    };
    let start = read(since_path, since);
    let end = read(until_path, until);
    if let (Some(start), Some(end)) = (start, end)
        && start > end
    {
        mistakes.add(whole, "since is later than until");
        return None;
    }
    Some(TimeRequest {
        path: whole.to_owned(),
        since: since.map(str::to_owned),
        until: until.map(str::to_owned),
    })
}

/// A stream and the declaration that it is part of.
#[derive(Clone, Copy)]
pub(super) struct DeclaredStream<'d> {
    pub(super) declaration: &'d Declaration,
    pub(super) stream: &'d StreamDeclaration,
}

impl<'d> DeclaredStream<'d> {
    pub(super) fn named(declaration: &'d Declaration, name: &str) -> Option<Self> {
        let stream = declaration.stream(name)?;
        Some(Self {
            declaration,
            stream,
        })
    }
}

/// The stream as it will be granted on these connections; `None` if none of its fields can be granted, or not within the
/// requested bounds. A field that does not exist is a mistake and only narrows.
pub(super) fn granted(
    request: &StreamRequest,
    declared: DeclaredStream<'_>,
    connections: Vec<ConnectionId>,
    mistakes: &mut Mistakes,
) -> Option<GrantedStream> {
    let stream = declared.stream;
    let fields = fields(request, stream, mistakes);
    let before = mistakes.0.len();
    let time_constraint = request
        .time
        .as_ref()
        .and_then(|time| time_constraint(time, stream, mistakes));
    let resources = request
        .resources
        .as_ref()
        .map(|keys| canonical_keys(&request.path, keys, stream, mistakes));
    let rules = |asked: &Option<Vec<RuleRequest>>, mistakes: &mut Mistakes| {
        let asked = asked.as_ref()?;
        Some(rules::checked(asked, declared, mistakes))
    };
    let only = rules(&request.only, mistakes);
    let except = rules(&request.except, mistakes);
    let redact = request.redact.as_ref();
    let redact = redact.map(|asked| redact::checked(asked, declared, &fields, mistakes));
    (mistakes.0.len() == before && !fields.is_empty()).then(|| GrantedStream {
        name: stream.name.clone(),
        instance_ids: connections,
        fields,
        time_constraint,
        resources,
        only,
        except,
        redact,
    })
}

/// The declared stream of that name, or a mistake that lists the declared ones.
pub(super) fn stream_named<'a>(
    name: &Named,
    declaration: &'a Declaration,
    mistakes: &mut Mistakes,
) -> Option<DeclaredStream<'a>> {
    let found = DeclaredStream::named(declaration, &name.text);
    if found.is_none() {
        let names = declaration
            .streams
            .iter()
            .map(|stream| stream.name.as_str());
        mistakes.add(
            &name.path,
            format!(
                "{} has no stream {:?}; {}",
                declaration.connector_key(),
                name.text,
                known(names)
            ),
        );
    }
    found
}

/// The connections requested, or the only one there is. Leaving them out never means all of several: the owner must choose
/// among those, and until then it is a mistake.
pub(super) fn connections_for(
    path: &str,
    asked: Option<&Vec<Named>>,
    declaration: &Declaration,
    all: &[Connection],
    mistakes: &mut Mistakes,
) -> Vec<ConnectionId> {
    let connector = declaration.connector_key();
    let ours: Vec<&ConnectionId> = all
        .iter()
        .filter(|connection| connection.connector == *connector)
        .map(|connection| &connection.id)
        .collect();
    let names = || known(ours.iter().map(|id| id.as_str()));
    let Some(asked) = asked else {
        match ours.as_slice() {
            [_] => {}
            [] => {
                let rule = format!(
                    "{connector} has no connection; add one with `pdpp connections add {connector} --name NAME`"
                );
                mistakes.add(path, rule);
            }
            several => {
                let rule = format!(
                    "{} connections of {connector} carry this, and which of them is not said; choose, or name them in the instance_ids of each stream ({})",
                    several.len(),
                    names()
                );
                mistakes.add(path, rule);
            }
        }
        return ours.into_iter().cloned().collect();
    };
    let mut found = Vec::new();
    for name in asked {
        match ours.iter().find(|id| id.as_str() == name.text) {
            Some(id) => found.push((*id).clone()),
            None => mistakes.add(
                &name.path,
                format!("{connector} has no connection {:?}; {}", name.text, names()),
            ),
        }
    }
    found
}

fn fields(
    request: &StreamRequest,
    stream: &StreamDeclaration,
    mistakes: &mut Mistakes,
) -> Vec<FieldName> {
    match &request.part {
        FieldsRequest::Whole => {
            if stream.fields.is_empty() {
                let rule = format!(
                    "stream {:?} declares no fields to grant",
                    stream.name.as_str()
                );
                mistakes.add(&request.path, rule);
            }
            stream
                .fields
                .iter()
                .map(|field| field.name.clone())
                .collect()
        }
        FieldsRequest::View(id) => view_fields(id, stream, mistakes),
        FieldsRequest::Fields(names) => named_fields(&request.path, names, stream, mistakes),
    }
}

fn view_fields(id: &Named, stream: &StreamDeclaration, mistakes: &mut Mistakes) -> Vec<FieldName> {
    let Some(view) = stream.view(&id.text) else {
        let views = stream.views.iter().map(|view| view.id.as_str());
        let rule = format!(
            "stream {:?} has no view {:?}; {}",
            stream.name.as_str(),
            id.text,
            known(views)
        );
        mistakes.add(&id.path, rule);
        return Vec::new();
    };
    view.fields.clone()
}

fn named_fields(
    path: &str,
    names: &[Named],
    stream: &StreamDeclaration,
    mistakes: &mut Mistakes,
) -> Vec<FieldName> {
    if !stream.selection.fields {
        let rule = format!(
            "stream {:?} is granted whole or not at all: its declaration does not allow single fields",
            stream.name.as_str()
        );
        mistakes.add(path, rule);
        return Vec::new();
    }
    let mut fields = Vec::new();
    for name in names {
        let Some(field) = stream.field(&name.text) else {
            let declared = stream.fields.iter().map(|field| field.name.as_str());
            let rule = format!(
                "stream {:?} has no field {:?}; {}",
                stream.name.as_str(),
                name.text,
                known(declared)
            );
            mistakes.add(&name.path, rule);
            continue;
        };
        fields.push(field.name.clone());
    }
    fields
}

fn time_constraint(
    time: &TimeRequest,
    stream: &StreamDeclaration,
    mistakes: &mut Mistakes,
) -> Option<TimeConstraint> {
    let Some(field) = &stream.consent_time_field else {
        let rule = format!(
            "stream {:?} declares no consent_time_field, so it cannot be granted by time; leave the stream or the time out",
            stream.name.as_str()
        );
        mistakes.add(&time.path, rule);
        return None;
    };
    Some(TimeConstraint {
        field: field.clone(),
        since: time.since.clone(),
        until: time.until.clone(),
    })
}

fn canonical_keys(
    path: &str,
    keys: &[Named],
    stream: &StreamDeclaration,
    mistakes: &mut Mistakes,
) -> Vec<String> {
    if !stream.selection.resources {
        let rule = format!(
            "stream {:?} cannot be granted by single records: its declaration does not allow it",
            stream.name.as_str()
        );
        mistakes.add(path, rule);
        return Vec::new();
    }
    let mut canonical: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for key in keys {
        match RecordKey::from_wire(&key.text, stream.primary_key.len()) {
            Err(error) => mistakes.add(&key.path, error.to_string()),
            Ok(found) if known.insert(found.as_str().to_owned()) => {
                canonical.push(found.as_str().to_owned());
            }
            Ok(found) => {
                mistakes.add(&key.path, format!("names the record {found} a second time"));
            }
        }
    }
    canonical
}
