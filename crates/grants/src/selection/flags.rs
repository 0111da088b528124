//! The simple flags of `pdpp grant create`: connections, and optionally streams of them, fields of one stream, a time,
//! rules on records.

use std::sync::Arc;

use contract::declaration::Declaration;
use contract::grant::AccessMode;
use contract::id::ConnectionId;
use store::Store;
use store::catalog::Connection;

use super::resolve::{DeclaredStream, granted, time_request};
use super::{
    Draft, FieldsRequest, Flags, Mistakes, Named, SelectionError, StreamRequest, TimeRequest,
    known, redact, rules,
};

/// Why the owner grants at the terminal: so that an agent knows the context.
pub(super) const PURPOSE: &str = "https://pdpp.dev/purpose/agent_context";

const CONNECTION: &str = "--connection";
const STREAM: &str = "--stream";
const FIELDS: &str = "--fields";
const SINCE: &str = "--since";
const UNTIL: &str = "--until";
const WHERE: &str = "--where";
const EXCEPT: &str = "--except";
const REDACT: &str = "--redact";

/// Checks what can be checked without the catalog.
pub(super) fn check(flags: &Flags) -> Result<(), SelectionError> {
    let mut mistakes = Mistakes::default();
    if flags.connections.is_empty() {
        mistakes.add(
            CONNECTION,
            "nothing is named, and nothing grants nothing; name at least one connection (`pdpp connections` lists them)",
        );
    }
    if !flags.fields.is_empty() && unique(&flags.streams).len() != 1 {
        mistakes.add(FIELDS, "needs exactly one --stream");
    }
    let lists = [
        (CONNECTION, &flags.connections),
        (STREAM, &flags.streams),
        (FIELDS, &flags.fields),
    ];
    for (path, names) in lists {
        if names.iter().any(|name| name.trim().is_empty()) {
            mistakes.add(path, "names something without a name");
        }
    }
    time(flags, &mut mistakes);
    rules::from_flags(WHERE, &flags.only, &mut mistakes);
    rules::from_flags(EXCEPT, &flags.except, &mut mistakes);
    redact::from_flags(REDACT, &flags.redact, &mut mistakes);
    mistakes.unless_any(())
}

/// One draft per source, in the order in which the sources are first named.
pub(super) fn resolve(flags: &Flags, store: &dyn Store) -> Result<Vec<Draft>, SelectionError> {
    check(flags)?;
    let mut mistakes = Mistakes::default();
    let mut sources: Vec<(Arc<Declaration>, Vec<ConnectionId>)> = Vec::new();
    let all = store.connections();
    for id in unique(&flags.connections) {
        let Some((connection, declaration)) = find(store, &all, id, &mut mistakes) else {
            continue;
        };
        let connector = &connection.connector;
        match sources
            .iter_mut()
            .find(|(known, _)| known.connector_key() == connector)
        {
            Some((_, connections)) => connections.push(connection.id.clone()),
            None => sources.push((declaration, vec![connection.id.clone()])),
        }
    }
    refuse_unknown_streams(flags, &sources, &mut mistakes);
    let mut drafts = Vec::new();
    for (declaration, connections) in &sources {
        drafts.extend(draft(flags, declaration, connections, &mut mistakes));
    }
    mistakes.unless_any(drafts)
}

fn find<'a>(
    store: &dyn Store,
    all: &'a [Connection],
    id: &str,
    mistakes: &mut Mistakes,
) -> Option<(&'a Connection, Arc<Declaration>)> {
    let found = all
        .iter()
        .find(|connection| connection.id.as_str() == id)
        .and_then(|connection| Some((connection, store.declaration(&connection.connector)?)));
    if found.is_none() {
        let ids = all.iter().map(|connection| connection.id.as_str());
        mistakes.add(
            CONNECTION,
            format!("there is no connection {id:?}; {}", known(ids)),
        );
    }
    found
}

/// A stream must be declared by at least one of the named sources.
fn refuse_unknown_streams(
    flags: &Flags,
    sources: &[(Arc<Declaration>, Vec<ConnectionId>)],
    mistakes: &mut Mistakes,
) {
    if sources.is_empty() {
        return;
    }
    for name in unique(&flags.streams) {
        if sources
            .iter()
            .all(|(declaration, _)| declaration.stream(name).is_none())
        {
            let streams = sources
                .iter()
                .flat_map(|(declaration, _)| &declaration.streams)
                .map(|stream| stream.name.as_str());
            let rule = format!(
                "none of the named connections has a stream {name:?}; {}",
                known(streams)
            );
            mistakes.add(STREAM, rule);
        }
    }
}

fn draft(
    flags: &Flags,
    declaration: &Declaration,
    connections: &[ConnectionId],
    mistakes: &mut Mistakes,
) -> Option<Draft> {
    let names = unique(&flags.streams);
    let chosen = declaration
        .streams
        .iter()
        .filter(|stream| names.is_empty() || names.contains(&stream.name.as_str()));
    let time = time(flags, mistakes);
    let only = rules::from_flags(WHERE, &flags.only, mistakes);
    let except = rules::from_flags(EXCEPT, &flags.except, mistakes);
    let redact = redact::from_flags(REDACT, &flags.redact, mistakes);
    let mut streams = Vec::new();
    let mut any = false;
    for stream in chosen {
        any = true;
        let request = StreamRequest {
            path: if flags.fields.is_empty() {
                CONNECTION.to_owned()
            } else {
                FIELDS.to_owned()
            },
            name: Named {
                path: STREAM.to_owned(),
                text: stream.name.to_string(),
            },
            part: part(flags),
            time: time.clone(),
            resources: None,
            only: only.clone(),
            except: except.clone(),
            redact: redact.clone(),
            connections: None,
        };
        let declared = DeclaredStream {
            declaration,
            stream,
        };
        streams.extend(granted(&request, declared, connections.to_vec(), mistakes));
    }
    if !any {
        let ids: Vec<&str> = connections.iter().map(ConnectionId::as_str).collect();
        let declared = declaration
            .streams
            .iter()
            .map(|stream| stream.name.as_str());
        let rule = format!(
            "{} has none of the named streams, so nothing of it would be granted; leave it out, or name one of its streams ({})",
            ids.join(", "),
            known(declared)
        );
        mistakes.add(CONNECTION, rule);
    }
    (!streams.is_empty()).then(|| Draft {
        source: declaration.source.clone(),
        declaration_version: declaration.declaration_version.clone(),
        purpose_code: PURPOSE.to_owned(),
        purpose_description: None,
        access_mode: AccessMode::Continuous,
        streams,
        selection_preset: None,
        retention: None,
    })
}

fn part(flags: &Flags) -> FieldsRequest {
    if flags.fields.is_empty() {
        return FieldsRequest::Whole;
    }
    let named = |text: &str| Named {
        path: FIELDS.to_owned(),
        text: text.to_owned(),
    };
    FieldsRequest::Fields(unique(&flags.fields).into_iter().map(named).collect())
}

fn time(flags: &Flags, mistakes: &mut Mistakes) -> Option<TimeRequest> {
    let (since, until) = (flags.since.as_deref(), flags.until.as_deref());
    if since.is_none() && until.is_none() {
        return None;
    }
    let whole = if since.is_some() { SINCE } else { UNTIL };
    time_request([whole, SINCE, UNTIL], since, until, mistakes)
}

/// Naming something twice at the terminal is harmless.
fn unique(names: &[String]) -> Vec<&str> {
    let mut unique: Vec<&str> = Vec::new();
    for name in names {
        if !unique.contains(&name.as_str()) {
            unique.push(name);
        }
    }
    unique
}
