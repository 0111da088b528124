//! What a grant can see, in words: one line per connection and stream, with every limit on it.

use contract::grant::{Grant, GrantedStream, TimeConstraint};

use crate::moment;
use crate::output::visible;

/// The lines of a grant.
pub(super) fn lines(grant: &Grant) -> Vec<String> {
    let streams = grant.streams().iter();
    streams
        .flat_map(|stream| {
            let limits = limits(stream);
            let connections = stream.instance_ids.iter();
            connections.map(move |id| format!("{id} {}: {limits}", visible(stream.name.as_str())))
        })
        .collect()
}

fn limits(stream: &GrantedStream) -> String {
    let fields: Vec<String> = stream
        .fields
        .iter()
        .map(|field| visible(field.as_str()))
        .collect();
    let records = stream.resources.as_deref().map(|keys| match keys {
        [key] => format!("only the record {}", visible(key)),
        keys => format!("only {} records", keys.len()),
    });
    let limits = [
        Some(fields.join(", ")),
        stream.time_constraint.as_ref().map(span),
        records,
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    limits.join("; ")
}

fn span(time: &TimeConstraint) -> String {
    let bound = |word: &str, at: &Option<String>| match at {
        Some(at) => {
            let at = moment::local(at).unwrap_or_else(|| visible(at));
            format!(" {word} {at}")
        }
        None => String::new(),
    };
    format!(
        "only {}{}{}",
        visible(time.field.as_str()),
        bound("from", &time.since),
        bound("before", &time.until)
    )
}
