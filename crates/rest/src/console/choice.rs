//! The choices on the consent page, and reading the form back.

use std::collections::HashMap;
use std::time::Duration;

use contract::declaration::{Declaration, StreamDeclaration};
use contract::grant::{AccessMode, GrantedStream, Redaction, RowRule};
use contract::id::{ConnectionId, FieldName};
use contract::time::Instant;
use grants::oauth::Choice;
use grants::{ChosenStream, Draft, Wording};
use store::catalog::{Connection, StreamRef};

use super::format::{format_count, label, visible};
use super::stream_shape::title;
use super::value_choice::FieldValues;
use crate::form::Form;
use crate::problem::Problem;
use crate::service::Service;

/// Lifetimes of a grant, in days, with their labels.
pub(super) const DAYS: [(u64, &str); 5] = [
    (1, "1 day"),
    (7, "1 week"),
    (30, "30 days"),
    (90, "90 days"),
    (365, "1 year"),
];
/// The default.
pub(super) const USUAL_DAYS: u64 = 90;

#[derive(Default)]
pub(super) struct SourceRow {
    pub(super) id: String,
    pub(super) name: String,
    /// Whether all of it is ticked.
    pub(super) whole: bool,
    /// Whether anything of it is ticked.
    pub(super) open: bool,
    pub(super) kind: String,
    pub(super) total: String,
    pub(super) streams: Vec<StreamRow>,
}

#[derive(Default)]
pub(super) struct StreamRow {
    /// `connection/stream`; neither part can hold a slash.
    pub(super) value: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) total: String,
    pub(super) chosen: bool,
    pub(super) fields: Vec<FieldRow>,
    pub(super) by_field: bool,
    /// The field a time limit applies to; empty where there is none.
    pub(super) time: String,
    pub(super) since: String,
    pub(super) until: String,
    /// The records the application asked for, in words; empty for all.
    pub(super) asked_records: String,
    /// Whether its fields and times are unfolded.
    pub(super) part_open: bool,
    /// Rules that were filled in for the owner, who may drop them.
    pub(super) rules: Vec<RuleRow>,
    /// Conditions that the owner wrote, one on each line.
    pub(super) only_lines: String,
    pub(super) except_lines: String,
    /// The common values of its fields, where it is ticked and they were asked for.
    pub(super) values: Vec<FieldValues>,
    /// How many of its records the chosen rules leave; empty without rules.
    pub(super) inside: String,
}

impl StreamRow {
    /// Whether only a part of a field is chosen.
    pub(super) fn has_parts(&self) -> bool {
        let mut parts = self.fields.iter().flat_map(|field| &field.parts);
        parts.any(|part| part.chosen)
    }

    pub(super) fn is_ticked(&self) -> bool {
        self.chosen || self.fields.iter().any(|field| field.chosen)
    }
}

/// A rule as the form keeps it.
pub(super) struct RuleRow {
    /// The name of the form's field, and the rule as JSON.
    pub(super) name: String,
    pub(super) document: String,
    pub(super) words: String,
}

pub(super) struct FieldRow {
    pub(super) title: String,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) chosen: bool,
    /// How much of it can be shown, where it need not be all.
    pub(super) parts: Vec<PartRow>,
}

/// A part of a field that can be shown instead of all of it.
pub(super) struct PartRow {
    pub(super) value: String,
    pub(super) name: String,
    pub(super) chosen: bool,
}

pub(super) struct EndRow {
    pub(super) days: u64,
    pub(super) name: &'static str,
    pub(super) chosen: bool,
}

pub(super) fn ends(form: &Form) -> Vec<EndRow> {
    let chosen = form.value("days").parse().unwrap_or(USUAL_DAYS);
    let row = |(days, name)| EndRow {
        days,
        name,
        chosen: days == chosen,
    };
    DAYS.into_iter().map(row).collect()
}

