//! The raw side answers correctly: a bench against wrong answers would compare nothing.

use super::*;
use crate::corpus::{Corpus, CorpusRecord, PROBES, calendar};

struct Raw {
    records: Vec<CorpusRecord>,
    reader: RawReader,
    _folder: tempfile::TempDir,
}

fn raw(records: u64) -> Raw {
    let folder = tempfile::tempdir().unwrap();
    let paths = RawPaths::new(folder.path());
    let settings = RawSettings::default();
    let records: Vec<_> = Corpus::new(11, records).iter().collect();
    let mut pipeline = RawPipeline::create(&paths, &settings).unwrap();
    for batch in records.chunks(700) {
        pipeline.ingest(batch).unwrap();
    }
    pipeline.settle().unwrap();
    let reader = RawReader::open(&paths, &settings).unwrap();
    Raw {
        records,
        reader,
        _folder: folder,
    }
}

fn member(record: &CorpusRecord, name: &str) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(&record.json).unwrap();
    value[name].clone()
}

#[test]
fn every_probe_is_found_and_marked() {
    let raw = raw(2_000);
    for probe in [PROBES.common, PROBES.pair, PROBES.phrase, PROBES.prefix] {
        let hits = raw.reader.search(&probe.into(), None, 10).unwrap();
        assert!(!hits.is_empty(), "{probe:?}");
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        for hit in hits {
            assert!(hit.snippet.contains("<b>"), "{probe:?}: {hit:?}");
        }
    }
    let all = raw
        .reader
        .search(&PROBES.prefix.into(), None, 1_000)
        .unwrap();
    let expected = raw
        .records
        .iter()
        .filter(|record| record.json.contains("zentra"));
    assert_eq!(all.len(), expected.count());
}

#[test]
fn filters_narrow_search_and_count() {
    let raw = raw(2_000);
    let year = calendar::days_from_civil(2019, 1, 1)..calendar::days_from_civil(2020, 1, 1);
    let filter = RawFilter {
        folder: "inbox".to_owned(),
        sent_at: year.start * calendar::DAY_MICROS..year.end * calendar::DAY_MICROS,
    };
    let inside = |record: &&CorpusRecord| {
        member(record, "folder") == "inbox"
            && member(record, "sent_at")
                .as_str()
                .unwrap()
                .starts_with("2019")
    };
    let expected = raw.records.iter().filter(inside).count();
    assert_eq!(raw.reader.count(&filter).unwrap(), expected as u64);
    let common = PROBES.common.into();
    let hits = raw.reader.search(&common, Some(&filter), 1_000).unwrap();
    let holding = raw.records.iter().filter(inside);
    let holding = holding.filter(|record| record.json.contains(PROBES.common.words));
    assert_eq!(hits.len(), holding.count());
}

#[test]
fn pages_and_changes_meet_every_record_once() {
    let raw = raw(500);
    let mut seen = Vec::new();
    let mut position = None;
    loop {
        let page = raw.reader.page(position.as_ref(), 64).unwrap();
        let Some(last) = page.last() else { break };
        position = Some(RawPosition {
            sort: last.sort,
            key: last.key.clone(),
        });
        seen.extend(page);
    }
    assert_eq!(seen.len(), 500);
    assert!(seen.is_sorted_by(|a, b| (a.sort, &a.key) > (b.sort, &b.key)));
    let third = raw.reader.position_of_page(3, 64).unwrap();
    assert_eq!(
        raw.reader.page(third.as_ref(), 1).unwrap()[0].key,
        seen[128].key
    );
    let changes = raw.reader.changes(490, 100).unwrap();
    assert_eq!(changes.len(), 10);
    assert_eq!(changes[9].data, raw.records[499].json);
}

#[test]
fn aggregates_add_up() {
    let raw = raw(1_500);
    let sum: i64 = raw
        .records
        .iter()
        .map(|record| member(record, "size_bytes").as_i64().unwrap())
        .sum();
    let sizes = raw
        .reader
        .aggregate(RawAggregate::Sum("size_bytes"))
        .unwrap();
    assert_eq!(sizes[0].1.to_string(), sum.to_string());
    for aggregate in [
        RawAggregate::GroupBy("folder"),
        RawAggregate::GroupBy("author"),
        RawAggregate::Months("sent_at"),
    ] {
        let groups = raw.reader.aggregate(aggregate).unwrap();
        let total: f64 = groups.iter().map(|(_, count)| count).sum();
        assert!((total - 1_500.0).abs() < f64::EPSILON, "{aggregate:?}");
    }
    let months = raw
        .reader
        .aggregate(RawAggregate::Months("sent_at"))
        .unwrap();
    let march = raw.records.iter();
    let march = march.filter(|record| record.json.contains("\"sent_at\":\"2018-03-"));
    let found = months.iter().find(|(month, _)| month == "2018-03").unwrap();
    assert_eq!(found.1.to_string(), march.count().to_string());
}
