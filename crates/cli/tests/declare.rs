//! Registering declarations, and what a later version may change.

use crate::harness::{Home, MAIL, Ran};

fn declare(home: &Home, text: &str) -> Ran {
    let file = home.file("mail.json", text);
    home.run(format!("declare {file}"))
}

#[test]
fn every_mistake_is_named_with_its_place_in_the_file() {
    let home = Home::new();
    let broken = MAIL
        .replace(
            "\"cursor_field\": \"sent_at\"",
            "\"cursor_field\": \"gone\"",
        )
        .replace("[\"subject\", \"body\"]", "[\"size\"]");
    let ran = declare(&home, &broken).refused_saying(&[
        "~/mail.json: /streams/0/cursor_field: ",
        "~/mail.json: /streams/0/query/search/lexical_fields/0: ",
    ]);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    declare(&home, "{").refused_saying(&["~/mail.json: (whole file): "]);
    assert_eq!(home.data_dir().exists(), home.is_served());
}

#[test]
fn a_byte_order_mark_is_let_be_and_what_is_no_text_is_named() {
    let home = Home::new();
    let ran = declare(&home, &format!("\u{feff}{MAIL}")).succeeds();
    assert_eq!(ran.stdout, "mail\n");
    let file = home.path("latin.json");
    std::fs::write(&file, b"{\"a\":\"\xe9\"}").unwrap();
    home.run(format!("declare {}", file.display())).refused(
        "error: ~/latin.json: it is not UTF-8 (at byte 6)\nhint: save it as UTF-8 and try again",
    );
}

#[test]
fn a_version_has_one_content_for_ever() {
    let home = Home::with_mail();
    let changed = MAIL.replace("\"Mail\"", "\"Other\"");
    declare(&home, &changed).refused_saying(&["~/mail.json: /declaration_version: "]);
    let version = |number| format!("\"declaration_version\": \"{number}\"");
    let second = changed.replace(&version(1), &version(2));
    let ran = declare(&home, &second).succeeds();
    assert_eq!(ran.stderr, "Updated to version 2.\n");
    declare(&home, &changed).refused_saying(&[
        "~/mail.json: /declaration_version: version \"1\" was registered before with other content",
    ]);
    let ran = declare(&home, MAIL).succeeds();
    assert_eq!(
        ran.stderr,
        "Back at version 1, which was registered before.\n"
    );
}
