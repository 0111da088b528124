//! The six reads at the terminal: what they show, how they continue, what they refuse, and that they agree with REST.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

#[path = "../harness/mod.rs"]
mod harness;

mod continuing;
mod desk;
mod far;
mod refusing;
mod showing;
