//! What the owner looks at under a grant is not noted, and numbers keep their digits.

use crate::desk::{grant, library, read};
use crate::harness::Home;

#[test]
fn what_the_owner_looks_at_under_a_grant_is_not_noted_as_disclosed() {
    let home = library();
    let (grant, _) = grant(&home, &["--stream", "books", "--fields", "id,title,text"]);
    let before = entries(&home);
    read(&home, &["search", "salt", "--grant", &grant]).succeeds();
    read(&home, &["fetch", "books:b1", "--grant", &grant]).succeeds();
    assert_eq!(entries(&home), before);
}

fn entries(home: &Home) -> u64 {
    // The log is written within a second.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let verified = home.run(&["grants", "verify", "--json"]).succeeds().json();
    verified["entries"].as_u64().unwrap()
}

#[test]
fn digits_and_order_are_kept_as_written() {
    let home = library();
    let line =
        r#"{"key":"b9","data":{"title":"Digits","id":"b9","price":12345678901234567890.1250}}"#;
    home.run_with(&["import", "-", "--as", "library/books"], line.as_bytes())
        .succeeds();
    let json = read(&home, &["fetch", "books:b9", "--json"])
        .succeeds()
        .stdout;
    assert!(
        json.contains(r#""price":12345678901234567890.1250"#),
        "{json}"
    );
    let shown = read(&home, &["fetch", "books:b9"]).succeeds().stdout;
    assert!(
        shown.contains("price  12345678901234567890.1250\n"),
        "{shown}"
    );
}
