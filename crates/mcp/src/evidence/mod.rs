//! From what a server said to what a model reads: bounded, honest about what it leaves out, and never able to pass for
//! words of our own.

pub(crate) mod compact;
pub(crate) mod envelope;
pub(crate) mod fan_in;
pub(crate) mod identity;
pub(crate) mod ladder;
pub(crate) mod lines;
pub(crate) mod marks;
pub(crate) mod oversize;
pub(crate) mod payload;
pub(crate) mod plain;
pub(crate) mod window;
