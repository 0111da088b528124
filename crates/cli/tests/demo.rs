//! `pdpp serve --demo`: the sample life is loaded once, and never into somebody's own data.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread::spawn;
use std::time::Duration;

use harness::Home;

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// A server that is ended with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts with the sample life; gives what was told before the address, and the address.
    fn start(home: &Home) -> (Self, Vec<String>, String) {
        let mut child = home
            .command(&["serve", "--demo", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let server = Self(child);
        let (send, receive) = mpsc::channel();
        spawn(move || {
            for line in stderr.lines() {
                // Nobody listens to a server that took too long.
                let _ = send.send(line.unwrap());
            }
        });
        let mut told = Vec::new();
        loop {
            let line = receive.recv_timeout(PATIENCE).unwrap();
            match line.strip_prefix("API: http://") {
                Some(rest) => {
                    let address = rest.strip_suffix("/v1").unwrap().to_owned();
                    return (server, told, address);
                }
                None => told.push(line),
            }
        }
    }

    /// Asks it to stop and waits until it has.
    fn stop(mut self) {
        let id = self.0.id().to_string();
        let sent = std::process::Command::new("kill").arg(&id).status();
        assert!(sent.unwrap().success());
        self.0.wait().unwrap();
    }
}

fn status(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

/// What the connections hold.
fn connections(home: &Home) -> BTreeMap<String, u64> {
    let listed = home.run(&["connections", "--json"]).succeeds().json();
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
    let (server, told, address) = Server::start(&home);
    let [loaded] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(status(&address, "/healthz"), "200");
    server.stop();
    let held = connections(&home);
    assert_eq!(held.len(), 10);
    let words = loaded.split(' ').collect::<Vec<_>>();
    assert_eq!(words[..2], ["Demo:", "loaded"]);
    let held_records: u64 = held.values().sum();
    let count: u64 = words[2].replace(',', "").parse().unwrap();
    assert!(count > 19_000 && count == held_records, "{loaded}");

    let (server, told, address) = Server::start(&home);
    assert_eq!(told, ["Demo: the sample life is here already."]);
    assert_eq!(status(&address, "/healthz"), "200");
    server.stop();
    assert_eq!(connections(&home), held);
}

#[test]
fn a_directory_with_other_data_is_refused_and_left_alone() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"mine\"}\n")
        .succeeds();
    let before = (connections(&home), home.messages());
    home.run(&["serve", "--demo", "--listen", "127.0.0.1:0"])
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
    home.run(&["serve", "--demo", "--listen", "127.0.0.1:0"])
        .refused_saying(&["diary.txt"]);
    let left: Vec<_> = names(&home.data_dir());
    assert_eq!(left, ["diary.txt"]);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