/// What can be selected: everything, or only what was requested. The form's selection is kept.
pub(super) fn rows(
    service: &Service,
    asked: Option<&[Draft]>,
    form: &Form,
) -> Result<Vec<SourceRow>, Problem> {
    let stats = service
        .store
        .stream_stats()
        .map_err(|error| Problem::internal("records could not be counted", &error))?;
    let counts: HashMap<StreamRef, u64> = stats
        .into_iter()
        .map(|stats| (stats.stream, stats.records))
        .collect();
    let entered = Entered { counts, form };
    let mut rows = Vec::new();
    for connection in service.store.connections() {
        let Some(declaration) = service.store.declaration(&connection.connector) else {
            continue;
        };
        let row = source_row(&connection, &declaration, asked, &entered);
        if !row.streams.is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The records of each stream, and the form as it was sent.
struct Entered<'a> {
    counts: HashMap<StreamRef, u64>,
    form: &'a Form,
}

fn source_row(
    connection: &Connection,
    declaration: &Declaration,
    asked: Option<&[Draft]>,
    entered: &Entered<'_>,
) -> SourceRow {
    let mut streams = Vec::new();
    let mut total = 0;
    for stream in &declaration.streams {
        let asked = match asked {
            None => None,
            Some(drafts) => {
                let Some(asked) = requested_stream(drafts, declaration, &connection.id, stream)
                else {
                    continue;
                };
                Some(asked)
            }
        };
        let stream_ref = StreamRef::new(&connection.id, &stream.name);
        let records = entered.counts.get(&stream_ref).copied().unwrap_or_default();
        total += records;
        let mut row = stream_row(&connection.id, stream, asked, entered.form);
        row.total = format_count(records, "record");
        streams.push(row);
    }
    let whole = entered
        .form
        .values("source")
        .any(|id| id == connection.id.as_str());
    SourceRow {
        id: connection.id.to_string(),
        whole,
        open: whole || streams.iter().any(StreamRow::is_ticked),
        name: label(&connection.display_name),
        kind: label(&declaration.display_name),
        total: format_count(total, "record"),
        streams,
    }
}

fn requested_stream<'a>(
    drafts: &'a [Draft],
    declaration: &Declaration,
    connection: &ConnectionId,
    stream: &StreamDeclaration,
) -> Option<&'a GrantedStream> {
    let of_source = drafts
        .iter()
        .filter(|draft| draft.source == declaration.source);
    of_source
        .flat_map(|draft| &draft.streams)
        .find(|asked| asked.name == stream.name && asked.instance_ids.contains(connection))
}

fn stream_row(
    connection: &ConnectionId,
    stream: &StreamDeclaration,
    asked: Option<&GrantedStream>,
    form: &Form,
) -> StreamRow {
    let value = format!("{connection}/{}", stream.name);
    let names: Vec<&FieldName> = match asked {
        Some(asked) => asked.fields.iter().collect(),
        None => stream.fields.iter().map(|field| &field.name).collect(),
    };
    let field = |name: &FieldName| {
        let value = format!("{value}/{name}");
        FieldRow {
            title: label(&field_title(stream, name.as_str())),
            name: label(name.as_str()),
            chosen: form.values("field").any(|ticked| ticked == value),
            parts: parts(stream, name, form.value(&format!("redact:{value}"))),
            value,
        }
    };
    let lines = |name: &str| form.value(&format!("{name}-lines:{value}")).to_owned();
    let bound = |end: &str| form.value(&format!("{end}:{value}")).to_owned();
    StreamRow {
        name: label(stream.label.as_deref().unwrap_or(stream.name.as_str())),
        about: label(stream.description.as_deref().unwrap_or_default()),
        total: String::new(),
        chosen: form.values("stream").any(|ticked| ticked == value),
        fields: names.into_iter().map(field).collect(),
        by_field: stream.selection.fields,
        time: stream
            .consent_time_field
            .as_ref()
            .map(|field| label(field.as_str()))
            .unwrap_or_default(),
        since: bound("since"),
        until: bound("until"),
        asked_records: asked.map(limits).unwrap_or_default(),
        part_open: false,
        rules: kept_rules(form, &value),
        only_lines: lines("only"),
        except_lines: lines("except"),
        values: Vec::new(),
        inside: String::new(),
        value,
    }
}

/// What can be shown of a field instead of all of it: what fits its kind, and what the form has.
fn parts(stream: &StreamDeclaration, name: &FieldName, chosen: &str) -> Vec<PartRow> {
    let field = stream.field(name.as_str());
    let field = field.filter(|_| stream.selection.fields && !stream.primary_key.contains(name));
    let mut offered = field.map_or_else(Vec::new, |field| Redaction::offered(field.kind));
    let chosen: Option<Redaction> = chosen.parse().ok();
    offered.extend(chosen.filter(|chosen| !offered.contains(chosen)));
    let row = |part: Redaction| PartRow {
        value: part.to_string(),
        name: grants::part_in_words(part),
        chosen: chosen == Some(part),
    };
    offered.into_iter().map(row).collect()
}

