//! The read contract and the owner's writes over HTTP.
//!
//! [`router`] builds all routes from one table (`endpoints`), which also lists the parameters of each and makes the
//! `OpenAPI` document. A request passes `observe` (request ids, headers, error bodies, metrics, log), compression and
//! a panic handler; then its token becomes a reader, its parameters a query of `contract::reader::ReadContract`, and
//! the answer gets its links. [`serve`] listens until it is told to stop. [`owner_router`] adds the routes for the
//! owner ([`owner`]).
//!
//! `oauth` is the HTTP side of the authorization server, `console` the owner's pages. Both use the same table and
//! layers; their errors have the form of OAuth or are pages.

mod admission;
mod agent_setup;
mod auth;
mod blobs;
mod body_stream;
mod connection_selector;
mod connections;
mod connectors;
mod console;
mod discovery;
mod endpoints;
mod envelope;
mod form;
mod history;
mod hosted;
mod hosts;
mod index_updater;
mod json_body;
mod malformed_http;
mod metrics;
mod notify;
mod oauth;
mod observe;
mod openapi;
mod openapi_schemas;
pub mod owner;
mod params;
mod peer;
mod problem;
mod query_params;
mod rate_limit;
mod reads;
mod retention;
mod router;
mod serve;
mod service;
mod starting;
mod step_up;
mod table;
mod write_timeout;
mod writes;

pub use agent_setup::{AgentSetup, SetupGrant, SetupLines};
pub use auth::{AS_GRANT, CALL, MAX_BYTES, PREVIEW_AS_GRANT};
pub use connections::Capacity;
pub use index_updater::IndexUpdater;
pub use notify::{Event, Notify, notify_by_command};
pub use oauth::{ClientDocuments, Fetched, Fetching};
pub use observe::is_logged;
pub use retention::enforce_retention;
pub use router::{owner_router, router};
pub use serve::{Listeners, serve, serve_on, serve_within};
pub use service::{Limits, Service};
pub use starting::starting_router;
