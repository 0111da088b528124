//! The authorization server and the owner's pages over HTTP, as applications and browsers use them.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a broken fixture is a failed test"
)]

mod consent;
mod device;
mod fixture;
mod flows;
mod metadata;
mod pages;
mod refusals;
mod signing_in;
