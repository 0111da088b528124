//! What may be read, and what each field accepts.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Stream;
use crate::generated::CONNECTIONS;
use crate::surface::{Surface, plain};
use crate::world::{archives, life, only, whole};

fn pairs(streams: &[Stream]) -> BTreeSet<(String, String)> {
    let one = |stream: &Stream| {
        let name = stream.name.clone();
        let connections = stream.connections.clone().into_iter();
        connections
            .map(|connection| (connection, name.clone()))
            .collect::<Vec<_>>()
    };
    streams.iter().flat_map(one).collect()
}

pub(crate) fn the_index_names_every_stream_and_connection(surface: Surface) {
    // SC-03, PA-01
    let who = whole();
    let granted = who.streams.as_array().unwrap().iter();
    let granted: BTreeSet<(String, String)> = granted
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            (text("connection_id"), text("stream"))
        })
        .collect();
    let index = surface.streams(&who, plain());
    assert_eq!(pairs(&index), granted);
    assert_eq!(granted.len(), 22);
}

pub(crate) fn a_stream_shows_its_fields_and_what_each_accepts(surface: Surface) {
    // SC-06
    let shown = surface.streams(&whole(), plain().with("stream", "notes"));
    let [notes] = &shown[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (notes.connector.as_str(), notes.name.as_str()),
        ("notes", "notes")
    );
    assert_eq!(notes.connections, ["notes"]);
    let expected = [
        ("body", "t=string,role=body,eq,lex"),
        (
            "created_at",
            "t=string,eq,r=gte|gt|lte|lt,a=group_by_time|min",
        ),
        ("folder", "t=string,eq,a=group_by"),
        ("id", "t=string,eq,lex"),
        ("tags", "t=array,r=contains,a=group_by"),
        ("title", "t=string,role=title,eq,lex"),
        (
            "updated_at",
            "t=string,eq,r=gte|gt|lte|lt,a=group_by_time|max",
        ),
        ("word_count", "t=integer,eq,r=gte|gt|lte|lt,a=max|sum"),
    ];
    let expected: BTreeMap<String, String> = expected
        .map(|(name, flags)| (name.to_owned(), flags.to_owned()))
        .into();
    assert_eq!(notes.fields, expected);
}

pub(crate) fn a_stream_of_several_sources_is_shown_for_each(surface: Surface) {
    // SC-07
    let shown = surface.streams(&whole(), plain().with("stream", "messages"));
    let [chat, mail] = &shown[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (chat.connector.as_str(), mail.connector.as_str()),
        ("chat", "mail")
    );
    assert_eq!(mail.connections, ["mail-work", "mail-private"]);
    assert!(mail.fields.contains_key("subject") && !chat.fields.contains_key("subject"));
}

pub(crate) fn a_connection_narrows_what_is_shown(surface: Surface) {
    // SC-09
    let ask = || plain().connection("mail-private");
    let all = surface.streams(&whole(), ask());
    let of: BTreeSet<&str> = all
        .iter()
        .flat_map(|stream| &stream.connections)
        .map(String::as_str)
        .collect();
    assert_eq!(of, BTreeSet::from(["mail-private"]));
    let one = surface.streams(&whole(), ask().with("stream", "messages"));
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].connections, ["mail-private"]);
}

pub(crate) fn the_whole_schema_of_one_stream_is_given(surface: Surface) {
    // SC-15, SC-17, PA-07
    let ask = plain().with("stream", "notes").with("detail", "full");
    let shown = surface.streams(&whole(), ask);
    let [notes] = &shown[..] else {
        panic!("{shown:?}")
    };
    let names: Vec<&str> = notes.schemas.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "body",
            "created_at",
            "folder",
            "id",
            "tags",
            "title",
            "updated_at",
            "word_count"
        ]
    );
    assert_eq!(notes.schemas["word_count"], r#"{"type":"integer"}"#);
    let ask = plain()
        .with("stream", "entries")
        .with("detail", "full")
        .connection(CONNECTIONS[1]);
    let shown = surface.streams(&archives(), ask);
    assert_eq!(shown[0].connections, [CONNECTIONS[1]]);
}

pub(crate) fn the_whole_schema_of_a_shared_stream_asks_for_the_connection(surface: Surface) {
    // SC-16, TR-27
    let ask = |stream: &str| plain().with("stream", stream).with("detail", "full");
    let refused = surface.schema(&whole(), ask("messages")).unwrap_err();
    assert_eq!(refused.code, "ambiguous_schema_detail");
    assert_eq!(refused.retry_with.as_deref(), Some("connection_id"));
    let mut listed = refused.connections;
    listed.sort_unstable();
    assert_eq!(listed, ["chat-tidewater", "mail-private", "mail-work"]);
    // Connections of one connector are several sources too.
    let refused = surface.schema(&archives(), ask("entries")).unwrap_err();
    assert_eq!(refused.code, "ambiguous_schema_detail");
    assert_eq!(refused.connections, CONNECTIONS);
}

pub(crate) fn the_whole_schema_of_everything_is_refused(surface: Surface) {
    // SC-13
    let ask = plain().with("detail", "full");
    let refused = surface.schema(&whole(), ask).unwrap_err();
    assert_eq!(refused.code, "invalid_request");
}

pub(crate) fn what_the_schema_advertises_is_accepted(surface: Surface) {
    // SC-08
    let who = only("bank");
    let shown = surface.streams(&who, plain().with("stream", "transactions"));
    let whole = surface.page(&who, "transactions", plain().limit(1));
    let sample = &whole.records[0].data;
    for (field, flags) in &shown[0].fields {
        // A name must outlive the question.
        let name: &'static str = field.clone().leak();
        let Some(value) = sample.get(name).filter(|value| !value.is_null()) else {
            continue;
        };
        for flag in flags.split(',') {
            if flag == "eq" {
                let ask = plain().limit(1).filter(name, value.clone());
                let page = surface.page(&who, "transactions", ask);
                assert_eq!(page.records[0].data[name], *value, "{field}");
            }
            for operator in flag
                .strip_prefix("r=")
                .into_iter()
                .flat_map(|all| all.split('|'))
            {
                let operator: &'static str = operator.to_owned().leak();
                let ask = plain().limit(1).range(name, operator, value.clone());
                surface.page(&who, "transactions", ask);
            }
            for metric in flag
                .strip_prefix("a=")
                .into_iter()
                .flat_map(|all| all.split('|'))
            {
                let (metric, ask) = match metric {
                    "group_by" => ("count", plain().with("group_by", name)),
                    "group_by_time" => {
                        let ask = plain().with("group_by_time", name);
                        ("count", ask.with("granularity", "month"))
                    }
                    metric => (metric, plain().with("field", name)),
                };
                surface.figures(&who, "transactions", metric, ask);
            }
        }
    }
    assert!(life().lives());
}
