//! Turns query parameters into queries of the read contract. Syntax is checked here and in the contract's types; the
//! reader decides what may be asked of a stream.

use contract::aggregate::{AggregateQuery, Granularity, GroupBy, Grouping, Metric};
use contract::citation::VerifyQuery;
use contract::declaration::FilterOperator;
use contract::error::{ErrorCode, ReadError};
use contract::id::{FieldName, StreamName};
use contract::query::{
    ChangesSince, Count, ExpandRequest, Filter, ListOptions, Order, PageLimit, Projection, Reading,
    RecordQuery, RecordsQuery, Sort, WindowQuery,
};
use contract::search::{Matching, SearchOrder, SearchQuery, parse_excerpts, parse_period};
use contract::window::WindowSelector;

use crate::params::{Params, invalid_param, quoted};

type Parsed<T> = Result<T, ReadError>;

/// The connection a request names, and whether by the deprecated name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConnectionSelector {
    pub(crate) connection_id: Option<String>,
    pub(crate) by_alias: bool,
}

impl ConnectionSelector {
    /// Reads both names of the parameter, which must agree.
    pub(crate) fn from_params(params: &Params) -> Parsed<Self> {
        let name = params.text("connection_id");
        let alias = params.text("connector_instance_id");
        if let (Some(name), Some(alias)) = (name, alias)
            && name != alias
        {
            let message = "connection_id and connector_instance_id name different connections";
            return Err(ReadError::new(ErrorCode::InvalidArgument, message)
                .with_param("connector_instance_id")
                .with_hint("send connection_id alone"));
        }
        Ok(Self {
            connection_id: name.or(alias).map(str::to_owned),
            by_alias: alias.is_some(),
        })
    }
}

/// Parses a stream name. An invalid name is answered like an unknown stream.
pub(crate) fn stream(name: &str, is_owner: bool) -> Parsed<StreamName> {
    StreamName::parse(name).map_err(|_| {
        let name = quoted(name);
        let (code, message) = if is_owner {
            (
                ErrorCode::StreamNotDeclared,
                format!("no connection carries a stream '{name}'"),
            )
        } else {
            (
                ErrorCode::GrantStreamNotAllowed,
                format!("the stream '{name}' is not granted"),
            )
        };
        ReadError::new(code, message)
            .with_param("stream")
            .with_hint("schema lists the streams that may be read")
    })
}

pub(crate) fn records(
    stream: StreamName,
    selector: &ConnectionSelector,
    params: &Params,
) -> Parsed<RecordsQuery> {
    let mut query = RecordsQuery::new(stream);
    query.connection_id.clone_from(&selector.connection_id);
    query.projection = projection(params)?;
    query.filters = filters(params)?;
    query.limit = page_limit(params);
    query.reading = match params.text("changes_since") {
        Some(since) => {
            reject_list_options(params)?;
            // Repeating the call with the cursor of its answer asks for the next page, not for the first one again.
            Reading::Changes(match params.text("cursor") {
                Some(cursor) => ChangesSince::Page(cursor.to_owned()),
                None => ChangesSince::parse(since),
            })
        }
        None => Reading::List(list_options(params)?),
    };
    Ok(query)
}

fn list_options(params: &Params) -> Parsed<ListOptions> {
    let time_span = match params.text("window") {
        None | Some("none") => false,
        Some("exact") => true,
        Some(_) => return Err(invalid_param("window", "window must be none or exact")),
    };
    let options = ListOptions {
        cursor: params.text("cursor").map(str::to_owned),
        order: params.text("order").map(Order::parse).transpose()?,
        sort: sort(params)?,
        count: count(params)?,
        time_span,
        expand: expand(params)?,
    };
    options.direction()?;
    Ok(options)
}

/// The changes feed has a fixed order and no counts.
fn reject_list_options(params: &Params) -> Parsed<()> {
    let sent: Vec<&str> = ["sort", "count", "order", "window"]
        .into_iter()
        .filter(|name| params.text(name).is_some())
        .collect();
    if let Some(first) = sent.first() {
        let verb = if sent.len() == 1 { "is" } else { "are" };
        let message = format!(
            "{} {verb} not supported with changes_since",
            sent.join(", ")
        );
        return Err(invalid_param(first, message));
    }
    if params.entries("expand").next().is_some() {
        return Err(invalid_expand("expand is not supported with changes_since"));
    }
    Ok(())
}

pub(crate) fn record(
    stream: StreamName,
    id: &str,
    selector: &ConnectionSelector,
    params: &Params,
) -> Parsed<RecordQuery> {
    let mut query = RecordQuery::new(stream, id);
    query.connection_id.clone_from(&selector.connection_id);
    query.projection = projection(params)?;
    query.expand = expand(params)?;
    Ok(query)
}

