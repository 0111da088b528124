//! A resource server that holds a small world in memory and answers like a PDPP server, strictly or badly.
//!
//! Adapters are judged against it, so it shares no code with what it judges: windows, filters, aggregates and schema
//! flags are computed here once more, plainly. It refuses every question the world does not advertise, and remembers
//! every question it was asked.

mod aggregate;
mod call;
mod cursor;
mod filter;
pub mod fixtures;
mod hostile;
mod issuer;
mod misbehave;
mod projection;
mod records;
mod reply;
mod routes;
mod schema;
mod search;
mod server;
mod sources;
mod state;
mod window;
mod world;

pub use call::Call;
pub use hostile::{NEEDLE, hostile};
pub use issuer::{Decides, Issuer};
pub use misbehave::Misbehaviour;
pub use reply::{Failure, Reply};
pub use server::FakeServer;
pub use state::{Access, ErrorShape, Quirk, RequestId, State, TOKEN};
pub use world::{Connection, Connector, Expand, Field, Record, Stream, View, World};
