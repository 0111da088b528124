//! What the address of a stream's page chooses: the same parameters as `/v1` takes, read by the same parser.

use contract::id::{FieldName, StreamName};
use contract::query::{
    Count, FilterTest, ListOptions, Order, PageLimit, Projection, Reading, RecordsQuery,
};

use crate::console::stream_shape::{CURRENCY, FieldShape, StreamShape};
use crate::console::time_counts::bound;
use crate::console::viewer::Viewer;
use crate::problem::Problem;
use crate::query_params::{self, ConnectionSelector};

const ROWS: u32 = 50;
/// How many columns are shown unless the address names them.
const COLUMNS: usize = 6;

pub(super) struct Chosen {
    pub(super) query: RecordsQuery,
    /// The columns, in order.
    pub(super) columns: Vec<FieldName>,
    pub(super) order: Order,
    /// Whether all fields are wanted, and not some as columns.
    pub(super) is_whole: bool,
    /// Whether the page is not the first.
    pub(super) cursor: bool,
}

impl Chosen {
    pub(super) fn new(
        viewer: &Viewer,
        shape: &StreamShape,
        (connection, stream): (&str, StreamName),
    ) -> Result<Self, Problem> {
        let selector = ConnectionSelector {
            connection_id: Some(connection.to_owned()),
            by_alias: false,
        };
        let mut query = query_params::records(stream, &selector, &viewer.params)?;
        query.limit = PageLimit::new(ROWS);
        for filter in &mut query.filters {
            if let Some(field) = shape.field(filter.field.as_str()) {
                local_days(field, &mut filter.test);
            }
        }
        let is_whole =
            viewer.params.text("columns") == Some("all") && query.projection == Projection::All;
        let columns = match &query.projection {
            Projection::Fields(fields) => fields.clone(),
            Projection::All if is_whole => {
                let fields = shape.fields.iter();
                fields.map(|field| field.name.clone()).collect()
            }
            Projection::All | Projection::View(_) => usual(shape),
        };
        if !columns.is_empty() && !is_whole {
            query.projection = Projection::Fields(columns.clone());
        }
        let (mut order, mut cursor) = (Order::default(), false);
        if let Reading::List(options) = &mut query.reading {
            options.count = Count::Exact;
            order = ListOptions::direction(options)?;
            cursor = options.cursor.is_some();
        }
        Ok(Self {
            query,
            columns,
            order,
            is_whole,
            cursor,
        })
    }

    /// The question for a table, which also shows the currency of amounts.
    pub(super) fn with_currency(&self, shape: &StreamShape) -> RecordsQuery {
        let mut query = self.query.clone();
        let fields = self.columns.iter();
        let mut fields = fields.filter_map(|name| shape.field(name.as_str()));
        if let Projection::Fields(wanted) = &mut query.projection
            && let Some(currency) = shape.field(CURRENCY)
            && fields.any(FieldShape::is_money)
            && !wanted.contains(&currency.name)
        {
            wanted.push(currency.name.clone());
        }
        query
    }
}

/// Days that were typed begin where the times of the page are told: at midnight here.
fn local_days(field: &FieldShape, test: &mut FilterTest) {
    if let FilterTest::Range(bounds) = test
        && field.is_time
    {
        for (_, value) in bounds {
            if value.len() == 10
                && let Ok(day) = value.parse()
            {
                *value = bound(field, day);
            }
        }
    }
}

/// The columns of a stream: when, what it is called, who wrote it, then what records can be told apart by, then how they
/// begin.
fn usual(shape: &StreamShape) -> Vec<FieldName> {
    let mut columns: Vec<FieldName> = Vec::new();
    let mut add = |field: Option<&FieldShape>| {
        if let Some(field) = field
            && !columns.contains(&field.name)
        {
            columns.push(field.name.clone());
        }
    };
    let mut times = shape.time_names().into_iter().flatten();
    add(times.find_map(|name| shape.field(name)));
    add(shape.title());
    add(shape.with_role("author"));
    let body = shape.with_role("body");
    let plain = shape
        .fields
        .iter()
        .filter(|field| field.exact && field.role.is_none());
    let (telling, others): (Vec<&FieldShape>, Vec<&FieldShape>) =
        plain.partition(|field| field.sums || field.groups);
    let ids = |field: &&&FieldShape| !field.name.as_str().ends_with("id");
    for field in telling.iter().filter(ids).chain(others.iter().filter(ids)) {
        add(Some(field));
    }
    columns.truncate(COLUMNS - usize::from(body.is_some()));
    columns.extend(body.map(|body| body.name.clone()));
    if columns.is_empty() {
        columns.extend(
            shape
                .fields
                .iter()
                .take(COLUMNS)
                .map(|field| field.name.clone()),
        );
    }
    columns
}
