//! The read contract and the owner's writes over HTTP.
//!
//! [`router`] makes all routes from one table (`endpoints`), which also says which parameters each takes and writes the
//! `OpenAPI` document. A request passes `observe` (ids, headers, error bodies, figures, log), compression and a net for
//! panics; then its token becomes a reader, its parameters a question of `contract::reader::ReadContract`, and the answer
//! gets its links. [`serve`] listens until told to stop. [`owner_router`] adds what only the owner may ask ([`owner`]).
//!
//! `oauth` is the HTTP side of the authorization server, `console` the owner's pages; both stand in the same tables and
//! pass the same layers, and fail in the form of OAuth or as a page.

mod ask;
mod auth;
mod blobs;
mod connections;
mod connectors;
mod console;
mod discovery;
mod endpoints;
mod envelope;
mod form;
mod hosted;
mod hosts;
mod keeping;
mod line;
mod metrics;
mod oauth;
mod observe;
mod openapi;
mod openapi_schemas;
pub mod owner;
mod params;
mod patience;
mod peer;
mod pieces;
mod problem;
mod reads;
mod router;
mod serve;
mod service;
mod source;
mod table;
mod tending;
mod transfer;
mod unheard;
mod writes;

pub use auth::{AS_GRANT, LOOK_AS_GRANT};
pub use connections::Capacity;
pub use keeping::keep_to;
pub use oauth::{ClientDocuments, Fetched, Fetching};
pub use router::{owner_router, router};
pub use serve::{Listeners, serve, serve_on, serve_within};
pub use service::{Limits, Service};
pub use tending::IndexTending;
