//! The envelope of a list, whichever generation of server wrote it: where its entries stand, how it goes on, how much there is
//! and what to know about it.

use contract::page::{
    IndexMaintenance, KindCount, Meta, Page, Recall, ReportedCount, Warning, WarningCode,
};
use contract::wire::Nullable;
use serde_json::Value;

use super::naming::{at, connection_of, text};

pub(super) const HITS: [&str; 6] = [
    "",
    "/results",
    "/hits",
    "/data",
    "/data/results",
    "/data/data",
];
pub(super) const RECORDS: [&str; 5] = ["", "/data", "/records", "/data/records", "/data/data"];

/// The entries at the first of these places that holds a list.
pub(super) fn entries<'a>(body: &'a Value, places: &[&str]) -> &'a [Value] {
    let found = places.iter().find_map(|place| at(body, place)?.as_array());
    found.map_or(&[], Vec::as_slice)
}

/// The same, to be changed.
pub(super) fn entries_mut<'a>(body: &'a mut Value, places: &[&str]) -> &'a mut [Value] {
    let place = places
        .iter()
        .find(|place| at(body, place).is_some_and(Value::is_array));
    place
        .and_then(|place| body.pointer_mut(place)?.as_array_mut())
        .map_or(&mut [], Vec::as_mut_slice)
}

/// What stands around the entries: read at the top, then in `meta`, then in `data`; never invented (QR-03).
pub(super) fn page<T>(body: &Value, data: Vec<T>) -> Page<T> {
    let places: Vec<&Value> = [Some(body), body.get("meta"), body.get("data")]
        .into_iter()
        .flatten()
        .filter(|place| place.is_object())
        .collect();
    let find = |name: &str| {
        places
            .iter()
            .find_map(|place| text(place, name))
            .map(str::to_owned)
    };
    let next_cursor = find("next_cursor");
    let has_more = places
        .iter()
        .find_map(|place| place.get("has_more")?.as_bool());
    let mut page = Page::new(data);
    page.has_more = has_more.or(next_cursor.as_ref().map(|_| true));
    page.next_cursor = Nullable::or_absent(next_cursor);
    page.next_changes_since = Nullable::or_absent(find("next_changes_since"));
    page.meta = Some(Meta {
        count: Nullable::or_absent(places.iter().find_map(|place| count(place))),
        recall: body.pointer("/meta/recall").map(recall),
        index_maintenance: body
            .pointer("/meta/index_maintenance/percent")
            .map(|percent| IndexMaintenance {
                percent: percent.as_u64(),
                ..IndexMaintenance::default()
            }),
        words: body.pointer("/meta/words").and_then(typed),
        roles: body.pointer("/meta/roles").and_then(typed),
        weaker_follow: body.pointer("/meta/weaker_follow") == Some(&Value::Bool(true)),
        next: body
            .get("meta")
            .and_then(|meta| text(meta, "next"))
            .map(str::to_owned),
        warnings: Some(warnings(body)),
        ..Meta::default()
    });
    page
}

fn count(place: &Value) -> Option<ReportedCount> {
    let count = place.get("count")?;
    let (kind, value) = match count.as_u64() {
        Some(value) => (text(place, "count_accuracy"), value),
        None => (text(count, "kind"), count.get("value")?.as_u64()?),
    };
    Some(ReportedCount::Kind(KindCount {
        kind: kind.unwrap_or("exact").to_owned(),
        value: Some(value),
    }))
}

/// What a server does not say of its search is taken for complete: nothing is inferred from `has_more`.
fn recall(recall: &Value) -> Recall {
    let number = |name: &str| recall.get(name).and_then(Value::as_u64);
    Recall {
        complete: recall.get("complete") != Some(&Value::Bool(false)),
        ranking_scope: text(recall, "ranking_scope").unwrap_or_default().to_owned(),
        truncated: recall.get("truncated") == Some(&Value::Bool(true)),
        ranked_candidate_count: number("ranked_candidate_count"),
        candidate_window_limit: number("candidate_window_limit"),
        sources_searched_count: number("sources_searched_count"),
        truncated_source_count: number("truncated_source_count"),
    }
}

fn typed<T: serde::de::DeserializeOwned>(member: &Value) -> Option<T> {
    serde_json::from_value(member.clone()).ok()
}

/// All warnings, in `meta` or at the top, whole objects or bare codes.
pub(super) fn warnings(body: &Value) -> Vec<Warning> {
    let listed = body
        .pointer("/meta/warnings")
        .or_else(|| body.get("warnings"));
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    listed
        .filter_map(|warning| {
            let code = text(warning, "code").or_else(|| warning.as_str())?;
            let message = text(warning, "message").unwrap_or_default();
            let mut read = Warning::new(WarningCode::parse(code), message);
            let detail = || connection_of(warning.get("detail")?);
            read.connection_id = connection_of(warning).or_else(detail).map(str::to_owned);
            Some(read)
        })
        .collect()
}

/// How many hits came from each connection, where a server of several says so.
pub(super) fn source_mix(body: &Value) -> Vec<(String, u64)> {
    let listed = body
        .pointer("/meta/package/source_mix")
        .and_then(Value::as_array);
    let one = |one: &Value| {
        let id = text(one, "connection_id")?.to_owned();
        Some((id, one.get("count")?.as_u64()?))
    };
    listed.into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_found_in_every_generation_of_envelope() {
        for body in [
            json!({"data": [1, 2]}),
            json!({"records": [1, 2]}),
            json!({"data": {"records": [1, 2]}}),
            json!({"data": {"data": [1, 2]}}),
            json!([1, 2]),
        ] {
            assert_eq!(entries(&body, &RECORDS).len(), 2, "{body}");
            assert_eq!(entries_mut(&mut body.clone(), &RECORDS).len(), 2, "{body}");
        }
        for body in [
            json!({"results": [1]}),
            json!({"hits": [1]}),
            json!({"data": [1]}),
            json!({"data": {"results": [1]}}),
            json!({"data": {"data": [1]}}),
            json!([1]),
        ] {
            assert_eq!(entries(&body, &HITS).len(), 1, "{body}");
        }
        assert!(entries(&json!({"data": "no list"}), &RECORDS).is_empty());
    }

    #[test]
    fn handles_are_read_in_every_place_and_never_invented() {
        // QR-03
        for body in [
            json!({"has_more": true, "next_cursor": "c", "data": []}),
            json!({"meta": {"has_more": true, "next_cursor": "c"}, "data": []}),
            json!({"data": {"has_more": true, "next_cursor": "c", "records": []}}),
            json!({"meta": {"has_more": true, "next_cursor": "c"}, "records": []}),
        ] {
            let page = page::<()>(&body, Vec::new());
            assert_eq!((page.has_more, page.next_cursor()), (Some(true), Some("c")));
        }
        let page = page::<()>(&json!({"data": [], "next_cursor": " "}), Vec::new());
        assert_eq!((page.has_more, page.next_cursor()), (None, None));
    }
}
