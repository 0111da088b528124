//! What a hit shows of itself: the fields proven to match with the characters that prove it, and a name to call it by. All
//! of it comes from fields the row sees, as the record stands now.

use contract::declaration::FieldDeclaration;
use contract::id::FieldName;
use contract::json::RecordBody;
use contract::record::own_time;
use contract::search::{EvidenceExcerpt, FieldWindowRead, MatchSpan, Passage};
use contract::window::DEFAULT_LIMIT_CHARS;
use store::evidence::{FieldExcerpt, excerpts};
use text::{ExcerptLimits, Expression, Seen};

use crate::enforce::Row;

/// The longest title or author, in characters.
const TITLE_CHARS: usize = 200;

/// The longest excerpt, in characters: it says whether a hit is the one, and the window around it is one call away.
const EXCERPT_CHARS: usize = 160;

/// Fields that name a record where no field has the role.
const TITLES: [&str; 3] = ["title", "name", "subject"];

/// What is searched for in a record, and how much of it is shown.
pub(crate) struct Wanted<'a> {
    pub(crate) fields: &'a [FieldName],
    pub(crate) expression: &'a Expression,
    /// The field whose text already stands in the hit as its title.
    pub(crate) title_field: Option<&'a str>,
    pub(crate) excerpts: usize,
}

pub(crate) struct Evidence {
    /// How each wanted clause occurs.
    pub(crate) seen: Vec<Option<Seen>>,
    pub(crate) matched_fields: Vec<String>,
    /// `None` without a proven match.
    pub(crate) excerpts: Option<Vec<EvidenceExcerpt>>,
}

/// The fields of a record that match, and excerpts that show it.
pub(crate) fn prove(body: &RecordBody, wanted: &Wanted<'_>) -> Evidence {
    let proven = proven(body, wanted);
    let found = chosen(body, &proven.fields, wanted);
    let excerpts: Vec<EvidenceExcerpt> = found.into_iter().map(describe).collect();
    let names = wanted.fields.iter();
    let names = names.filter(|field| proven.fields.contains(field));
    Evidence {
        matched_fields: names.map(ToString::to_string).collect(),
        seen: proven.seen,
        excerpts: (!excerpts.is_empty()).then_some(excerpts),
    }
}

/// The fields that contain a clause, and how each clause occurs in any of them.
struct Proven {
    fields: Vec<FieldName>,
    seen: Vec<Option<Seen>>,
}

/// The fields that contain a clause of the query, those with most clauses first. Among equals the title comes last: its
/// text stands in the hit already.
fn proven(body: &RecordBody, wanted: &Wanted<'_>) -> Proven {
    let mut proven: Vec<(usize, &FieldName)> = Vec::new();
    let mut seen = vec![None; wanted.expression.wanted.len()];
    for field in wanted.fields {
        let Some(text) = body.searched_text(field.as_str()) else {
            continue;
        };
        let matched = text::occurrences(&text, wanted.expression);
        let clauses = matched.count();
        if clauses > 0 {
            proven.push((clauses, field));
        }
        for (best, here) in seen.iter_mut().zip(matched.clauses) {
            *best = match (*best, here) {
                (Some(best), Some(here)) => Some(here.min(best)),
                (best, here) => best.or(here),
            };
        }
    }
    let is_title = |field: &FieldName| wanted.title_field == Some(field.as_str());
    proven.sort_by_key(|(clauses, field)| (std::cmp::Reverse(*clauses), is_title(field)));
    Proven {
        fields: proven.into_iter().map(|(_, field)| field.clone()).collect(),
        seen,
    }
}

/// The best excerpt of each field in turn, then the next best, until there are enough.
fn chosen(body: &RecordBody, proven: &[FieldName], wanted: &Wanted<'_>) -> Vec<FieldExcerpt> {
    if proven.is_empty() {
        return Vec::new();
    }
    let limits = ExcerptLimits {
        max_excerpts: wanted.excerpts,
        max_chars: EXCERPT_CHARS,
        ..ExcerptLimits::default()
    };
    let of_field = |field: &FieldName| {
        excerpts(body, std::slice::from_ref(field), wanted.expression, limits).into_iter()
    };
    let mut queues: Vec<_> = proven.iter().take(wanted.excerpts).map(of_field).collect();
    let mut found = Vec::new();
    for _ in 0..limits.max_excerpts {
        found.extend(queues.iter_mut().filter_map(Iterator::next));
    }
    found.truncate(wanted.excerpts);
    found
}

fn describe(found: FieldExcerpt) -> EvidenceExcerpt {
    let FieldExcerpt { field, excerpt } = found;
    let chars = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (start, end) = (chars(excerpt.start_chars), chars(excerpt.end_chars));
    let (offset, limit) = window_around(start, end, excerpt.truncated);
    let matches = excerpt.matches.iter().map(|span| MatchSpan {
        start_chars: chars(span.start_chars),
        end_chars: chars(span.end_chars),
    });
    EvidenceExcerpt {
        field_path: field.to_string(),
        text_start_chars: Some(start),
        text_end_chars: Some(end),
        matches: Some(matches.collect()),
        preview_text: Some(text::marked(
            &excerpt.text,
            excerpt.start_chars,
            &excerpt.matches,
        )),
        truncated: Some(excerpt.truncated),
        read: Some(FieldWindowRead {
            offset_chars: Some(offset),
            limit_chars: Some(limit),
            ..FieldWindowRead::default()
        }),
        ..EvidenceExcerpt::default()
    }
}

