//! Why a search found nothing: which of its words occur in what the caller may see, and what would find something.

use contract::words::{TermCount, WordsFound};
use store::search::{Scope, SearchRequest};
use text::{Clause, Expression};

use crate::failure::Outcome;
use crate::reader::Session;

/// As many words are told apart; a question has fewer.
const WORDS: usize = 16;
/// For so many words that occur nowhere a beginning is tried.
const BEGINNINGS: usize = 3;
/// A beginning has at least so many letters, and leaves out at most as many as an ending has.
const LEAST_LETTERS: usize = 3;
const ENDING: usize = 3;

/// Counts every word by itself, in the scopes of the grant and without the caller's filters.
pub(crate) fn found(
    session: &Session,
    expression: &Expression,
    (scopes, filtered): (&[Scope], bool),
) -> Outcome<Option<WordsFound>> {
    if scopes.is_empty() {
        return Ok(None);
    }
    let count = |all: Vec<Clause>, none: Vec<Clause>| -> Outcome<u64> {
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

/// A clause as one writes it.
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
        let of = |word: &str| {
            let all = Expression::parse(word).all;
            all.first().and_then(beginning).map(|clause| shown(&clause))
        };
        assert_eq!(of("vendors").as_deref(), Some("vend*"));
        assert_eq!(of("allergies").as_deref(), Some("allerg*"));
        assert_eq!(of("trains").as_deref(), Some("trai*"));
        assert_eq!(of("nuts").as_deref(), Some("nut*"));
        for none in ["nut", "of", "vend*", "\"two words\""] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
