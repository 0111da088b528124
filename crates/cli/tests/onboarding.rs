//! The way in: what `pdpp doctor` says about the data here, and what the documents recommend.

use std::fs;

use crate::harness::server::Server;
use crate::harness::{Home, allow};

#[test]
fn the_local_data_is_examined_with_and_without_a_server() {
    let home = Home::with_mail();
    home.run("doctor").succeeds().shows_all(&[
        "ok    data     ~/data, for this user only\n",
        "ok    server   none runs; commands open the data themselves\n",
        "ok    index    can be searched, and holds every record\n",
    ]);
    let server = Server::start(&home);
    let well = home.run("doctor").succeeds();
    well.shows("ok    server   runs, and answers on its socket\n");
    drop(server);
    let killed = home.run("doctor").exits(1);
    killed.shows("FAIL  server   ended without removing its socket");
    allow(&home.data_dir(), 0o755);
    home.run("doctor").shows_all(&[
        "FAIL  data     ~/data can be looked into by other users",
        "do: chmod 700 '~/data'",
    ]);
}

#[test]
fn the_documents_recommend_one_way_and_name_no_profile() {
    // SU-01, SU-02, SU-04, SU-05
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let commands = fs::read_to_string(format!("{root}/docs/cli.md")).unwrap();
    let (_, section) = commands.split_once("### Recommended\n").unwrap();
    let (recommended, others) = section.split_once("### Other ways\n").unwrap();
    assert_eq!(recommended.matches("/mcp`").count(), 1, "{recommended}");
    assert!(others.contains("`pdpp mcp`"), "{others}");
    let words: Vec<&str> = recommended.split(|c: char| !c.is_alphanumeric()).collect();
    for word in [
        "core", "events", "full", "profile", "toolset", "token", "bearer", "env",
    ] {
        assert!(!words.contains(&word), "{word} in {recommended}");
    }
    let home = Home::new();
    let configuration = fs::read_to_string(format!("{root}/docs/configuration.md")).unwrap();
    let readme = fs::read_to_string(format!("{root}/README.md")).unwrap();
    let mut texts = vec![commands, configuration, readme];
    for command in [
        "mcp", "connect", "setup", "doctor", "schema", "search", "query", "fetch", "read",
    ] {
        let help = home.run(format!("{command} --help")).succeeds();
        texts.push(help.stdout + &help.stderr);
    }
    for text in texts {
        let text = text.to_lowercase();
        for word in ["profile", "toolset"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