/// The window to read after an excerpt: the same characters where the field holds nothing else, otherwise a whole window
/// around them, because the excerpt itself is already known.
fn window_around(start: u64, end: u64, truncated: bool) -> (u64, u64) {
    let length = end.saturating_sub(start).max(1);
    if !truncated {
        return (start, length);
    }
    let limit = length.max(DEFAULT_LIMIT_CHARS as u64);
    (start.saturating_sub((limit - length) / 2), limit)
}

/// The title of a record and the field it comes from.
pub(crate) fn title(row: &Row, body: &RecordBody) -> Option<(String, String)> {
    title_fields(row).find_map(|name| named_by(body, name))
}

/// The fields that may hold a title, the first with a text decides: those with that role, then those named like one.
pub(crate) fn title_fields(row: &Row) -> impl Iterator<Item = &str> {
    let is_title = |role: &str| role == "title" || role.ends_with("-title");
    let by_role = row
        .fields()
        .filter(move |field| field.role.as_deref().is_some_and(is_title))
        .map(|field| field.name.as_str());
    let by_name = TITLES.into_iter().filter(|name| row.sees_member(name));
    by_role.chain(by_name)
}

/// Who wrote a record, and the field that says so: one with that role.
pub(crate) fn author(row: &Row, body: &RecordBody) -> Option<(String, String)> {
    let mut authors = row
        .fields()
        .filter(|field| field.role.as_deref() == Some("author"));
    authors.find_map(|field| named_by(body, field.name.as_str()))
}

/// A field and its text, if it has one.
fn named_by(body: &RecordBody, name: &str) -> Option<(String, String)> {
    let text = body.text(name)?;
    let text = text.trim();
    (!text.is_empty()).then(|| (name.to_owned(), shortened(text)))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
    }
}

/// The longest passage that is shown without a match, in characters.
pub(crate) const PASSAGE_CHARS: usize = 160;

/// The beginning of a record that is shown without a match: of its body, else of the first searched field with a text.
pub(crate) fn passage(row: &Row, fields: &[FieldName], body: &RecordBody) -> Option<Passage> {
    let is_body = |field: &&FieldDeclaration| field.role.as_deref() == Some("body");
    let bodies = row.fields().filter(is_body).map(|field| &field.name);
    bodies.chain(fields).find_map(|field| {
        let text = body.text(field.as_str())?;
        let end = text.char_indices().nth(PASSAGE_CHARS);
        let shown = text.get(..end.map_or(text.len(), |(at, _)| at))?;
        (!shown.trim().is_empty()).then(|| Passage {
            field_path: field.to_string(),
            text: shown.to_owned(),
            truncated: end.is_some(),
            ..Passage::default()
        })
    })
}

/// When its author wrote a record, and the field that says so, as far as it may be seen.
pub(crate) fn authored_at(row: &Row, body: &RecordBody) -> Option<(String, String)> {
    let stream = row.stream();
    let declared = [&stream.consent_time_field, &stream.cursor_field];
    let declared = declared.map(|field| field.as_ref().map(FieldName::as_str));
    own_time(declared, |name| {
        let seen = row.sees_member(name).then(|| body.text(name)).flatten();
        seen.map(std::borrow::Cow::into_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence_in(body: &str, q: &str) -> (Vec<String>, Vec<FieldExcerpt>) {
        let body = RecordBody::parse(body).unwrap();
        let fields =
            ["subject", "body", "note", "more"].map(|name| FieldName::parse(name).unwrap());
        let wanted = Wanted {
            fields: &fields,
            expression: &Expression::parse(q),
            title_field: Some("subject"),
            excerpts: 3,
        };
        let proven = proven(&body, &wanted);
        let found = chosen(&body, &proven.fields, &wanted);
        let names = fields.iter().filter(|field| proven.fields.contains(field));
        (names.map(ToString::to_string).collect(), found)
    }

    #[test]
    fn a_hit_without_a_provable_field_has_no_descriptor() {
        // PA-04
        for body in [
            r#"{"subject":"coffee"}"#,
            r#"{"subject":null,"other":"tea"}"#,
            "{}",
        ] {
            let (matched, found) = evidence_in(body, "tea");
            assert!(matched.is_empty() && found.is_empty(), "{body}");
        }
    }

    #[test]
    fn excerpts_are_few_and_from_several_fields() {
        let body = r#"{"subject":"tea","body":"tea and milk","note":"tea","more":"milk"}"#;
        let (matched, found) = evidence_in(body, "tea milk");
        assert_eq!(matched, ["subject", "body", "note", "more"]);
        let shown: Vec<&str> = found.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(shown, ["body", "note", "more"], "the title last");
    }
}
