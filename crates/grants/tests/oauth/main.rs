//! The rules of the authorization server and of signing in, run against the embedded store.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed set-up is a failed test"
)]

mod clients;
mod codes;
mod devices;
mod flow;
mod previews;
mod refreshing;
mod requests;
mod reviews;
mod secrets;
mod signing_in;
mod tokens;
#[expect(dead_code, reason = "the other tests of this crate use the rest of it")]
#[path = "../rules/world.rs"]
mod world;
