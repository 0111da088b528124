//! Lists of what was heard, seen and read, as services hand them out.

mod books;
mod feeds;
mod films;
mod kindle;
mod netflix;
mod spotify;

pub(crate) use books::EXPORT as GOODREADS;
pub(crate) use feeds::EXPORT as FEEDS;
pub(crate) use films::EXPORT as LETTERBOXD;
pub(crate) use kindle::EXPORT as KINDLE;
pub(crate) use netflix::EXPORT as NETFLIX;
pub(crate) use spotify::EXPORT as SPOTIFY;

use crate::readable_key::{readable_key, short_hash};

/// A key of something that has none: when, and what.
fn id(at: &str, what: &str) -> String {
    let digits: String = at.chars().take(19).filter(char::is_ascii_digit).collect();
    readable_key(format!("{digits}-{}", short_hash(what)).trim_start_matches('-'))
}
