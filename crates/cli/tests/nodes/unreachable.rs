//! A node whose database goes away while it runs: it says that it is not ready, refuses with a cause that may pass, and goes on
//! by itself.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::ready::{until_not_ready, until_ready};
use super::{Nodes, import};
use crate::harness::MAIL;

/// Passes bytes on to the database until it is cut, and again when it is mended.
struct Relay {
    address: String,
    /// What is open; nothing is taken while there is no list.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Relay {
    fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let (server, streams) = (server.to_owned(), Arc::clone(&open));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
                if let (Some(streams), Ok(database)) = (&mut *streams, TcpStream::connect(&server))
                {
                    pass(&client, &database);
                    pass(&database, &client);
                    streams.extend([client, database]);
                }
            }
        });
        Self { address, open }
    }

    fn cut(&self) {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        for stream in open.into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }
}

fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[test]
fn a_node_whose_database_goes_away_is_not_ready_and_goes_on_when_it_is_back() {
    let Some(mut nodes) = Nodes::new() else {
        return;
    };
    let url = nodes.url.clone();
    let (who, place) = url.split_once('@').unwrap();
    let (server, rest) = place.split_once('/').unwrap();
    let relay = Relay::to(server);
    nodes.url = format!("{who}@{}/{rest}", relay.address);
    let node = nodes.start("a");
    let declaration = nodes.home.file("mail.json", MAIL);
    nodes.run("a", &format!("declare {declaration}")).succeeds();
    nodes
        .run("a", "connections add mail --name Work")
        .succeeds();
    let token = nodes.run("a", "owner-token").succeeds().stdout;
    let token = Some(token.trim());
    import(&nodes, "a", "m1", "kept");
    until_ready(&node);
    relay.cut();
    until_not_ready(&node, "the server's database does not answer");
    let (status, refused) = node.ask("GET /v1/search?q=kept", token, "");
    assert_eq!(status, 503, "{refused}");
    assert!(!refused.to_string().contains(who), "{refused}");
    assert!(!refused.to_string().contains(&relay.address), "{refused}");
    let (status, refused) = node.ask("POST /mcp", token, "{}");
    assert_eq!(status, 503, "{refused}");
    let line = r#"{"id":"m2","subject":"lost?"}"#;
    let file = nodes.home.file("m2.jsonl", line);
    nodes
        .run("a", &format!("import {file} --as mail/messages"))
        .refused_saying(&["database"]);
    relay.mend();
    until_ready(&node);
    let (_, found) = node.ask("GET /v1/search?q=kept", token, "");
    assert_eq!(found["data"][0]["record_key"], "m1", "{found}");
    // What was refused comes again, once.
    nodes
        .run("a", &format!("import {file} --as mail/messages"))
        .succeeds();
    let (_, found) = node.ask("GET /v1/search?q=lost&count=exact", token, "");
    assert_eq!(found["meta"]["count"], 1, "{found}");
}
