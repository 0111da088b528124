//! Reading from another server with the credential in a file.

use serde_json::{Value, json};

use super::desk::library;
use crate::harness::server::Server;
use crate::harness::{Home, Ran};

/// Another machine: a home without data, and the options that read from a server there.
struct Machine {
    home: Home,
    options: String,
}

impl Machine {
    fn with_credential(address: &str, credential: &Value) -> Self {
        let home = Home::new();
        home.keep_credential(address, credential);
        let options = format!("--provider-url http://{address} --cache-root ~/cache");
        Self { home, options }
    }

    fn read(&self, line: &str) -> Ran {
        self.home.run(format!("{line} {}", self.options))
    }
}

#[test]
fn what_keeps_a_server_from_being_read_is_told_by_exit_code() {
    let nobody = Machine::with_credential("127.0.0.1:9", &json!({"access_token": "sesame-open"}));
    nobody.read("schema").exits(69);
    let owner = json!({"access_token": "x", "token_kind": "owner"});
    let owner = Machine::with_credential("127.0.0.1:9", &owner);
    owner.read("search x").exits(77);

    let home = library();
    home.end_server();
    let server = Server::start(&home);
    let unknown = json!({"access_token": "pdpp_at_unknown"});
    let unknown = Machine::with_credential(&server.address, &unknown);
    let ran = unknown.read("schema").exits(78);
    ran.says(format!(
        "hint: run `pdpp connect http://{} --cache-root ~/cache`",
        server.address
    ));
    ran.hides("pdpp_at");
    // Nothing was opened here.
    assert!(!unknown.home.data_dir().exists());
}

// TR-24: an owner's token that its file calls a client's shows nothing; our server names the kind in every answer.
#[test]
fn an_owners_token_labelled_a_clients_shows_nothing() {
    let home = library();
    home.end_server();
    let server = Server::start(&home);
    let token = home.run("owner-token").succeeds().stdout;
    for label in [json!({"pdpp_token_kind": "client"}), json!({})] {
        let mut credential = label;
        credential["access_token"] = token.trim().into();
        let machine = Machine::with_credential(&server.address, &credential);
        for line in [
            "schema",
            "search salt",
            "query books",
            "query books --json",
            "fetch library-home/books:b1",
            "read library-home/books:b1 text",
            "aggregate books count",
        ] {
            let ran = machine.read(line).exits(77);
            assert!(!ran.stdout.contains("salt"), "{line} {ran:?}");
            ran.says("owner's");
        }
    }
}
