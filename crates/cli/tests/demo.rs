//! `pdpp serve --demo`: the sample life is loaded once, and never into somebody's own data.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::harness::server::Server;
use crate::harness::{Home, files};

const SERVE: &str = "serve --demo --listen 127.0.0.1:0";

fn connections(home: &Home) -> BTreeMap<String, u64> {
    let listed = home.run("connections --json").succeeds().json();
    let rows = listed.as_array().unwrap().iter();
    rows.map(|row| {
        let id = row["connection_id"].as_str().unwrap().to_owned();
        (id, row["records"].as_u64().unwrap())
    })
    .collect()
}

#[test]
fn an_empty_directory_is_filled_once_and_then_only_served() {
    let home = Home::new();
    let served = || {
        let mut server = Server::from_command(home.command(SERVE));
        assert_eq!(server.ask("GET /healthz", None, "").0, 200);
        let loading = std::mem::take(&mut server.loading);
        server.stop();
        loading
    };
    let loaded = served();
    let held = connections(&home);
    assert_eq!(held.len(), 10);
    let words = loaded.split_whitespace().collect::<Vec<_>>();
    assert_eq!(words[..2], ["Demo:", "loaded"]);
    let held_records: u64 = held.values().sum();
    let count: u64 = words[2].replace(',', "").parse().unwrap();
    assert!(count > 19_000 && count == held_records, "{loaded}");
    assert_eq!(served(), "Demo: the sample life is here already.\n");
    assert_eq!(connections(&home), held);
}

#[test]
fn a_directory_with_other_data_is_refused_and_left_alone() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"mine\"}\n")
        .succeeds();
    let before = (connections(&home), home.messages());
    home.run(SERVE)
        .refused(
            "error: ~/data holds other data, and the sample life would mix with it; nothing was changed\n\
             hint: choose an empty folder with --data-dir DIR, or serve what is there without --demo",
        );
    assert_eq!((connections(&home), home.messages()), before);
}

#[test]
fn a_folder_that_is_no_data_directory_is_refused_and_left_alone() {
    let home = Home::new();
    fs::create_dir(home.data_dir()).unwrap();
    fs::write(home.data_dir().join("diary.txt"), "mine").unwrap();
    home.run(SERVE).refused_saying(&["diary.txt"]);
    let left = files(&home.data_dir());
    assert_eq!(left, [home.data_dir().join("diary.txt")]);
}

/// Questions in one's own words, the records that answer them, and a word of each that the answer tells as found.
const QUESTIONS: [(&str, &str, &str); 5] = [
    ("bridge vendors", "mail-work m-04567", "vendors"),
    ("trains to Lyon", "mail-private m-01976", "trains"),
    ("nut allergy", "notes Family-Lina, health.md", "allergy"),
    (
        "What is Lina allergic to?",
        "notes Family-Lina, health.md",
        "allergic",
    ),
    (
        "which bridge vendr did we agree on",
        "mail-work m-04567",
        "agree",
    ),
];

/// Where the first hit of a page is, and the words that were found.
fn first(page: &Value) -> (String, String) {
    let hit = &page["data"][0];
    let text = |member: &str| hit[member].as_str().unwrap_or_default().to_owned();
    let place = text("connection_id") + " " + &text("record_key");
    (place, page["meta"]["words"]["found"].to_string())
}

/// What the tool `search` answers over `/mcp`.
fn searched_by_tool(server: &Server, token: &str, question: &str) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": question}}});
    let call = call.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{call}",
        call.len()
    );
    let answer = server.raw(&request);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut answer: Value = serde_json::from_str(body).unwrap();
    answer["result"]["structuredContent"]["data"].take()
}

#[test]
fn questions_in_ones_own_words_are_answered_first_on_every_surface() {
    // FI-05
    let home = Home::new();
    let server = Server::from_command(home.command(SERVE));
    let sources = "notes mail-work mail-private chat-tidewater calendar git-spanwatch";
    let create = format!("grant create --client agent --json --connection {sources}");
    let token = home.run(create).succeeds().text("access_token");
    for (question, place, word) in QUESTIONS {
        let query = question.replace(' ', "%20").replace('?', "%3F");
        let (status, rest) = server.ask(&format!("GET /v1/search?q={query}"), Some(&token), "");
        assert_eq!(status, 200, "{rest}");
        let tool = searched_by_tool(&server, &token, question);
        let command = home.run(format!("search '{question}' --json"));
        let command = command.succeeds().json();
        for (surface, page) in [("REST", &rest), ("tool", &tool), ("command", &command)] {
            let (found, words) = first(page);
            assert_eq!(found, place, "{question} by {surface}");
            assert!(
                words.contains(&format!("\"{word}\"")),
                "{question} by {surface}: {words}"
            );
        }
    }
    server.stop();
}
