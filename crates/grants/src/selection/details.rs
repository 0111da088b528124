//! RFC 9396 authorization details: a closed schema, read with every mistake, then resolved to one draft per entry.

use std::collections::HashSet;

use contract::declaration::{Declaration, PresetPart, SourceKind};
use contract::document::{Mistakes, Node, Object};
use contract::grant::{AccessMode, GrantedStream};
use contract::names::Named as _;
use jiff::Span;
use serde_json::{Value, json};
use store::Store;
use store::catalog::Connection;

use super::document::{elements, text, texts};
use super::resolve::{connections_for, granted, stream_named, time_request};
use super::{
    Draft, FieldsRequest, Named, Offer, SelectionError, StreamRequest, TimeRequest, known, redact,
    rules,
};

const DETAIL_TYPE: &str = "https://pdpp.dev/data-access";
/// Training needs the owner's explicit consent.
pub(crate) const AI_TRAINING: &str = "https://pdpp.dev/purpose/ai_training";
/// Every declared stream.
const ALL: &str = "*";

/// One entry, without mistakes that can be found without the catalog.
#[derive(Debug, Clone)]
pub(super) struct Detail {
    path: String,
    source: Named,
    kind: Option<(String, SourceKind)>,
    purpose_code: Named,
    purpose_description: Option<String>,
    access_mode: AccessMode,
    retention: Option<Value>,
    asked: Requested,
}

#[derive(Debug, Clone)]
enum Requested {
    Streams(Vec<StreamRequest>),
    /// Every stream, on these terms.
    All(Box<StreamRequest>),
    Preset(Named),
}

pub(super) fn parse(details: &str) -> Result<Vec<Detail>, SelectionError> {
    let mut mistakes = Mistakes::default();
    let whole = Node {
        raw: details.trim().to_owned(),
        path: String::new(),
    };
    let entries = if whole.raw.starts_with('{') {
        Some(vec![whole])
    } else {
        elements(&whole, &mut mistakes)
    };
    let mut details = Vec::new();
    for entry in entries.unwrap_or_default() {
        let found = mistakes.0.len();
        let detail = read_detail(&entry, &mut mistakes);
        if detail.is_none() && mistakes.0.len() == found {
            mistakes.add(&entry.path, "cannot be read");
        }
        details.extend(detail);
    }
    refuse_mixtures(&details, &mut mistakes);
    mistakes.unless_any(details)
}

/// Refuses entries that one token cannot stand for together.
fn refuse_mixtures(details: &[Detail], mistakes: &mut Mistakes) {
    let Some((first, rest)) = details.split_first() else {
        return;
    };
    for detail in rest {
        if detail.access_mode != first.access_mode {
            mistakes.add(
                format!("{}/access_mode", detail.path),
                "differs from the first entry's; entries granted together share one access mode",
            );
        }
    }
    if !rest.is_empty() {
        for detail in details
            .iter()
            .filter(|detail| detail.purpose_code.text == AI_TRAINING)
        {
            mistakes.add(
                &detail.purpose_code.path,
                "training is granted by itself; issue this entry alone",
            );
        }
    }
}

fn read_detail(node: &Node, mistakes: &mut Mistakes) -> Option<Detail> {
    let mut members = node.object(mistakes)?;
    if let Some(kind) = members.required("type", mistakes) {
        kind.choice(&[(DETAIL_TYPE, ())], mistakes);
    }
    let source = members
        .required("source", mistakes)
        .and_then(|node| read_source(&node, mistakes));
    let purpose_code = members
        .required("purpose_code", mistakes)
        .and_then(|node| read_purpose(&node, mistakes));
    let purpose_description = optional_text(&mut members, "purpose_description", mistakes);
    let access_mode = members.required_choice("access_mode", AccessMode::NAMED, mistakes);
    let retention = members
        .optional("retention")
        .and_then(|node| read_retention(&node, mistakes));
    if let Some(claims) = members.optional("client_claims") {
        check_claims(&claims, mistakes);
    }
    let asked = read_asked(&mut members, mistakes);
    members.finish(mistakes);
    let (source, kind) = source?;
    Some(Detail {
        path: node.path.clone(),
        source,
        kind,
        purpose_code: purpose_code?,
        purpose_description: purpose_description.map(|named| named.text),
        access_mode: access_mode?,
        retention,
        asked: asked?,
    })
}

