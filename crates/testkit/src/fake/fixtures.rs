//! Ready states, one function per fixture of the acceptance table. Every one answers 401 to any token but
//! [`TOKEN`](super::TOKEN), which is `FX-AUTH`; packages (`FX-PKG…`) are tested on our own server.

mod evidence;
mod identity;
mod pages;
mod schemas;
mod sizes;

pub use evidence::{UriForm, evidence, meta_only, uri};
pub use identity::{forbidden, multi, odd, owner, shared};
pub use pages::{page, proj, proj_ok, rows};
pub use schemas::{schema, schema_lax};
pub use sizes::{big, big_of, many};
