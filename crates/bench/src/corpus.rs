//! A deterministic, text-like corpus: messages with authors, folders, dates over ten years and
//! bodies from 0 B to 50 KB in several scripts. Record `n` of a seed is always the same bytes, and
//! the [`PROBES`] occur in known shares of the records.

mod plant;
mod prng;
mod probes;
mod vocabulary;

use std::collections::HashSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use plant::Plantings;
use prng::{Prng, mix};
pub use probes::{PROBES, Probe, ProbeKind, Probes};
use serde_json::Value;
use vocabulary::{EMOJI, Language, Words, languages};

/// The longest body, in bytes as written.
pub const LONGEST_BODY: usize = 50 * 1024;

/// The folders, most frequent first.
pub const FOLDERS: [&str; 12] = [
    "inbox", "archive", "sent", "lists", "work", "receipts", "family", "travel", "bank", "drafts",
    "spam", "trash",
];

const AUTHORS: usize = 400;
const QUESTIONS: usize = 100;
/// 2015-01-01T00:00:00Z, in seconds.
const FIRST_SECOND: i64 = 1_420_070_400;
/// Ten years, in seconds.
const SPAN_SECONDS: i64 = 315_619_200;
const JITTER_SECONDS: usize = 90 * 86_400;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusRecord {
    /// The value of `id`.
    pub key: String,
    /// One JSON object with `id`, `author`, `subject`, `body`, `sent_at`, `folder`, `size_bytes`,
    /// `amount`, `is_read` and `lang`, in this order.
    pub json: String,
}

/// The whole corpus; records are made when they are asked for.
#[derive(Debug)]
pub struct Corpus {
    seed: u64,
    records: u64,
    languages: Vec<Language>,
    authors: Vec<String>,
}

impl Corpus {
    pub fn new(seed: u64, records: u64) -> Self {
        let languages = languages();
        let authors = languages.first().map(|language| authors(&language.words));
        Self {
            seed,
            records,
            languages,
            authors: authors.unwrap_or_default(),
        }
    }

    pub fn len(&self) -> u64 {
        self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = CorpusRecord> + '_ {
        (0..self.records).map(|number| self.record(number))
    }

