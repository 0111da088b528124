//! Work that nobody waits for any more ends after a few more steps, whatever it is.

use std::ops::Bound;

use contract::scalar::Scalar;
use store::records::{Direction, OrderBy, PageRequest};
use store::search::{AggregateRequest, Grouping, Metric, Test};
use store::stop::Stop;
use store::{Result, Store, StoreError};

use crate::fixture::{Work, field, filtered, message_with, messages, on_every_mailbox, request};

type ReadStep = Box<dyn Fn(&dyn Store) -> Result<()>>;

/// Questions of every kind that looks at many records.
fn questions() -> Vec<(&'static str, ReadStep)> {
    let some = || {
        let above = Test::Range(Bound::Included(Scalar::Integer(1)), Bound::Unbounded);
        filtered(messages("work"), "size_bytes", above)
    };
    let ask = |metric: Metric, grouping: Option<Grouping>| -> ReadStep {
        Box::new(move |store| {
            let request = AggregateRequest {
                scope: some(),
                metric: metric.clone(),
                grouping: grouping.clone(),
            };
            store.aggregate(&request).map(drop)
        })
    };
    let search = |query: &'static str| -> ReadStep {
        Box::new(move |store| store.search(&request(query, vec![some()])).map(drop))
    };
    let by_sender = Grouping::Values {
        field: field("from_email"),
        limit: 10,
    };
    let page = PageRequest::first(OrderBy::Cursor, Direction::Descending, 10);
    vec![
        ("a word", search("order")),
        ("words", search("order dear -sunday")),
        ("a phrase", search("\"dear order\"")),
        ("a prefix", search("w*")),
        ("a phrase with a prefix", search("\"order w*\"")),
        ("a count", ask(Metric::Count, None)),
        ("a bound", ask(Metric::Max(field("size_bytes")), None)),
        ("groups", ask(Metric::Count, Some(by_sender))),
        (
            "a page",
            Box::new(move |store| store.select(&some(), &page).map(drop)),
        ),
        (
            "an extent",
            Box::new(move |store| store.extent(&some(), 4).map(drop)),
        ),
    ]
}

// TR-03: a read that is cancelled stops the work itself, counted in steps.
#[test]
fn a_read_that_is_stopped_takes_only_a_few_more_steps() {
    on_every_mailbox(|store| {
        for part in 0..3 {
            let numbers = part * 700..(part + 1) * 700;
            let batch = numbers.map(|at| {
                let members = format!(
                    "\"size_bytes\":{at},\"subject\":\"dear order w{at:04}\",\"from_email\":\"s{at}\""
                );
                message_with(&format!("m{at}"), &members)
            });
            store.put(batch.collect());
            store.settle_index().unwrap();
        }
        for (name, ask) in questions() {
            // Figures about the scope are kept, so the first one takes more steps than the others.
            ask(store).unwrap();
            let whole = Stop::default();
            whole.during(|| ask(store)).unwrap();
            let steps = whole.looks();
            assert!(steps > 1, "{name}");
            for after in [0, 1, steps / 2, steps - 1] {
                let stop = Stop::after(after);
                let outcome = stop.during(|| ask(store));
                assert!(
                    matches!(outcome, Err(StoreError::Stopped)),
                    "{name} {after}"
                );
                let more = stop.looks() - after;
                assert!(more < 12, "{name}: {more} steps after {after} of {steps}");
            }
            // Nothing is left behind that would stop the next one.
            ask(store).unwrap();
        }
    });
}
