//! The order of records by what they mean, or by that and their words.
//!
//! Like the order by words it depends on nothing but what a search may see: the nearest vectors are those of admitted
//! records and fields, and figures are divided by the largest among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Opened;
use super::quantize::signs;
use super::scan::{Admission, Near, Wanted};
use crate::catalog::StreamRef;
use crate::index::RecordIndex;
use crate::index::finding::{
    self, Found, Page, Ranking, RowSet, arrange, listed_rows, retain_following,
};
use crate::index::search::{Chosen, PageQuery};
use crate::index::sources::StreamEntry;
use crate::meaning::{MeaningQuestion, NearestWindow};
use crate::search::{Rank, SearchAnswer, SearchRequest};
use crate::{Result, stop};

/// How many vectors are compared exactly, and how many records are taken by words.
const POOL: usize = 500;
/// How many vectors are compared exactly at most, where many are equally near.
const MOST: usize = 2_000;
/// What words and meaning count where both do.
const WORDS: f32 = 0.6;
const MEANING: f32 = 0.4;

/// A question with its vector, and what it is compared with.
pub(in crate::index) struct Meant<'q> {
    question: &'q MeaningQuestion,
    /// `None` if the question has no word.
    vector: Option<Vec<f32>>,
    opened: Opened,
}

/// The state of the vectors that a search looks at.
#[derive(Default)]
pub(in crate::index) struct VectorsState {
    /// Changes with every vector.
    pub(in crate::index) generation: u64,
    /// Streams with changes that have no vectors yet, each with the version up to which it has them.
    pub(in crate::index) behind: Vec<(StreamRef, u64)>,
}

/// A record that may be a hit.
#[derive(Default)]
struct Candidate {
    words: f32,
    /// Whether it has a word, and is not only next to a record that has.
    has_word: bool,
    near: Option<u64>,
    cosine: f32,
    window: Option<NearestWindow>,
}

impl RecordIndex {
    pub(super) fn find_by_meaning(
        &self,
        request: &SearchRequest,
        question: &MeaningQuestion,
    ) -> Result<SearchAnswer> {
        self.meaning.with_vectors(|opened| {
            let meant = Meant {
                question,
                vector: opened.model.embed_question(&question.text)?,
                opened: opened.clone(),
            };
            stop::check()?;
            self.find(request, Some(&meant))
        })
    }

    /// Brings the vectors in line with the records.
    pub(in crate::index) fn look_up_vectors(
        &self,
        meant: Option<&Meant<'_>>,
        entries: &[&Arc<StreamEntry>],
    ) -> Result<VectorsState> {
        let Some(meant) = meant else {
            return Ok(VectorsState::default());
        };
        let behind = self.refresh_vectors(entries, &meant.opened.vectors)?;
        let generation = meant.opened.vectors.state().generation;
        Ok(VectorsState {
            generation: generation.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            behind,
        })
    }

    pub(in crate::index) fn by_meaning(
        &self,
        search: &finding::Search<'_>,
        asked: &PageQuery<'_>,
        meant: &Meant<'_>,
    ) -> Result<(Ranking, Vec<Chosen>)> {
        let mut candidates = BTreeMap::new();
        let mut ranking = Ranking::default();
        if meant.question.with_words {
            ranking = self.by_words(search, asked, &mut candidates)?;
        }
        compare(asked, meant, &mut candidates)?;
        stop::check()?;
        let mut found = scored(&candidates, meant.question.with_words);
        self.with_ties(asked, |ties| {
            arrange(&mut found, ties);
            let after = asked.after_score().map(|mut after| {
                let now = found.iter().find(|one| one.row == after.row);
                // What is written may have moved the last hit; then the page goes on where it stands now.
                if let (true, Some(now)) = (asked.moved, now) {
                    after.score = now.score;
                }
                after
            });
            if let Some(after) = after {
                retain_following(&mut found, after, ties);
            }
            found.truncate(asked.limit());
            Ok(())
        })?;
        let chosen = found.into_iter().map(|one| {
            let candidate = candidates.remove(&one.row).unwrap_or_default();
            Chosen {
                rank: Rank::Score(one.score),
                row: one.row,
                near: candidate.near,
                window: candidate.window.filter(|_| !candidate.has_word),
            }
        });
        Ok((ranking, chosen.collect()))
    }