    /// Record `number`, made without the ones before it.
    pub fn record(&self, number: u64) -> CorpusRecord {
        let mut prng = Prng::new(self.seed, number);
        let key = format!("{:016x}", mix(self.seed.wrapping_add(number)));
        let language = self.language(&mut prng);
        let length = body_length(&mut prng);
        let mut plantings = Plantings::new(self.seed, number, length);
        let mut json = String::with_capacity(length + 320);
        let author = &self.authors[prng.skewed(self.authors.len())];
        let _ = write!(json, r#"{{"id":"{key}","author":"{author}","subject":""#);
        push_subject(&mut json, language, &plantings, &mut prng);
        json.push_str(r#"","body":""#);
        let before = json.len();
        push_body(&mut json, language, &mut plantings, &mut prng);
        let size = json.len() - before + prng.between(300, 2_400);
        json.push_str(r#"","sent_at":""#);
        let sent_at = Timestamp::from_second(self.sent_at(number, &mut prng));
        let _ = write!(json, "{}", sent_at.unwrap_or_default());
        let folder = FOLDERS[prng.skewed(FOLDERS.len())];
        let _ = write!(
            json,
            r#"","folder":"{folder}","size_bytes":{size},"amount":"#
        );
        push_amount(&mut json, &mut prng);
        let is_read = !prng.one_in(5);
        let _ = write!(json, r#","is_read":{is_read},"lang":"{}"}}"#, language.code);
        CorpusRecord { key, json }
    }

    /// Questions of so many different words, each from the text of one record: as frequent as words of a text are.
    pub(crate) fn questions(&self, words: usize) -> Vec<String> {
        // An odd step, so that questions come from all over the corpus.
        let step = (self.records / QUESTIONS as u64) | 1;
        let numbers = (0..self.records).map(|number| number * step % self.records);
        let questions = numbers.filter_map(|number| question(&self.record(number).json, words));
        questions.take(QUESTIONS).collect()
    }

    fn language(&self, prng: &mut Prng) -> &Language {
        let mut draw = prng.below(1_000);
        for language in &self.languages {
            if draw < language.weight {
                return language;
            }
            draw -= language.weight;
        }
        &self.languages[0]
    }

    /// Messages arrive roughly in order of time, as in a real mailbox; one in ten from anywhere.
    fn sent_at(&self, number: u64, prng: &mut Prng) -> i64 {
        let span = u128::from(SPAN_SECONDS.unsigned_abs());
        let offset = if prng.one_in(10) {
            prng.below(usize::try_from(span).unwrap_or(usize::MAX))
        } else {
            let regular = u128::from(number) * span / u128::from(self.records.max(1));
            usize::try_from(regular).unwrap_or(0) + prng.below(JITTER_SECONDS)
        };
        FIRST_SECOND + i64::try_from(offset).unwrap_or(0).min(SPAN_SECONDS - 1)
    }
}

/// Words spread over the body of a record in the main language, where it has as many.
fn question(json: &str, words: usize) -> Option<String> {
    let record: Value = serde_json::from_str(json).ok()?;
    let body = record.get("body")?.as_str()?.to_lowercase();
    if record.get("lang")? != "en" {
        return None;
    }
    let mut seen = HashSet::new();
    let different: Vec<&str> = body
        .split(|letter: char| !letter.is_alphabetic())
        .filter(|word| !word.is_empty() && seen.insert(*word))
        .collect();
    if different.len() < words {
        return None;
    }
    let spread = (0..words).filter_map(|number| different.get(number * different.len() / words));
    Some(spread.copied().collect::<Vec<_>>().join(" "))
}

/// Bytes of the body: 38 % empty or a few words, most of the others short, a few very long.
fn body_length(prng: &mut Prng) -> usize {
    match prng.below(1_000) {
        0..200 => 0,
        200..380 => prng.between(4, 40),
        380..907 => prng.between(40, 600),
        907..947 => prng.between(600, 2_000),
        947..997 => prng.between(2_000, 8_000),
        _ => prng.between(8_000, LONGEST_BODY),
    }
}

fn authors(words: &Words) -> Vec<String> {
    (0..AUTHORS)
        .map(|number| {
            let mut name = String::new();
            push_capitalised(&mut name, words.get(200 + number % 37));
            name.push(' ');
            push_capitalised(&mut name, words.get(1_000 + number));
            name
        })
        .collect()
}

fn push_subject(out: &mut String, language: &Language, plants: &Plantings, prng: &mut Prng) {
    let start = out.len();
    if !plants.subject_alone {
        if prng.one_in(4) {
            out.push_str("Re: ");
        }
        push_capitalised(out, language.words.draw(prng));
        for _ in 0..prng.between(1, 7) {
            out.push_str(language.space);
            out.push_str(language.words.draw(prng));
        }
    }
    for word in plants.in_subject() {
        separate(out, start);
        out.push_str(word);
    }
}

/// Sentences of words with the planted ones at their places, at most [`LONGEST_BODY`] bytes.
fn push_body(out: &mut String, language: &Language, plants: &mut Plantings, prng: &mut Prng) {
    let start = out.len();
    let length = plants.body_length;
    let with_emoji = prng.one_in(30);
    let mut words_left = 0;
    let mut sentences: usize = 0;
    while out.len() - start < length {
        if let Some(word) = plants.next_in_body(out.len() - start) {
            separate(out, start);
            out.push_str(&word);
            out.push(' ');
            continue;
        }
        let word = language.words.draw(prng);
        if words_left == 0 {
            words_left = prng.between(4, 16);
            sentences += 1;
            if sentences > 1 {
                out.push_str(language.stop);
                if sentences.is_multiple_of(5) {
                    out.push_str("\\n\\n");
                }
            }
            push_capitalised(out, word);
        } else {
            push_joint(out, language, prng);
            out.push_str(word);
        }
        words_left -= 1;
        if with_emoji && prng.one_in(12) {
            out.push(' ');
            out.push_str(EMOJI[prng.below(EMOJI.len())]);
        }
    }
    for word in plants.rest_of_body() {
        separate(out, start);
        out.push_str(word);
    }
}

/// Between two words of a sentence: mostly a space, sometimes a comma, seldom a quotation mark.
fn push_joint(out: &mut String, language: &Language, prng: &mut Prng) {
    match prng.below(64) {
        _ if out.ends_with(' ') => {}
        0..4 => out.push_str(language.comma),
        4 => out.push_str(" \\\""),
        5 => out.push_str("\\\" "),
        _ => out.push_str(language.space),
    }
}

/// A planted word stands alone in every script, also in those that write no spaces.
fn separate(out: &mut String, start: usize) {
    if out.len() > start && !out.ends_with(' ') {
        out.push(' ');
    }
}

fn push_capitalised(out: &mut String, word: &str) {
    match word.chars().next().filter(char::is_ascii) {
        Some(first) => {
            out.push(first.to_ascii_uppercase());
            out.push_str(&word[1..]);
        }
        None => out.push_str(word),
    }
}

/// An amount with two decimals, or null once in ten times.
fn push_amount(out: &mut String, prng: &mut Prng) {
    if prng.one_in(10) {
        out.push_str("null");
    } else {
        let cents = prng.skewed(500_000);
        let _ = write!(out, "{}.{:02}", cents / 100, cents % 100);
    }
}

#[cfg(test)]
mod tests;
