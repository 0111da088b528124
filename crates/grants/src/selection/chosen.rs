//! The owner's choice: streams of connections, narrowed in fields and time, by itself or within a request.

use std::collections::BTreeMap;

use contract::declaration::Declaration;
use contract::grant::{AccessMode, GrantedStream, RowRule, TimeConstraint};
use contract::id::{ConnectionId, FieldName};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::Store;

use super::flags::PURPOSE;
use super::resolve::{DeclaredStream, granted, stream_named, time_request};
use super::{
    Draft, FieldsRequest, Mistakes, Named, RedactionRequest, RuleRequest, SelectionError,
    StreamRequest, TimeRequest, known, redact,
};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenStream {
    pub connection_id: String,
    pub stream: String,
    /// Only these fields; `None` for all that can be granted.
    #[serde(default)]
    pub fields: Option<Vec<String>>,
    #[serde(default)]
    pub since: Option<String>,
    #[serde(default)]
    pub until: Option<String>,
    /// Rules besides those that were asked for: only records that meet all of these.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<RowRule>,
    /// No record that meets any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<RowRule>,
    /// More rules, each written as a condition, as flags have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_conditions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except_conditions: Vec<String>,
    /// How much is shown of fields that are not shown whole.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redact: BTreeMap<String, String>,
}

impl ChosenStream {
    /// Whether records are chosen by their values.
    pub fn has_rules(&self) -> bool {
        let texts = [&self.only_conditions, &self.except_conditions];
        let rules = [&self.only, &self.except];
        texts.iter().any(|texts| !texts.is_empty()) || rules.iter().any(|rules| !rules.is_empty())
    }

    fn time(&self, path: &str, mistakes: &mut Mistakes) -> Option<TimeRequest> {
        let (since, until) = (self.since.as_deref(), self.until.as_deref());
        if since.is_none() && until.is_none() {
            return None;
        }
        time_request([path, path, path], since, until, mistakes)
    }
}

/// The mistakes of a choice that names nothing, or something twice or without fields.
fn check(chosen: &[ChosenStream], mistakes: &mut Mistakes) {
    if chosen.is_empty() {
        mistakes.add(
            "",
            "nothing is selected, and nothing grants nothing; select at least one stream",
        );
    }
    for (at, choice) in chosen.iter().enumerate() {
        let same = |other: &&ChosenStream| {
            other.connection_id == choice.connection_id && other.stream == choice.stream
        };
        if chosen.iter().take(at).any(|other| same(&other)) {
            mistakes.add(format!("/{at}"), "selects the same stream a second time");
        }
        if choice.fields.as_ref().is_some_and(Vec::is_empty) {
            mistakes.add(
                format!("/{at}/fields"),
                "selects no field, and nothing grants nothing; select a field or leave the stream out",
            );
        }
    }
}

/// One draft per connection, in the order in which connections are first chosen.
pub(super) fn resolve(
    chosen: &[ChosenStream],
    access_mode: AccessMode,
    store: &dyn Store,
) -> Result<Vec<Draft>, SelectionError> {
    let mut mistakes = Mistakes::default();
    check(chosen, &mut mistakes);
    let connections = store.connections();
    let mut drafts: Vec<(&str, Draft)> = Vec::new();
    for (at, choice) in chosen.iter().enumerate() {
        let path = format!("/{at}");
        let found = connections
            .iter()
            .find(|connection| connection.id.as_str() == choice.connection_id)
            .and_then(|connection| Some((connection, store.declaration(&connection.connector)?)));
        let Some((connection, declaration)) = found else {
            let ids = connections.iter().map(|connection| connection.id.as_str());
            let rule = format!(
                "there is no connection {:?}; {}",
                choice.connection_id,
                known(ids)
            );
            mistakes.add(path, rule);
            continue;
        };
        let name = Named {
            path: path.clone(),
            text: choice.stream.clone(),
        };
        let Some(stream) = stream_named(&name, &declaration, &mut mistakes) else {
            continue;
        };
        let request = StreamRequest {
            part: part(
                choice,
                &path,
                stream.stream.fields.iter().map(|field| field.name.as_str()),
            ),
            time: choice.time(&path, &mut mistakes),
            only: chosen_rules(choice, &path, WHERE, &mut mistakes),
            except: chosen_rules(choice, &path, EXCEPT, &mut mistakes),
            redact: redactions(choice, &path, &mut mistakes),
            path,
            name,
            resources: None,
            connections: None,
        };
        let Some(stream) = granted(&request, stream, vec![connection.id.clone()], &mut mistakes)
        else {
            continue;
        };
        let same = |(id, _): &&mut (&str, Draft)| *id == choice.connection_id;
        if let Some((_, draft)) = drafts.iter_mut().find(same) {
            draft.streams.push(stream);
        } else {
            let draft = begun(&declaration, stream, access_mode);
            drafts.push((&choice.connection_id, draft));
        }
    }
    mistakes.unless_any(drafts.into_iter().map(|(_, draft)| draft).collect())
}

