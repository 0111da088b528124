//! What a review shows before it is approved is what would be granted.

use contract::grant::Authority;
use contract::id::FieldName;
use grants::ChosenStream;
use grants::oauth::Choice;
use serde_json::json;

use crate::flow::{ask, client, issuer, only, stream};
use crate::reviews::asked;
use crate::world::{World, detail, detail_with};

#[test]
fn a_review_stands_for_exactly_the_rows_it_would_grant() {
    let world = World::new();
    let request = ask(&world, &client(&world), &[]).unwrap();
    let picked = ChosenStream {
        fields: Some(vec!["id".to_owned(), "subject".to_owned()]),
        ..stream("home", "messages")
    };
    let review = issuer(&world).review(&request, only(&[picked])).unwrap();
    let Authority::Granted(authority) = review.authority(world.now()).unwrap() else {
        panic!("a client is not the owner");
    };
    let [row] = authority.rows() else {
        panic!("{authority:?}");
    };
    assert_eq!(row.connection.as_str(), "home");
    assert!(
        row.fields
            .iter()
            .map(FieldName::as_str)
            .eq(["id", "subject"])
    );
    assert!(issuer(&world).asked(&request).unwrap().is_none());

    let request = asked(&world, &json!([detail(|_| {})]));
    let offer = issuer(&world).asked(&request).unwrap().unwrap();
    let review = issuer(&world).review(&request, Choice::default()).unwrap();
    assert_eq!((offer.drafts, offer.missing), (review.grants, Vec::new()));
}

/// Where a good entry is changed, to what; what of it is told to be missing, and what is offered. A bound that cannot be
/// kept is never left out.
const MISSING: &str = r#"
/source/id | "https://sources.example/nope" | no source "https://sources.example/nope" is declared |
/source/kind | "provider_native" | is not the kind |
/streams | [{"name": "messages", "instance_ids": ["home"]}, {"name": "nope", "instance_ids": ["home"]}] | mail has no stream "nope" | home: id subject body sent_at
/streams/0/instance_ids | ["nope", "work"] | mail has no connection "nope" | work: id subject body sent_at
/streams/0/fields | ["nope", "subject"] | no field "nope" | home: subject
/streams/0/view | "nope" | no view "nope" |
/streams | [{"name": "messages", "fields": ["id"]}] | 2 connections of mail carry this | home: id, work: id
/streams | [{"name": "folders", "instance_ids": ["home"], "time_range": {"since": "2026-01-01"}}] | declares no consent_time_field |
/streams/0/resources | ["a\nb"] | control character |
/streams | [{"name": "folders", "instance_ids": ["home"], "fields": ["name"]}] | granted whole or not at all |
"#;

#[test]
fn what_is_not_here_is_told_at_review_and_the_rest_can_be_given() {
    // TR-04
    let world = World::new();
    for row in MISSING.trim().lines() {
        let [pointer, value, told, offered] = row.split(" |").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let told = told.trim();
        let request = asked(&world, &json!([detail_with(pointer, value)]));
        let offer = issuer(&world).asked(&request).unwrap().unwrap();
        let [mistake] = offer.missing.as_slice() else {
            panic!("{told}: {:?}", offer.missing);
        };
        assert!(mistake.rule.contains(told), "{told}: {mistake}");
        let mut found = Vec::new();
        for granted in offer.drafts.iter().flat_map(|draft| &draft.streams) {
            let fields: Vec<&str> = granted.fields.iter().map(FieldName::as_str).collect();
            for connection in &granted.instance_ids {
                found.push(format!("{connection}: {}", fields.join(" ")));
            }
        }
        assert_eq!(found.join(", "), offered.trim(), "{told}");
        let all = issuer(&world).review(&request, Choice::default());
        assert!(all.unwrap_err().to_string().contains(told));
        for line in found {
            let (connection, fields) = line.split_once(": ").unwrap();
            let choice = only(&[stream(connection, "messages")]);
            let review = issuer(&world).review(&request, choice).unwrap();
            let [row] = review.grants[0].streams.as_slice() else {
                panic!("{review:?}");
            };
            let given: Vec<&str> = row.fields.iter().map(FieldName::as_str).collect();
            assert_eq!(given.join(" "), fields);
            assert_eq!(row.instance_ids.len(), 1);
        }
    }
}
