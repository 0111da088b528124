//! Somebody who has nothing but the help texts: from an empty folder to an agent that reads, and the end of it. Whatever is
//! typed or written here was printed by a command before.

use std::fs;

use crate::harness::Home;
use crate::harness::server::Server;

/// The command a text shows that starts like this, without the explanation beside it.
fn shown(text: &str, start: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches("Then: "));
    let mut found = lines.rev().filter(|line| line.starts_with(start));
    let line = found.next().expect(start);
    line.split("  ").next().unwrap().to_owned()
}

#[test]
fn the_help_texts_lead_all_the_way() {
    let home = Home::new();
    let help = home.typed("pdpp --help").succeeds().stdout;

    // A declaration and a record, as the topic shows them.
    let topic = home
        .typed(&shown(&help, "pdpp help declarations"))
        .succeeds();
    let topic = topic.stdout;
    let start = topic.find("\n{\n").unwrap();
    let end = topic.find("\n}\n").unwrap();
    fs::write(home.path("notes.json"), &topic[start..end + 3]).unwrap();
    let record = topic
        .lines()
        .find(|line| line.starts_with("{\"id\""))
        .unwrap();
    fs::write(home.path("notes.jsonl"), format!("{record}\n")).unwrap();

    // The first steps and the topic agree.
    for step in ["pdpp declare", "pdpp connections add", "pdpp import"] {
        let line = shown(&help, step);
        assert_eq!(shown(&topic, step), line);
        home.typed(&line).succeeds();
    }
    let imported = home.typed("pdpp connections").succeeds().stdout;
    let connection = imported.lines().nth(1).unwrap();
    let connection = connection.split_whitespace().next().unwrap();

    // Found, read on, and fetched.
    let hits = home.typed(&shown(&help, "pdpp search")).succeeds().stdout;
    let read = home.typed(&shown(&hits, "pdpp read")).succeeds().stdout;
    assert!(read.starts_with("Garden plan\n"), "{read}");
    let whole = home.typed(&shown(&hits, "pdpp fetch")).succeeds().stdout;
    assert!(whole.contains("Beans by the wall."), "{whole}");

    // An agent is let in, at the terminal and by the server.
    let topic = home.typed("pdpp help grants").succeeds().stdout;
    let create = shown(&topic, "pdpp grant create");
    let create = create.replace("NAME", "agent").replace("ID", connection);
    let token = home.typed(&create).succeeds().stdout;
    let server = Server::start(&home);
    let asked = "GET /v1/search?q=garden";
    let (status, found) = server.ask(asked, Some(token.trim()), "");
    assert_eq!(
        (status, found["data"][0]["title"].as_str()),
        (200, Some("Garden plan"))
    );
    let setup = home.typed(&shown(&help, "pdpp setup")).succeeds().stdout;
    assert!(setup.contains("claude mcp add --transport http pdpp http://"));

    // What was granted, what it was used for, and its end.
    let grants = home.typed("pdpp grants").succeeds().stdout;
    let id = grants.lines().nth(1).unwrap().split_whitespace().next();
    let id = id.unwrap();
    let eyes = shown(&topic, "pdpp query STREAM --grant ID");
    let eyes = eyes.replace("STREAM", "notes").replace("ID", id);
    assert!(home.typed(&eyes).succeeds().stdout.contains("1 record."));
    let revoke = shown(&help, "pdpp grant revoke").replace("ID", id);
    home.typed(&revoke).succeeds();
    let (status, _) = server.ask(asked, Some(token.trim()), "");
    assert_eq!(status, 403);
    let log = home
        .typed(&format!("pdpp grant show {id}"))
        .succeeds()
        .stdout;
    assert!(
        log.contains("search: ") && log.contains("notes:n1"),
        "{log}"
    );
}
