//! A resource server's answer, ours or another's, read once into types.
//!
//! This is the only place that looks into a server's JSON: aliases and older shapes are resolved here and nowhere else, and a
//! member that is missing is `None`. The body is kept as it was sent beside what was read.

mod bytes;
mod compact;
mod error;
mod fields;
mod figure;
mod hit;
mod naming;
mod page;
mod payload;
mod record;
mod resource;
pub(crate) mod schema;
mod shrink;
mod window;

use contract::citation::{Citation, CitationCheck, CitationStatus};
use contract::error::{ErrorCode, ReadError};
use contract::handle::{RecordHandle, WINDOW_URI};
use contract::page::{Page, Warning, Warnings as _};
use contract::upstream::{Answer, Bearer};
use contract::window::{Window, WindowSelector};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};

pub(crate) use bytes::is_part_of_bytes;
pub(crate) use compact::About;
pub(crate) use error::ErrorObject;
pub(crate) use fields::{Blob, Content, FieldValue, Fields};
pub(crate) use figure::{Figure, Group};
pub(crate) use hit::{Excerpt, Hit};
pub(crate) use payload::Payload;
pub(crate) use record::{Record, Related, RelatedRecord};
pub(crate) use shrink::size;
pub(crate) use window::{ReceivedWindow, shorten};

use self::schema::Document;
use crate::fault::Fault;

#[derive(Debug)]
pub(crate) struct Answered {
    body: Value,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Structured(Value);

impl Structured {
    pub(crate) fn new(content: &impl Serialize) -> Result<Self, Fault> {
        serde_json::to_value(content).map(Self).map_err(|error| {
            let message = format!("the answer cannot be written as JSON: {error}");
            ReadError::new(ErrorCode::InternalError, message).into()
        })
    }

    /// As the protocol's library takes it.
    pub(crate) fn into_json(self) -> Value {
        self.0
    }
}

#[cfg(test)]
impl std::ops::Deref for Structured {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

/// What became of a quoted text.
pub(crate) struct CheckedCitation {
    pub(crate) status: CitationStatus,
    pub(crate) window: Option<Window>,
    pub(crate) emitted_at: Option<String>,
}

/// The hits of a search, and how many came from each connection where a server of several says so.
pub(crate) struct Hits {
    pub(crate) page: Page<Hit>,
    pub(crate) source_mix: Vec<(String, u64)>,
}

impl Answered {
    /// Reads a successful answer. Anything but a JSON object or array is a fault.
    pub(crate) fn read(answer: Answer) -> Result<Self, Fault> {
        let why = match answer.json() {
            Ok(body @ (Value::Object(_) | Value::Array(_))) => {
                return Ok(Self {
                    body,
                    request_id: answer.request_id,
                });
            }
            Ok(_) => "is not a JSON object".to_owned(),
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                format!("is not JSON (line {line}, column {column})")
            }
        };
        let message = format!("the resource server's answer {why}");
        let error = ReadError::new(ErrorCode::RsBadResponse, message).with_hint(
            "check that the provider URL is a PDPP server; `pdpp doctor URL` tells more",
        );
        Err(Fault::from(error).with_answer(Some(answer.status), answer.request_id))
    }

    pub(crate) fn bearer(&self) -> Option<Bearer> {
        Bearer::from_schema(&self.body)
    }

    /// The body as it was sent, in `data`, with this and the request id beside it.
    pub(crate) fn into_structured(self, beside: &impl Serialize) -> Result<Structured, Fault> {
        let mut content = Map::new();
        content.insert("data".to_owned(), self.body);
        if let Structured(Value::Object(beside)) = Structured::new(beside)? {
            content.extend(beside);
        }
        content.insert("request_id".to_owned(), json!(self.request_id));
        Ok(Structured(Value::Object(content)))
    }

    /// How long that would be as JSON, a few bytes more at most.
    pub(crate) fn structured_size(&self, beside: &impl Serialize) -> usize {
        const NAMES: usize = "\"data\":,\"request_id\":,".len();
        size(&self.body) + size(beside) + size(&self.request_id) + NAMES
    }

    /// What to know about the answer.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        page::warnings(&self.body)
    }