pub(crate) fn window(
    stream: StreamName,
    id: &str,
    selector: &ConnectionSelector,
    params: &Params,
) -> Parsed<WindowQuery> {
    let bad_field =
        |message: &str| ReadError::new(ErrorCode::InvalidFieldPath, message).with_param("field");
    let field = params.text("field").ok_or_else(|| {
        bad_field("field is required").with_hint("name the field to read, literally")
    })?;
    let field = FieldName::parse(field).map_err(|error| bad_field(&error.to_string()))?;
    if params.raw("q") == Some("") {
        let message = "q must not be empty";
        return Err(ReadError::new(ErrorCode::InvalidWindow, message).with_param("q"));
    }
    let window = WindowSelector {
        offset_chars: char_count(params, "offset_chars")?,
        limit_chars: char_count(params, "limit_chars")?,
        cursor: None,
        q: params.text("q").map(str::to_owned),
        before_chars: char_count(params, "before_chars")?,
        after_chars: char_count(params, "after_chars")?,
    };
    Ok(WindowQuery {
        stream,
        record_id: id.to_owned(),
        field,
        connection_id: selector.connection_id.clone(),
        selector: window,
    })
}

pub(crate) fn verify(
    stream: StreamName,
    id: &str,
    selector: &ConnectionSelector,
    params: &Params,
) -> Parsed<VerifyQuery> {
    let cite = params.text("cite");
    Ok(VerifyQuery {
        stream,
        record_id: id.to_owned(),
        connection_id: selector.connection_id.clone(),
        field: params
            .text("field")
            .map(|name| field("field", name))
            .transpose()?,
        citation: cite
            .ok_or_else(|| invalid_param("cite", "cite is required"))?
            .to_owned(),
    })
}

fn char_count(params: &Params, name: &str) -> Parsed<Option<usize>> {
    let Some(text) = params
        .raw(name)
        .map(str::trim)
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    // A huge offset is beyond the end of the text, not malformed.
    let number = all_digits.then(|| text.parse().unwrap_or(usize::MAX));
    number.map(Some).ok_or_else(|| {
        let message = format!("{name} must be a whole number of characters");
        ReadError::new(ErrorCode::InvalidWindow, message).with_param(name)
    })
}

pub(crate) fn aggregate(
    stream: StreamName,
    selector: &ConnectionSelector,
    params: &Params,
) -> Parsed<AggregateQuery> {
    let metric = Metric::parse(
        params.text("metric").unwrap_or_default(),
        params.text("field"),
    )?;
    let mut query = AggregateQuery::new(stream, metric, grouping(params)?)?;
    query.connection_id.clone_from(&selector.connection_id);
    query.filters = filters(params)?;
    Ok(query)
}

fn grouping(params: &Params) -> Parsed<Option<Grouping>> {
    let by = match (params.text("group_by"), params.text("group_by_time")) {
        (Some(_), Some(_)) => {
            let message =
                "group_by and group_by_time cannot be combined; choose one grouping dimension";
            return Err(invalid_param("group_by", message));
        }
        (Some(name), None) => Some(GroupBy::Field(field("group_by", name)?)),
        (None, Some(name)) => Some(group_by_time(params, name)?),
        (None, None) => None,
    };
    let only_with = |name: &'static str, whole: &str| match params.text(name) {
        Some(_) => Err(invalid_param(name, format!("{name} needs {whole}"))),
        None => Ok(()),
    };
    if !matches!(by, Some(GroupBy::Time { .. })) {
        only_with("granularity", "group_by_time")?;
        only_with("time_zone", "group_by_time")?;
    }
    let Some(by) = by else {
        only_with("limit", "group_by or group_by_time")?;
        return Ok(None);
    };
    // Text that is not a number is out of bounds too, which `Grouping::new` reports.
    let limit = params.text("limit").map(|text| text.parse().unwrap_or(0));
    Grouping::new(by, limit).map(Some)
}

fn group_by_time(params: &Params, name: &str) -> Parsed<GroupBy> {
    let granularity = params
        .text("granularity")
        .ok_or_else(|| invalid_param("granularity", "group_by_time needs a granularity"))?;
    Ok(GroupBy::Time {
        field: field("group_by_time", name)?,
        granularity: Granularity::parse(granularity)?,
        time_zone: params.text("time_zone").map(str::to_owned),
    })
}

