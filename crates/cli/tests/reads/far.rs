//! Reading from another server with the credential in a file.

use std::fs;

use serde_json::{Value, json};

use crate::desk::{command, grant, library, read, verbatim};
use crate::harness::Home;
use crate::harness::server::Server;

/// Another machine: a home without data, and the options that read from a server there.
struct Machine {
    home: Home,
    options: [String; 4],
}

impl Machine {
    fn with_credential(address: &str, credential: &Value) -> Self {
        let home = Home::new();
        let folder = home.path("cache/clients");
        fs::create_dir_all(&folder).unwrap();
        let name = format!("{}.json", address.replace(':', "_"));
        fs::write(
            folder.join(name),
            json!({"credential": credential}).to_string(),
        )
        .unwrap();
        let options = [
            "--provider-url".to_owned(),
            format!("http://{address}"),
            "--cache-root".to_owned(),
            home.path("cache").to_str().unwrap().to_owned(),
        ];
        Self { home, options }
    }

    fn read(&self, args: &[&str]) -> crate::harness::Ran {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        read(&self.home, &[args, &options].concat())
    }
}

#[test]
fn a_server_is_read_with_the_stored_credential() {
    let home = library();
    let (_, token) = grant(&home, &["--stream", "books", "--fields", "id,title,text"]);
    home.end_server();
    let server = Server::start(&home);
    let machine = Machine::with_credential(&server.address, &json!({"access_token": token}));
    for (args, request) in [
        (&["schema"][..], "schema"),
        (&["search", "salt"], "search?q=salt"),
        (&["query", "books"], "streams/books/records"),
        (
            &["fetch", "library-home/books:b1"],
            "streams/books/records/b1?connection_id=library-home",
        ),
    ] {
        let printed = machine
            .read(&[args, &["--json"]].concat())
            .succeeds()
            .json();
        let (_, body) = server.ask(&format!("GET /v1/{request}"), Some(&token), "");
        assert_eq!(printed, body, "{args:?}");
    }
    let shown = machine.read(&["search", "lamp"]).succeeds().stdout;
    let line = command(&shown, "pdpp read library-home/books:b1");
    assert!(
        line.ends_with(&format!(
            "--provider-url http://{} --cache-root ~/cache",
            server.address
        )),
        "{line}"
    );
    let window = verbatim(&machine.home, &line).succeeds().stdout;
    assert!(window.contains("lamp"), "{window}");
    // Nothing was opened here.
    assert!(!machine.home.data_dir().exists());
}

#[test]
fn what_keeps_a_server_from_being_read_is_told_by_exit_code() {
    let nobody = Machine::with_credential("127.0.0.1:9", &json!({"access_token": "sesame-open"}));
    let ran = nobody.read(&["schema"]);
    assert_eq!(ran.code, Some(69), "{ran:?}");
    let owner = Machine::with_credential(
        "127.0.0.1:9",
        &json!({"access_token": "x", "token_kind": "owner"}),
    );
    assert_eq!(owner.read(&["search", "x"]).code, Some(77));
    let none = Home::new();
    let root = none.path("cache").to_str().unwrap().to_owned();
    let ran = read(
        &none,
        &[
            "query",
            "books",
            "--provider-url",
            "http://127.0.0.1:9",
            "--cache-root",
            &root,
        ],
    );
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(
        ran.stderr.contains("pdpp connect http://127.0.0.1:9"),
        "{ran:?}"
    );
    let ran = read(&none, &["schema", "--provider-url", "ftp://x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = none
        .command(&["schema", "--grant", "g"])
        .env("PDPP_PROVIDER_URL", "http://127.0.0.1:9")
        .output();
    assert_eq!(ran.unwrap().status.code(), Some(2));

    let home = library();
    home.end_server();
    let server = Server::start(&home);
    let unknown =
        Machine::with_credential(&server.address, &json!({"access_token": "pdpp_at_unknown"}));
    let ran = unknown.read(&["schema"]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    let again = format!(
        "hint: run `pdpp connect http://{} --cache-root ~/cache`",
        server.address
    );
    assert!(
        ran.stderr.contains(&again) && !ran.stderr.contains("pdpp_at"),
        "{ran:?}"
    );
}

// TR-24: an owner's token that its file calls a client's shows nothing; our server names the kind in every answer.
#[test]
fn an_owners_token_labelled_a_clients_shows_nothing() {
    let home = library();
    home.end_server();
    let server = Server::start(&home);
    let token = home.run(&["owner-token"]).succeeds().stdout;
    for label in [json!({"pdpp_token_kind": "client"}), json!({})] {
        let mut credential = label;
        credential["access_token"] = token.trim().into();
        let machine = Machine::with_credential(&server.address, &credential);
        for args in [
            &["schema"][..],
            &["search", "salt"],
            &["query", "books"],
            &["query", "books", "--json"],
            &["fetch", "library-home/books:b1"],
            &["read", "library-home/books:b1", "text"],
            &["aggregate", "books", "count"],
        ] {
            let ran = machine.read(args);
            assert_eq!(ran.code, Some(77), "{args:?} {ran:?}");
            assert!(!ran.stdout.contains("salt"), "{args:?} {ran:?}");
            assert!(ran.stderr.contains("owner's"), "{args:?} {ran:?}");
        }
    }
}
