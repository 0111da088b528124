//! The schema of a grant, and what each of its streams accepts.

pub(crate) mod capability;
pub(crate) mod document;
mod full;

pub(crate) use document::Document;
pub(crate) use full::{ELSEWHERE, FullSchema};