const WHERE: &str = "where";
const EXCEPT: &str = "except";

/// The chosen rules of a member as a request; `None` without any.
fn chosen_rules(
    choice: &ChosenStream,
    path: &str,
    member: &str,
    mistakes: &mut Mistakes,
) -> Option<Vec<RuleRequest>> {
    let (rules, conditions) = match member {
        EXCEPT => (&choice.except, &choice.except_conditions),
        _ => (&choice.only, &choice.only_conditions),
    };
    let request = |(at, rule): (usize, &RowRule)| RuleRequest {
        path: format!("{path}/{member}/{at}"),
        rule: rule.clone(),
        by_condition: false,
    };
    let mut requests: Vec<RuleRequest> = rules.iter().enumerate().map(request).collect();
    let path = format!("{path}/{member}");
    requests.extend(super::rules::from_flags(&path, conditions, mistakes).unwrap_or_default());
    (!requests.is_empty()).then_some(requests)
}

/// Redactions as a request; `None` without any.
fn redactions(
    choice: &ChosenStream,
    path: &str,
    mistakes: &mut Mistakes,
) -> Option<Vec<RedactionRequest>> {
    let path = format!("{path}/redact");
    let chosen = choice.redact.iter();
    let requests: Vec<RedactionRequest> = chosen
        .filter_map(|(field, how)| redact::request(&path, field, how, mistakes))
        .collect();
    (!choice.redact.is_empty()).then_some(requests)
}

/// Redacts what was asked for; of what was asked redacted already, no more can be shown.
fn add_redactions(
    stream: &mut GrantedStream,
    declared: Option<DeclaredStream<'_>>,
    path: &str,
    choice: &ChosenStream,
    mistakes: &mut Mistakes,
) {
    let mut redact = stream.redact.take().unwrap_or_default();
    redact.retain(|field, _| stream.fields.contains(field));
    let chosen = redactions(choice, path, mistakes).unwrap_or_default();
    let chosen = match declared {
        Some(declared) => redact::checked(&chosen, declared, &stream.fields, mistakes),
        None => BTreeMap::new(),
    };
    for (field, how) in chosen {
        match redact.get(&field) {
            Some(asked) if !how.is_within(*asked) => {
                let rule = format!(
                    "{field} was asked for as {asked}, and {how} would show something else"
                );
                mistakes.add(format!("{path}/redact"), rule);
            }
            _ => {
                redact.insert(field, how);
            }
        }
    }
    stream.redact = (!redact.is_empty()).then_some(redact);
}

/// Adds the chosen rules to those that were asked for.
fn add_rules(
    stream: &mut GrantedStream,
    declared: Option<DeclaredStream<'_>>,
    path: &str,
    choice: &ChosenStream,
    mistakes: &mut Mistakes,
) {
    for (member, asked) in [(WHERE, &mut stream.only), (EXCEPT, &mut stream.except)] {
        match (chosen_rules(choice, path, member, mistakes), declared) {
            (None, _) => {}
            (Some(_), None) => mistakes.add(path, "is not declared, so no rule can be on it"),
            (Some(added), Some(declared)) => {
                let added = super::rules::checked(&added, declared, mistakes);
                asked.get_or_insert_default().extend(added);
            }
        }
    }
}

fn begun(declaration: &Declaration, stream: GrantedStream, access_mode: AccessMode) -> Draft {
    Draft {
        source: declaration.source.clone(),
        declaration_version: declaration.declaration_version.clone(),
        purpose_code: PURPOSE.to_owned(),
        purpose_description: None,
        access_mode,
        streams: vec![stream],
        selection_preset: None,
        retention: None,
    }
}

/// All fields ticked means the whole stream, also where single fields cannot be granted.
fn part<'a>(
    choice: &ChosenStream,
    path: &str,
    declared: impl Iterator<Item = &'a str>,
) -> FieldsRequest {
    let Some(fields) = &choice.fields else {
        return FieldsRequest::Whole;
    };
    let declared: Vec<&str> = declared.collect();
    let whole = fields.len() == declared.len()
        && declared
            .iter()
            .all(|name| fields.iter().any(|field| field == name));
    if whole {
        return FieldsRequest::Whole;
    }
    let named = |text: &String| Named {
        path: format!("{path}/fields"),
        text: text.clone(),
    };
    FieldsRequest::Fields(fields.iter().map(named).collect())
}

