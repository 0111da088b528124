//! `pdpp model`: adding a sentence model, searching by what records mean, and removing it, with and without a server.

use std::time::{Duration, Instant};

use crate::harness::server::Server;
use crate::harness::{Home, MAIL};
use testkit::tiny_model;

const LETTERS: &str = r#"{"id":"a","subject":"Tuesday","body":"We sold the automobile.","sent_at":"2026-01-05T00:00:00Z"}
{"id":"b","subject":"Friday","body":"A dinner in town","sent_at":"2026-06-05T00:00:00Z"}
"#;

fn home() -> (Home, String) {
    let home = Home::new();
    let file = home.file("mail.json", MAIL);
    home.run(format!("declare {file}")).succeeds();
    home.run("connections add mail --name Work").succeeds();
    home.import_messages(LETTERS).succeeds();
    let folder = home.path("tiny");
    tiny_model::write(&folder).unwrap();
    (home, folder.display().to_string())
}

#[test]
fn a_model_is_added_used_and_removed() {
    // FI-43
    let (home, folder) = home();
    let refused = home.run("search car --mode semantic").exits(1);
    refused.says_all(&["no sentence model", "pdpp model add"]);
    home.run("model show").exits(1).says("pdpp model add");
    let added = home.run(format!("model add {folder}")).succeeds();
    added.says_all(&["model tiny", "0 of 2 records", "model embed"]);
    home.run("model embed").succeeds().says("all 2 records");
    home.run("model show")
        .succeeds()
        .shows_all(&["model tiny, 64 numbers a vector"]);
    for mode in ["semantic", "hybrid"] {
        let ran = home.run(format!("search car --mode {mode}"));
        ran.succeeds().shows_all(&[
            "Tuesday",
            "by meaning, no word matched: body: We sold the automobile.",
            "pdpp read",
        ]);
    }
    home.run("search car --mode magic").exits(2);
    home.run("model remove")
        .succeeds()
        .says("Removed the model tiny");
    home.run("search car --mode hybrid").exits(1);
}

#[test]
fn a_folder_that_is_no_model_is_refused_with_what_is_missing() {
    let (home, folder) = home();
    std::fs::remove_file(std::path::Path::new(&folder).join("tokenizer.json")).unwrap();
    let refused = home.run(format!("model add {folder}")).exits(1);
    refused.says_all(&["tokenizer.json is missing", "sentence-transformers"]);
    home.run("model show").exits(1);
}

#[test]
fn a_server_makes_vectors_in_the_background() {
    // FI-44
    let (home, folder) = home();
    let server = Server::start(&home);
    home.run(format!("model add {folder}")).succeeds();
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let shown = home.run("model show --json").json();
        if shown["embedded"] == shown["records"] {
            break;
        }
        assert!(Instant::now() < end, "{shown}");
        std::thread::sleep(Duration::from_millis(100));
    }
    home.run("search car --mode semantic")
        .succeeds()
        .shows_all(&["by meaning"]);
    let (_, ready) = server.ask("GET /readyz", None, "");
    assert_eq!(ready["meaning"]["state"], "current");
}