    /// The hits of a search. Window URIs are for hosts, and not every host can read them: they go.
    pub(crate) fn hits(&mut self, query: &str) -> Hits {
        drop_window_uris(&mut self.body);
        let entries = page::entries(&self.body, &page::HITS).iter().enumerate();
        let mut hits: Vec<Hit> = entries
            .map(|(place, hit)| Hit::read(hit, place, query))
            .collect();
        if let Some(records) = self.take_records_link() {
            for hit in &mut hits {
                hit.cite_below(&records);
            }
        }
        Hits {
            page: page::page(&self.body, hits),
            source_mix: page::source_mix(&self.body),
        }
    }

    /// Below which address the hits are, where a server in this process says it once for all. Each result has its whole address,
    /// so it goes.
    fn take_records_link(&mut self) -> Option<String> {
        let body = self.body.as_object_mut()?;
        let links = body.get("links")?.as_object()?;
        let records = links.get("records")?.as_str()?.to_owned();
        if links.len() == 1 {
            body.shift_remove("links");
        }
        Some(records)
    }

    /// How long each hit is as JSON, in its order.
    pub(crate) fn hit_sizes(&self) -> Vec<usize> {
        let entries = page::entries(&self.body, &page::HITS).iter();
        entries.map(size).collect()
    }

    /// Takes window URIs out of a page, and with `fields` all that was not asked for, also when the server did not.
    pub(crate) fn prepare_records(&mut self, fields: &[&str]) {
        drop_record_window_uris(&mut self.body);
        if !fields.is_empty() {
            for record in page::entries_mut(&mut self.body, &page::RECORDS) {
                record::narrow(record, fields);
            }
        }
    }

    pub(crate) fn records(&self, stream: &str, connection: Option<&str>) -> Page<Record<'_>> {
        let entries = page::entries(&self.body, &page::RECORDS).iter();
        let records = entries.map(|record| Record::read(record, stream, connection));
        page::page(&self.body, records.collect())
    }

    /// How long each record is as JSON, in its order.
    pub(crate) fn record_sizes(&self) -> Vec<usize> {
        let entries = page::entries(&self.body, &page::RECORDS).iter();
        entries.map(size).collect()
    }

    /// Shows the first window of the longest values, each with the call that reads on, until the body has no more bytes than
    /// this; rows and handles stay. Gives whether anything was replaced.
    pub(crate) fn shrink_records(
        &mut self,
        stream: &str,
        connection: Option<&str>,
        most: usize,
    ) -> bool {
        let records = page::RECORDS;
        shrink::until(&mut self.body, most, |body, threshold| {
            for record in page::entries_mut(body, &records) {
                let identity = naming::of_record(record, stream, connection);
                shrink::record(record, identity.as_ref(), threshold);
            }
        })
    }

    /// Shows a preview in place of very long texts of hits, until the body has no more bytes than this.
    pub(crate) fn shrink_hits(&mut self, most: usize) -> bool {
        shrink::until(&mut self.body, most, |body, threshold| {
            for (place, hit) in page::entries_mut(body, &page::HITS).iter_mut().enumerate() {
                let identity = naming::of_hit(hit, place);
                shrink::hit(hit, &identity, threshold);
            }
        })
    }

    /// The parts of one record; with fields, nothing but these. None where the answer is some other JSON.
    pub(crate) fn into_payload(self, fields: &[&str]) -> Option<Payload> {
        Payload::read(self.body, fields)
    }

    /// The window of an answer, made honest.
    pub(crate) fn window(&self, asked: &WindowSelector) -> Result<ReceivedWindow, &'static str> {
        window::received(&self.body, asked)
    }

    /// What became of a quoted text.
    pub(crate) fn citation_check(&self) -> Result<CheckedCitation, String> {
        let check: CitationCheck = CitationCheck::deserialize(&self.body)
            .map_err(|error| format!("the resource server's answer is no check: {error}"))?;
        Ok(CheckedCitation {
            status: check.status,
            window: check.window,
            emitted_at: check.emitted_at,
        })
    }

    /// The citation of a window.
    pub(crate) fn cite(&self) -> Option<&str> {
        let cite = naming::text(&self.body, "cite");
        cite.filter(|text| Citation::parse(text).is_some())
    }

    /// The field that a window says it is of, and its type.
    pub(crate) fn window_field(&self) -> (Option<&str>, Option<&str>) {
        let field = self
            .body
            .get("field")
            .or_else(|| self.body.pointer("/data/field"));
        let path = field.and_then(|field| field.as_str().or_else(|| naming::text(field, "path")));
        (path, field.and_then(|field| naming::text(field, "type")))
    }

    pub(crate) fn connection(&self) -> Option<&str> {
        naming::connection_of(&self.body)
    }

    /// The record's page, where the server names one.
    pub(crate) fn citation_url(&self) -> Option<&str> {
        naming::text(&self.body, "citation_url")
    }

    /// What the answer says that contradicts the question: `connection`, `stream` or `record`.
    pub(crate) fn contradiction(&self, asked: &RecordHandle) -> Option<&'static str> {
        naming::contradiction(&self.body, asked)
    }

    /// The number or groups of an aggregate. None where the answer holds neither.
    pub(crate) fn figure(&self) -> Option<Figure<'_>> {
        Figure::read(&self.body)
    }

    /// How long each group is as JSON, in its order.
    pub(crate) fn group_sizes(&self) -> Vec<usize> {
        figure::group_sizes(&self.body)
    }

    /// Keeps so many groups of what a server sent that heeds no limit, and says how many were left out.
    pub(crate) fn truncate_groups(&mut self, most: usize) {
        figure::truncate_groups(&mut self.body, most);
    }

    /// Cursors, counts and warnings around a schema, or in the `data` it is wrapped in.
    pub(crate) fn schema_page(&self) -> Page<()> {
        let mut page = page::page(&self.body, Vec::new());
        if page.warnings().is_empty()
            && let Some(inner) = self.body.get("data")
        {
            page.meta_mut().warnings = Some(page::warnings(inner));
        }
        page
    }

    /// The schema of the grant, where the answer is one.
    pub(crate) fn into_schema(self) -> Option<Document> {
        Document::read(self.body)
    }
}

