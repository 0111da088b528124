//! Notes of services, in one shape: Evernote (`.enex`), Google Keep (Takeout), Apple Notes (as Apple hands them out) and Notion. Notes in
//! Markdown that are no export have a format of their own, with their properties and links.

mod apple;
mod evernote;
mod keep;
mod notion;

pub(crate) use apple::EXPORT as APPLE_NOTES;
pub(crate) use evernote::EXPORT as EVERNOTE;
pub(crate) use keep::EXPORT as KEEP;
pub(crate) use notion::EXPORT as NOTION;

use crate::shape::{self, Shape, Stream};

/// The shape of a connector of notes.
const fn shape(key: &'static str, name: &'static str) -> Shape {
    Shape {
        key,
        name,
        streams: STREAMS,
    }
}

const STREAMS: &[Stream] = &[Stream {
    name: "notes",
    label: "Notes",
    about: "Notes, one record each.",
    time: Some("created_at"),
    fields: &[
        shape::text("id"),
        shape::text("title").role("title").searched(),
        shape::text("folder").searched().grouped(),
        shape::text("author").role("author").searched().grouped(),
        shape::time("created_at"),
        shape::time("updated_at"),
        shape::texts("tags").searched(),
        shape::text("text").role("body").searched(),
        shape::text("url")
            .role("url")
            .about("Where it was clipped from."),
        shape::texts("attachments")
            .about("Names of files.")
            .searched(),
        shape::texts("people")
            .about("With whom it is shared.")
            .searched(),
        shape::boolean("is_archived").grouped(),
        shape::boolean("is_deleted")
            .grouped()
            .about("Whether it lies in the bin."),
        shape::object("properties"),
    ],
    children: &[],
}];
