//! Commands as people and programs run them: each module is one topic, all are one program, which is linked once.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a step that fails is a failed test"
)]

#[path = "../../ingest/tests/archives/mod.rs"]
mod archives;
mod bench;
mod collect;
mod consent;
mod crash;
mod declare;
mod demo;
mod doctor;
mod export;
mod first_steps;
mod grants;
mod harness;
mod import;
mod known_exports;
mod mcp;
mod model;
mod named_files;
mod nodes;
mod onboarding;
mod owner;
mod places;
mod reads;
mod reference;
mod serve;
mod steering;
mod tables;
mod terminal;
mod trouble;
mod usage;
