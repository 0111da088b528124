//! What is printed to be run can be run as it stands.

use super::desk::{command, library};

#[test]
fn changes_are_followed_by_bookmark_and_by_page() {
    let home = library();
    let first = home
        .run("query books --changes-since beginning --limit 2")
        .succeeds()
        .stdout;
    let next = command(
        first.split("What changes later").next().unwrap(),
        "pdpp query",
    );
    assert!(!next.contains("changes-since"), "{next}");
    let second = home.typed(&next).succeeds().stdout;
    let later = command(
        second.split("What changes later").nth(1).unwrap(),
        "pdpp query",
    );
    let nothing = home.typed(&later).succeeds().stdout;
    assert!(nothing.starts_with("0 records.\n"), "{nothing}");
}

#[test]
fn related_records_and_groups_that_were_cut_can_be_had() {
    let home = library();
    let record = home.run("fetch books:b1 --expand loans").succeeds().stdout;
    let all = home
        .typed(&command(&record, "pdpp query loans"))
        .succeeds()
        .stdout;
    assert!(all.ends_with("3 records.\n"), "{all}");
    let json = home.typed(&command(&record, "pdpp fetch library-home/loans:l1"));
    assert!(json.succeeds().stdout.contains("to       Ada"));
    let groups = home.run("aggregate books count --group-by genre --limit 1");
    let more = home.typed(&command(&groups.succeeds().stdout, "pdpp aggregate"));
    let more = more.succeeds().stdout;
    assert!(
        more.contains("sea") && !more.contains("not shown"),
        "{more}"
    );
}