/// Narrows requested drafts to the chosen streams. The result is never wider: a stream that was not requested is a mistake,
/// and a time only ever shortens.
pub(crate) fn narrow(
    drafts: Vec<Draft>,
    chosen: &[ChosenStream],
    store: &dyn Store,
) -> Result<Vec<Draft>, SelectionError> {
    let declarations = store.declarations();
    let mut mistakes = Mistakes::default();
    check(chosen, &mut mistakes);
    let mut used = vec![false; chosen.len()];
    let mut narrowed: Vec<Draft> = Vec::new();
    for draft in drafts {
        let declaration = declarations
            .iter()
            .find(|declaration| declaration.source == draft.source);
        let mut parts: Vec<Draft> = Vec::new();
        for connection in connections_of(&draft) {
            let mut part = Draft {
                streams: Vec::new(),
                ..draft.clone()
            };
            for stream in draft
                .streams
                .iter()
                .filter(|stream| stream.instance_ids.contains(&connection))
            {
                let picked = chosen.iter().enumerate().find(|(_, choice)| {
                    choice.connection_id == connection.as_str()
                        && choice.stream == stream.name.as_str()
                });
                let Some((at, choice)) = picked else { continue };
                if let Some(flag) = used.get_mut(at) {
                    *flag = true;
                }
                let alone = GrantedStream {
                    instance_ids: vec![connection.clone()],
                    ..stream.clone()
                };
                let declared =
                    declaration.and_then(|one| DeclaredStream::named(one, stream.name.as_str()));
                part.streams
                    .extend(less(alone, declared, at, choice, &mut mistakes));
            }
            join(&mut parts, part);
        }
        for part in &mut parts {
            // Less than the preset is not the preset.
            if part.streams != draft.streams {
                part.selection_preset = None;
            }
        }
        narrowed.extend(parts);
    }
    for (at, used) in used.into_iter().enumerate() {
        if !used {
            mistakes.add(
                format!("/{at}"),
                "was not asked for; only what was asked can be given",
            );
        }
    }
    mistakes.unless_any(narrowed)
}

fn connections_of(draft: &Draft) -> Vec<ConnectionId> {
    let mut ids = Vec::new();
    for id in draft.streams.iter().flat_map(|stream| &stream.instance_ids) {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    ids
}

/// Adds a part; connections of an equal part are merged into it.
fn join(parts: &mut Vec<Draft>, part: Draft) {
    if part.streams.is_empty() {
        return;
    }
    let bare = |draft: &Draft| -> Vec<GrantedStream> {
        let bare = |stream: &GrantedStream| GrantedStream {
            instance_ids: Vec::new(),
            ..stream.clone()
        };
        draft.streams.iter().map(bare).collect()
    };
    let Some(equal) = parts.iter_mut().find(|known| bare(known) == bare(&part)) else {
        parts.push(part);
        return;
    };
    for (known, more) in equal.streams.iter_mut().zip(part.streams) {
        known.instance_ids.extend(more.instance_ids);
    }
}

fn less(
    mut stream: GrantedStream,
    declared: Option<DeclaredStream<'_>>,
    at: usize,
    choice: &ChosenStream,
    mistakes: &mut Mistakes,
) -> Option<GrantedStream> {
    if let Some(fields) = &choice.fields {
        let path = format!("/{at}/fields");
        for field in fields {
            if !stream.fields.iter().any(|known| known.as_str() == field) {
                let asked = stream.fields.iter().map(FieldName::as_str);
                let rule = format!("the field {field:?} was not asked for; {}", known(asked));
                mistakes.add(&path, rule);
            }
        }
        let before = stream.fields.len();
        stream
            .fields
            .retain(|known| fields.iter().any(|field| field == known.as_str()));
        if stream.fields.len() < before
            && !declared.is_some_and(|declared| declared.stream.selection.fields)
        {
            mistakes.add(path, "this stream is granted whole or not at all: its declaration does not allow single fields");
        }
    }
    let path = format!("/{at}");
    add_rules(&mut stream, declared, &path, choice, mistakes);
    add_redactions(&mut stream, declared, &path, choice, mistakes);
    if let Some(time) = choice.time(&path, mistakes) {
        let field = declared.and_then(|declared| declared.stream.consent_time_field.clone());
        let asked = match (stream.time_constraint.take(), field) {
            (Some(asked), _) => asked,
            (None, Some(field)) => TimeConstraint {
                field,
                since: None,
                until: None,
            },
            (None, None) => {
                mistakes.add(path, "declares no consent_time_field, so it cannot be granted by time; leave the stream or the time out");
                return None;
            }
        };
        let shorter = shortened(asked, &time);
        if shorter.range().is_err() {
            mistakes.add(path, "leaves no time of what was asked");
            return None;
        }
        stream.time_constraint = Some(shorter);
    }
    Some(stream)
}

/// The later start and the earlier end.
fn shortened(mut asked: TimeConstraint, time: &TimeRequest) -> TimeConstraint {
    let moment = |text: &Option<String>| text.as_deref().and_then(Instant::parse);
    if moment(&time.since) > moment(&asked.since) {
        asked.since.clone_from(&time.since);
    }
    let earlier = match (moment(&time.until), moment(&asked.until)) {
        (Some(time), Some(asked)) => time < asked,
        (Some(_), None) => true,
        _ => false,
    };
    if earlier {
        asked.until.clone_from(&time.until);
    }
    asked
}
