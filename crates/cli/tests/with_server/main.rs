//! The tests of the commands once more, this time while a server runs over the same data directory: nothing that a command
//! prints, writes or answers may differ.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

#[path = "../grants/afterwards.rs"]
mod afterwards;
#[path = "../../../ingest/tests/archives/mod.rs"]
mod archives;
#[path = "../reads/continuing.rs"]
mod continuing;
#[path = "../declare.rs"]
mod declare;
#[path = "../reads/desk.rs"]
mod desk;
#[path = "../export.rs"]
mod export;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../import.rs"]
mod import;
#[path = "../grants/issuing.rs"]
mod issuing;
#[path = "../known_exports.rs"]
mod known_exports;
#[path = "../reads/refusing.rs"]
mod refusing;
#[path = "../grants/secrets.rs"]
mod secrets;
#[path = "../reads/showing.rs"]
mod showing;
#[path = "../tables.rs"]
mod tables;
#[path = "../grants/world.rs"]
mod world;
