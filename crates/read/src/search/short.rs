//! Hits on a page that is counted in bytes. Such a page is made for a model, whose adapter writes beside each hit who it is, where it
//! can be looked at and what can be read: here that is not said a second time, so that more hits fit.

use contract::page::{Links, Meta};
use contract::search::{FieldWindowRead, SearchHit};
use contract::window::DEFAULT_LIMIT_CHARS;
use contract::wire::Nullable;

use crate::reader::Session;

/// Instead of an address for each hit, the one below which all of them are. The next page is the cursor.
pub(super) fn links(session: &Session) -> Option<Links> {
    session.settings.max_bytes?;
    let public_url = session.settings.public_url.trim_end_matches('/');
    Some(Links {
        records: Some(format!("{public_url}/records")),
        ..Links::default()
    })
}

/// Leaves out what is said of a count that nobody asked for, and of a search that looked at everything.
pub(super) fn meta(session: &Session, mut meta: Meta) -> Meta {
    if session.settings.max_bytes.is_some() {
        if meta.count_accuracy.as_deref() == Some("not_counted") {
            meta.count = Nullable::Absent;
            meta.count_accuracy = None;
        }
        if let Some(recall) = meta.recall.as_mut().filter(|recall| recall.complete) {
            recall.sources_searched_count = None;
        }
    }
    meta
}

pub(super) fn shorten(session: &Session, hit: &mut SearchHit) {
    if session.settings.max_bytes.is_none() {
        return;
    }
    hit.citation_url = None;
    // The same under an older name stays.
    hit.connector_key = None;
    if hit.authored_at == hit.emitted_at {
        hit.emitted_at = None;
    }
    // What occurs as it was asked for is marked in the excerpt.
    if let Some(terms) = &mut hit.matched_terms {
        terms.retain(|term| term.found.is_some());
    }
    hit.matched_terms.take_if(|terms| terms.is_empty());
    let excerpts = hit.evidence_excerpts.iter_mut().flatten();
    let mut shown = Vec::new();
    for excerpt in excerpts {
        // What is marked says where the words are, and the length of the text where it ends.
        excerpt.matches = None;
        excerpt.text_end_chars = None;
        if let Some(read) = &mut excerpt.read {
            read.limit_chars
                .take_if(|limit| *limit == DEFAULT_LIMIT_CHARS as u64);
        }
        // The window that is read where none is named.
        let is_default =
            |read: &mut FieldWindowRead| read.limit_chars.is_none() && read.offset_chars == Some(0);
        // A text that stands here whole needs no other window.
        let is_whole = excerpt.truncated == Some(false);
        excerpt.read.take_if(|read| is_whole || is_default(read));
        shown.push(excerpt.field_path.clone());
    }
    hit.matched_fields.take_if(|fields| *fields == shown);
}

/// What the adapter writes beside a hit, for its own size is not all it takes.
pub(super) fn beside(session: &Session, hit: &SearchHit) -> usize {
    let Some(bytes) = session.settings.max_bytes else {
        return 0;
    };
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let handle = length(&hit.connection_id) + length(&hit.stream) + length(&hit.record_key) + 2;
    bytes.beside_each + bytes.handles * handle + length(&hit.title)
}
