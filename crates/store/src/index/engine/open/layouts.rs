//! How the documents of each stream are laid out, and which of them are still as an earlier declaration had it.
//!
//! It is part of every commit, so it is as durable as the documents it describes, and each index knows for itself what it has
//! to do, whoever declared something.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::OpenIndex;
use crate::Result;
use crate::index::layout::StreamLayout;
use crate::index::sources::Sources;
use crate::index::truth::RowRange;

/// By stream.
pub(super) type Layouts = BTreeMap<i64, Layout>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layout {
    /// The digest of the layout as it is declared.
    digest: u64,
    /// The first and the last row that may be laid out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<(u64, u64)>,
}

pub(super) struct KnownLayouts {
    pub(super) streams: Layouts,
    /// The sources they were compared with last.
    compared: Option<Arc<Sources>>,
}

impl KnownLayouts {
    pub(super) fn new(streams: Layouts) -> Self {
        Self {
            streams,
            compared: None,
        }
    }
}

impl OpenIndex {
    /// Notices streams that are declared otherwise than the index has them. Called before anything is indexed.
    pub(crate) fn adapt(
        &self,
        sources: &Arc<Sources>,
        rows: impl Fn(i64) -> Result<Option<RowRange>>,
    ) -> Result<()> {
        let mut known = self.layouts();
        let compared = known.compared.as_ref();
        if compared.is_some_and(|compared| Arc::ptr_eq(compared, sources)) {
            return Ok(());
        }
        let mut streams = Layouts::new();
        for entry in sources.streams() {
            let digest = entry.layout.digest();
            let layout = match known.streams.get(&entry.id) {
                Some(known) if known.digest == digest => known.clone(),
                Some(_) => Layout {
                    digest,
                    waiting: rows(entry.id)?.map(|rows| (rows.first, rows.last)),
                },
                None => Layout {
                    digest,
                    waiting: None,
                },
            };
            streams.insert(entry.id, layout);
        }
        *known = KnownLayouts {
            streams,
            compared: Some(Arc::clone(sources)),
        };
        Ok(())
    }

    /// The rows that are not indexed as they are declared now.
    pub(crate) fn reindexing(&self) -> Vec<RowRange> {
        let known = self.layouts();
        let waiting = known.streams.iter().filter_map(|(stream, layout)| {
            let (first, last) = layout.waiting?;
            Some(RowRange {
                stream: *stream,
                first,
                last,
            })
        });
        waiting.collect()
    }

    pub(crate) fn next_to_reindex(&self) -> Option<RowRange> {
        self.reindexing().into_iter().next()
    }
}

/// Notes that rows were indexed as `layout` has them, up to `next`, or to the end. What was declared otherwise meanwhile
/// stays as it is.
pub(super) fn advance(
    streams: &mut Layouts,
    done: RowRange,
    layout: Option<&StreamLayout>,
    next: Option<u64>,
) {
    let Some(layout) = layout else {
        streams.remove(&done.stream);
        return;
    };
    if let Some(known) = streams.get_mut(&done.stream)
        && known.digest == layout.digest()
        && known.waiting == Some((done.first, done.last))
    {
        known.waiting = next.map(|next| (next, done.last));
    }
}
