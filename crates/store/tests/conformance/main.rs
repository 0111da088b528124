//! The rules of the store, written against its ports. Rules that only make sense for files on disk name the embedded store.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper that cannot go on fails its test"
)]

mod aggregate_model;
mod aggregates;
mod asking;
mod backup;
mod blobs;
mod by_time;
mod catalog;
mod changed;
mod damage;
mod erasure;
mod feed;
mod finding;
mod fixture;
mod frequent_words;
mod granting;
mod grouping;
mod items;
mod keeping;
mod meanings;
mod moving;
mod nodes;
mod opening;
mod paging;
mod ranking;
mod redeclaring;
mod remembering;
mod repair;
mod restoring;
mod rollback;
mod scopes;
mod search_model;
mod selecting;
mod sizes;
mod speakers;
mod stopping;
mod tending;
mod together;
mod writing;
