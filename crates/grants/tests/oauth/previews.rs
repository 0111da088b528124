//! What a review shows before it is approved is what would be granted.

use contract::grant::Authority;
use grants::ChosenStream;
use grants::oauth::Choice;
use serde_json::json;

use crate::flow::{ask, client, issuer, only, stream};
use crate::reviews::asked;
use crate::world::{World, detail};

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
    assert!(row.grants_field("subject") && !row.grants_field("body"));
    assert!(issuer(&world).asked(&request).unwrap().is_none());

    let request = asked(&world, &json!([detail(|_| {})]));
    let drafts = issuer(&world).asked(&request).unwrap().unwrap();
    let review = issuer(&world).review(&request, Choice::default()).unwrap();
    assert_eq!(drafts, review.grants);
}
