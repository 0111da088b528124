//! A record in one line: what it is called, who wrote it, when, and how it begins.

use contract::record::{Record, own_time};

use super::format::one_line;
use super::moment::Moment;
use super::stream_shape::StreamShape;
use super::value::{self, Members};

const TITLE_CHARS: usize = 160;
const EXCERPT_CHARS: usize = 240;

pub(super) struct Summary {
    pub(super) title: String,
    pub(super) author: String,
    pub(super) at: Option<Moment>,
    /// How the body begins; empty where it is the title already.
    pub(super) excerpt: String,
}

impl Summary {
    pub(super) fn new(shape: &StreamShape, record: &Record) -> Self {
        Self::of_members(shape, &value::members(record.data.as_deref()), &record.id)
    }

    pub(super) fn of_members(shape: &StreamShape, members: &Members, key: &str) -> Self {
        let of_role = |role: &str| {
            let field = shape.with_role(role)?;
            value::text(members, field.name.as_str())
        };
        let titled = shape.title();
        let titled = titled.and_then(|field| value::text(members, field.name.as_str()));
        let body = of_role("body").unwrap_or_default();
        let has_title = titled.is_some();
        let title = match titled {
            Some(title) => title,
            None if body.is_empty() => key.to_owned(),
            None => body.clone(),
        };
        let excerpt = if has_title { body.as_str() } else { "" };
        Self {
            title: one_line(&title, TITLE_CHARS),
            author: one_line(&of_role("author").unwrap_or_default(), TITLE_CHARS),
            at: time(shape, members).and_then(|text| Moment::parse(&text)),
            excerpt: one_line(&without_quotes(excerpt), EXCERPT_CHARS),
        }
    }
}

/// What its author wrote: a mail without the lines it quotes.
fn without_quotes(text: &str) -> String {
    let own = text.lines().filter(|line| !line.starts_with('>'));
    // One line more than an excerpt can hold, where each has a character.
    own.take(EXCERPT_CHARS + 1).collect::<Vec<_>>().join("\n")
}

/// The record's own time, as its source wrote it.
pub(super) fn time(shape: &StreamShape, members: &Members) -> Option<String> {
    own_time(shape.time_names(), |name| value::text(members, name)).map(|(_, at)| at)
}
