//! `pdpp serve --demo`: the sample life is loaded once, and never into somebody's own data.

use std::collections::BTreeMap;
use std::fs;

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
