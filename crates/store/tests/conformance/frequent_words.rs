//! Words that thousands of records hold: the best of them must be the best of all, however few are looked at.

use std::collections::BTreeMap;
use std::ops::Bound;

use contract::scalar::Scalar;
use store::search::{Hit, Scope, SearchRequest, Test};
use store::{EmbeddedStore, Search, Store};

use crate::fixture::{
    Dice, Work, add_mail, delete, filtered, key, mailbox, message_with, messages, open, request,
    scope, score,
};

/// So many that a word in all of them is a common one in every segment.
const BATCH: usize = 1_500;
const BATCHES: usize = 3;

/// The words of the corpus that are searched for:
/// strong in both fields, in the subject, in the body, in neither, hardly ever in the subject, and in one segment.
const WORDS: [&str; 6] = ["both", "subject", "body", "plain", "seldom", "early"];

/// Words with other forms, and in one of how many records each stands. Few hold the first two, and where none does, forms are what is
/// left; of the third, forms are common too.
const FORMS: [([&str; 3], [usize; 3]); 3] = [
    (["harbour", "harbours", "harboured"], [50, 25, 12]),
    (["lantern", "lanterns", "lanternlight"], [50, 25, 12]),
    (["copper", "coppers", "coppery"], [3, 1, 1]),
];

struct Texts {
    subject: String,
    body: String,
}

fn texts(at: usize) -> Texts {
    let mut dice = Dice(at as u64);
    dice.roll(2);
    let mut subject = vec!["filler"; dice.roll(4)];
    let mut body = vec!["filler"; dice.roll(16)];
    let mut put = |word, in_subject, in_body| {
        subject.extend(vec![word; in_subject]);
        body.extend(vec![word; in_body]);
    };
    put("both", dice.skewed(3), dice.skewed(7));
    put("subject", dice.skewed(4), 1);
    put("body", 1, dice.skewed(6));
    put("plain", 1, 1);
    put("seldom", usize::from(at.is_multiple_of(40)), dice.skewed(3));
    let early = at < BATCH || at.is_multiple_of(50);
    put("early", usize::from(early), usize::from(early));
    for (forms, parts) in FORMS {
        for (word, part) in forms.into_iter().zip(parts) {
            let times = usize::from(dice.roll(part) == 0) * (1 + dice.roll(3));
            put(word, times / 3, times);
        }
    }
    Texts {
        subject: subject.join(" "),
        body: body.join(" "),
    }
}

fn filled(path: &std::path::Path) -> EmbeddedStore {
    let store = open(path);
    add_mail(&store, "work");
    for batch in 0..BATCHES {
        let record = |at: usize| {
            let Texts { subject, body } = texts(at);
            message_with(
                &format!("m{at:05}"),
                &format!(
                    "\"subject\":\"{subject}\",\"body\":\"{body}\",\"size_bytes\":{}",
                    at % 100
                ),
            )
        };
        let range = batch * BATCH..(batch + 1) * BATCH;
        store.put(range.map(record).collect());
        store.settle_index().unwrap();
    }
    store
}

fn number(hit: &Hit) -> usize {
    let name = hit.record.key.to_string();
    name.trim_start_matches('m').parse().unwrap()
}

/// What a record scores for a word, computed from the texts.
struct Model {
    /// Occurrences and lengths by record, for the subject and for the body.
    fields: [Vec<(usize, usize)>; 2],
}

impl Model {
    fn new(word: &str) -> Self {
        let measure = |text: &str| {
            let words = text.split_whitespace();
            (
                words.clone().filter(|one| *one == word).count(),
                words.count(),
            )
        };
        let all: Vec<Texts> = (0..BATCH * BATCHES).map(texts).collect();
        Self {
            fields: [
                all.iter().map(|one| measure(&one.subject)).collect(),
                all.iter().map(|one| measure(&one.body)).collect(),
            ],
        }
    }

