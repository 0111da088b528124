//! Registering declarations, and what a later version may change.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use harness::{Home, MAIL, Ran};

fn declare(home: &Home, text: &str) -> Ran {
    let file = home.file("mail.json", text);
    home.run(&["declare", &file])
}

#[test]
fn the_connector_key_is_printed() {
    let home = Home::new();
    let ran = declare(&home, MAIL).succeeds();
    assert_eq!(ran.stdout, "mail\n");
    assert_eq!(
        ran.stderr,
        "Registered. Next: pdpp connections add mail --name NAME\n"
    );
    let again = declare(&home, MAIL).succeeds();
    assert_eq!(again.stdout, "mail\n");
    assert_eq!(again.stderr, "Registered already, nothing changed.\n");
    let json = home
        .run_with(&["declare", "-", "--json"], MAIL.as_bytes())
        .succeeds();
    assert_eq!(
        json.stdout,
        "{\"connector_key\":\"mail\",\"result\":\"unchanged\"}\n"
    );
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
fn a_file_that_is_not_there_is_named() {
    let home = Home::new();
    let missing = home.path("none.json");
    home.run(&["declare", missing.to_str().unwrap()])
        .refused("error: ~/none.json: No such file or directory (os error 2)");
}

#[test]
fn a_byte_order_mark_is_let_be_and_what_is_no_text_is_named() {
    let home = Home::new();
    let ran = declare(&home, &format!("\u{feff}{MAIL}")).succeeds();
    assert_eq!(ran.stdout, "mail\n");
    let file = home.path("latin.json");
    std::fs::write(&file, b"{\"a\":\"\xe9\"}").unwrap();
    home.run(&["declare", file.to_str().unwrap()]).refused(
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

#[test]
fn a_type_behind_a_reference_is_held_shown_and_filtered_by() {
    let home = Home::new();
    let referring = MAIL
        .replace(
            "\"size\": {\"type\": \"integer\"}",
            "\"size\": {\"$ref\": \"#/$defs/size\"}",
        )
        .replace(
            "\"schema\": {",
            "\"schema\": {\"$defs\": {\"size\": {\"anyOf\": [{\"type\": \"integer\"}, {\"type\": \"null\"}]}},",
        );
    assert_ne!(referring, MAIL);
    declare(&home, &referring).succeeds();
    home.run(&["connections", "add", "mail", "--name", "Work"])
        .succeeds();
    let lines = "{\"id\":\"a\",\"subject\":\"x\",\"size\":1}\n{\"id\":\"b\",\"size\":\"2\"}\n";
    let ran = home.import_messages(lines);
    let words = "field 'size' must be integer or null, got '2'";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    let found = home
        .run(&["query", "messages", "--filter", "size=1", "--json"])
        .succeeds();
    assert!(
        found.stdout.contains("\"subject\":\"x\""),
        "{}",
        found.stdout
    );
}

#[test]
fn a_later_version_may_add_and_its_new_field_is_searchable_at_once() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"x\",\"folder\":\"inbox\"}\n")
        .succeeds();
    let later = MAIL
        .replace(
            "\"declaration_version\": \"1\"",
            "\"declaration_version\": \"2\"",
        )
        .replace(
            "\"size\": {",
            "\"folder\": {\"type\": \"string\"}, \"size\": {",
        )
        .replace(
            "[\"subject\", \"body\"]",
            "[\"subject\", \"body\", \"folder\"]",
        );
    let ran = declare(&home, &later).succeeds();
    assert_eq!(ran.stderr, "Updated to version 2.\n");
}

#[test]
fn what_has_data_cannot_be_removed_or_retyped() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"x\",\"size\":1}\n")
        .succeeds();
    let later = MAIL.replace(
        "\"declaration_version\": \"1\"",
        "\"declaration_version\": \"2\"",
    );
    for (from, to, path) in [
        (
            "\"size\": {\"type\": \"integer\"}",
            "\"size\": {\"type\": \"string\"}",
            "/streams/0/schema/properties/size",
        ),
        (
            "\"size\": {\"type\": \"integer\"},",
            "",
            "/streams/0/schema/properties",
        ),
        (
            "\"primary_key\": [\"id\"]",
            "\"primary_key\": [\"subject\"]",
            "/streams/0/primary_key",
        ),
        (
            "\"mutable_state\"",
            "\"append_only\"",
            "/streams/0/semantics",
        ),
    ] {
        let changed = later.replace(from, to);
        assert_ne!(changed, later);
        declare(&home, &changed).refused_saying(&[&format!("~/mail.json: {path}")]);
    }
    // Without the record in the way, the type may change.
    home.import_messages("{\"key\":\"a\",\"op\":\"delete\"}\n")
        .succeeds();
    let retyped = later.replace(
        "\"size\": {\"type\": \"integer\"}",
        "\"size\": {\"type\": \"string\"}",
    );
    declare(&home, &retyped).succeeds();
}
