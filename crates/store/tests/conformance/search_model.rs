//! Search against a plain scan: random records, scopes and queries, and the hits must be exactly those a reader would find.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use contract::json::RecordBody;
use contract::scalar::Scalar;
use contract::time::TimeRange;
use proptest::prelude::*;
use proptest::sample::select;
use store::Store;
use store::records::Change;
use store::search::{Filter, Rules, Scope, Test};
use text::Expression;

use crate::aggregate_model::scalar;
use crate::fixture::{
    add_mail, cases, delete, field, instant, key, message_with, on_every_backend, scope, search,
    write,
};

const CONNECTIONS: [&str; 2] = ["work", "home"];
const WORDS: [&str; 14] = [
    "alpha",
    "Alphabet",
    "alp",
    "beta",
    "be",
    "Café",
    "cafe",
    "東京都",
    "京都",
    "foo-bar",
    "don't",
    "x1",
    "ﬁne",
    "naïve",
];
const TIMES: [&str; 5] = [
    "2026-03-01T10:00:00Z",
    "2026-03-01T12:00:00+02:00",
    "2026-03-01",
    "later",
    "2026-03-02T00:00:00.5Z",
];

/// The members of a record besides its id, as JSON texts.
type Members = BTreeMap<&'static str, String>;

fn text() -> impl Strategy<Value = String> {
    let separator = select(vec![" ", " ", ", ", "\n", " - "]);
    prop::collection::vec((select(&WORDS[..]), separator), 0..7)
        .prop_map(|words| words.iter().flat_map(|(word, gap)| [*word, *gap]).collect())
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn maybe<T: 'static>(
    name: &'static str,
    value: impl Strategy<Value = T> + 'static,
    raw: impl Fn(T) -> String + Clone + 'static,
) -> BoxedStrategy<Option<(&'static str, String)>> {
    let present = value.prop_map(move |value| Some((name, raw(value))));
    prop_oneof![1 => Just(None), 5 => present].boxed()
}

fn members() -> impl Strategy<Value = Members> {
    (
        maybe("subject", prop::option::weighted(0.9, text()), |text| {
            text.map_or("null".to_owned(), |text| quoted(&text))
        }),
        maybe("body", text(), |text| quoted(&text)),
        maybe("from_email", select(vec!["a@x", "b@x", ""]), quoted),
        maybe("received_at", select(&TIMES[..]), quoted),
        maybe("size_bytes", -2_i64..3, |size| size.to_string()),
        maybe(
            "amount",
            select(vec!["-0.5", "0", "-0.0", "0.5", "5e-1", "null"]),
            str::to_owned,
        ),
        maybe("seen", any::<bool>(), |seen| seen.to_string()),
    )
        .prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g].into_iter().flatten().collect())
}

/// What happens to one key of one connection.
type Event = (usize, u8, Option<Members>);

fn history() -> impl Strategy<Value = Vec<Vec<Event>>> {
    let event = (0_usize..2, 0_u8..8, prop::option::weighted(0.85, members()));
    prop::collection::vec(prop::collection::vec(event, 1..14), 1..4)
}

