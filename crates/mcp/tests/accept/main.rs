//! The adapter as a host sees it: every row of the acceptance table that a foreign resource server can show.
//!
//! The resource server is `testkit`'s strict fake behind real HTTP; the protocol is spoken raw, so that no SDK hides
//! what is on the wire. Each row runs over a pipe and over HTTP. Whatever a row asks, every answer is also held against
//! the announced output schema, the budgets, and the rules that hold for all (`answer.rs`).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod answer;
mod host;
mod wire;

mod crawl;
mod evidence;
mod fetching;
mod foreign;
mod hosts;
mod identity;
mod numbers;
mod owners;
mod paging;
mod schemas;
mod searching;
mod sizes;
mod surface;
mod windows;
