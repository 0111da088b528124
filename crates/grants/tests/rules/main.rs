//! The rules of grants, run against the embedded store.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed set-up is a failed test"
)]

mod asking;
mod details;
mod disclosing;
mod flags;
mod tokens;
mod world;
