//! What is written is found; what is gone is not.

use store::records::Applied;

use crate::fixture::{add_mail, delete, found, found_sorted, message, messages, open, write};

#[test]
fn a_written_record_is_found_at_once_and_a_deleted_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    add_mail(&store, "work");
    let applied = write(
        &store,
        "work",
        vec![
            message("m1", "Overdraft fee", "The café charged 42 EUR."),
            message("m2", "Lunch", "東京都庁で会いましょう"),
        ],
    );
    assert_eq!(applied, [Applied::Added, Applied::Added]);
    assert_eq!(found(&store, "overdraft", vec![messages("work")]), ["m1"]);
    assert_eq!(found(&store, "CAFE 42", vec![messages("work")]), ["m1"]);
    assert_eq!(found(&store, "京都", vec![messages("work")]), ["m2"]);
    assert_eq!(found(&store, "会い", vec![messages("work")]), ["m2"]);
    assert_eq!(
        found_sorted(&store, "over* -lunch", vec![messages("work")]),
        ["m1"]
    );
    let applied = write(
        &store,
        "work",
        vec![
            delete("messages", "m1"),
            message("m2", "Lunch", "moved to Kyoto"),
        ],
    );
    assert_eq!(applied, [Applied::Deleted, Applied::Updated]);
    assert!(found(&store, "overdraft", vec![messages("work")]).is_empty());
    assert!(found(&store, "京都", vec![messages("work")]).is_empty());
    assert_eq!(found(&store, "kyoto", vec![messages("work")]), ["m2"]);
}
