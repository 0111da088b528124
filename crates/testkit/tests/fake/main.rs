//! The fake server judges adapters, so its own arithmetic and strictness are checked here.
#![expect(
    clippy::unwrap_used,
    reason = "an answer of another shape is a failed test"
)]

mod agreement;
mod ask;
mod misbehaving;
mod reads;
mod searching;
mod windows;
