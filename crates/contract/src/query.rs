//! What a reader may ask of streams and records, parsed once at the edge.
//!
//! Choices that exclude each other are one enum, so a request that holds is a request that makes sense. Each request
//! can be written back as query parameters ([`Params`]), which is how it travels to another server.

mod part;

use crate::error::{ErrorCode, ReadError};
use crate::id::{FieldName, StreamName};
use crate::window::WindowSelector;

pub use part::{
    Count, DEFAULT_PAGE_LIMIT, ExpandRequest, Filter, FilterTest, MAX_PAGE_LIMIT, Order, PageLimit,
    Projection, Sort, split_condition,
};

/// Query parameters in wire form, decoded.
pub type Params = Vec<(String, String)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsQuery {
    pub stream: StreamName,
    /// The connection; opaque, as another server may have given it.
    pub connection_id: Option<String>,
    pub projection: Projection,
    pub filters: Vec<Filter>,
    pub limit: PageLimit,
    /// The list as it stands, or what changed.
    pub reading: Reading,
}

/// Two ways of reading a stream, with the options of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The records as they stand.
    List(ListOptions),
    /// What changed since a bookmark, tombstones included.
    Changes(ChangesSince),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Where to go on; opaque. A cursor of a changes feed continues that feed.
    pub cursor: Option<String>,
    /// The direction; descending unless `sort` says otherwise.
    pub order: Option<Order>,
    pub sort: Option<Sort>,
    pub count: Count,
    /// Whether to report the time span of all matching records.
    pub time_span: bool,
    pub expand: Vec<ExpandRequest>,
}

impl ListOptions {
    /// The direction that `order` and `sort` agree on.
    pub fn direction(&self) -> Result<Order, ReadError> {
        match (self.order, &self.sort) {
            (Some(order), Some(sort)) if order != sort.order => Err(ReadError::new(
                ErrorCode::InvalidSort,
                "order and sort disagree; send one of them",
            )
            .with_param("sort")),
            (Some(order), _) => Ok(order),
            (None, Some(sort)) => Ok(sort.order),
            (None, None) => Ok(Order::default()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesSince {
    Beginning,
    /// After a bookmark, which is opaque.
    Bookmark(String),
    /// Continues a page of the feed: its cursor, which is opaque.
    Page(String),
}

impl ChangesSince {
    pub fn parse(text: &str) -> ChangesSince {
        match text {
            "beginning" => ChangesSince::Beginning,
            _ => ChangesSince::Bookmark(text.to_owned()),
        }
    }
}

impl RecordsQuery {
    /// The first page of a stream, with every default.
    pub fn new(stream: StreamName) -> RecordsQuery {
        RecordsQuery {
            stream,
            connection_id: None,
            projection: Projection::All,
            filters: Vec::new(),
            limit: PageLimit::default(),
            reading: Reading::List(ListOptions::default()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    pub stream: StreamName,
    /// The record key in canonical form; opaque here, for its shape depends on the stream.
    pub record_id: String,
    pub connection_id: Option<String>,
    pub projection: Projection,
    pub expand: Vec<ExpandRequest>,
}

impl RecordQuery {
    pub fn new(stream: StreamName, record_id: impl Into<String>) -> RecordQuery {
        RecordQuery {
            stream,
            record_id: record_id.into(),
            connection_id: None,
            projection: Projection::All,
            expand: Vec::new(),
        }
    }
}

/// A window of one text field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowQuery {
    pub stream: StreamName,
    /// The record key in canonical form.
    pub record_id: String,
    /// The field, literally.
    pub field: FieldName,
    pub connection_id: Option<String>,
    pub selector: WindowSelector,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamsQuery {
    pub connection_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamQuery {
    pub stream: StreamName,
    pub connection_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobQuery {
    /// The blob id; opaque, as another server may have given it.
    pub blob_id: String,
    pub connection_id: Option<String>,
}

pub(crate) fn refused(param: &str, message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorCode::InvalidRequest, message).with_param(param)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_and_order_must_agree() {
        let sort = |text| Some(Sort::parse(text).unwrap());
        let direction = |order, sort| {
            ListOptions {
                order,
                sort,
                ..ListOptions::default()
            }
            .direction()
        };
        assert_eq!(direction(None, None), Ok(Order::Descending));
        assert_eq!(direction(None, sort("at")), Ok(Order::Ascending));
        assert_eq!(
            direction(Some(Order::Descending), sort("-at")),
            Ok(Order::Descending)
        );
        assert_eq!(
            direction(Some(Order::Ascending), sort("-at"))
                .unwrap_err()
                .code,
            ErrorCode::InvalidSort
        );
        assert_eq!(Sort::parse("-").unwrap_err().code, ErrorCode::InvalidSort);
        assert_eq!(sort("-at").unwrap().to_wire(), "-at");
    }
}
