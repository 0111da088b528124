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
    Projection, Sort,
};

/// Query parameters in wire form, decoded.
pub type Params = Vec<(String, String)>;

/// Records of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsQuery {
    /// The stream.
    pub stream: StreamName,
    /// The connection; opaque, as another server may have given it.
    pub connection_id: Option<String>,
    /// Which fields.
    pub projection: Projection,
    /// Conditions that must all hold.
    pub filters: Vec<Filter>,
    /// How many per page.
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

/// Options of reading the records as they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Where to go on; opaque. A cursor of a changes feed continues that feed.
    pub cursor: Option<String>,
    /// The direction; descending unless `sort` says otherwise.
    pub order: Option<Order>,
    /// The field to sort by.
    pub sort: Option<Sort>,
    /// Whether to count.
    pub count: Count,
    /// Whether to report the time span of all matching records.
    pub time_span: bool,
    /// Relationships to bring along.
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

    fn write(&self, params: &mut Params) {
        push(params, "cursor", self.cursor.clone());
        push(
            params,
            "order",
            self.order.map(|order| order.as_str().to_owned()),
        );
        push(params, "sort", self.sort.as_ref().map(Sort::to_wire));
        push(
            params,
            "count",
            (self.count != Count::None).then(|| self.count.as_str().to_owned()),
        );
        push(params, "window", self.time_span.then(|| "exact".to_owned()));
        write_expand(&self.expand, params);
    }
}

/// Where a changes feed starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesSince {
    /// With everything there is.
    Beginning,
    /// After a bookmark, which is opaque.
    Bookmark(String),
    /// Continues a page of the feed: its cursor, which is opaque.
    Page(String),
}

impl ChangesSince {
    /// Reads the parameter.
    pub fn parse(text: &str) -> ChangesSince {
        match text {
            "beginning" => ChangesSince::Beginning,
            _ => ChangesSince::Bookmark(text.to_owned()),
        }
    }

    /// The parameter that says so, and its value.
    fn param(&self) -> (&'static str, &str) {
        match self {
            ChangesSince::Beginning => ("changes_since", "beginning"),
            ChangesSince::Bookmark(text) => ("changes_since", text),
            ChangesSince::Page(text) => ("cursor", text),
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

    /// The request as query parameters.
    pub fn params(&self) -> Params {
        let mut params = Params::new();
        push(&mut params, "connection_id", self.connection_id.clone());
        push(
            &mut params,
            "limit",
            self.limit.requested().map(|limit| limit.to_string()),
        );
        self.projection.write(&mut params);
        write_filters(&self.filters, &mut params);
        match &self.reading {
            Reading::List(options) => options.write(&mut params),
            Reading::Changes(since) => {
                let (name, value) = since.param();
                push(&mut params, name, Some(value.to_owned()));
            }
        }
        params
    }
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// The stream.
    pub stream: StreamName,
    /// The record key in canonical form; opaque here, for its shape depends on the stream.
    pub record_id: String,
    /// The connection.
    pub connection_id: Option<String>,
    /// Which fields.
    pub projection: Projection,
    /// Relationships to bring along.
    pub expand: Vec<ExpandRequest>,
}

impl RecordQuery {
    /// A record with every field that may be seen.
    pub fn new(stream: StreamName, record_id: impl Into<String>) -> RecordQuery {
        RecordQuery {
            stream,
            record_id: record_id.into(),
            connection_id: None,
            projection: Projection::All,
            expand: Vec::new(),
        }
    }

    /// The request as query parameters.
    pub fn params(&self) -> Params {
        let mut params = Params::new();
        push(&mut params, "connection_id", self.connection_id.clone());
        self.projection.write(&mut params);
        write_expand(&self.expand, &mut params);
        params
    }
}

/// A window of one text field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowQuery {
    /// The stream.
    pub stream: StreamName,
    /// The record key in canonical form.
    pub record_id: String,
    /// The field, literally.
    pub field: FieldName,
    /// The connection.
    pub connection_id: Option<String>,
    /// Which part of it.
    pub selector: WindowSelector,
}

impl WindowQuery {
    /// The request as query parameters. A window cursor is an offset; the wire knows only the offset.
    pub fn params(&self) -> Params {
        let mut params = Params::new();
        let selector = &self.selector;
        let number = |value: Option<usize>| value.map(|number| number.to_string());
        push(&mut params, "connection_id", self.connection_id.clone());
        push(&mut params, "field", Some(self.field.to_string()));
        push(
            &mut params,
            "offset_chars",
            number(selector.offset_chars).or_else(|| selector.cursor.clone()),
        );
        push(&mut params, "limit_chars", number(selector.limit_chars));
        push(&mut params, "q", selector.q.clone());
        push(&mut params, "before_chars", number(selector.before_chars));
        push(&mut params, "after_chars", number(selector.after_chars));
        params
    }
}

/// The streams that may be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamsQuery {
    /// Only those of this connection.
    pub connection_id: Option<String>,
}

/// One stream with its capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamQuery {
    /// The stream.
    pub stream: StreamName,
    /// The connection.
    pub connection_id: Option<String>,
}

/// The bytes a record points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobQuery {
    /// The blob id; opaque, as another server may have given it.
    pub blob_id: String,
    /// The connection.
    pub connection_id: Option<String>,
}

pub(crate) fn push(params: &mut Params, name: &str, value: Option<String>) {
    params.extend(value.map(|value| (name.to_owned(), value)));
}

pub(crate) fn write_filters(filters: &[Filter], params: &mut Params) {
    for filter in filters {
        filter.write(params);
    }
}

fn write_expand(expand: &[ExpandRequest], params: &mut Params) {
    for request in expand {
        push(params, "expand[]", Some(request.name.clone()));
    }
    for request in expand {
        let limit = request.limit.map(|limit| limit.to_string());
        push(params, &format!("expand_limit[{}]", request.name), limit);
    }
}

pub(crate) fn refused(param: &str, message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorCode::InvalidRequest, message).with_param(param)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::RangeOperator;

    fn field(name: &str) -> FieldName {
        FieldName::parse(name).unwrap()
    }

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

    #[test]
    fn a_request_is_written_as_the_parameters_of_the_wire() {
        let mut query = RecordsQuery::new(StreamName::parse("messages").unwrap());
        query.connection_id = Some("work".to_owned());
        query.limit = PageLimit::new(5);
        query.projection = Projection::Fields(vec![field("id"), field("at")]);
        query.filters = vec![
            Filter::exact(field("folder"), ""),
            Filter::range(
                field("at"),
                vec![
                    (RangeOperator::Gte, "2026".to_owned()),
                    (RangeOperator::Lt, "2027".to_owned()),
                ],
            ),
        ];
        query.reading = Reading::List(ListOptions {
            count: Count::Exact,
            time_span: true,
            expand: vec![ExpandRequest {
                name: "files".to_owned(),
                limit: Some(3),
            }],
            ..ListOptions::default()
        });
        let written: Vec<String> = query
            .params()
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            written.join("&"),
            "connection_id=work&limit=5&fields=id,at&filter[folder]=&filter[at][gte]=2026&filter[at][lt]=2027\
             &count=exact&window=exact&expand[]=files&expand_limit[files]=3"
        );
        query.reading = Reading::Changes(ChangesSince::parse("beginning"));
        assert_eq!(query.params().last().unwrap().1, "beginning");
        query.reading = Reading::Changes(ChangesSince::Page("next".to_owned()));
        let (name, value) = query.params().last().unwrap().clone();
        assert_eq!((name.as_str(), value.as_str()), ("cursor", "next"));
    }
}
