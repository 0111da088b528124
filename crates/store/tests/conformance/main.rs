//! The rules of the store, written against its ports.

mod finding;
mod fixture;
