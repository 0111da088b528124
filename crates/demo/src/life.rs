//! The whole life, put together from its sources.

use crate::error::DemoError;
use crate::files::AttachedFile;
use crate::grammar::Grammar;
use crate::lines::Lines;
use crate::story::Story;
use crate::{bank, calendar, chat, git, mail, notes, shop};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub declaration: &'static str,
    pub connection: &'static str,
    pub name: &'static str,
    /// Its records, one envelope per line.
    pub lines: String,
    pub records: u64,
    pub files: Vec<AttachedFile>,
}

impl Source {
    pub(crate) fn new(
        declaration: &'static str,
        (connection, name): (&'static str, &'static str),
        lines: Lines,
    ) -> Self {
        Self {
            declaration,
            connection,
            name,
            lines: lines.text,
            records: lines.count,
            files: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The first thing to be written: a note that says what all this is.
    pub about: Source,
    pub sources: Vec<Source>,
    /// The last thing to be written: a note about the people. Where it is, all is.
    pub who: Source,
}

impl Life {
    /// Makes it; the same each time.
    pub fn generate() -> Result<Self, DemoError> {
        let grammar = Grammar::bundled();
        let story = Story::bundled()?;
        let purchases = shop::purchases(&grammar)?;
        let mut sources = Vec::new();
        sources.extend(mail::sources(&grammar, &story, &purchases)?);
        sources.push(chat::source(&grammar, &story)?);
        sources.extend(shop::sources(&purchases)?);
        sources.push(notes::source(&grammar, &story)?);
        sources.push(calendar::source(&grammar, &story)?);
        sources.push(bank::source(&purchases)?);
        sources.extend(git::sources(&grammar, &story)?);
        Ok(Self {
            about: notes::about()?,
            sources,
            who: notes::who()?,
        })
    }

    /// Everything, in the order it is written.
    pub fn all(&self) -> impl Iterator<Item = &Source> {
        [&self.about]
            .into_iter()
            .chain(&self.sources)
            .chain([&self.who])
    }

    pub fn records(&self) -> u64 {
        self.all().map(|source| source.records).sum()
    }
}
