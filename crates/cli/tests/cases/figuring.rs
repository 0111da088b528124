//! Figures over all records, held against the records themselves.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::generated::{CONNECTIONS, entry, keys};
use crate::surface::{Ask, Surface, plain};
use crate::world::{archives, only};

fn west() -> Ask {
    plain().connection(CONNECTIONS[1])
}

fn entries() -> Vec<Value> {
    keys().iter().map(|key| entry(key, 1)).collect()
}

fn sizes() -> impl Iterator<Item = i64> {
    entries()
        .into_iter()
        .map(|one| one["size"].as_i64().unwrap())
}

pub(crate) fn counts_are_exact(surface: Surface) {
    let who = archives();
    let counted = |ask: Ask| {
        let figures = surface.figures(&who, "entries", "count", ask);
        assert_eq!(figures.records.map(Value::from), figures.value);
        figures.records.unwrap()
    };
    assert_eq!(counted(west()), keys().len() as u64);
    let large = sizes().filter(|size| *size >= 50).count();
    assert_eq!(counted(west().range("size", "gte", 50)), large as u64);
    assert_eq!(counted(west().filter("kind", "none such")), 0);
}

pub(crate) fn sums_and_extremes_agree_with_the_records(surface: Surface) {
    let who = archives();
    let figure = |metric: &str, field: &str, ask: Ask| {
        let ask = ask.with("field", field);
        let figures = surface.figures(&who, "entries", metric, ask);
        figures.value.unwrap()
    };
    assert_eq!(figure("sum", "size", west()), sizes().sum::<i64>());
    assert_eq!(figure("min", "size", west()), sizes().min().unwrap());
    assert_eq!(figure("max", "size", west()), sizes().max().unwrap());
    let all = entries();
    let last = all.iter().map(|one| one["at"].as_str().unwrap()).max();
    assert_eq!(figure("max", "at", west()), last.unwrap());
    let none = west().filter("kind", "none such");
    assert_eq!(figure("max", "size", none), Value::Null);
}

pub(crate) fn groups_and_their_rest_make_the_whole(surface: Surface) {
    let who = archives();
    let mut expected: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    for one in entries() {
        let kind = one["kind"].as_str().unwrap().to_owned();
        let group = expected.entry(kind).or_default();
        group.0 += 1;
        group.1 += one["size"].as_i64().unwrap();
    }
    let ask = || west().with("field", "size").with("group_by", "kind");
    let figures = surface.figures(&who, "entries", "sum", ask());
    let groups = figures.groups.unwrap().into_iter();
    let found: BTreeMap<String, (u64, i64)> = groups
        .map(|(key, count, value)| {
            let value = value.unwrap().as_i64().unwrap();
            (key.as_str().unwrap().to_owned(), (count, value))
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(figures.other_count, Some(0));
    let cut = surface.figures(&who, "entries", "sum", ask().limit(2));
    let groups = cut.groups.unwrap();
    assert_eq!(groups.len(), 2);
    let shown: u64 = groups.iter().map(|(_, count, _)| count).sum();
    assert_eq!(shown + cut.other_count.unwrap(), keys().len() as u64);
    assert!(groups[0].1 >= groups[1].1);
}

pub(crate) fn buckets_of_time_make_the_whole(surface: Surface) {
    let who = only("bank");
    let ask = |zone: &str| {
        plain()
            .with("group_by_time", "booked_on")
            .with("granularity", "year")
            .with("time_zone", zone)
    };
    let figures = surface.figures(&who, "transactions", "count", ask("UTC"));
    let groups = figures.groups.unwrap();
    let counted: u64 = groups.iter().map(|(_, count, _)| count).sum();
    assert_eq!(Some(counted), figures.records);
    assert!(groups.len() > 1);
    for (key, count, _) in &groups {
        let year = key.as_str().unwrap().get(..4).unwrap().to_owned();
        let next = (year.parse::<u32>().unwrap() + 1).to_string();
        let ask = plain()
            .range("booked_on", "gte", format!("{year}-01-01"))
            .range("booked_on", "lt", format!("{next}-01-01"));
        let year = surface.aggregate(&who, "transactions", "count", ask);
        assert_eq!(year.unwrap().records, Some(*count));
    }
    let cut = surface.figures(&who, "transactions", "count", ask("UTC").limit(1));
    let shown: u64 = cut.groups.unwrap().iter().map(|(_, count, _)| count).sum();
    assert_eq!(Some(shown + cut.other_count.unwrap()), cut.records);
    let refused = surface.aggregate(&who, "transactions", "count", ask("Mars/Olympus"));
    assert_eq!(refused.unwrap_err().code, "invalid_request");
}

pub(crate) fn distinct_values_are_counted(surface: Surface) {
    let who = archives();
    let ask = west().with("field", "kind");
    let figures = surface.aggregate(&who, "entries", "count_distinct", ask);
    assert_eq!(figures.unwrap().value, Some(4.into()));
}

pub(crate) fn an_average_is_refused_by_name(surface: Surface) {
    // The contract has no average: count and sum make one, exactly.
    let who = archives();
    let ask = west().with("field", "size");
    let refused = surface.aggregate(&who, "entries", "avg", ask).unwrap_err();
    assert!(
        ["invalid_request", "invalid_arguments"].contains(&refused.code.as_str()),
        "{refused:?}"
    );
}