fn optional_text(
    members: &mut Object,
    name: &'static str,
    mistakes: &mut Mistakes,
) -> Option<Named> {
    members
        .optional(name)
        .and_then(|node| text(&node, mistakes))
}

fn read_source(
    node: &Node,
    mistakes: &mut Mistakes,
) -> Option<(Named, Option<(String, SourceKind)>)> {
    let mut members = node.object(mistakes)?;
    let id = members
        .required("id", mistakes)
        .and_then(|node| text(&node, mistakes));
    let kind = members
        .optional("kind")
        .and_then(|node| Some((node.path.clone(), node.choice(SourceKind::NAMED, mistakes)?)));
    members.finish(mistakes);
    Some((id?, kind))
}

fn read_purpose(node: &Node, mistakes: &mut Mistakes) -> Option<Named> {
    let purpose = text(node, mistakes)?;
    if !is_absolute_uri(&purpose.text) {
        let rule = format!(
            "must be an absolute URI such as https://pdpp.dev/purpose/agent_context, found {:?}",
            purpose.text
        );
        mistakes.add(&purpose.path, rule);
        return None;
    }
    Some(purpose)
}

fn is_absolute_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// What the client promises; kept with the grant, never enforced.
fn read_retention(node: &Node, mistakes: &mut Mistakes) -> Option<Value> {
    let mut members = node.object(mistakes)?;
    let duration = members
        .required("max_duration", mistakes)
        .and_then(|node| text(&node, mistakes));
    let on_expiry = members.required("on_expiry", mistakes).and_then(|node| {
        node.choice(
            &[("delete", "delete"), ("anonymize", "anonymize")],
            mistakes,
        )
    });
    members.finish(mistakes);
    let duration = duration?;
    let is_duration = duration.text.starts_with('P') && duration.text.parse::<Span>().is_ok();
    if !is_duration {
        let rule = format!(
            "must be an ISO 8601 duration such as P90D, found {:?}",
            duration.text
        );
        mistakes.add(&duration.path, rule);
        return None;
    }
    Some(json!({ "max_duration": duration.text, "on_expiry": on_expiry? }))
}

/// Claims are shown at consent and never become part of a grant.
fn check_claims(node: &Node, mistakes: &mut Mistakes) {
    let Some(mut members) = node.object(mistakes) else {
        return;
    };
    if let Some(commitments) = members.optional("commitments") {
        texts(&commitments, mistakes);
    }
    members.finish(mistakes);
}

fn read_asked(members: &mut Object, mistakes: &mut Mistakes) -> Option<Requested> {
    let streams = members.optional("streams");
    let preset = members.optional("selection_preset");
    match (streams, preset) {
        (Some(streams), None) => read_streams(&streams, mistakes),
        (None, Some(preset)) => text(&preset, mistakes).map(Requested::Preset),
        (None, None) => {
            mistakes.add(
                &members.path,
                "names nothing, and nothing grants nothing; give streams or selection_preset",
            );
            None
        }
        (Some(_), Some(_)) => {
            mistakes.add(
                &members.path,
                "gives both streams and selection_preset; keep one of them",
            );
            None
        }
    }
}

