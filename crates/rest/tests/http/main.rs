//! What the surface says over HTTP, to whom, and what it never says.
#![expect(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod access;
mod blobs;
mod document;
mod failures;
mod fixture;
mod listening;
mod logs;
mod messages;
mod operations;
mod selectors;
mod serving;
mod shapes;
#[path = "../shared/mod.rs"]
mod shared;
mod snapshots;
mod strange;
mod tools;
mod writes;
