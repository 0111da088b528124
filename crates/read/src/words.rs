//! Why a search found nothing: which of its words occur in what the caller may see, and what would find something.

use contract::words::{TermCount, WordsFound};
use store::search::{Scope, SearchOrder, SearchRequest};
use text::{Clause, Expression};

use crate::failure::Result;
use crate::reader::Session;

/// How many words are counted; a query has fewer.
const WORDS: usize = 16;
/// For how many words that occur nowhere a beginning is tried.
const BEGINNINGS: usize = 3;
/// A beginning keeps at least so many letters, and drops at most as many as a usual ending has.
const LEAST_LETTERS: usize = 3;
const ENDING: usize = 3;

/// Counts every word by itself, in the scopes of the grant and without the caller's filters.
pub(crate) fn found(
    session: &Session,
    expression: &Expression,
    scopes: &[Scope],
    filtered: bool,
) -> Result<Option<WordsFound>> {
    if scopes.is_empty() {
        return Ok(None);
    }
    let count = |all: Vec<Clause>, none: Vec<Clause>| -> Result<u64> {
        let request = SearchRequest {
            expression: Expression {
                all,
                none,
                truncated: false,
            },
            scopes: scopes.to_vec(),
            limit: 0,
            after: None,
            count: true,
            order: SearchOrder::Relevance,
        };
        Ok(session.store.search(&request)?.total.unwrap_or(0))
    };
    let mut words = WordsFound::default();
    for clause in expression.all.iter().take(WORDS) {
        let found = count(vec![clause.clone()], Vec::new())?;
        words.terms.push(TermCount {
            term: shown(clause),
            count: found,
        });
        let tried = words.suggestions.len() < BEGINNINGS;
        if let (0, true, Some(beginning)) = (found, tried, beginning(clause)) {
            let found = count(vec![beginning.clone()], Vec::new())?;
            words.suggestions.extend((found > 0).then(|| TermCount {
                term: shown(&beginning),
                count: found,
            }));
        }
    }
    if filtered && !expression.all.is_empty() {
        let (all, none) = (expression.all.clone(), expression.none.clone());
        words.without_filters = Some(count(all, none)?);
    }
    Ok(Some(words))
}

/// A clause as it is written in a query.
fn shown(clause: &Clause) -> String {
    let star = if clause.prefix { "*" } else { "" };
    match clause.terms.as_slice() {
        [only] => format!("{only}{star}"),
        several => format!("\"{}{star}\"", several.join(" ")),
    }
}

/// The beginning of a word, for other forms of it.
fn beginning(clause: &Clause) -> Option<Clause> {
    let ([word], false) = (clause.terms.as_slice(), clause.prefix) else {
        return None;
    };
    let letters = word.chars().count();
    let kept = letters
        .saturating_sub(ENDING)
        .max(LEAST_LETTERS + 1)
        .min(letters.checked_sub(1)?);
    if kept < LEAST_LETTERS {
        return None;
    }
    Some(Clause {
        terms: vec![word.chars().take(kept).collect()],
        prefix: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_shorter_than_its_word_and_never_a_letter_or_two() {
        let beginning_of = |word: &str| {
            let all = Expression::parse(word).all;
            all.first().and_then(beginning).map(|clause| shown(&clause))
        };
        assert_eq!(beginning_of("vendors").as_deref(), Some("vend*"));
        assert_eq!(beginning_of("allergies").as_deref(), Some("allerg*"));
        assert_eq!(beginning_of("trains").as_deref(), Some("trai*"));
        assert_eq!(beginning_of("nuts").as_deref(), Some("nut*"));
        for none in ["nut", "of", "vend*", "\"two words\""] {
            assert_eq!(beginning_of(none), None, "{none}");
        }
    }
}