/// The rules that the form holds as documents.
fn kept_rules(form: &Form, value: &str) -> Vec<RuleRow> {
    let mut rows = Vec::new();
    for (member, word) in [("only", "only where"), ("except", "never where")] {
        let name = format!("{member}-rule:{value}");
        for document in form.values(&name) {
            if let Ok(rule) = serde_json::from_str::<RowRule>(document) {
                let words = Wording::whole(visible).rule(&rule);
                rows.push(RuleRow {
                    name: name.clone(),
                    document: document.to_owned(),
                    words: format!("{word} {words}"),
                });
            }
        }
    }
    rows
}

/// What the declaration calls a field, else its name as a title.
fn field_title(stream: &StreamDeclaration, name: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Described {
        title: Option<String>,
    }
    let schema = stream.field(name).map(|field| field.schema.as_str());
    let described = schema.and_then(|text| serde_json::from_str::<Described>(text).ok());
    let declared = described.and_then(|described| described.title);
    declared.unwrap_or_else(|| title(name))
}

/// Which records of a granted stream may be read, in words; empty where all may.
fn limits(stream: &GrantedStream) -> String {
    Wording::whole(visible).limits(stream).join("; ")
}

/// The streams that a form ticks: by themselves, by one of their fields, or with all of their source. `offered` is what
/// could be ticked.
pub(super) fn ticked(form: &Form, offered: &[SourceRow]) -> Vec<ChosenStream> {
    let mut values: Vec<&str> = form.values("stream").collect();
    let of_field = form.values("field").filter_map(|value| {
        let (connection, rest) = value.split_once('/')?;
        let (stream, _) = rest.split_once('/')?;
        value.get(..connection.len() + 1 + stream.len())
    });
    let wholes: Vec<&str> = form.values("source").collect();
    let of_source = offered
        .iter()
        .filter(|row| wholes.contains(&row.id.as_str()));
    let of_source = of_source.flat_map(|row| &row.streams);
    for value in of_field.chain(of_source.map(|stream| stream.value.as_str())) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let chosen = values
        .into_iter()
        .filter_map(|value| chosen_stream(form, value));
    chosen.collect()
}

/// Reads the choice from a form. Whether it can be granted is decided elsewhere.
pub(super) fn choice(form: &Form, now: Instant, offered: &[SourceRow]) -> Choice {
    let is_part = form.value("all").is_empty();
    let streams = is_part.then(|| ticked(form, offered));
    Choice {
        streams,
        access_mode: AccessMode::named(form.value("mode")),
        expires_at: Some(end(form, now)),
        ai_training_affirmed: form.value("training") == "yes",
    }
}

/// When the grant ends, by the days that were chosen.
pub(super) fn end(form: &Form, now: Instant) -> Instant {
    let days = form.value("days").parse().ok();
    let days = days.filter(|days| DAYS.iter().any(|(known, _)| known == days));
    let life = Duration::from_hours(24 * days.unwrap_or(USUAL_DAYS));
    let micros = i64::try_from(life.as_micros()).unwrap_or(i64::MAX);
    Instant(now.0.saturating_add(micros))
}

