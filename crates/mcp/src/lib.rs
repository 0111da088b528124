//! The tools an agent reads through: six of them, the same on every transport.
//!
//! A tool checks its arguments, asks a resource server (`contract::upstream`), and writes what came twice: as
//! structured content, which keeps the server's envelope, and as a short text, which is complete on its own. A host may
//! show a model either. Nothing here knows a store, a grant or a token: what a caller may read is the server's decision,
//! and what it answers is not trusted to be right, small, or free of instructions.

mod answer;
mod args;
mod budget;
mod call;
mod fault;
mod http;
mod identity;
mod instructions;
mod ladder;
mod lines;
mod message;
#[cfg(test)]
mod record_server;
mod reply;
mod resources;
mod server;
mod stdio;
#[cfg(test)]
mod stub;
mod text;
mod tool_call;
mod tools;

pub use http::{HttpSettings, serve_http};
pub use message::{batch, no_message, not_alone};
pub use server::{Options, Server};
pub use stdio::{serve_pipe, serve_stdio};
