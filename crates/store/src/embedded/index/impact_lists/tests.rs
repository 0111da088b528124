//! What is written is read, and nothing else is.

use tantivy::DocId;

use super::Occurrence;
use super::read::{ImpactList, Left, number};
use super::write::{Tier, push_number};

#[test]
fn numbers_are_read_as_they_were_written() {
    let numbers = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, u32::MAX];
    let mut data = Vec::new();
    for number in numbers {
        push_number(&mut data, number);
    }
    let mut rest = data.as_slice();
    for expected in numbers {
        assert_eq!(number(&mut rest), Some(expected));
    }
    assert_eq!(number(&mut rest), None);
}

/// The field whose tier it is, and another one.
const FIELDS: [u32; 2] = [4, 3];

fn occurrence(field: u32, times: u32) -> Occurrence {
    Occurrence {
        field,
        times,
        length: 1,
    }
}

/// A tier with two steps and the documents 3 and 7; the second one has the word in another field as well.
fn tier() -> Vec<u8> {
    let mut tier = Tier::down_to(1);
    tier.note(3, 1, 5);
    tier.note(7, 1, 6);
    (tier.most[2], tier.most[3], tier.most[9]) = (4, 4, 300);
    let mut data = Vec::new();
    tier.write_with(&mut data, &mut |document, elsewhere| {
        if document == 7 {
            elsewhere.push(occurrence(FIELDS[1], 2));
        }
    });
    data
}

type Read = (Vec<(DocId, Vec<Occurrence>)>, Option<Left>);

fn first_tier(data: &[u8], documents: DocId) -> tantivy::Result<Read> {
    let field = FIELDS[0];
    let mut list = ImpactList {
        data,
        field,
        documents,
    };
    let mut found = Vec::new();
    let left = list.next_tier(&mut |document, all| found.push((document, all.to_vec())))?;
    Ok((found, left))
}

#[test]
fn a_tier_is_read_as_it_was_written() {
    let [own, other] = FIELDS;
    let found = vec![
        (3, vec![occurrence(own, 5)]),
        (7, vec![occurrence(own, 6), occurrence(other, 2)]),
    ];
    let left = vec![(2, 4), (9, 300)];
    assert_eq!(first_tier(&tier(), 8).unwrap(), (found, Some(left)));
    assert_eq!(first_tier(&[], 8).unwrap(), (Vec::new(), None));
}

#[test]
fn a_tier_that_ends_early_or_names_no_document_is_an_error() {
    let whole = tier();
    for end in 1..whole.len() {
        assert!(first_tier(&whole[..end], 8).is_err(), "{end}");
    }
    assert!(first_tier(&whole, 7).is_err());
}
