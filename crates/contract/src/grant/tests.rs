//! What a grant document may say, and what it then allows.

use super::*;
use serde_json::{Value, json};

fn document() -> Value {
    json!({
        "version": "0.1.0", "grant_id": "grt_1", "issued_at": "2026-01-01T00:00:00Z",
        "subject": {"id": "owner_local"}, "client": {"client_id": "longview"},
        "source": {"kind": "connector", "id": "https://sources.example/demo_mail"},
        "source_declaration": {"version": "3"}, "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous", "expires_at": null,
        "streams": [{
            "name": "notes", "instance_ids": ["cin_a", "cin_b"], "fields": ["id", "title"],
            "time_constraint": {"field": "created_at", "since": "2026-01-01T12:00:00Z", "until": "2026-12-31"}, "resources": ["n1"],
            "where": [{"field": "folder", "in": ["a", "b"]}, {"field": "size", "gte": "1", "lt": "9"}],
            "except": [{"field": "from", "eq": "doctor"}]
        }]
    })
}

fn grant(edit: impl FnOnce(&mut Value)) -> Result<Grant, String> {
    let mut document = document();
    edit(&mut document);
    serde_json::from_value(document).map_err(|error| error.to_string())
}

#[test]
fn a_grant_is_written_back_as_it_was_read() {
    let grant = grant(|_| ()).unwrap();
    assert_eq!(serde_json::to_value(&grant).unwrap(), document());
}

/// A place, what stands there instead, and words of the error.
const BROKEN: &str = r#"
/version | "0.0.9" | grant version must be 0.1.0
/streams | [] | streams is empty
/streams/0/fields | [] | fields of stream notes is empty
/streams/0/instance_ids | [] | instance_ids of stream notes is empty
/streams/0/resources | [] | resources of stream notes is empty
/streams/0/fields | ["id", "id"] | names "id" more than once
/streams/0/time_constraint | {"field": "at"} | needs since or until
/streams/0/time_constraint/since | "2027-01-01" | since is later than until
/streams/0/time_constraint/until | "soon" | not an RFC 3339 time
/streams/0/time_constraint | {"field": "at", "since": "2026-01-01", "zone": "UTC"} | unknown field `zone`
/streams/0/where | [] | where of stream notes is empty
/streams/0/except | [] | except of stream notes is empty
/streams/0/where/0 | {"field": "folder"} | exactly one of eq, in, contains, prefix, word, or bounds
/streams/0/where/0/in | [] | an empty list allows nothing
/streams/0/where/0/in | ["a", "a"] | names "a" a second time
/streams/0/where/0 | {"field": "folder", "eq": "a", "in": ["b"]} | exactly one of eq, in, contains, prefix, word, or bounds
/streams/0/where/1 | {"field": "size", "gt": "1", "gte": "1"} | one of gte and gt
/streams/0/except/0 | {"field": "from", "like": "doctor"} | unknown field `like`
/expires_at | "never" | not an RFC 3339 time
/source/id | "demo" | last path segment
"#;

#[test]
fn a_broken_grant_says_what_is_wrong() {
    for row in BROKEN.trim().lines() {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [place, value, words] = cells[..] else {
            panic!("{row}")
        };
        let broken = grant(|grant| {
            *grant.pointer_mut(place).unwrap() = serde_json::from_str(value).unwrap();
        });
        let error = broken.unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn an_authority_has_one_row_per_connection_and_stream() {
    let authority = GrantedAuthority::from_grant(&grant(|_| ()).unwrap()).unwrap();
    assert_eq!(authority.rows().len(), 2);
    assert_eq!(authority.rows_of("notes").count(), 2);
    let row = authority.row("cin_b", "notes").unwrap();
    assert_eq!(row.connector.as_str(), "demo_mail");
    assert!(row.fields.iter().map(FieldName::as_str).eq(["id", "title"]));
    assert!(row.resources.iter().flatten().eq(["n1"]));
    assert!(authority.row("cin_b", "mail").is_none() && authority.row("cin_c", "notes").is_none());
}

#[test]
fn grants_of_a_package_share_a_client_and_never_overlap() {
    let first = grant(|_| ()).unwrap();
    let package = || PackageId::parse("pkg_1").unwrap();
    let second = |edit: fn(&mut Value)| {
        grant(|document| {
            document["grant_id"] = json!("grt_2");
            edit(document);
        })
    };
    let apart = second(|grant| grant["streams"][0]["instance_ids"] = json!(["cin_c"])).unwrap();
    let both = GrantedAuthority::from_package(package(), &[first.clone(), apart]).unwrap();
    assert_eq!(both.rows().len(), 3);
    let same = second(|_| ()).unwrap();
    let overlap = GrantedAuthority::from_package(package(), &[first.clone(), same]).unwrap_err();
    assert!(
        overlap
            .to_string()
            .contains("grt_1 and grt_2 both give notes of cin_a"),
        "{overlap}"
    );
    let other = second(|grant| grant["client"]["client_id"] = json!("other")).unwrap();
    let other = GrantedAuthority::from_package(package(), &[first, other]).unwrap_err();
    assert!(matches!(other, GrantError::OtherClient(_)));
    assert_eq!(
        GrantedAuthority::from_package(package(), &[]),
        Err(GrantError::Empty("the package".to_owned()))
    );
}