    /// The score of every admitted record that holds the word in one of some fields. Nothing else counts.
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    fn scores(&self, fields: &[usize], admits: &dyn Fn(usize) -> bool) -> BTreeMap<usize, f64> {
        let admitted = |field: usize| {
            let all = self.fields[field].iter().copied().enumerate();
            all.filter(|one| admits(one.0))
        };
        let holders = |field: &usize| admitted(*field).filter(|one| one.1.0 > 0).count();
        let holders = fields.iter().map(holders).max().unwrap() as f64;
        let records = admitted(0).count() as f64;
        let rarity = (1.0 + (records - holders + 0.5) / (holders + 0.5)).ln();
        let mut scores = BTreeMap::new();
        for field in fields {
            let filled = admitted(*field).filter(|one| one.1.1 > 0).count() as f64;
            let words: usize = admitted(*field).map(|one| one.1.1).sum();
            let average = words as f64 / filled;
            for (at, (occurs, length)) in admitted(*field).filter(|one| one.1.0 > 0) {
                let occurs = occurs as f64;
                let damping = 1.2 * (0.25 + 0.75 * length as f64 / average);
                let score = 2.2 * rarity * occurs / (occurs + damping);
                let (best, sum) = scores.entry(at).or_insert((0.0_f64, 0.0));
                (*best, *sum) = (best.max(score), *sum + score);
            }
        }
        // The best field, and half of what the other adds.
        let together = scores
            .into_iter()
            .map(|(at, (best, sum))| (at, best + (sum - best) / 2.0));
        together.collect()
    }
}

/// Asserts that the best few are those of the whole ranking, and those that the texts say, page after page.
fn assert_best(store: &dyn Store, word: &str, scope: &Scope, admits: &dyn Fn(usize) -> bool) {
    let fields: Vec<usize> = scope
        .fields
        .iter()
        .map(|name| usize::from(name.as_str() == "body"))
        .collect();
    let scores = Model::new(word).scores(&fields, admits);
    let mut expected: Vec<f64> = scores.values().copied().collect();
    expected.sort_by(|one, other| other.total_cmp(one));
    let ask = |limit, after| {
        let request = SearchRequest {
            limit,
            after,
            count: false,
            ..request(word, vec![scope.clone()])
        };
        store.search(&request).unwrap()
    };
    let whole = ask(BATCH * BATCHES, None).hits;
    assert_eq!(whole.len(), expected.len(), "{word}");
    for (hit, expected) in whole.iter().zip(&expected) {
        let found = f64::from(score(hit));
        assert!(
            (found - expected).abs() < 1e-4,
            "{word}: {found} {expected}"
        );
        assert!((found - scores[&number(hit)]).abs() < 1e-4, "{word}");
    }
    for limit in [1, 10, 150] {
        let mut after = None;
        for page in whole.chunks(limit).take(3) {
            let answer = ask(limit, after);
            let found: Vec<_> = answer
                .hits
                .iter()
                .map(|hit| (number(hit), hit.position))
                .collect();
            let expected: Vec<_> = page.iter().map(|hit| (number(hit), hit.position)).collect();
            assert_eq!(found, expected, "{word} in pages of {limit}");
            after = answer.hits.last().map(|hit| hit.position);
        }
    }
}

#[test]
fn the_best_of_a_common_word_are_those_that_the_texts_say() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    for word in WORDS {
        assert_best(&store, word, &messages("work"), &|_| true);
    }
    for field in ["subject", "body"] {
        let narrow = scope("work", "messages", &[field]);
        assert_best(&store, "both", &narrow, &|_| true);
    }
}

