//! The sample life: made the same each time, accepted whole, coherent, and able to answer the questions the docs ask.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a step that fails is a failed test"
)]

mod loading;
mod making;
mod questions;
mod references;
mod world;
