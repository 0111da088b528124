//! What rules on rows cost: the same questions under a grant with rules and under one without, in process and in turns.

use std::sync::Arc;

use contract::aggregate::{AggregateQuery, Metric};
use contract::id::StreamName;
use contract::time::Clock;
use grants::{Flags, Selection};
use read::GrantReader;
use store::{Catalog as _, EmbeddedStore, Store};

use super::directory::{open, settings};
use super::request::BenchRequest;
use super::{Lines, Setup};
use crate::measure::compare;
use crate::{BenchError, PROBES};

/// At most so many times as long as without a rule.
const MOST: f64 = 1.5;

/// A name, rules of `where` and rules of `except`.
const RULES: [(&str, &[&str], &[&str]); 4] = [
    ("not two folders", &[], &["folder=spam", "folder=trash"]),
    (
        "only six folders",
        &[
            "folder=inbox",
            "folder=archive",
            "folder=sent",
            "folder=lists",
            "folder=work",
            "folder=family",
        ],
        &[],
    ),
    ("not one beginning", &[], &["folder^=tr"]),
    ("not one word", &[], &["body~=toqualis"]),
];

pub(super) fn measure(setup: &Setup<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let clock = &setup.options.clock;
    let opened = open(&setup.ours, clock)?;
    let settings = settings(&opened, clock)?;
    let connections = opened.connections().into_iter();
    let connections: Vec<String> = connections.map(|one| one.id.to_string()).collect();
    let opened = Arc::new(opened);
    let reader = |only: &[&str], except: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let flags = Flags {
            connections: connections.clone(),
            only: texts(only),
            except: texts(except),
            ..Flags::default()
        };
        let authority = authority(&opened, flags, clock.as_ref())?;
        let store: Arc<dyn Store> = Arc::clone(&opened) as _;
        Ok::<_, BenchError>(GrantReader::new(store, authority, settings.clone()))
    };
    let plain = reader(&[], &[])?;
    for (rule, only, except) in RULES {
        let ruled = reader(only, except)?;
        for (what, request) in questions()? {
            let ask =
                |reader: &GrantReader| Ok(setup.runtime.block_on(request.in_process(reader))?);
            let what = format!("{what}, {rule}");
            let in_turns = compare(&what, setup.repetition(), &mut || ask(&ruled), &mut || {
                ask(&plain)
            })?;
            // Fewer records are found under a rule.
            let most = MOST * in_turns.beside_value();
            lines.add(in_turns.without_found().at_most("1.5× of it", most));
        }
    }
    Ok(())
}

fn questions() -> Result<Vec<(&'static str, BenchRequest)>, BenchError> {
    let stream =
        StreamName::parse("messages").map_err(|error| BenchError::Setup(error.to_string()))?;
    let count = AggregateQuery::new(stream, Metric::Count, None)?;
    Ok(vec![
        ("search, rare word", BenchRequest::search(PROBES.rare)?),
        ("search, common word", BenchRequest::search(PROBES.common)?),
        ("count", BenchRequest::Aggregate(count)),
        ("count by folder", BenchRequest::aggregate()?),
        ("page of 25 records", BenchRequest::page()?),
    ])
}

fn authority(
    store: &EmbeddedStore,
    flags: Flags,
    clock: &dyn Clock,
) -> Result<contract::grant::Authority, BenchError> {
    let refused = |error: String| BenchError::Grant(error);
    let selection = Selection::from_flags(flags).map_err(|error| refused(error.to_string()))?;
    let looked = grants::preview(store, &selection, "bench", None, clock);
    Ok(looked
        .map_err(|error| refused(error.to_string()))?
        .authority)
}
