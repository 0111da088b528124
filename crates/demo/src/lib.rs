//! A sample life: the invented world of one person, to try everything on without giving anything away.
//!
//! [`Life::generate`] makes it, the same bytes on every machine: chance comes from one small generator, time from a fixed day,
//! prose from the lists in `data/`. What can be asked about stands in `data/story.json`; the rest of the life grows around it.
//! [`load`] brings it into a store by the ordinary way of every import.

mod bank;
mod calendar;
mod chat;
mod dice;
mod error;
mod files;
mod git;
mod grammar;
mod life;
mod lines;
mod load;
mod mail;
mod moment;
mod notes;
mod people;
mod shop;
mod story;

pub use error::DemoError;
pub use files::AttachedFile;
pub use life::{Life, Source};
pub use load::{Holding, Loaded, holding, load};
