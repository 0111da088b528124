//! What the bench relies on: the corpus is the same every time, valid, and its probes are as
//! frequent as stated.

use std::collections::HashMap;

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
fn members_stand_in_the_declared_order_and_keys_are_unique() {
    let corpus = Corpus::new(1, 500);
    let mut keys = HashSet::new();
    for record in corpus.iter() {
        let mut from = 0;
        for name in [
            "id",
            "author",
            "subject",
            "body",
            "sent_at",
            "folder",
            "size_bytes",
            "amount",
            "is_read",
            "lang",
        ] {
            let at = record.json[from..].find(&format!("\"{name}\":")).unwrap();
            from += at + 1;
        }
        let value: Value = serde_json::from_str(&record.json).unwrap();
        assert_eq!(field(&value, "id"), record.key);
        assert!(calendar::micros_of(field(&value, "sent_at")).is_some());
        assert!(keys.insert(record.key));
    }
}

#[test]
fn bodies_authors_and_languages_are_spread_as_stated() {
    let records = parsed(5, 6_000);
    let lengths: Vec<usize> = records.iter().map(|r| field(r, "body").len()).collect();
    let share = |keep: &dyn Fn(usize) -> bool| lengths.iter().filter(|l| keep(**l)).count();
    assert!((1_080..1_320).contains(&share(&|length| length == 0)));
    assert!((2_100..2_460).contains(&share(&|length| length < 60)));
    assert!((6..40).contains(&share(&|length| length > 8_100)));
    assert!(lengths.iter().all(|length| *length <= LONGEST_BODY));
    let mean = lengths.iter().sum::<usize>() / lengths.len();
    assert!((450..800).contains(&mean), "mean body of {mean} bytes");

    let mut authors = HashMap::<&str, usize>::new();
    let mut languages = HashSet::new();
    for record in &records {
        *authors.entry(field(record, "author")).or_default() += 1;
        languages.insert(field(record, "lang"));
    }
    assert!(authors.len() > 350 && authors.len() <= 400);
    assert!(authors.values().max() > Some(&300));
    assert_eq!(languages.len(), 10);
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

#[test]
fn questions_have_their_number_of_different_words() {
    let corpus = Corpus::new(3, 2_000);
    for words in [2, 8] {
        let questions = corpus.questions(words);
        assert_eq!(questions.len(), 100);
        for question in &questions {
            let different: HashSet<&str> = question.split(' ').collect();
            assert_eq!(different.len(), words, "{question}");
        }
        let different: HashSet<&String> = questions.iter().collect();
        assert!(different.len() > 90, "{}", different.len());
    }
}
