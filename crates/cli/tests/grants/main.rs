//! Granting at the terminal: what is issued, shown, listed, revoked and verified, and that no secret shows elsewhere.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod afterwards;
#[path = "../harness/mod.rs"]
mod harness;
mod issuing;
mod secrets;
mod world;
