//! Which planted words a record carries and where they stand. Decided apart from the text, so that
//! the shares of the probes hold whatever the text is.

use super::LONGEST_BODY;
use super::prng::Prng;
use super::probes::{PREFIX_FAMILY, PROBES, prefix_member};

/// Planted words in a body need this much text around them; shorter ones carry them in the subject.
const SHORTEST_HOST: usize = 80;
/// One record in so many carries the rare word.
const RARE_EVERY: u64 = 10_000;
/// Room for the planted words that come after the last word of the text.
const MARGIN: usize = 400;

/// The planted words of one record.
#[derive(Debug)]
pub(super) struct Plantings {
    /// Bytes the body should have.
    pub(super) body_length: usize,
    /// The subject is nothing but its planted words.
    pub(super) subject_alone: bool,
    subject: Vec<String>,
    /// Place in bytes and word, the last to come first.
    body: Vec<(usize, String)>,
}

impl Plantings {
    /// The plantings of record `number` whose body is `length` bytes long.
    pub(super) fn new(seed: u64, number: u64, length: usize) -> Self {
        let mut prng = Prng::new(!seed, number);
        let mut words = Vec::new();
        plant_common(&mut words, length, &mut prng);
        if number % RARE_EVERY == Prng::new(seed, u64::MAX).next() % RARE_EVERY {
            words.push(PROBES.rare.words.to_owned());
        }
        plant_pair(&mut words, &mut prng);
        if prng.below(1_000) < 10 {
            words.push(prefix_member(prng.skewed(PREFIX_FAMILY)));
        }
        plant_phrase(&mut words, &mut prng);
        let mut plantings = Self {
            body_length: length.min(LONGEST_BODY - MARGIN),
            subject_alone: prng.one_in(400),
            subject: Vec::new(),
            body: Vec::new(),
        };
        // Like real subjects, one in three names what the body is about, and some stand alone.
        let draw = prng.below(6);
        if length < SHORTEST_HOST || draw == 0 {
            words.dedup();
            plantings.subject = words;
        } else {
            if draw <= 2 {
                plantings.subject.clone_from(&words);
                plantings.subject.dedup();
            }
            plantings.scatter(words, &mut prng);
        }
        plantings.subject_alone &= !plantings.subject.is_empty();
        plantings
    }

    /// The words that the subject ends with.
    pub(super) fn in_subject(&self) -> &[String] {
        &self.subject
    }

    /// The next planted word, once the body has grown to its place.
    pub(super) fn next_in_body(&mut self, grown: usize) -> Option<String> {
        self.body
            .pop_if(|(place, _)| *place <= grown)
            .map(|(_, word)| word)
    }

    /// The words whose place the text did not reach.
    pub(super) fn rest_of_body(&self) -> impl Iterator<Item = &str> {
        self.body.iter().rev().map(|(_, word)| word.as_str())
    }

    /// Gives every word a place, in the order of the list: scattered phrase words must not meet in
    /// the order of the phrase.
    fn scatter(&mut self, words: Vec<String>, prng: &mut Prng) {
        let mut places: Vec<usize> = words
            .iter()
            .map(|_| prng.below(self.body_length.max(1)))
            .collect();
        places.sort_unstable();
        self.body = places.into_iter().zip(words).collect();
        self.body.reverse();
    }
}

/// Some texts repeat a common word, long ones more often, and a few are full of it: as in real text,
/// the best ranks stand out.
fn plant_common(words: &mut Vec<String>, length: usize, prng: &mut Prng) {
    if prng.below(1_000) >= 300 {
        return;
    }
    let mut count = 1 + prng.below(1 + (length / 2_000).min(6));
    while count < 10 && prng.one_in(3) {
        count += 1;
    }
    if length >= SHORTEST_HOST && prng.one_in(300) {
        count += prng.between(10, 30);
    }
    for _ in 0..count {
        words.push(PROBES.common.words.to_owned());
    }
}

fn plant_pair(words: &mut Vec<String>, prng: &mut Prng) {
    let draw = prng.below(1_000);
    for (word, share) in PROBES.pair.words.split(' ').zip([0..30, 20..50]) {
        if share.contains(&draw) {
            words.push(word.to_owned());
        }
    }
}

fn plant_phrase(words: &mut Vec<String>, prng: &mut Prng) {
    match prng.below(1_000) {
        0..2 => words.push(PROBES.phrase.words.to_owned()),
        2..10 => words.extend(PROBES.phrase.words.split(' ').rev().map(str::to_owned)),
        _ => {}
    }
}
