//! Reading a server's envelope, whichever generation wrote it: the entries, the way on, counts and warnings.

use contract::handle::WINDOW_URI;
use contract::words::WordsFound;
use std::fmt::Write as _;

use serde_json::Value;

use super::identity::{at, connection_of, text};
use super::plain;
use crate::budget;

const HITS: [&str; 5] = ["/results", "/hits", "/data", "/data/results", "/data/data"];
const RECORDS: [&str; 4] = ["/data", "/records", "/data/records", "/data/data"];

/// As many words of a search that found nothing are told.
const SHOWN_WORDS: usize = 12;

/// The hits of a search.
pub(crate) fn hits(body: &Value) -> &[Value] {
    entries(body, &HITS)
}

/// The hits of a search, to be shortened.
pub(crate) fn hits_mut(body: &mut Value) -> &mut [Value] {
    entries_mut(body, &HITS)
}

/// The records of a page.
pub(crate) fn records(body: &Value) -> &[Value] {
    entries(body, &RECORDS)
}

/// The records of a page, to be narrowed.
pub(crate) fn records_mut(body: &mut Value) -> &mut [Value] {
    entries_mut(body, &RECORDS)
}

fn entries_mut<'a>(body: &'a mut Value, places: &[&str]) -> &'a mut [Value] {
    // An empty place is the body itself.
    let place = std::iter::once(&"")
        .chain(places)
        .find(|place| at(body, place).is_some_and(Value::is_array));
    place
        .and_then(|place| body.pointer_mut(place)?.as_array_mut())
        .map_or(&mut [], Vec::as_mut_slice)
}

/// Takes out every member or entry that is a window URI: those are for hosts, and not every host can read them.
pub(crate) fn drop_window_uris(value: &mut Value) {
    // Most answers have none, and looking is cheaper than taking every object in hand.
    if has_window_uri(value) {
        take_window_uris(value);
    }
}

fn has_window_uri(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_window_uri),
        Value::Array(entries) => entries.iter().any(has_window_uri),
        _ => is_window_uri(value),
    }
}

fn take_window_uris(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !is_window_uri(member));
            members.values_mut().for_each(take_window_uris);
        }
        Value::Array(entries) => {
            entries.retain(|entry| !is_window_uri(entry));
            entries.iter_mut().for_each(take_window_uris);
        }
        _ => {}
    }
}

/// Whether the whole value is such a URI; a sentence that begins like one is somebody's text.
pub(crate) fn is_window_uri(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.starts_with(WINDOW_URI) && !text.contains(char::is_whitespace))
}

fn entries<'a>(body: &'a Value, places: &[&str]) -> &'a [Value] {
    if let Value::Array(entries) = body {
        return entries;
    }
    let found = places.iter().find_map(|place| at(body, place)?.as_array());
    found.map_or(&[], Vec::as_slice)
}

/// How to go on from an answer, and how much there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Paging {
    /// Nothing where the server does not say and gives no cursor either.
    pub(crate) has_more: Option<bool>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) next_changes_since: Option<String>,
    /// How the number was obtained, and the number.
    pub(crate) count: Option<(String, u64)>,
}

impl Paging {
    /// Read at the top, then in `meta`, then in `data`; never invented (QR-03).
    pub(crate) fn of(body: &Value) -> Self {
        let places: Vec<&Value> = [Some(body), body.get("meta"), body.get("data")]
            .into_iter()
            .flatten()
            .filter(|place| place.is_object())
            .collect();
        let find = |name: &str| places.iter().find_map(|place| text(place, name));
        let next_cursor = find("next_cursor").map(str::to_owned);
        let has_more = places
            .iter()
            .find_map(|place| place.get("has_more")?.as_bool());
        let count = places.iter().find_map(|place| count(place));
        Self {
            has_more: has_more.or(next_cursor.as_ref().map(|_| true)),
            next_cursor,
            next_changes_since: find("next_changes_since").map(str::to_owned),
            count,
        }
    }

    /// The members as they stand in a first line, each with a space before it.
    pub(crate) fn written(&self) -> String {
        self.extent() + &self.way_on()
    }

    /// Whether this is all, and how much there is.
    pub(crate) fn extent(&self) -> String {
        let mut written = String::new();
        if let Some(has_more) = self.has_more {
            let _ = write!(written, " has_more={has_more}");
        }
        if let Some((kind, value)) = &self.count {
            let _ = write!(written, " count={}:{value}", plain::token(kind));
        }
        written
    }

    /// The handles to go on with.
    pub(crate) fn way_on(&self) -> String {
        let mut written = String::new();
        if let Some(cursor) = &self.next_cursor {
            let _ = write!(written, " next_cursor={}", plain::exact(cursor));
        }
        if let Some(bookmark) = &self.next_changes_since {
            let _ = write!(written, " next_changes_since={}", plain::exact(bookmark));
        }
        written
    }
}