fn filter() -> impl Strategy<Value = Filter> {
    let equals = |name: &'static str, scalar: Scalar| Filter {
        field: field(name),
        test: Test::Equals(scalar),
    };
    let bound = (-2_i64..3, 0_u8..3);
    let range = (bound.clone(), bound).prop_map(|(low, high)| {
        let bound = |(value, kind): (i64, u8)| match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(Scalar::Integer(value)),
            _ => Bound::Excluded(Scalar::Integer(value)),
        };
        Filter {
            field: field("size_bytes"),
            test: Test::Range(bound(low), bound(high)),
        }
    });
    prop_oneof![
        any::<bool>().prop_map(move |seen| equals("seen", Scalar::Boolean(seen))),
        (-2_i64..3).prop_map(move |size| equals("size_bytes", Scalar::Integer(size))),
        select(vec![-0.5, 0.0, 0.5])
            .prop_map(move |amount| equals("amount", Scalar::Number(amount))),
        select(vec!["a@x", "", "c@x"])
            .prop_map(move |from| equals("from_email", Scalar::Text(from.to_owned()))),
        select(&WORDS[..])
            .prop_map(move |word| equals("subject", Scalar::Text(format!("{word} ")))),
        Just(equals("received_at", Scalar::Instant(instant(TIMES[0])))),
        prop::collection::vec(-2_i64..3, 0..4).prop_map(|sizes| Filter {
            field: field("size_bytes"),
            test: Test::OneOf(sizes.into_iter().map(Scalar::Integer).collect()),
        }),
        prop::collection::vec(select(vec![-0.5, 0.0, 0.5]), 0..3).prop_map(|amounts| Filter {
            field: field("amount"),
            test: Test::OneOf(amounts.into_iter().map(Scalar::Number).collect()),
        }),
        prop::collection::vec(select(vec!["a@x", "", "c@x", "none"]), 0..3).prop_map(|from| {
            let from = from.into_iter().map(|from| Scalar::Text(from.to_owned()));
            Filter {
                field: field("from_email"),
                test: Test::OneOf(from.collect()),
            }
        }),
        range,
        select(vec!["a", "a@x", "b", "c", "a@x "]).prop_map(|beginning| Filter {
            field: field("from_email"),
            test: Test::Prefix(beginning.to_owned()),
        }),
        (select(vec!["subject", "body"]), select(&WORDS[..])).prop_map(|(name, word)| Filter {
            field: field(name),
            test: Test::Words(word.to_owned()),
        }),
    ]
}

fn scopes() -> impl Strategy<Value = Vec<Scope>> {
    let fields = select(vec![
        vec!["subject"],
        vec!["body"],
        vec!["subject", "body"],
        vec![],
    ]);
    let ends = select(vec![None, Some(TIMES[0]), Some(TIMES[2]), Some(TIMES[4])]);
    let times = prop::option::weighted(0.3, (ends.clone(), ends));
    let keys = prop::option::weighted(0.2, prop::collection::vec(0_u8..10, 0..6));
    let filters = prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(filter(), 1..3)
    ];
    let rules = || prop::collection::vec(filter(), 0..2);
    let rules = (rules(), rules()).prop_map(|(only, except)| Rules { only, except });
    let rules = prop_oneof![2 => Just(Rules::default()), 1 => rules];
    let one = (fields, times, keys, filters, rules);
    [
        prop::option::weighted(0.8, one.clone()),
        prop::option::weighted(0.6, one),
    ]
    .prop_map(|both| {
        let mut scopes = Vec::new();
        for (id, parts) in CONNECTIONS.iter().zip(both) {
            let Some((fields, times, keys, filters, rules)) = parts else {
                continue;
            };
            let mut scope = scope(id, "messages", &fields);
            scope.time = times.map(|(since, until)| {
                let range = TimeRange {
                    since: since.map(instant),
                    until: until.map(instant),
                };
                (field("received_at"), range)
            });
            scope.keys = keys.map(|keys| keys.iter().map(|at| key(&format!("k{at}"))).collect());
            scope.filters = filters;
            scope.rules = rules;
            scopes.push(scope);
        }
        scopes
    })
}

fn query() -> impl Strategy<Value = String> {
    let word = || select(&WORDS[..]);
    let part = prop_oneof![
        4 => word().prop_map(str::to_owned),
        2 => word().prop_map(|word| format!("{}*", word.chars().take(2).collect::<String>())),
        2 => (word(), word()).prop_map(|(one, two)| format!("\"{one} {two}\"")),
        1 => (word(), word()).prop_map(|(one, two)| {
            format!("\"{one} {}*\"", two.chars().take(1).collect::<String>())
        }),
        1 => Just("京".to_owned()),
    ];
    prop::collection::vec((part, prop::bool::weighted(0.25)), 1..4).prop_map(|parts| {
        let parts = parts.iter().map(|(part, excluded)| {
            let sign = if *excluded { "-" } else { "" };
            format!("{sign}{part} ")
        });
        parts.collect()
    })
}