#[test]
fn restrictions_and_deletions_leave_the_best_of_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    // The best ones go, so that the next best must come up.
    let best = request("both", vec![messages("work")]);
    let best = store.search(&SearchRequest { limit: 200, ..best }).unwrap();
    let gone: Vec<usize> = best.hits.iter().map(number).collect();
    let drop_all = gone
        .iter()
        .map(|at| delete("messages", &format!("m{at:05}")));
    store.put(drop_all.collect());
    for word in WORDS {
        assert_best(&store, word, &messages("work"), &|at| !gone.contains(&at));
    }
    let few = Test::Range(
        Bound::Included(Scalar::Integer(7)),
        Bound::Included(Scalar::Integer(9)),
    );
    let few = filtered(messages("work"), "size_bytes", few);
    let mut named = messages("work");
    named.keys = Some(
        (0..400)
            .map(|at| key(&format!("m{:05}", at * 11)))
            .collect(),
    );
    for word in ["both", "plain", "early"] {
        assert_best(&store, word, &few, &|at| {
            (7..=9).contains(&(at % 100)) && !gone.contains(&at)
        });
        assert_best(&store, word, &named, &|at| {
            at.is_multiple_of(11) && at < 4_400 && !gone.contains(&at)
        });
    }
}

#[test]
fn an_index_derived_anew_ranks_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    store.rebuild_index(&mut |_| {}).unwrap();
    for word in WORDS {
        assert_best(&store, word, &messages("work"), &|_| true);
    }
}

/// Counting reads every match; without it only what can be on the page is read.
#[test]
fn a_question_of_common_words_ranks_the_same_however_much_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    let mut dice = Dice(7);
    for round in 0..120 {
        let mut words: Vec<&str> = (0..2 + dice.roll(4)).map(|_| WORDS[dice.roll(6)]).collect();
        if round % 2 == 0 {
            words.truncate(dice.roll(3));
            words.extend(FORMS.map(|(forms, _)| forms[dice.roll(3)]));
            let kept = words.len() - dice.roll(3);
            words.rotate_left(dice.roll(3));
            words.truncate(kept);
        }
        let excluded = if dice.roll(4) == 0 { " -seldom" } else { "" };
        let required = if dice.roll(4) == 0 { "+" } else { "" };
        let question = format!("{required}{}{excluded}", words.join(" "));
        let mut scope = messages("work");
        if dice.roll(2) == 0 {
            let test = Test::Range(Bound::Included(Scalar::Integer(60)), Bound::Unbounded);
            scope = filtered(scope, "size_bytes", test);
        }
        let ask = |limit: usize, count: bool| {
            let mut request = request(&question, vec![scope.clone()]);
            request.expression = text::Expression::parse(&question);
            (request.limit, request.count) = (limit, count);
            store.search(&request).unwrap()
        };
        let whole = ask(10_000, true);
        let positions = |hits: &[Hit]| hits.iter().map(|hit| hit.position).collect::<Vec<_>>();
        for limit in [1, 10, 50] {
            let page = ask(limit, false);
            let expected: Vec<_> = whole.hits.iter().take(limit).cloned().collect();
            assert_eq!(positions(&page.hits), positions(&expected), "{question}");
            assert_eq!(page.with_every_word, whole.with_every_word);
        }
    }
}

/// Short subjects among which a few are nearly nothing but one word, many times: there scores come close to the
/// highest possible one.
#[test]
fn texts_full_of_a_word_are_not_passed_over() {
    let (_folder, store) = mailbox();
    let record = |at: usize| {
        let times = if at.is_multiple_of(9) { at % 37 } else { 1 };
        let (subject, body) = ("ember ".repeat(times), "ember ".repeat(at % 5 + 1));
        message_with(
            &format!("m{at:05}"),
            &format!("\"subject\":\"{subject}\",\"body\":\"{body} filler\""),
        )
    };
    store.put((0..1_500).map(record).collect());
    let ask = |limit| {
        let request = request("ember", vec![messages("work")]);
        let answer = store.search(&SearchRequest { limit, ..request }).unwrap();
        answer
            .hits
            .iter()
            .map(|hit| (number(hit), hit.position))
            .collect::<Vec<_>>()
    };
    let whole = ask(2_000);
    assert_eq!(whole.len(), 1_500);
    for limit in [1, 5, 10, 40] {
        assert_eq!(ask(limit), whole[..limit]);
    }
}
