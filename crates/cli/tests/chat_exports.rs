//! Chats as people download them: a file, one command, and they are found.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use harness::Home;

const TELEGRAM: &str = include_str!("../../ingest/tests/exports/telegram-account.json");

const WHATSAPP: &str = "1/2/24, 9:15 PM - Anna: The ferry leaves at nine\n\
    1/2/24, 9:15 PM - Ben: ok\n\
    1/2/24, 9:15 PM - Ben: ok\n\
    1/2/24, 9:16 PM - Anna: <Media omitted>\n";

#[test]
fn a_telegram_account_is_imported_with_nothing_declared_and_found() {
    let home = Home::new();
    let file = home.file("result.json", TELEGRAM);
    let first = home.run(format!("import {file}")).succeeds();
    first.says("Telegram");
    first.says("13 read, 13 added, 0 updated");
    let again = home.run(format!("import {file} --json")).succeeds().json();
    assert_eq!(
        (&again["unchanged"], &again["rejected"]),
        (&13.into(), &0.into())
    );
    let found = home.run("search timetable --json").succeeds().json();
    assert_eq!(
        found["data"][0]["record_key"], "user42-0000000017",
        "{found}"
    );
    assert_eq!(found["data"][0]["title"], "Noor Haddad", "{found}");
    let answers = home.run("query messages --filter reply_to_id=user42-0000000017 --json");
    let answers = answers.succeeds().json();
    assert_eq!(answers["data"].as_array().unwrap().len(), 2, "{answers}");
}

#[test]
fn a_whatsapp_chat_is_imported_with_nothing_declared_and_read_in_its_order() {
    let home = Home::new();
    let file = home.file("WhatsApp Chat with Trip.txt", WHATSAPP);
    let first = home.run(format!("import '{file}'")).succeeds();
    let note = "Note: no date in it tells the day from the month; they are read as month/day/year.";
    first.says("5 read, 5 added");
    first.says(note);
    let again = home
        .run(format!("import '{file}' --json"))
        .succeeds()
        .json();
    assert_eq!(
        (&again["unchanged"], &again["read"]),
        (&5.into(), &5.into())
    );
    assert_eq!(again["notes"].as_array().unwrap().len(), 1);
    let messages = home.run("query messages --sort sent_at --json");
    let messages = messages.succeeds().json();
    let texts: Vec<&str> = messages["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["data"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["The ferry leaves at nine", "ok", "ok", ""]);
    let found = home.run("search ferry --json").succeeds().json();
    assert_eq!(found["data"][0]["title"], "Trip", "{found}");
}

#[test]
fn a_chat_without_a_name_is_called_after_who_writes_in_it() {
    let home = Home::new();
    let file = home.file("_chat.txt", "[30.12.23, 21:15:01] Anna: hello\n");
    home.run(format!("import {file}")).succeeds();
    let chats = home.run("export chats").succeeds().stdout;
    assert!(chats.contains("\"name\":\"Anna\""), "{chats}");
    let file = home.file("_chat.txt", "[30.12.23, 21:15:01] Somebody joined\n");
    home.run(format!("import {file}"))
        .refused_saying(&["_chat.txt", "name the file after the person or group"]);
}
