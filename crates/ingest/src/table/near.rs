//! Ways to read the texts of a column that fit nearly all of them: one slip in a thousand rows makes a text of a column of days.

use super::column::Way;
use super::told::ToldType;

/// Misses that are let pass, whatever few texts there are, and how many texts there must be for each one more.
const LET_PASS: u64 = 5;
const TEXTS_FOR_A_MISS: u64 = 20;
/// How many texts there must be for a miss to be worth a word. Few days already are no accident.
const WORTH_A_WORD: u64 = 10;
const DAYS_WORTH_A_WORD: u64 = 3;

/// Ways that missed a text, and how often.
#[derive(Default)]
pub(super) struct NearWays(Vec<Near>);

struct Near {
    way: Way,
    misses: u64,
    /// The first text that cannot be read so.
    example: String,
}

impl NearWays {
    /// Remembers a way that fits no longer.
    pub(super) fn miss(&mut self, way: Way, example: &str) {
        self.0.push(Near {
            way,
            misses: 1,
            example: example.to_owned(),
        });
    }

    /// Sees a text, one of so many. Says whether any way reads a day with a time of it.
    pub(super) fn see(&mut self, text: &str, texts: u64) -> bool {
        let mut has_time = false;
        self.0.retain_mut(|near| {
            let fits = near.way.fits(text);
            has_time |= fits == Some(true);
            near.misses += u64::from(fits.is_none());
            near.misses <= LET_PASS + texts / TEXTS_FOR_A_MISS
        });
        has_time
    }

    fn best(&self) -> Option<&Near> {
        self.0
            .iter()
            .min_by_key(|near| (near.misses, near.way.rank()))
    }

    /// The way that reads most of the texts.
    pub(super) fn most(&self, texts: u64) -> Option<Way> {
        let best = self.best().filter(|near| near.misses * 2 < texts)?;
        Some(best.way)
    }

    /// Whether another order of dates, or another decimal sign, reads as many texts.
    pub(super) fn is_certain(&self) -> bool {
        let Some(best) = self.best() else {
            return true;
        };
        let alike = |near: &&Near| near.misses == best.misses && near.way.is_like(best.way);
        self.0.iter().filter(alike).count() == 1
    }

    /// What is to be said of a column that is read so although some of its texts cannot be.
    pub(super) fn refused(&self, name: &str, texts: u64) -> Option<String> {
        let Near {
            misses, example, ..
        } = self.best()?;
        Some(format!(
            "'{name}': {misses} of its {texts} values cannot be read so, such as '{example}'; their rows are refused"
        ))
    }

    /// What is to be said of a column that is a text because of few of its texts.
    pub(super) fn almost(&self, name: &str, texts: u64) -> Option<String> {
        let near = self.best()?;
        let (misses, example, told) = (near.misses, &near.example, near.way.told());
        let kind = told.as_str();
        let worth = match told {
            ToldType::Date => DAYS_WORTH_A_WORD,
            _ => WORTH_A_WORD,
        };
        (texts >= worth * misses).then(|| {
            format!(
                "'{name}' is a text, because {misses} of its {texts} values cannot be read as {kind}, such as '{example}'; --type '{name}={kind}' refuses their rows instead"
            )
        })
    }
}