pub(crate) fn search(
    selector: &ConnectionSelector,
    params: &Params,
    is_owner: bool,
) -> Parsed<SearchQuery> {
    let mut query = SearchQuery::new(params.text("q").unwrap_or_default())?;
    for name in params.list("streams").unwrap_or_default() {
        let stream = stream(&name, is_owner)?;
        if !query.streams.contains(&stream) {
            query.streams.push(stream);
        }
    }
    query.connection_id.clone_from(&selector.connection_id);
    query.limit = page_limit(params);
    query.cursor = params.text("cursor").map(str::to_owned);
    query.count = count(params)?;
    if let Some(name) = params.text("match") {
        query.matching = Matching::parse(name)?;
    }
    if let Some(name) = params.text("order") {
        query.order = SearchOrder::parse(name)?;
    }
    if let Some(text) = params.text("excerpts") {
        query.excerpts = parse_excerpts(text)?;
    }
    query.period = parse_period(params.text("since"), params.text("until"))?;
    query.filtered(filters(params)?)
}

fn projection(params: &Params) -> Parsed<Projection> {
    Projection::parse(params.list("fields").as_deref(), params.text("view"))
}

fn count(params: &Params) -> Parsed<Count> {
    let count = params.text("count").map(Count::parse).transpose()?;
    Ok(count.unwrap_or_default())
}

/// The leading digits; none, or zero, ask for the default.
fn page_limit(params: &Params) -> PageLimit {
    let text = params.raw("limit").unwrap_or_default().trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() {
        return PageLimit::default();
    }
    PageLimit::new(digits.parse().unwrap_or(u32::MAX))
}

fn sort(params: &Params) -> Parsed<Option<Sort>> {
    let Some(names) = params.text("sort").and_then(|_| params.list("sort")) else {
        return Ok(None);
    };
    let mut sorts = Vec::new();
    for name in &names {
        let sort = Sort::parse(name)?;
        if !sorts.contains(&sort) {
            sorts.push(sort);
        }
    }
    if sorts.len() > 1 {
        let message = "a stream is sorted by its cursor_field alone, in one direction";
        return Err(ReadError::new(ErrorCode::InvalidSort, message).with_param("sort"));
    }
    Ok(sorts.pop())
}

fn filters(params: &Params) -> Parsed<Vec<Filter>> {
    let mut filters: Vec<Filter> = Vec::new();
    for entry in params.entries("filter") {
        let (name, operator) = match entry.path.as_slice() {
            [name] => (name, None),
            [name, operator] => (name, Some(operator)),
            _ => {
                let message = "filter must use filter[field]=value or filter[field][op]=value";
                return Err(invalid_param("filter", message));
            }
        };
        let name = field("filter", name)?;
        let bound = operator.map(|op| filter_operator(&name, op)).transpose()?;
        let known = filters.iter_mut().find(|filter| filter.field == name);
        match (known.map(|filter| &mut filter.test), bound) {
            (None, None) => filters.push(Filter::exact(name, entry.value.clone())),
            (None, Some(op)) => {
                filters.push(Filter::range(name, vec![(op, entry.value.clone())]));
            }
            (Some(contract::query::FilterTest::Range(bounds)), Some(op))
                if bounds.iter().all(|(known, _)| *known != op) =>
            {
                bounds.push((op, entry.value.clone()));
            }
            _ => {
                let message = format!("the filter on '{name}' must use one value per condition");
                return Err(invalid_param("filter", message));
            }
        }
    }
    Ok(filters)
}

fn filter_operator(field: &FieldName, name: &str) -> Parsed<FilterOperator> {
    FilterOperator::named(name).ok_or_else(|| {
        let message = format!(
            "Unsupported filter operator '{}' on '{field}'",
            quoted(name)
        );
        invalid_param("filter", message)
            .with_hint("the operators are gte, gt, lte and lt, and contains for arrays")
    })
}

fn expand(params: &Params) -> Parsed<Vec<ExpandRequest>> {
    let mut wanted: Vec<ExpandRequest> = Vec::new();
    for name in params.list("expand").unwrap_or_default() {
        if wanted.iter().all(|known| known.name != name) {
            wanted.push(ExpandRequest { name, limit: None });
        }
    }
    for entry in params.entries("expand_limit") {
        let [name] = entry.path.as_slice() else {
            return Err(invalid_expand(
                "expand_limit must use expand_limit[relation]=number",
            ));
        };
        let limit = entry.value.trim().parse().ok().filter(|limit| *limit > 0);
        let asked = wanted.iter_mut().find(|known| known.name == *name);
        match (asked, limit) {
            (Some(asked), Some(limit)) if asked.limit.is_none() => asked.limit = Some(limit),
            (None, _) => {
                let message = format!(
                    "expand_limit names '{}', which is not expanded",
                    quoted(name)
                );
                return Err(invalid_expand(message));
            }
            _ => {
                return Err(invalid_expand(
                    "expand_limit must be one positive whole number",
                ));
            }
        }
    }
    Ok(wanted)
}

fn invalid_expand(message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorCode::InvalidExpand, message).with_param("expand")
}

fn field(param: &str, name: &str) -> Parsed<FieldName> {
    FieldName::parse(name).map_err(|error| invalid_param(param, error.to_string()))
}
