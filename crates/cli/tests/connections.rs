//! Adding, listing, renaming and removing connections.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use harness::{Home, MAIL};

#[test]
fn a_connection_is_added_listed_and_renamed() {
    let home = Home::new();
    let empty = home.run(&["connections"]).succeeds();
    assert_eq!(empty.stdout, "");
    assert_eq!(
        empty.stderr,
        "No connections yet.\nhint: ~/data holds nothing yet; if your data is elsewhere, name its folder with --data-dir\nhint: register a source with `pdpp declare FILE`; `pdpp help declarations` shows how to write one\nhint: or look around in a sample life with `pdpp serve --demo`\n"
    );
    let file = home.file("mail.json", MAIL);
    home.run(&["declare", &file]).succeeds();
    let added = home
        .run(&["connections", "add", "mail", "--name", "Work mail"])
        .succeeds();
    assert_eq!(added.stdout, "mail-work-mail\n");
    assert_eq!(
        added.stderr,
        "Added 'Work mail'. Next: pdpp import FILE --connection mail-work-mail\n"
    );
    let added = home
        .run(&[
            "connections",
            "add",
            "mail",
            "--name",
            "Home",
            "--id",
            "home",
            "--json",
        ])
        .succeeds();
    assert_eq!(
        added.stdout,
        "{\"connection_id\":\"home\",\"connector_key\":\"mail\",\"display_name\":\"Home\"}\n"
    );
    let renamed = home
        .run(&["connections", "rename", "home", "At\u{7}home"])
        .succeeds();
    assert_eq!(renamed.stderr, "'home' is now called 'At\\u{7}home'.\n");
    let lines = "{\"id\":\"a\"}\n{\"id\":\"b\"}\n";
    home.run_with(
        &[
            "import",
            "-",
            "--as",
            "mail/messages",
            "--connection",
            "home",
        ],
        lines.as_bytes(),
    )
    .succeeds();
    assert_eq!(
        home.run(&["connections"]).succeeds().stdout,
        "ID              CONNECTOR  RECORDS  NAME\nmail-work-mail  mail             0  Work mail\nhome            mail             2  At\\u{7}home\n"
    );
    assert_eq!(
        home.run(&["connections", "--json"]).succeeds().stdout,
        "[{\"connection_id\":\"mail-work-mail\",\"connector_key\":\"mail\",\"display_name\":\"Work mail\",\"records\":0},{\"connection_id\":\"home\",\"connector_key\":\"mail\",\"display_name\":\"At\\u0007home\",\"records\":2}]\n"
    );
}

#[test]
fn what_cannot_be_added_or_renamed_is_told_with_the_next_step() {
    let home = Home::with_mail();
    home.run(&["connections", "add", "chat", "--name", "x"])
        .refused("error: connector 'chat' is not declared\nhint: declared: mail; register another with `pdpp declare FILE`");
    home.run(&["connections", "add", "mial", "--name", "x"])
        .refused("error: connector 'mial' is not declared\nhint: did you mean 'mail'?\nhint: declared: mail; register another with `pdpp declare FILE`");
    home.run(&["connections", "add", "mail", "--name", "x", "--id", "mail-work"]).refused(
        "error: a connection 'mail-work' exists already. Choose another --id, or rename it with `pdpp connections rename`.",
    );
    let unknown = "error: there is no connection 'gone'\nhint: configured: mail-work ('Work')";
    home.run(&["connections", "rename", "gone", "x"])
        .refused(unknown);
    home.run(&["connections", "remove", "gone", "--yes"])
        .refused(unknown);
    home.run(&["connections", "rename", "mail-wrok", "x"])
        .refused("error: there is no connection 'mail-wrok'\nhint: did you mean 'mail-work'?\nhint: configured: mail-work ('Work')");
    let second = home
        .run(&["connections", "add", "mail", "--name", "Work"])
        .succeeds();
    assert_eq!(second.stdout, "mail-work-2\n");
}

#[test]
fn removing_needs_a_yes_and_erases_everything() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"quixotic\"}\n")
        .succeeds();
    home.run(&["connections", "remove", "mail-work"]).refused(
        "error: removing 'Work' would erase its 1 records, and there is no terminal to ask on\nhint: pdpp connections remove mail-work --yes",
    );
    let removed = home
        .run(&["connections", "remove", "mail-work", "--yes"])
        .succeeds();
    assert_eq!(
        removed.stderr,
        "Removed 'Work': 1 records and 0 blobs erased.\n"
    );
    assert_eq!(
        home.run(&["connections", "--json"]).succeeds().stdout,
        "[]\n"
    );
    assert!(
        !holds(&home.data_dir(), b"quixotic"),
        "the text is still on disk"
    );

    home.run(&["connections", "add", "mail", "--name", "Work"])
        .succeeds();
    let json = home
        .run(&["connections", "remove", "mail-work", "--yes", "--json"])
        .succeeds();
    assert_eq!(
        json.stdout,
        "{\"connection_id\":\"mail-work\",\"records\":0,\"blobs\":0}\n"
    );
}

/// Whether any file below the folder holds the bytes.
fn holds(folder: &std::path::Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        if !path.is_file() {
            return false;
        }
        let content = std::fs::read(&path).unwrap();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}