fn read_streams(node: &Node, mistakes: &mut Mistakes) -> Option<Requested> {
    let mut requests: Vec<StreamRequest> = Vec::new();
    let mut names = HashSet::new();
    for element in elements(node, mistakes)? {
        let request = read_stream(&element, mistakes)?;
        if !names.insert(request.name.text.clone()) {
            let rule = format!("names the stream {:?} a second time", request.name.text);
            mistakes.add(&request.name.path, rule);
        }
        requests.push(request);
    }
    let Some(all) = requests.iter().find(|request| request.name.text == ALL) else {
        return Some(Requested::Streams(requests));
    };
    if requests.len() > 1 {
        mistakes.add(&all.name.path, "\"*\" must be the only stream");
    }
    let ruled = all.only.is_some() || all.except.is_some() || all.redact.is_some();
    if !matches!(all.part, FieldsRequest::Whole) || all.resources.is_some() || ruled {
        mistakes.add(
            &all.path,
            "\"*\" takes no fields, view, resources, where, except or redact; name the streams instead",
        );
    }
    Some(Requested::All(Box::new(all.clone())))
}

fn read_stream(node: &Node, mistakes: &mut Mistakes) -> Option<StreamRequest> {
    let mut members = node.object(mistakes)?;
    let name = members
        .required("name", mistakes)
        .and_then(|node| text(&node, mistakes));
    if let Some(necessity) = members.optional("necessity") {
        necessity.choice(&[("required", ()), ("optional", ())], mistakes);
    }
    let mut list = |name| {
        members
            .optional(name)
            .map(|node: Node| texts(&node, mistakes).unwrap_or_default())
    };
    let (connections, fields, resources) =
        (list("instance_ids"), list("fields"), list("resources"));
    let view = optional_text(&mut members, "view", mistakes);
    let time = members
        .optional("time_range")
        .and_then(|node| read_time(&node, mistakes));
    let mut rules = |name| {
        let node: Node = members.optional(name)?;
        Some(rules::read(&node, mistakes).unwrap_or_default())
    };
    let (only, except) = (rules("where"), rules("except"));
    let redact = members.optional("redact");
    let redact = redact.map(|node| redact::read(&node, mistakes).unwrap_or_default());
    members.finish(mistakes);
    let part = match (fields, view) {
        (None, None) => FieldsRequest::Whole,
        (Some(fields), None) => FieldsRequest::Fields(fields),
        (None, Some(view)) => FieldsRequest::View(view),
        (Some(_), Some(view)) => {
            mistakes.add(&node.path, "gives both fields and view; keep one of them");
            FieldsRequest::View(view)
        }
    };
    Some(StreamRequest {
        path: node.path.clone(),
        name: name?,
        part,
        time,
        resources,
        only,
        except,
        redact,
        connections,
    })
}

fn read_time(node: &Node, mistakes: &mut Mistakes) -> Option<TimeRequest> {
    let mut members = node.object(mistakes)?;
    let since = optional_text(&mut members, "since", mistakes);
    let until = optional_text(&mut members, "until", mistakes);
    members.finish(mistakes);
    if since.is_none() && until.is_none() {
        mistakes.add(&node.path, "needs since or until");
        return None;
    }
    let path = |named: &Option<Named>| named.as_ref().map_or("", |named| &named.path).to_owned();
    let (since_path, until_path) = (path(&since), path(&until));
    time_request(
        [&node.path, &since_path, &until_path],
        since.as_ref().map(|named| named.text.as_str()),
        until.as_ref().map(|named| named.text.as_str()),
        mistakes,
    )
}

/// One draft per entry; every entry must resolve whole.
pub(super) fn resolve(details: &[Detail], store: &dyn Store) -> Result<Vec<Draft>, SelectionError> {
    let (drafts, mistakes) = held(details, store);
    mistakes.unless_any(drafts)
}

/// One draft per entry that resolves at least in part.
pub(super) fn offer(details: &[Detail], store: &dyn Store) -> Offer {
    let (mut drafts, mistakes) = held(details, store);
    drafts.retain(|draft| !draft.streams.is_empty());
    Offer {
        drafts,
        missing: mistakes.0,
    }
}