    /// Adds the best records by words.
    fn by_words(
        &self,
        search: &finding::Search<'_>,
        asked: &PageQuery<'_>,
        candidates: &mut BTreeMap<u64, Candidate>,
    ) -> Result<Ranking> {
        let page = Page {
            limit: POOL,
            after: None,
            count: false,
            moved: false,
        };
        let mut ranking = self.with_ties(asked, |ties| finding::rank(search, &page, ties))?;
        for found in std::mem::take(&mut ranking.found) {
            let candidate = Candidate {
                words: found.score,
                has_word: found.near.is_none(),
                near: found.near,
                ..Candidate::default()
            };
            candidates.insert(found.row, candidate);
        }
        Ok(ranking)
    }
}

/// Adds the records that come nearest to the question, and compares all with it.
fn compare(
    asked: &PageQuery<'_>,
    meant: &Meant<'_>,
    candidates: &mut BTreeMap<u64, Candidate>,
) -> Result<()> {
    let Some(vector) = &meant.vector else {
        return Ok(());
    };
    let bits = signs(vector);
    let mut nearest: Vec<Near>;
    let kinds = {
        let state = meant.opened.vectors.state();
        let (kinds, rows) = admissions(asked, meant, &state.kinds);
        let wanted = Wanted {
            bits: &bits,
            kinds: &kinds,
            rows: &rows,
            count: POOL,
            most: MOST,
        };
        // What must or must not occur is decided by words.
        let is_strict = meant.question.with_words && asked.request.expression.is_strict();
        nearest = if is_strict {
            Vec::new()
        } else {
            state.table.nearest(&wanted)
        };
        let by_words = candidates.keys();
        nearest.extend(by_words.filter_map(|row| state.table.nearest_of(*row, &wanted)));
        state.kinds.clone()
    };
    stop::check()?;
    let mut ids: Vec<i64> = nearest.iter().map(|near| near.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let stored = meant.opened.vectors.stored(&ids)?;
    for Near { row, id } in nearest {
        let Some(stored) = stored.get(&id) else {
            continue;
        };
        let cosine = stored.code.cosine(vector);
        let candidate = candidates.entry(row).or_default();
        let is_better = match &candidate.window {
            None => true,
            // Of equals the one that stands first, so that the order of vectors does not matter.
            Some(best) => {
                cosine > candidate.cosine
                    || (cosine.total_cmp(&candidate.cosine).is_eq()
                        && stored.start_chars < best.start_chars)
            }
        };
        let kind = kinds.get(usize::from(stored.kind)).filter(|_| is_better);
        if let Some(kind) = kind {
            candidate.cosine = cosine;
            candidate.window = Some(NearestWindow {
                field: kind.field.clone(),
                start_chars: stored.start_chars,
                end_chars: stored.end_chars,
            });
        }
    }
    Ok(())
}

/// Which vectors a search may look at: by kind, and the rows of streams of which it sees only some records.
fn admissions(
    asked: &PageQuery<'_>,
    meant: &Meant<'_>,
    kinds: &[super::scan::Kind],
) -> (Vec<Admission>, RowSet) {
    let mut is_listed = false;
    let admission = |kind: &super::scan::Kind| {
        let mut scopes = asked.restrictions.iter().zip(&asked.request.scopes);
        let scope = scopes.find(|(one, _)| one.stream == kind.stream.cast_unsigned());
        let Some((restriction, scope)) = scope else {
            return Admission::None;
        };
        let fields = meant.question.fields.get(&scope.stream);
        let is_for_them = kind.signing.is_for(scope.author.as_ref());
        if !is_for_them || !fields.is_some_and(|fields| fields.contains(&kind.field)) {
            return Admission::None;
        }
        if restriction.is_whole_stream() {
            return Admission::All;
        }
        is_listed = true;
        Admission::Listed
    };
    let kinds: Vec<Admission> = kinds.iter().map(admission).collect();
    let rows = if is_listed {
        listed_rows(asked.searched, &|scope| {
            let restriction = asked.restrictions.get(scope);
            restriction.is_some_and(|one| !one.is_whole_stream())
        })
    } else {
        RowSet::default()
    };
    (kinds, rows)
}

/// The records with what they score, best or not.
fn scored(candidates: &BTreeMap<u64, Candidate>, with_words: bool) -> Vec<Found> {
    let most = |figure: fn(&Candidate) -> f32| {
        let figures = candidates.values().map(figure);
        figures.fold(0.0_f32, f32::max)
    };
    let (words, cosine) = (most(|one| one.words), most(|one| one.cosine));
    let share = |figure: f32, most: f32| {
        if most > 0.0 {
            figure.max(0.0) / most
        } else {
            0.0
        }
    };
    let found = candidates.iter().map(|(row, one)| {
        let score = if with_words {
            WORDS * share(one.words, words) + MEANING * share(one.cosine, cosine)
        } else {
            one.cosine
        };
        Found::by_row(score, *row)
    });
    found.filter(|one| one.score > 0.0).collect()
}
