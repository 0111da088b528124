//! The contract, from afar: asking a resource server over HTTP with a stored credential, and getting that credential.
//!
//! A server is never trusted: what it says is bounded in size and time, it cannot send us elsewhere with the token, and
//! the token never appears in what is handed on. The credential of each server is a file of its own, shared with other
//! processes and other tools, so it is read anew before it is renewed and unknown members are kept.

mod answer;
pub mod connect;
pub mod credentials;
pub mod documents;
mod failure;
mod kind;
pub mod look;
mod metadata;
mod provider_url;
mod renewal;
mod secret;
mod server;
mod token;
mod transport;

pub use credentials::{Credential, CredentialCache};
pub use provider_url::ProviderUrl;
pub use secret::Secret;
pub use server::HttpServer;
pub use transport::Limits;
