//! What leads on from a search that found nothing: a call where the server tells of one that finds something.

use contract::search::Matching;

use super::{Found, SearchArgs};
use crate::text::plain;
use crate::tool_call::ToolCall;

/// What keeps a search to some records.
const NARROWING: [&str; 3] = ["filter", "since", "until"];

/// The step after an empty first page, with its call no longer than this.
pub(super) fn next_step(args: &SearchArgs, found: &Found, longest: usize) -> Option<String> {
    let words = found.page.meta.as_ref()?.words.as_ref()?;
    // Records are counted without it.
    let wider = NARROWING
        .into_iter()
        .fold(ToolCall::repeat("search", args), ToolCall::without);
    let elsewhere = words.without_filters.filter(|matching| *matching > 0);
    let occurs = words.terms.iter().any(|one| one.count > 0);
    let asks_for_all = (args.matching).is_some_and(|matching| matching.0 == Matching::All);
    let step = match (elsewhere, words.suggestions.first()) {
        (Some(matching), _) => format!("{wider} finds {matching}."),
        (None, _) if occurs && asks_for_all => {
            format!("{} finds any of these words.", wider.without("match"))
        }
        (None, Some(beginning)) if !occurs => {
            let term = plain::cut(&beginning.term, longest);
            let call = wider.with("query", term.as_ref());
            format!("{call} finds {}.", beginning.count)
        }
        _ => return None,
    };
    (step.len() <= longest).then_some(step)
}
