//! The contract from afar: reading from a resource server over HTTP with a stored credential, and obtaining that
//! credential.
//!
//! A server is never trusted: its responses are bounded in size and time, it cannot redirect us with the token, and
//! the token never appears in what is passed on. The credential of each server is a file, shared with other processes
//! and tools, so it is read again before it is renewed, and unknown members are kept.

mod answer;
pub mod connect;
pub mod credentials;
pub mod documents;
mod failure;
mod metadata;
pub mod probe;
mod provider_url;
mod renewal;
mod secret;
mod server;
mod token;
mod token_kind;
mod transport;

pub use credentials::{Credential, CredentialCache};
pub use provider_url::ProviderUrl;
pub use secret::Secret;
pub use server::HttpServer;
pub use transport::Limits;
