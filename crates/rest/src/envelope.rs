//! What every answer carries besides its content: the links of the request and what to know about it.

use contract::aggregate::Aggregation;
use contract::page::{Links, Meta, Page, Warning};
use contract::record::{FieldWindow, Record};
use contract::schema::{SchemaAnswer, StreamMetadata};
use contract::wire::{Nullable, Other};

use crate::ask::Source;
use crate::pieces::{Contents, json_in_pieces};
use crate::table::{Ask, Outcome};

/// An answer with places for links and warnings.
pub(crate) trait Envelope: Contents {
    fn links(&mut self) -> &mut Option<Links>;
    fn meta(&mut self) -> &mut Option<Meta>;
    /// Null or the next page's cursor for answers that have pages.
    fn next_cursor(&self) -> Nullable<String> {
        Nullable::Absent
    }
}

macro_rules! single_answers {
    ($($answer:ty),*) => {$(
        impl Envelope for $answer {
            fn links(&mut self) -> &mut Option<Links> {
                &mut self.links
            }
            fn meta(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }
        }
    )*};
}

single_answers!(Aggregation, FieldWindow, Record, StreamMetadata);

impl<T: Contents> Envelope for Page<T> {
    fn links(&mut self) -> &mut Option<Links> {
        &mut self.links
    }

    fn meta(&mut self) -> &mut Option<Meta> {
        &mut self.meta
    }

    fn next_cursor(&self) -> Nullable<String> {
        let more = self.has_more().then(|| Page::next_cursor(self)).flatten();
        Nullable::or_null(more.map(str::to_owned))
    }
}

impl Envelope for SchemaAnswer {
    fn links(&mut self) -> &mut Option<Links> {
        match self {
            SchemaAnswer::Full(schema) => &mut schema.links,
            SchemaAnswer::Compact(schema) => &mut schema.links,
        }
    }

    fn meta(&mut self) -> &mut Option<Meta> {
        match self {
            SchemaAnswer::Full(schema) => &mut schema.meta,
            SchemaAnswer::Compact(schema) => &mut schema.meta,
        }
    }
}

/// Completes an answer and writes it.
pub(crate) fn answer(ask: &Ask, source: &Source, mut body: impl Envelope) -> Outcome {
    let next = match body.next_cursor() {
        Nullable::Value(cursor) => {
            let path = ask.target.split('?').next().unwrap_or_default();
            Nullable::Value(format!("{path}?{}", ask.params.continued(&cursor)))
        }
        other => other,
    };
    *body.links() = Some(Links {
        this: Some(ask.target.clone()),
        next,
        other: Other::new(),
    });
    let meta = body.meta().get_or_insert_default();
    if source.by_alias {
        meta.warn(Warning::deprecated_alias());
    }
    json_in_pieces(body)
}
