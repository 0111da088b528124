//! The whole way an agent comes to read: a server, a device that asks, an owner who decides on the pages, the tools, a
//! token that ends and is renewed, and the end of the grant.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a step that fails is a failed test"
)]

#[path = "../harness/mod.rs"]
mod harness;

mod served;
mod visitor;
mod whole;
mod wording;
