//! From what a server said to what a model reads: bounded, honest about what it leaves out, and never able to pass for
//! words of our own.

pub(crate) mod lines;
pub(crate) mod marks;
pub(crate) mod paging;
pub(crate) mod plain;
pub(crate) mod several;
pub(crate) mod window;