/// Whether a reader of the record would say that it matches.
fn matches(json: &str, id: &str, scope: &Scope, expression: &Expression) -> bool {
    let body = RecordBody::parse(json).unwrap();
    let scalar = |name: &str| scalar(&body, name);
    let in_time = scope.time.as_ref().is_none_or(|(name, range)| {
        matches!(scalar(name.as_str()), Some(Scalar::Instant(at)) if range.contains(at))
    });
    let listed = scope
        .keys
        .as_ref()
        .is_none_or(|keys| keys.contains(&key(id)));
    let meets = |filter: &Filter| {
        let Some(value) = scalar(filter.field.as_str()) else {
            return false;
        };
        match &filter.test {
            Test::Contains(_) => unreachable!("the model has no arrays"),
            Test::Equals(wanted) => value == *wanted,
            Test::OneOf(wanted) => wanted.contains(&value),
            Test::Prefix(beginning) => {
                matches!(&value, Scalar::Text(text) if text.starts_with(beginning))
            }
            Test::Words(words) => {
                matches!(&value, Scalar::Text(text) if text::has_words(text, words))
            }
            Test::Range(low, high) => {
                let above = |bound: &Scalar| value.compare(bound).unwrap();
                let low = match low {
                    Bound::Included(bound) => above(bound).is_ge(),
                    Bound::Excluded(bound) => above(bound).is_gt(),
                    Bound::Unbounded => true,
                };
                low && match high {
                    Bound::Included(bound) => above(bound).is_le(),
                    Bound::Excluded(bound) => above(bound).is_lt(),
                    Bound::Unbounded => true,
                }
            }
        }
    };
    let allowed = scope.rules.only.iter().all(meets) && !scope.rules.except.iter().any(meets);
    let passes = allowed && scope.filters.iter().all(meets);
    in_time && listed && passes && reads(&body, scope, expression)
}

/// Whether the words occur: every wanted one in some field, no unwanted one in any.
fn reads(body: &RecordBody, scope: &Scope, expression: &Expression) -> bool {
    let mut seen = vec![false; expression.wanted.len()];
    for name in &scope.fields {
        let Some(text) = body.text(name.as_str()) else {
            continue;
        };
        let found = text::occurrences(&text, expression);
        if found.excluded {
            return false;
        }
        for (seen, found) in seen.iter_mut().zip(found.clauses) {
            *seen |= found.is_some();
        }
    }
    !seen.is_empty() && seen.iter().all(|seen| *seen)
}

/// Writes a history, settling the index after every batch, and answers what is left.
fn play(store: &dyn Store, history: &[Vec<Event>]) -> BTreeMap<(usize, String), String> {
    let mut records = BTreeMap::new();
    for batch in history {
        let mut changes: [Vec<Change>; 2] = [Vec::new(), Vec::new()];
        for (at, id, members) in batch {
            let id = format!("k{id}");
            let Some(members) = members else {
                changes[*at].push(delete("messages", &id));
                records.remove(&(*at, id));
                continue;
            };
            let mut parts: Vec<String> = members
                .iter()
                .map(|(name, raw)| format!("\"{name}\":{raw}"))
                .collect();
            parts.push("\"labels\":[]".to_owned());
            let parts = parts.join(",");
            changes[*at].push(message_with(&id, &parts));
            records.insert((*at, id.clone()), format!("{{\"id\":\"{id}\",{parts}}}"));
        }
        for (id, changes) in CONNECTIONS.iter().zip(changes) {
            write(store, id, changes);
        }
        store.settle_index().unwrap();
    }
    records
}

#[test]
fn hits_are_exactly_what_a_plain_scan_finds() {
    let config = cases(16);
    let requests = prop::collection::vec((query(), scopes()), 40);
    proptest!(config, |(history in history(), requests in requests)| {
        on_every_backend(|store| {
            for id in CONNECTIONS {
                add_mail(store, id);
            }
            let records = play(store, &history);
            for (query, scopes) in &requests {
                let expression = Expression::parse_all(query);
                let mut expected = BTreeSet::new();
                for scope in scopes {
                    for ((at, id), json) in &records {
                        let here = CONNECTIONS[*at] == scope.stream.connection.as_str();
                        if here && matches(json, id, scope, &expression) {
                            expected.insert((scope.stream.connection.to_string(), id.clone()));
                        }
                    }
                }
                let answer = search(store, query, scopes.clone());
                let hits: BTreeSet<(String, String)> = answer
                    .hits
                    .iter()
                    .map(|hit| (hit.stream.connection.to_string(), hit.record.key.to_string()))
                    .collect();
                assert_eq!(hits, expected, "{query} in {scopes:?}");
                assert_eq!(answer.hits.len(), hits.len());
                assert_eq!(answer.total, Some(hits.len() as u64));
            }
        });
    });
}
