//! The envelope of answers: links and warnings.

use contract::aggregate::Aggregation;
use contract::citation::CitationCheck;
use contract::page::{Links, Meta, Page, Warning};
use contract::record::{FieldWindow, Record};
use contract::schema::{SchemaAnswer, StreamMetadata};
use contract::wire::Nullable;

use crate::json_body::{HasContent, json_response};
use crate::query_params::ConnectionSelector;
use crate::table::{HandlerResult, RequestContext};

/// An answer with links and meta.
pub(crate) trait Envelope: HasContent {
    fn links(&mut self) -> &mut Option<Links>;
    fn meta(&mut self) -> &mut Option<Meta>;
    /// The cursor of the next page; null on the last page, absent for answers without pages.
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

single_answers!(
    Aggregation,
    CitationCheck,
    FieldWindow,
    Record,
    StreamMetadata
);

impl<T: HasContent> Envelope for Page<T> {
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

/// Adds links and warnings to an answer and serializes it.
pub(crate) fn respond(
    context: &RequestContext,
    selector: &ConnectionSelector,
    mut body: impl Envelope,
) -> HandlerResult {
    // A reader that counts bytes sets links of its own.
    if body.links().is_none() {
        *body.links() = Some(links(context, &body));
    }
    let meta = body.meta().get_or_insert_default();
    if selector.by_alias {
        meta.warn(Warning::deprecated_alias());
    }
    json_response(body)
}

fn links(context: &RequestContext, body: &impl Envelope) -> Links {
    let next = match body.next_cursor() {
        Nullable::Value(cursor) => {
            let path = context.target.split('?').next().unwrap_or_default();
            Nullable::Value(format!("{path}?{}", context.params.with_cursor(&cursor)))
        }
        other => other,
    };
    Links {
        this: Some(context.target.clone()),
        next,
        records: None,
    }
}
