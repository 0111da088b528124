//! Asking servers that are not ours, in every way they may answer or fail to, and keeping what they give.
#![expect(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod agents;
mod ahead;
mod asking;
mod cache;
mod connecting;
mod encrypted;
mod failing;
mod fake;
mod renewing;
