//! Runs of text that no space divides. CJK runs become overlapping pairs of characters; Thai, Lao, Khmer, Myanmar and their like are
//! divided by dictionary. A run is normalised into one buffer first, so that composed and decomposed spellings are divided alike.

use std::ops::Range;
use std::sync::LazyLock;

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};
use unicode_normalization::char::{compose, is_combining_mark};

use crate::classes::{Class, class_of, is_accent, is_joining_jamo};
use crate::fold::{plain_scalars, push_caseless, push_mark};
use crate::tokens::{Found, Term, TokenKind};

/// The dictionary rather than the neural model: it takes the longest word from the left whatever follows, so a word typed alone is
/// divided as it is inside a sentence.
static SEGMENTER: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

/// A character keeps no more marks than fit here, so that a pair stays within the length of a term.
const MAX_CLUSTER_BYTES: usize = 60;

/// How a run is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Into pairs of characters.
    #[default]
    Pairs,
    /// Into the words of a dictionary.
    Unspaced,
}

/// One character of a run with its marks: where it begins in the buffer, and its bytes in the source.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    at: usize,
    start: usize,
    end: usize,
}

/// The run being read; its buffers serve every run of a text.
#[derive(Debug, Default)]
pub(crate) struct Run {
    writing: Writing,
    text: String,
    clusters: Vec<Cluster>,
    /// Words in the buffer, for [`Writing::Unspaced`].
    words: Vec<Range<usize>>,
    /// Tokens handed out, of how many.
    given: usize,
    total: usize,
}

impl Run {
    /// Reads the run that begins at `from` and returns where the source goes on.
    pub(crate) fn read(&mut self, source: &str, from: usize, writing: Writing) -> usize {
        self.writing = writing;
        self.text.clear();
        self.clusters.clear();
        self.words.clear();
        self.given = 0;
        let own = match writing {
            Writing::Pairs => Class::Cjk,
            Writing::Unspaced => Class::Complex,
        };
        let mut at = from;
        for c in source[from..].chars() {
            let class = class_of(c);
            let span = at..at + c.len_utf8();
            if class == own || class == Class::Mark {
                self.add(c, &span);
            } else if class == Class::Extender {
                self.extend_last(span.end);
            } else if class != Class::Invisible {
                break;
            }
            at = span.end;
        }
        self.total = match writing {
            Writing::Pairs => self.clusters.len(),
            Writing::Unspaced => self.divide(),
        };
        at
    }

