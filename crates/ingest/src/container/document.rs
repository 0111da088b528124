//! Documents that are zips: of an office, or a book. They are read part by part, and not taken apart as archives are.

use std::fs::File;
use std::io;

use super::bytes::Bytes;
use super::{Content, Limits, Member, Place, SkipReason, zip};

/// The files inside a document that is a zip, as those of offices and books are.
pub(crate) fn document_parts(bytes: Vec<u8>, limits: &Limits) -> io::Result<Vec<Member>> {
    let place = Place::new("", "");
    let entries = zip::list(&Bytes::from(bytes), limits)?.into_iter();
    let parts = entries.filter_map(|entry| {
        let part = entry.part.ok()?;
        let size = Some(part.size()).filter(|size| *size <= limits.member_bytes)?;
        Some(place.join(&entry.name).member(size, Content::Zip(part)))
    });
    Ok(parts.collect())
}

/// The files inside a document that is a file, each of which must be such that it can be read.
pub(crate) fn parts_of_file(file: File, limits: &Limits) -> io::Result<Vec<Member>> {
    let place = Place::new("", "");
    let entries = zip::list(&Bytes::of_file(file)?, limits)?.into_iter();
    let parts = entries.map(|entry| {
        let large = SkipReason::TooLarge;
        let part = entry.part.and_then(|part| {
            let is_large = part.size() > limits.member_bytes;
            if is_large { Err(large) } else { Ok(part) }
        });
        let refused = |why| io::Error::other(format!("{}: {why}", entry.name));
        let part = part.map_err(refused)?;
        Ok(place
            .join(&entry.name)
            .member(part.size(), Content::Zip(part)))
    });
    parts.collect()
}

/// Whether the files of a zip make one document together: of an office, or a book.
pub(super) fn is_document(entries: &[zip::Entry]) -> bool {
    let is_first = |name| entries.first().is_some_and(|entry| entry.name == name);
    is_first("mimetype")
        || entries
            .iter()
            .any(|entry| entry.name == "[Content_Types].xml")
}
