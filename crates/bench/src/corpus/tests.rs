//! What the bench relies on: the corpus is the same every time, valid, and its probes are as
//! frequent as stated.

use super::*;

fn field<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap()
}

fn words(record: &Value) -> Vec<String> {
    format!("{} \n {}", field(record, "subject"), field(record, "body"))
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn parsed(seed: u64, records: u64) -> Vec<Value> {
    Corpus::new(seed, records)
        .iter()
        .map(|record| serde_json::from_str(&record.json).unwrap())
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let corpus = Corpus::new(42, 200);
    let all: Vec<_> = corpus.iter().collect();
    assert_eq!(all, Corpus::new(42, 200).iter().collect::<Vec<_>>());
    assert_eq!(all[150], corpus.record(150));
    assert_ne!(all, Corpus::new(43, 200).iter().collect::<Vec<_>>());
}

#[test]
fn probes_occur_as_often_as_stated() {
    let records = 6_000;
    let mut found = [0_usize; 4];
    for record in parsed(9, records) {
        let words = words(&record);
        let has = |word: &str| words.iter().any(|other| other == word);
        let phrase: Vec<&str> = PROBES.phrase.words.split(' ').collect();
        found[0] += usize::from(has(PROBES.common.words));
        found[1] += usize::from(PROBES.pair.words.split(' ').all(has));
        found[2] += usize::from(words.windows(3).any(|window| window == phrase));
        let prefixed = words
            .iter()
            .any(|word| word.starts_with(PROBES.prefix.words));
        found[3] += usize::from(prefixed);
    }
    assert!((1_700..1_900).contains(&found[0]), "common {}", found[0]);
    assert!((40..80).contains(&found[1]), "pair {}", found[1]);
    assert!((4..22).contains(&found[2]), "phrase {}", found[2]);
    assert!((40..80).contains(&found[3]), "prefix {}", found[3]);
}

#[test]
fn the_rare_word_stands_once_in_ten_thousand_records() {
    let corpus = Corpus::new(3, 20_000);
    let count = corpus
        .iter()
        .filter(|record| record.json.contains(PROBES.rare.words))
        .count();
    assert_eq!(count, 2);
}
