//! The authorization server and the owner's pages over HTTP, as applications and browsers use them.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a broken fixture is a failed test"
)]

mod activity;
mod apart;
mod asking;
mod browsing;
mod budgets;
mod consent;
mod device;
mod fixture;
mod flows;
mod granting;
mod keeping;
#[path = "../http/listening.rs"]
mod listening;
mod metadata;
mod pages;
mod reading;
mod refusals;
mod secrets;
mod seen_as;
mod sessions;
#[path = "../shared/mod.rs"]
mod shared;
mod signing_in;
mod tables;
mod two_worlds;
mod uploads;