fn count(place: &Value) -> Option<(String, u64)> {
    let count = place.get("count")?;
    if let Some(value) = count.as_u64() {
        let accuracy = text(place, "count_accuracy").unwrap_or("exact");
        return Some((accuracy.to_owned(), value));
    }
    let kind = text(count, "kind").unwrap_or("exact");
    Some((kind.to_owned(), count.get("value")?.as_u64()?))
}

/// The codes of all warnings on one line, each with the source it is about: `limit_clamped, source_unavailable(cin_x)`.
pub(crate) fn warnings(body: &Value) -> Option<String> {
    let listed = body
        .pointer("/meta/warnings")
        .or_else(|| body.get("warnings"))?;
    let mut codes = Vec::new();
    for warning in listed.as_array()? {
        let Some(code) = text(warning, "code").or_else(|| warning.as_str()) else {
            continue;
        };
        let code = plain::line(code, budget::LABEL);
        let written = match connection_of(warning) {
            Some(source) => format!("{code}({})", plain::line(source, budget::LABEL)),
            None => code,
        };
        if !codes.contains(&written) {
            codes.push(written);
        }
    }
    (!codes.is_empty()).then(|| plain::cut(&codes.join(", "), budget::EXCERPT).into_owned())
}

/// Why a search found nothing, where the server says so.
pub(crate) fn words(body: &Value) -> Option<String> {
    let words: WordsFound = serde_json::from_value(body.pointer("/meta/words")?.clone()).ok()?;
    Some(words.summary(SHOWN_WORDS))
}

/// A sentence for a search that could not look at everything (UP-02). Nothing is inferred from `has_more`.
pub(crate) fn recall(body: &Value) -> Option<String> {
    let recall = body.pointer("/meta/recall")?;
    let scope = text(recall, "ranking_scope");
    let is_partial =
        scope == Some("candidate_window") || recall.get("complete") == Some(&Value::Bool(false));
    if !is_partial {
        return None;
    }
    let mut written = String::from("recall is partial: matches may be missing");
    for name in [
        "ranked_candidate_count",
        "candidate_window_limit",
        "truncated_source_count",
    ] {
        if let Some(number) = recall.get(name).and_then(Value::as_u64) {
            let _ = write!(written, " {name}={number}");
        }
    }
    let percent = body.pointer("/meta/index_maintenance/percent");
    if let Some(percent) = percent.and_then(Value::as_u64) {
        let _ = write!(written, "; the index is being built, {percent} % are done");
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_found_in_every_generation_of_envelope() {
        for body in [
            json!({"data": [1, 2]}),
            json!({"records": [1, 2]}),
            json!({"data": {"records": [1, 2]}}),
            json!([1, 2]),
        ] {
            assert_eq!(records(&body).len(), 2, "{body}");
        }
        for body in [
            json!({"results": [1]}),
            json!({"hits": [1]}),
            json!({"data": [1]}),
            json!({"data": {"results": [1]}}),
            json!({"data": {"data": [1]}}),
        ] {
            assert_eq!(hits(&body).len(), 1, "{body}");
        }
        assert!(hits(&json!({"object": "list"})).is_empty());
    }

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

    #[test]
    fn entries_can_be_changed_where_they_are_found() {
        for mut body in [
            json!({"data": [1]}),
            json!([1]),
            json!({"data": {"records": [1]}}),
        ] {
            records_mut(&mut body)[0] = json!(2);
            assert_eq!(records(&body), [json!(2)]);
        }
        let mut body = json!({"hits": [1]});
        hits_mut(&mut body)[0] = json!(3);
        assert_eq!(hits(&body), [json!(3)]);
        assert!(hits_mut(&mut json!({})).is_empty());
    }

    #[test]
    fn handles_are_found_wherever_they_stand_and_never_invented() {
        // QR-03
        let everywhere = json!({"next_cursor":"a","meta":{"next_changes_since":"b","count":{"kind":"exact","value":42}},
            "data":{"has_more":true}});
        let paging = Paging::of(&everywhere);
        assert_eq!(
            paging.written(),
            r#" has_more=true count=exact:42 next_cursor="a" next_changes_since="b""#
        );
        assert_eq!(
            Paging::of(&json!({"data":[],"next_cursor":null})),
            Paging::default()
        );
    }

    #[test]
    fn warnings_are_named_with_their_source() {
        let body = json!({"meta":{"warnings":[{"code":"limit_clamped","message":"x"},
            {"code":"source_unavailable","source":{"connection_id":"cin_x"}}]}});
        assert_eq!(
            warnings(&body).unwrap(),
            "limit_clamped, source_unavailable(cin_x)"
        );
        assert_eq!(warnings(&json!({"meta":{"warnings":[]}})), None);
    }
}
