//! The fake server judges adapters, so its arithmetic is held against that of the contract here. Its strictness is held by the suites that use it.
#![expect(
    clippy::unwrap_used,
    reason = "an answer of another shape is a failed test"
)]

mod agreement;
mod ask;
