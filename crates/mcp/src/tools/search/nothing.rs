//! What leads on from a search that found nothing: a call where the server tells of one that finds something.

use super::{Found, SearchArgs};
use crate::text::plain;
use crate::tool_call::ToolCall;

/// What keeps a search to some records.
const NARROWING: [&str; 3] = ["filter", "since", "until"];

/// The step after an empty first page, with its call no longer than this.
pub(super) fn next_step(args: &SearchArgs, found: &Found, longest: usize) -> Option<String> {
    let words = found.page.meta.as_ref()?.words.as_ref()?;
    let elsewhere = words.without_filters.filter(|matching| *matching > 0);
    // Records are counted without it.
    let wider = NARROWING
        .into_iter()
        .fold(ToolCall::repeat("search", args), ToolCall::without);
    let (call, matching) = match (elsewhere, words.suggestions.first()) {
        (Some(matching), _) => (wider, matching),
        (None, Some(beginning)) => {
            let term = plain::cut(&beginning.term, longest);
            (wider.with("query", term.as_ref()), beginning.count)
        }
        (None, None) => return None,
    };
    let step = format!("{call} finds {matching}.");
    (step.len() <= longest).then_some(step)
}
