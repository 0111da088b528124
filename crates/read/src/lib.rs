//! The contract, fulfilled: [`GrantReader`] answers everything [`contract::reader::ReadContract`] asks, over a store and on
//! behalf of an authority.
//!
//! `enforce` turns an authority into the rows it may see and is the only place where a grant narrows a query; every other
//! module reads through those rows. What lies outside a row gets the same error whether it exists or not, and every record
//! is checked against its row once more before it leaves.

#![warn(clippy::indexing_slicing)]

mod aggregate;
mod ambiguity;
mod blob;
mod changes;
mod citation;
mod conditions;
mod cursor;
mod damaged;
mod disclosure;
mod enforce;
mod evidence;
mod expand;
mod failure;
mod measure;
mod project;
mod reader;
mod record;
mod records;
mod related;
mod route;
mod schema;
mod search;
mod streams;
mod visible_history;
mod window;
mod words;
mod work;

pub use disclosure::{Disclosures, NotNoted};
pub use reader::{GrantReader, ReaderSettings};
pub use work::{Unfinished, run_blocking};