    /// The next token of the run.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Found> {
        if self.given >= self.total {
            return None;
        }
        match self.writing {
            Writing::Pairs => self.next_pair(),
            Writing::Unspaced => self.next_word(),
        }
    }

    /// A part of the buffer.
    pub(crate) fn slice(&self, range: Range<usize>) -> &str {
        &self.text[range]
    }

    fn next_pair(&mut self) -> Option<Found> {
        let first = *self.clusters.get(self.given)?;
        let second = self.clusters.get(self.given + 1).copied();
        let buffer_end = self
            .clusters
            .get(self.given + 2)
            .map_or(self.text.len(), |third| third.at);
        self.given += 1;
        let kind = match second {
            Some(_) => TokenKind::Pair {
                head_end: first.end,
            },
            None if self.given > 1 => TokenKind::Tail,
            None => TokenKind::Single,
        };
        Some(Found {
            term: Term::Run(first.at..buffer_end),
            start: first.start,
            end: second.map_or(first.end, |second| second.end),
            kind,
        })
    }

    fn next_word(&mut self) -> Option<Found> {
        let word = self.words.get(self.given).cloned()?;
        self.given += 1;
        let first = self.cluster_at(word.start)?;
        let last = self.cluster_at(word.end.saturating_sub(1))?;
        Some(Found {
            start: first.start,
            end: last.end,
            term: Term::Run(word),
            kind: TokenKind::Word,
        })
    }

    fn cluster_at(&self, at: usize) -> Option<Cluster> {
        let after = self.clusters.partition_point(|cluster| cluster.at <= at);
        self.clusters.get(after.checked_sub(1)?).copied()
    }

    /// Counts what ends at `end` to the last source character, which may stand for several clusters.
    fn extend_last(&mut self, end: usize) {
        let start = self.clusters.last().map(|last| last.start);
        for cluster in self.clusters.iter_mut().rev() {
            if Some(cluster.start) != start {
                break;
            }
            cluster.end = end;
        }
    }

    fn add(&mut self, c: char, span: &Range<usize>) {
        if matches!(c, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FF}' | '\u{3131}'..='\u{318E}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
        {
            self.begin_cluster(span);
            self.text.push(c);
            return;
        }
        // Jamo that were never meant to compose: decomposing them would turn `ㄱㅏ` into one syllable.
        let c = full_width_jamo(c);
        if ('\u{3131}'..='\u{318E}').contains(&c) {
            self.begin_cluster(span);
            self.text.push(c);
            return;
        }
        plain_scalars(c, |scalar| self.add_scalar(scalar, span));
    }

    fn begin_cluster(&mut self, span: &Range<usize>) {
        self.clusters.push(Cluster {
            at: self.text.len(),
            start: span.start,
            end: span.end,
        });
    }

    fn add_scalar(&mut self, scalar: char, span: &Range<usize>) {
        let is_mark = is_combining_mark(scalar);
        if (is_mark || is_joining_jamo(scalar)) && !self.clusters.is_empty() {
            if is_mark && is_accent(scalar) {
                self.extend_last(span.end);
                return;
            }
            if self.attach(scalar, is_mark) {
                self.extend_last(span.end);
                return;
            }
        }
        if is_mark && is_accent(scalar) {
            return;
        }
        if self.ends_a_split_am(scalar) {
            self.text.pop();
            self.begin_cluster(span);
            self.text.push(if scalar == '\u{E32}' {
                '\u{E33}'
            } else {
                '\u{EB3}'
            });
            return;
        }
        self.begin_cluster(span);
        push_caseless(scalar, &mut self.text);
    }

    /// Thai and Lao AM in two pieces, as compatibility normalisation leaves it.
    fn ends_a_split_am(&self, scalar: char) -> bool {
        (scalar == '\u{E32}' && self.text.ends_with('\u{E4D}'))
            || (scalar == '\u{EB2}' && self.text.ends_with('\u{ECD}'))
    }

    /// Puts a mark or joining jamo onto the last character: composed with its base where Unicode has such a character.
    fn attach(&mut self, scalar: char, is_mark: bool) -> bool {
        let Some(last) = self.clusters.last().copied() else {
            return false;
        };
        let written = &self.text[last.at..];
        let Some(base) = written.chars().next() else {
            return false;
        };
        let base_alone = written.len() == base.len_utf8();
        if let Some(composed) = compose(base, scalar)
            && (is_mark || base_alone)
        {
            let base_end = last.at + base.len_utf8();
            self.text
                .replace_range(last.at..base_end, composed.encode_utf8(&mut [0; 4]));
            return true;
        }
        if is_mark && written.len() < MAX_CLUSTER_BYTES {
            push_mark(scalar, last.at, &mut self.text);
        }
        is_mark
    }

    /// Divides the buffer into words, and those again until each is one word by itself: then a word used as a query is divided the
    /// same way as in the text. Returns how many there are.
    fn divide(&mut self) -> usize {
        let mut parts: Vec<Range<usize>> = std::iter::once(0..self.text.len()).collect();
        let mut breaks: Vec<usize> = Vec::new();
        while let Some(part) = parts.pop() {
            breaks.clear();
            let clusters = &self.clusters;
            breaks.extend(
                SEGMENTER
                    .segment_str(&self.text[part.clone()])
                    .filter(|at| {
                        let at = part.start + at;
                        // Foreign marks make the segmenter break inside a character.
                        at == part.end || clusters.binary_search_by_key(&at, |c| c.at).is_ok()
                    }),
            );
            if breaks.len() <= 2 {
                if !part.is_empty() {
                    self.words.push(part);
                }
                continue;
            }
            for pair in breaks.windows(2).rev() {
                if let [from, to] = *pair {
                    parts.push(part.start + from..part.start + to);
                }
            }
        }
        self.words.len()
    }
}

/// Half-width Hangul letters in their ordinary form.
fn full_width_jamo(c: char) -> char {
    let (first, full) = match c {
        '\u{FFA1}'..='\u{FFBE}' => (0xFFA1, 0x3131),
        '\u{FFC2}'..='\u{FFC7}' => (0xFFC2, 0x314F),
        '\u{FFCA}'..='\u{FFCF}' => (0xFFCA, 0x3155),
        '\u{FFD2}'..='\u{FFD7}' => (0xFFD2, 0x315B),
        '\u{FFDA}'..='\u{FFDC}' => (0xFFDA, 0x3161),
        _ => return c,
    };
    char::from_u32(u32::from(c) - first + full).unwrap_or(c)
}
