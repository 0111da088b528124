//! Text from outside cannot steer the terminal, wherever it is repeated (decision 42).

use crate::harness::{Home, Ran};

fn is_plain(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        let steers =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(steers), "{ran:?}");
    }
}

#[test]
fn names_in_files_and_of_files_are_shown_by_their_numbers() {
    let home = Home::new();
    let file = home.file("bad.json", "{\"\\u001b]0;pwn\\u0007\":1}");
    let ran = home.run(format!("declare {file}"));
    is_plain(&ran);
    ran.says("\\u{1b}]0;pwn\\u{7}");
    let home = Home::with_mail();
    for args in [
        "declare no\u{1b}[2Jthing",
        "import no\u{1b}[2Jthing.csv",
        "grant create --client c --details \u{1b}[2J",
        "grant show \u{1b}[2J",
        "serve --listen \u{1b}[2J",
    ] {
        let ran = home.run(args);
        is_plain(&ran);
        ran.says("\\u{1b}[2J");
    }
}

#[test]
fn a_key_that_reorders_text_is_shown_by_its_number_and_one_without_an_id_says_so() {
    let home = Home::with_mail();
    home.import_messages(
        "{\"id\":\"a\\u202eb\",\"subject\":\"one\"}\n{\"id\":\"..\",\"subject\":\"two\"}\n",
    )
    .succeeds();
    let listed = home.run("query messages --fields id").succeeds();
    is_plain(&listed);
    listed.shows("mail-work/messages:a");
    listed.shows("  there is no id for the key '..', so fetch and read cannot name it; it is listed by its key:\n    pdpp query messages --connection-id mail-work --filter id=..\n");
    let found = home.run("query messages --connection-id mail-work --filter id=..");
    found.succeeds().shows("two");
    let searched = home.run("search two").succeeds();
    searched.shows("  there is no id for the key '..'");
}
