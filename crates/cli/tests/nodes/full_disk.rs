//! A node whose own disk is full: it says so, and what it acknowledged is in the database and found through the others. It needs a
//! small disk at `TEST_SMALL_DISK`, which `scripts/cluster` mounts where it runs as root.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Nodes;
use super::ready::{count, declared, until_not_ready, until_ready, write};
use crate::harness::server::{Server, status_in};

fn small_disk() -> Option<PathBuf> {
    std::env::var_os("TEST_SMALL_DISK").map(PathBuf::from)
}

/// Takes all room that the disk has.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    for size in [1 << 20, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    path
}

#[test]
fn a_node_whose_disk_is_full_is_not_ready_and_loses_nothing() {
    let (Some(nodes), Some(disk)) = (Nodes::new(), small_disk()) else {
        return;
    };
    let on_small_disk = || -> Command {
        let mut serving = nodes.serving("small");
        serving.env("PDPP_DATA_DIR", disk.join(&nodes.owner));
        serving
    };
    let a = nodes.start("a");
    let token = declared(&nodes);
    let node = Server::from_command(on_small_disk());
    assert_eq!(status_in(&write(&node, &token, "m0").0), 200);
    until_ready(&node);
    let filler = fill(&disk);
    let full = "the server's disk has 0 MiB of room left, and 16 MiB are needed";
    until_not_ready(&node, full);
    // The records are not on this disk.
    for number in 1..20 {
        let (head, body) = write(&node, &token, &format!("m{number}"));
        assert_eq!(status_in(&head), 200, "{body}");
    }
    // They are found through the other node, and this one does not answer as if they were not there.
    assert_eq!(count(&a, &token), 20);
    let search = "GET /v1/search?q=waits&count=exact";
    let (status, found) = node.ask(search, Some(&token), "");
    match status {
        200 => assert_eq!(found["meta"]["recall"]["complete"], false, "{found}"),
        _ => assert!(found.to_string().contains(full), "{status}: {found}"),
    }
    let page = "GET /v1/streams/messages/records?limit=1";
    assert_eq!(node.ask(page, Some(&token), "").0, 200);
    let told = node.stop();
    let next = "needs 16 MiB of room and the disk has 0 MiB. Make room";
    assert!(told.contains(next), "{told}");
    let again = Server::from_command(on_small_disk());
    until_not_ready(&again, full);
    drop(again);
    std::fs::remove_file(filler).unwrap();
    let node = Server::from_command(on_small_disk());
    until_ready(&node);
    assert_eq!(count(&node, &token), 20);
    drop((a, node));
}