/// Takes out every member or entry that is a window URI.
fn drop_window_uris(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // Most answers have none, and looking is cheaper than taking every object in hand.
            if members.values().any(is_window_uri) {
                members.retain(|_, member| !is_window_uri(member));
            }
            members.values_mut().for_each(drop_window_uris);
        }
        Value::Array(entries) => {
            if entries.iter().any(is_window_uri) {
                entries.retain(|entry| !is_window_uri(entry));
            }
            entries.iter_mut().for_each(drop_window_uris);
        }
        _ => {}
    }
}

/// The same around the payloads of records only: what people wrote is not rewritten.
fn drop_record_window_uris(body: &mut Value) {
    for record in page::entries_mut(body, &page::RECORDS) {
        let has_envelope = record.get("data").is_some_and(Value::is_object);
        let Value::Object(members) = record else {
            continue;
        };
        if has_envelope {
            members.retain(|_, value| !is_window_uri(value));
            let around = members
                .iter_mut()
                .filter(|(name, _)| !matches!(name.as_str(), "data" | "expanded"));
            around.for_each(|(_, value)| drop_window_uris(value));
        }
    }
    if let Value::Object(members) = body {
        members.retain(|_, value| !is_window_uri(value));
    }
}

/// Whether the whole value is such a URI; a sentence that begins like one is somebody's text.
fn is_window_uri(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.starts_with(WINDOW_URI) && !text.contains(char::is_whitespace))
}

/// The fields of an object, for tests of what is made of them.
#[cfg(test)]
pub(crate) fn fields_of(value: &Value) -> Fields<'_> {
    Fields::borrowed(value.as_object().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_uris_go_and_sentences_about_them_stay() {
        // HD-08
        let mut body = json!({"a": "pdpp://field-window/x", "b": [{"uri": "pdpp://field-window/y", "t": "z"},
            "pdpp://field-window/v"], "c": "pdpp://field-window/ is a scheme"});
        drop_window_uris(&mut body);
        assert_eq!(
            body,
            json!({"b": [{"t": "z"}], "c": "pdpp://field-window/ is a scheme"})
        );
    }
}
