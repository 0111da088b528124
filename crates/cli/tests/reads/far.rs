//! Reading from another server with the credential in a file.

use serde_json::{Value, json};

use crate::desk::library;
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
