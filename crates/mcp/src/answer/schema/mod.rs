//! The schema of a grant, and what each of its streams accepts.

pub(crate) mod capability;
pub(crate) mod document;

pub(crate) use document::Document;
