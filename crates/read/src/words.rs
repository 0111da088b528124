//! The words of a search: which occur in what the caller may see, and in which form; and, where nothing was found, what would
//! find something.

use contract::search::MatchedTerm;
use contract::words::{Respelled, TermCount, WordsFound};
use store::search::{EVERY_WORD, Scope, SearchAnswer, SearchRequest};
use text::{Clause, Expression, FormKind, Seen};

use crate::failure::Result;
use crate::reader::Session;

/// How many words are counted; a query has fewer.
const WORDS: usize = 16;
/// For how many words that occur nowhere a beginning is tried.
const BEGINNINGS: usize = 3;
/// A beginning keeps at least so many letters, and drops at most as many as a usual ending has.
const LEAST_LETTERS: usize = 3;
const ENDING: usize = 3;

/// How many words that were looked for instead are named.
const INSTEAD: usize = 3;

/// Which words of the question occur, and how.
pub(crate) fn summary(answer: &SearchAnswer) -> WordsFound {
    let mut words = WordsFound {
        with_every_word: Some(answer.with_every_word),
        with_every_word_or_more: (answer.with_every_word >= EVERY_WORD).then_some(true),
        ..WordsFound::default()
    };
    for (clause, occurs) in answer.expression.wanted.iter().zip(&answer.occurring) {
        // Only a word that is nowhere has near spellings.
        let is_respelled = clause
            .forms
            .iter()
            .any(|form| form.kind == FormKind::Spelling);
        match (occurs, is_respelled) {
            (false, _) => words.missing.push(shown(clause)),
            (true, false) => words.found.push(shown(clause)),
            (true, true) => words.respelled.push(Respelled {
                term: shown(clause),
                found: (clause.forms.iter().take(INSTEAD))
                    .map(|form| form.term.clone())
                    .collect(),
            }),
        }
    }
    words
}

/// The words of the question that a record has, and those it has not. `seen` tells of each clause how it occurs.
pub(crate) fn of_hit(
    expression: &Expression,
    seen: &[Option<Seen>],
) -> (Vec<MatchedTerm>, Vec<String>) {
    let (mut matched, mut missing) = (Vec::new(), Vec::new());
    for (clause, seen) in expression.wanted.iter().zip(seen) {
        let (found, kind) = match seen {
            None => {
                missing.push(shown(clause));
                continue;
            }
            Some(Seen::Exact) => (None, "exact"),
            Some(Seen::Form(at)) => match clause.forms.get(*at) {
                None => continue,
                Some(form) => (
                    Some(form.term.clone()),
                    match form.kind {
                        FormKind::Form => "form",
                        FormKind::Spelling => "spelling",
                    },
                ),
            },
        };
        matched.push(MatchedTerm {
            term: shown(clause),
            found,
            kind: kind.to_owned(),
        });
    }
    (matched, missing)
}

/// Counts every word by itself, in the scopes of the grant and without the caller's filters.
pub(crate) fn count_each(
    session: &Session,
    expression: &Expression,
    scopes: &[Scope],
    filtered: bool,
    words: &mut WordsFound,
) -> Result<()> {
    if scopes.is_empty() {
        return Ok(());
    }
    let count = |wanted: Vec<Clause>, none: Vec<Clause>| -> Result<u64> {
        let request = SearchRequest {
            expression: Expression {
                wanted,
                none,
                truncated: false,
            },
            scopes: scopes.to_vec(),
            limit: 0,
            count: true,
            ..SearchRequest::default()
        };
        Ok(session.store.search(&request)?.total.unwrap_or(0))
    };
    for clause in expression.wanted.iter().take(WORDS) {
        let as_written = Clause {
            required: true,
            forms: Vec::new(),
            ..clause.clone()
        };
        let found = count(vec![as_written], Vec::new())?;
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
    if filtered && !expression.wanted.is_empty() {
        let (wanted, none) = (expression.wanted.clone(), expression.none.clone());
        words.without_filters = Some(count(wanted, none)?);
    }
    if !expression.none.is_empty() && !expression.wanted.is_empty() {
        words.without_excluded = Some(count(expression.wanted.clone(), Vec::new())?);
    }
    Ok(())
}

pub(crate) fn shown(clause: &Clause) -> String {
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
        required: true,
        forms: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_shorter_than_its_word_and_never_a_letter_or_two() {
        let beginning_of = |word: &str| {
            let wanted = Expression::parse(word).wanted;
            wanted
                .first()
                .and_then(beginning)
                .map(|clause| shown(&clause))
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