pub(super) fn chosen_stream(form: &Form, value: &str) -> Option<ChosenStream> {
    let (connection_id, stream) = value.split_once('/')?;
    let of_stream = |field: &str| {
        let name = field.strip_prefix(value)?.strip_prefix('/')?;
        Some(name.to_owned())
    };
    let fields: Vec<String> = form.values("field").filter_map(of_stream).collect();
    let bound = |end: &str| {
        let text = form.value(&format!("{end}:{value}")).trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let part_of = format!("redact:{value}/");
    let redact = form.pairs().iter().filter_map(|(name, how)| {
        let field = name.strip_prefix(&part_of)?;
        // A part of a field that is not ticked is not asked for.
        let is_granted = fields.is_empty() || fields.iter().any(|ticked| ticked == field);
        (is_granted && !how.is_empty()).then(|| (field.to_owned(), how.clone()))
    });
    let redact = redact.collect();
    let (only, only_conditions) = rules(form, "only", value);
    let (except, except_conditions) = rules(form, "except", value);
    Some(ChosenStream {
        connection_id: connection_id.to_owned(),
        stream: stream.to_owned(),
        since: bound("since"),
        until: bound("until"),
        fields: (!fields.is_empty()).then_some(fields),
        only,
        except,
        only_conditions,
        except_conditions,
        redact,
    })
}

/// The rules of a stream: documents, and conditions that were ticked or written. What cannot be read as a document is kept
/// as a condition, and refused as one.
fn rules(form: &Form, member: &str, value: &str) -> (Vec<RowRule>, Vec<String>) {
    let (mut documents, mut conditions) = (Vec::new(), Vec::new());
    for document in form.values(&format!("{member}-rule:{value}")) {
        match serde_json::from_str(document) {
            Ok(rule) => documents.push(rule),
            Err(_) => conditions.push(document.to_owned()),
        }
    }
    conditions.extend(form.values(&format!("{member}:{value}")).map(str::to_owned));
    let lines = form.value(&format!("{member}-lines:{value}"));
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    conditions.extend(lines.map(str::to_owned));
    (documents, conditions)
}

/// The form's fields that choose a stream so.
pub(super) fn pairs_of(chosen: &ChosenStream) -> Result<Vec<(String, String)>, Problem> {
    let value = format!("{}/{}", chosen.connection_id, chosen.stream);
    let mut pairs = vec![("stream".to_owned(), value.clone())];
    let fields = chosen.fields.iter().flatten();
    pairs.extend(fields.map(|field| ("field".to_owned(), format!("{value}/{field}"))));
    for (name, at) in [("since", &chosen.since), ("until", &chosen.until)] {
        // The form takes a day.
        let day: Option<String> = at.as_ref().map(|at| at.chars().take(10).collect());
        pairs.extend(day.map(|day| (format!("{name}:{value}"), day)));
    }
    for (member, rules) in [("only", &chosen.only), ("except", &chosen.except)] {
        for rule in rules {
            // Without its rules a choice would be wider.
            let document = serde_json::to_string(rule)
                .map_err(|error| Problem::internal("a rule could not be written", &error))?;
            pairs.push((format!("{member}-rule:{value}"), document));
        }
    }
    let conditions = [
        ("only-lines", &chosen.only_conditions),
        ("except-lines", &chosen.except_conditions),
    ];
    for (name, conditions) in conditions {
        if !conditions.is_empty() {
            pairs.push((format!("{name}:{value}"), conditions.join("\n")));
        }
    }
    for (field, how) in &chosen.redact {
        pairs.push((format!("redact:{value}/{field}"), how.clone()));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_chooses_exactly_what_is_ticked() {
        let form = Form::from_query(
            "stream=work/messages&field=work/messages/id&field=work/messages/a%2Fb&field=home/messages/id\
             &since:work/messages=2026-01-01&until:work/messages=+&mode=single_use&days=7",
        );
        let choice = choice(&form.ok().unwrap(), Instant(0), &[]);
        let streams = choice.streams.unwrap();
        // A field that is ticked ticks its stream.
        assert_eq!(streams.len(), 2);
        assert_eq!(streams[1].connection_id, "home");
        assert_eq!(streams[1].fields.as_ref().unwrap(), &["id"]);
        assert_eq!(streams[0].connection_id, "work");
        assert_eq!(streams[0].stream, "messages");
        assert_eq!(streams[0].fields.as_ref().unwrap(), &["id", "a/b"]);
        assert_eq!(streams[0].since.as_deref(), Some("2026-01-01"));
        assert_eq!(streams[0].until, None);
        assert_eq!(choice.access_mode, Some(AccessMode::SingleUse));
        assert_eq!(choice.expires_at, Some(Instant(7 * 86_400 * 1_000_000)));
    }

    #[test]
    fn nothing_ticked_is_nothing_chosen_and_odd_values_mean_nothing() {
        let form = Form::from_query("stream=nonsense&days=99999999999&mode=always");
        let choice = choice(&form.ok().unwrap(), Instant(0), &[]);
        assert_eq!(choice.streams, Some(Vec::new()));
        assert_eq!(choice.access_mode, None);
        assert_eq!(choice.expires_at, Some(Instant(90 * 86_400 * 1_000_000)));
    }
}