fn held(details: &[Detail], store: &dyn Store) -> (Vec<Draft>, Mistakes) {
    let mut mistakes = Mistakes::default();
    let connections = store.connections();
    let mut drafts = Vec::new();
    for detail in details {
        drafts.extend(draft(detail, store, &connections, &mut mistakes));
    }
    (drafts, mistakes)
}

fn draft(
    detail: &Detail,
    store: &dyn Store,
    connections: &[Connection],
    mistakes: &mut Mistakes,
) -> Option<Draft> {
    let declarations = store.declarations();
    let Some(declaration) = declarations
        .iter()
        .find(|declaration| declaration.source.id == detail.source.text)
    else {
        let ids = declarations
            .iter()
            .map(|declaration| declaration.source.id.as_str());
        let rule = format!(
            "no source {:?} is declared; {}",
            detail.source.text,
            known(ids)
        );
        mistakes.add(&detail.source.path, rule);
        return None;
    };
    if let Some((path, kind)) = &detail.kind
        && *kind != declaration.source.kind
    {
        // The client asked for another kind of source, so nothing of this one is meant.
        mistakes.add(path, "is not the kind this source is declared as");
        return None;
    }
    let requests = stream_requests(detail, declaration, mistakes)?;
    let mut streams: Vec<GrantedStream> = Vec::new();
    for request in &requests {
        let Some(stream) = stream_named(&request.name, declaration, mistakes) else {
            continue;
        };
        let asked = request.connections.as_ref();
        let found = connections_for(&request.path, asked, declaration, connections, mistakes);
        let stream = granted(request, stream, found, mistakes);
        streams.extend(stream.filter(|stream| !stream.instance_ids.is_empty()));
    }
    Some(Draft {
        source: declaration.source.clone(),
        declaration_version: declaration.declaration_version.clone(),
        purpose_code: detail.purpose_code.text.clone(),
        purpose_description: detail.purpose_description.clone(),
        access_mode: detail.access_mode,
        streams,
        selection_preset: match &detail.asked {
            Requested::Preset(preset) => Some(preset.text.clone()),
            _ => None,
        },
        retention: detail.retention.clone(),
    })
}

/// The streams of an entry, with `*` and presets written out.
fn stream_requests(
    detail: &Detail,
    declaration: &Declaration,
    mistakes: &mut Mistakes,
) -> Option<Vec<StreamRequest>> {
    let preset = match &detail.asked {
        Requested::Streams(requests) => return Some(requests.clone()),
        Requested::All(terms) => {
            let request = |name: &str| StreamRequest {
                name: Named {
                    path: terms.name.path.clone(),
                    text: name.to_owned(),
                },
                ..(**terms).clone()
            };
            let streams = declaration.streams.iter();
            return Some(
                streams
                    .map(|stream| request(stream.name.as_str()))
                    .collect(),
            );
        }
        Requested::Preset(preset) => preset,
    };
    let presets = &declaration.selection_presets;
    let Some(found) = presets.iter().find(|known| known.id == preset.text) else {
        let ids = presets.iter().map(|preset| preset.id.as_str());
        let rule = format!("there is no preset {:?}; {}", preset.text, known(ids));
        mistakes.add(&preset.path, rule);
        return None;
    };
    let named = |text: &str| Named {
        path: preset.path.clone(),
        text: text.to_owned(),
    };
    let request = |stream: &contract::declaration::PresetStream| StreamRequest {
        path: preset.path.clone(),
        name: named(stream.name.as_str()),
        part: match &stream.part {
            PresetPart::Whole => FieldsRequest::Whole,
            PresetPart::Fields(fields) => {
                FieldsRequest::Fields(fields.iter().map(|field| named(field.as_str())).collect())
            }
            PresetPart::View(view) => FieldsRequest::View(named(view.as_str())),
        },
        time: None,
        resources: None,
        only: None,
        except: None,
        redact: None,
        connections: None,
    };
    Some(found.streams.iter().map(request).collect())
}
