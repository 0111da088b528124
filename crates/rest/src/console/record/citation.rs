//! What became of a text that was quoted from a record: `?cite=CITATION` behind its address.

use contract::citation::{CitationCheck, VerifyQuery};
use contract::id::StreamName;
use contract::reader::ReadContract as _;

use super::super::format::readable;
use super::super::viewer::Viewer;
use crate::problem::Problem;

pub(super) struct Quoted {
    pub(super) words: &'static str,
    /// The quoted characters, where they may be seen.
    pub(super) text: String,
}

/// Checks the citation that the address has, if it has one.
pub(super) async fn check(viewer: &Viewer, path: [&str; 3]) -> Result<Option<Quoted>, Problem> {
    let [connection, stream, key] = path;
    let (Some(citation), Ok(stream)) = (viewer.params.text("cite"), StreamName::parse(stream))
    else {
        return Ok(None);
    };
    let query = VerifyQuery {
        stream,
        record_id: key.to_owned(),
        connection_id: Some(connection.to_owned()),
        field: None,
        citation: citation.to_owned(),
    };
    let CitationCheck { status, window, .. } = viewer.reader.verify(query).await?;
    Ok(Some(Quoted {
        words: status.words(),
        text: window.map_or_else(String::new, |window| readable(&window.text)),
    }))
}
