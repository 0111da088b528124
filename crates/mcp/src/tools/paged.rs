//! A page that ends by bytes: where its structured content would be over its budget, the server is asked once more for the
//! number of rows that fit, so that its own cursor goes on exactly there.

use std::fmt;

use contract::upstream::Get;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::answer::Answered;
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::ladder::Ladder;

/// What says that a page was shortened takes no more.
pub(super) const NOTE: usize = 64;

/// How many rows were asked for, and how many a shorter page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Shortened {
    pub(super) asked: u64,
    pub(super) shown: u64,
}

/// Structured content that is larger than its budget although everything that may shrink has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct OverBudget {
    bytes: usize,
    budget: usize,
}

/// What stands beside the server's page in structured content.
#[skip_serializing_none]
#[derive(Default, Serialize)]
pub(super) struct Around<'a> {
    pub(super) content_ladder: Option<Ladder>,
    pub(super) page_shortened: Option<Shortened>,
    pub(super) over_budget: Option<OverBudget>,
    pub(super) provider_url: Option<&'a str>,
}

/// The rows that are asked for, and the bytes their page may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageSize {
    pub(super) rows: u64,
    pub(super) bytes: usize,
}

impl PageSize {
    /// What the caller asked for, or what suits it when it asked for nothing.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            rows: limit.unwrap_or(budget::DEFAULT_LIMIT),
            bytes: match limit {
                Some(_) => budget::PAGE_STRUCTURED,
                None => budget::DEFAULT_STRUCTURED,
            },
        }
    }

    /// Asks for a page of this size. Of one that is too large to be taken at all only the first row would fit, and is asked
    /// for; then the answer is true beside it.
    pub(super) async fn ask(
        self,
        call: Call<'_>,
        question: impl Fn(PageSize) -> Get,
    ) -> Result<(Answered, bool), Fault> {
        match call.get(question(self)).await {
            Err(fault) if fault.is_too_large() && self.rows > 1 => {
                let one = PageSize { rows: 1, ..self };
                Ok((call.get(question(one)).await?, true))
            }
            answered => Ok((answered?, false)),
        }
    }

    /// How many rows fit, at least one; none where all of them do. `rows` is what each of them takes.
    pub(super) fn rows_that_fit(self, whole: usize, rows: &[usize]) -> Option<u64> {
        if whole <= self.bytes || rows.len() < 2 {
            return None;
        }
        let frame = whole.saturating_sub(rows.iter().sum());
        let mut left = self.bytes.saturating_sub(frame);
        let fitting = rows.iter().take_while(|row| {
            let fits = **row < left;
            left = left.saturating_sub(**row + 1);
            fits
        });
        let fitting = fitting.count().max(1);
        (fitting < rows.len()).then_some(fitting as u64)
    }

    /// A page that has fewer rows than asked for because of its bytes.
    pub(super) fn shortened(self, shown: usize) -> Option<Shortened> {
        let shown = shown as u64;
        (shown < self.rows).then_some(Shortened {
            asked: self.rows,
            shown,
        })
    }

    /// Says so where the content is larger than it should be.
    pub(super) fn over(self, bytes: usize) -> Option<OverBudget> {
        (bytes > self.bytes).then_some(OverBudget {
            bytes,
            budget: self.bytes,
        })
    }
}

/// As it stands in a first line, with a space before it.
impl fmt::Display for Shortened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " page_shortened={}of{}", self.shown, self.asked)
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, budget) = (self.bytes, self.budget);
        write!(
            f,
            "over_budget: structured content has {bytes} bytes instead of {budget}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_stay_as_fit_and_at_least_one() {
        let size = PageSize {
            rows: 10,
            bytes: 1_000,
        };
        assert_eq!(size.rows_that_fit(1_000, &[300, 300, 300]), None);
        assert_eq!(size.rows_that_fit(1_300, &[300, 300, 300, 300]), Some(2));
        assert_eq!(size.rows_that_fit(5_000, &[4_000, 900]), Some(1));
        assert_eq!(size.rows_that_fit(5_000, &[4_900]), None);
    }
}
