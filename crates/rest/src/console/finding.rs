//! Finding something among all that can be granted: the rows that are called so stay, and those that are ticked.

use super::choice::{SourceRow, StreamRow};
use crate::form::Form;

/// Up to so many streams are seen at a glance.
const FEW_STREAMS: usize = 6;

pub(super) struct Finding {
    /// Whether there is enough to look through.
    pub(super) is_offered: bool,
    pub(super) text: String,
    /// Whether nothing is called so.
    pub(super) is_missing: bool,
}

/// Whether a form was sent to find something in it, and not to go on. Enter in any of its fields presses the button that
/// finds; without words it means to go on.
pub(super) fn is_narrowed(form: &Form) -> bool {
    match form.value("narrow") {
        "all" => true,
        "find" => !words(form).is_empty(),
        _ => false,
    }
}

fn words(form: &Form) -> String {
    match form.value("narrow") {
        "all" => String::new(),
        _ => form.value("find").trim().to_lowercase(),
    }
}

impl Finding {
    /// Leaves what a form looks for, or everything where nothing is called so.
    pub(super) fn apply(form: &Form, sources: &mut Vec<SourceRow>) -> Self {
        let streams: usize = sources.iter().map(|source| source.streams.len()).sum();
        let words = words(form);
        let is_missing = !words.is_empty() && !sources.iter().any(|one| is_called(one, &words));
        if !words.is_empty() && !is_missing {
            for source in sources.iter_mut() {
                narrow(source, &words);
            }
            sources.retain(|source| !source.streams.is_empty());
        }
        Self {
            is_offered: streams > FEW_STREAMS,
            text: match words.as_str() {
                "" => String::new(),
                _ => form.value("find").trim().to_owned(),
            },
            is_missing,
        }
    }
}

fn has(texts: &[&str], words: &str) -> bool {
    texts.iter().any(|text| text.to_lowercase().contains(words))
}

fn is_called(source: &SourceRow, words: &str) -> bool {
    is_named(source, words) || source.streams.iter().any(|one| is_found(one, words))
}

fn is_named(source: &SourceRow, words: &str) -> bool {
    has(&[&source.name, &source.kind], words)
}

fn is_found(stream: &StreamRow, words: &str) -> bool {
    has(&[&stream.name, &stream.about], words) || has_field(stream, words)
}

fn has_field(stream: &StreamRow, words: &str) -> bool {
    let mut fields = stream.fields.iter();
    fields.any(|field| has(&[&field.title, &field.name], words))
}

fn narrow(source: &mut SourceRow, words: &str) {
    let (is_named, is_whole) = (is_named(source, words), source.whole);
    source
        .streams
        .retain(|stream| is_named || is_whole || stream.is_ticked() || is_found(stream, words));
    source.open = true;
    for stream in &mut source.streams {
        stream.part_open = has_field(stream, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::choice::FieldRow;

    fn stream(name: &str, field: &str, chosen: bool) -> StreamRow {
        StreamRow {
            name: name.to_owned(),
            chosen,
            fields: vec![FieldRow {
                title: field.to_owned(),
                name: field.to_owned(),
                value: String::new(),
                chosen: false,
                parts: Vec::new(),
            }],
            ..StreamRow::default()
        }
    }

    fn offered() -> Vec<SourceRow> {
        let source = |name: &str, streams| SourceRow {
            name: name.to_owned(),
            streams,
            ..SourceRow::default()
        };
        vec![
            source(
                "Work mail",
                vec![
                    stream("Messages", "Subject", false),
                    stream("Files", "Size", true),
                ],
            ),
            source("Bank", vec![stream("Payments", "Amount", false)]),
        ]
    }

    fn found(query: &str) -> (Finding, Vec<String>) {
        let mut sources = offered();
        let form = Form::from_query(query).ok().unwrap();
        let finding = Finding::apply(&form, &mut sources);
        let streams = sources.iter().flat_map(|source| &source.streams);
        (finding, streams.map(|stream| stream.name.clone()).collect())
    }

    #[test]
    fn what_is_called_so_or_ticked_stays() {
        assert_eq!(found("find=AMOUNT").1, ["Files", "Payments"]);
        assert_eq!(found("find=bank").1, ["Files", "Payments"]);
        assert_eq!(found("find=mail").1, ["Messages", "Files"]);
        let (finding, all) = found("find=zebra");
        assert!(finding.is_missing);
        assert_eq!(all.len(), 3);
        assert_eq!(found("find=bank&narrow=all").1.len(), 3);
    }

    #[test]
    fn enter_without_words_goes_on() {
        let narrows = |query: &str| is_narrowed(&Form::from_query(query).ok().unwrap());
        assert!(narrows("narrow=find&find=x") && narrows("narrow=all&find=x"));
        assert!(!narrows("narrow=find&find=+") && !narrows("find=x"));
    }
}
