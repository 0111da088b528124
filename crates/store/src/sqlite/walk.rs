//! Walking the live records of a stream in the order of a page.
//!
//! The order is two index ranges at most: records with a cursor value, then those without, in both directions. Nothing
//! is sorted and nothing is skipped by counting, so page 1,000 costs what page 1 costs.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::records::{Direction, OrderBy, PageRequest, SortValue};

/// The ranges a page runs through.
pub(super) struct Walk {
    ranges: Vec<Range>,
}

/// One index range: its condition and order in SQL, and the values it refers to.
struct Range {
    sql: String,
    values: Vec<Value>,
}

impl Walk {
    /// The walk that starts where the request says.
    pub(super) fn new(stream: i64, request: &PageRequest) -> Self {
        let (after, order) = match request.direction {
            Direction::Ascending => (">", "ASC"),
            Direction::Descending => ("<", "DESC"),
        };
        let position = request
            .after
            .as_ref()
            .map(|position| (position.sort, Value::Text(position.key.ordering_form())));
        let by_key = |index: &str, condition: &str, key: Option<Value>| {
            let bound = key
                .as_ref()
                .map_or(String::new(), |_| format!("AND key {after} ?2"));
            Range {
                sql: format!(
                    "{index} WHERE stream_id = ?1 AND data IS NOT NULL {condition} {bound} ORDER BY key {order}"
                ),
                values: std::iter::once(Value::Integer(stream)).chain(key).collect(),
            }
        };
        if request.by == OrderBy::Key {
            let key = position.map(|(_, key)| key);
            return Self {
                ranges: vec![by_key("records_by_key", "", key)],
            };
        }
        let without = |key| by_key("records_by_sort", "AND sort IS NULL", key);
        let ranges = match position {
            Some((SortValue::Missing, key)) => vec![without(Some(key))],
            position => {
                let (bound, values) = match position {
                    None => (String::new(), vec![Value::Integer(stream)]),
                    Some((sort, key)) => (
                        format!("AND (sort, key) {after} (?2, ?3)"),
                        vec![Value::Integer(stream), sort_value(sort), key],
                    ),
                };
                let with = Range {
                    sql: format!(
                        "records_by_sort WHERE stream_id = ?1 AND data IS NOT NULL AND sort IS NOT NULL {bound}
                         ORDER BY sort {order}, key {order}"
                    ),
                    values,
                };
                vec![with, without(None)]
            }
        };
        Self { ranges }
    }

    /// Hands over the columns of one record after the other, until the callback returns false.
    pub(super) fn for_each(
        &self,
        connection: &Connection,
        columns: &str,
        each: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        for range in &self.ranges {
            let sql = format!("SELECT {columns} FROM records INDEXED BY {}", range.sql);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&range.values))?;
            while let Some(row) = rows.next()? {
                if !each(row)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The cursor value as the database orders it; NULL when there is none to order by.
pub(crate) fn sort_value(sort: SortValue) -> Value {
    match sort {
        SortValue::Integer(value) => Value::Integer(value),
        SortValue::Real(value) => Value::Real(value),
        SortValue::Missing => Value::Null,
    }
}
