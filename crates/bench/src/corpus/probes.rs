//! Words planted in the corpus with a known frequency, so that every query of the bench has a
//! known number of answers. They use the letters q, x and z, which no other word of the corpus has.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// Every word must occur, anywhere.
    Words,
    /// The words must stand next to each other, in this order.
    Phrase,
    /// Words that begin so.
    Prefix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The words, separated by a space, or the prefix.
    pub words: &'static str,
    pub kind: ProbeKind,
    /// Records that answer it, in a million; exact on average.
    pub per_million: u32,
}

impl Probe {
    pub fn expression(&self) -> String {
        match self.kind {
            ProbeKind::Words => self.words.to_owned(),
            ProbeKind::Phrase => format!("\"{}\"", self.words),
            ProbeKind::Prefix => format!("{}*", self.words),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Probes {
    /// One word in 0.01 % of the records.
    pub rare: Probe,
    /// One word in 30 % of the records.
    pub common: Probe,
    /// Two words, each in 3 % of the records, together in 1 %.
    pub pair: Probe,
    /// Three words that stand together in 0.2 % and scattered in another 0.8 %.
    pub phrase: Probe,
    /// The beginning of 48 words, one of them in 1 % of the records.
    pub prefix: Probe,
}

/// The queries planted in every corpus.
pub const PROBES: Probes = Probes {
    rare: Probe {
        words: "quixarond",
        kind: ProbeKind::Words,
        per_million: 100,
    },
    common: Probe {
        words: "zevalon",
        kind: ProbeKind::Words,
        per_million: 300_000,
    },
    pair: Probe {
        words: "bexandri toqualis",
        kind: ProbeKind::Words,
        per_million: 10_000,
    },
    phrase: Probe {
        words: "xylon vazent quorim",
        kind: ProbeKind::Phrase,
        per_million: 2_000,
    },
    prefix: Probe {
        words: "zentra",
        kind: ProbeKind::Prefix,
        per_million: 10_000,
    },
};

/// The endings that make the prefix family: every first with every second part.
const PREFIX_MIDDLES: [&str; 8] = ["", "l", "ri", "mo", "ve", "tu", "ndo", "ska"];
const PREFIX_ENDS: [&str; 6] = ["", "is", "on", "ade", "um", "ic"];
pub(super) const PREFIX_FAMILY: usize = PREFIX_MIDDLES.len() * PREFIX_ENDS.len();

/// Member `number` of the prefix family.
pub(super) fn prefix_member(number: usize) -> String {
    let middle = PREFIX_MIDDLES[number / PREFIX_ENDS.len() % PREFIX_MIDDLES.len()];
    let end = PREFIX_ENDS[number % PREFIX_ENDS.len()];
    format!("{}{middle}{end}", PROBES.prefix.words)
}
