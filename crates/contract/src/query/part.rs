//! The parts requests are made of: limits, order, projection, filters, relationships.

use super::refused;
use crate::declaration::FilterOperator;
use crate::error::{ErrorCode, ReadError};
use crate::id::{FieldName, ViewId};
use crate::page::Warning;

/// Entries on a page when the request names no limit.
pub const DEFAULT_PAGE_LIMIT: u32 = 25;

pub const MAX_PAGE_LIMIT: u32 = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageLimit(Option<u32>);

impl PageLimit {
    /// Exactly so many, if allowed. Zero asks for the default.
    pub fn new(requested: u32) -> PageLimit {
        PageLimit((requested > 0).then_some(requested))
    }

    pub fn requested(self) -> Option<u32> {
        self.0
    }

    /// What a page holds: the default when nothing was asked, the maximum when too much was.
    pub fn effective(self) -> u32 {
        self.0.unwrap_or(DEFAULT_PAGE_LIMIT).min(MAX_PAGE_LIMIT)
    }

    /// The warning that belongs on the page when too much was asked.
    pub fn warning(self, entries: &str) -> Option<Warning> {
        let requested = self.0.filter(|requested| *requested > MAX_PAGE_LIMIT)?;
        Some(Warning::limit_clamped(requested, MAX_PAGE_LIMIT, entries))
    }
}

crate::names! {
    #[derive(Default)]
    pub enum Order {
        Ascending = "asc",
        #[default]
        Descending = "desc",
    }
}

impl Order {
    pub fn parse(name: &str) -> Result<Order, ReadError> {
        Self::named(name).ok_or_else(|| refused("order", "order must be asc or desc"))
    }
}

/// Sorting by a field: the stream's `cursor_field`, checked by the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    pub field: FieldName,
    pub order: Order,
}

impl Sort {
    /// Reads `field` or `-field`.
    pub fn parse(text: &str) -> Result<Sort, ReadError> {
        let (name, order) = match text.strip_prefix('-') {
            Some(name) => (name, Order::Descending),
            None => (text, Order::Ascending),
        };
        let field = FieldName::parse(name).map_err(|error| {
            ReadError::new(ErrorCode::InvalidSort, error.to_string()).with_param("sort")
        })?;
        Ok(Sort { field, order })
    }

    pub fn to_wire(&self) -> String {
        let sign = if self.order == Order::Descending {
            "-"
        } else {
            ""
        };
        format!("{sign}{}", self.field)
    }
}

/// A condition in one word, as people write it: `field=value`, `field>=value`, `field>value`, `field<=value` or
/// `field<value`, split into field, operator (`None` for equality) and value.
pub fn split_condition(text: &str) -> Option<(&str, Option<FilterOperator>, &str)> {
    let (field, rest) = text.split_at(text.find(['=', '<', '>'])?);
    if field.is_empty() || field.ends_with('!') {
        return None;
    }
    let operators = [
        (">=", FilterOperator::Gte),
        ("<=", FilterOperator::Lte),
        (">", FilterOperator::Gt),
        ("<", FilterOperator::Lt),
    ];
    let bound = operators
        .into_iter()
        .find_map(|(sign, operator)| Some((field, Some(operator), rest.strip_prefix(sign)?)));
    Some(bound.unwrap_or((field, None, rest.strip_prefix('=').unwrap_or(rest))))
}

crate::names! {
    /// Whether all matching entries should be counted.
    #[derive(Default)]
    pub enum Count {
        #[default]
        None = "none",
        /// Roughly; answered exactly by us.
        Estimated = "estimated",
        Exact = "exact",
    }
}

impl Count {
    /// The wish of that wire name.
    pub fn parse(name: &str) -> Result<Count, ReadError> {
        Self::named(name).ok_or_else(|| refused("count", "count must be none, estimated or exact"))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Projection {
    #[default]
    All,
    Fields(Vec<FieldName>),
    View(ViewId),
}

impl Projection {
    /// Reads both parameters, of which at most one may be given. `fields` holds at least one name.
    pub fn parse(fields: Option<&[String]>, view: Option<&str>) -> Result<Projection, ReadError> {
        match (fields, view) {
            (None, None) => Ok(Projection::All),
            (Some(_), Some(_)) => Err(refused("view", "view and fields are mutually exclusive")),
            (None, Some(view)) => ViewId::parse(view)
                .map(Projection::View)
                .map_err(|error| refused("view", error.to_string())),
            (Some(names), None) => {
                let mut fields = Vec::new();
                for name in names {
                    let name = FieldName::parse(name.as_str())
                        .map_err(|error| refused("fields", error.to_string()))?;
                    if !fields.contains(&name) {
                        fields.push(name);
                    }
                }
                if fields.is_empty() {
                    return Err(refused("fields", "fields must name at least one field"));
                }
                Ok(Projection::Fields(fields))
            }
        }
    }
}

/// A condition on one field. Several conditions must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub field: FieldName,
    pub test: FilterTest,
}

/// What a filter asks of a value. Operands are text; the field's kind decides how they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterTest {
    /// Typed equality; null never matches.
    Exact(String),
    Range(Vec<(FilterOperator, String)>),
}

impl Filter {
    pub fn exact(field: FieldName, value: impl Into<String>) -> Filter {
        Filter {
            field,
            test: FilterTest::Exact(value.into()),
        }
    }

    pub fn range(field: FieldName, bounds: Vec<(FilterOperator, String)>) -> Filter {
        Filter {
            field,
            test: FilterTest::Range(bounds),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandRequest {
    pub name: String,
    /// How many children, for a `has_many` relationship.
    pub limit: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_limit_defaults_clamps_and_warns() {
        assert_eq!(PageLimit::default().effective(), 25);
        assert_eq!(PageLimit::new(0).effective(), 25);
        assert_eq!(PageLimit::new(7).effective(), 7);
        assert_eq!(PageLimit::new(500).effective(), 100);
        assert!(PageLimit::new(100).warning("records").is_none());
        assert!(
            PageLimit::new(101)
                .warning("records")
                .unwrap()
                .message
                .contains("limit=101")
        );
    }

    #[test]
    fn fields_and_view_exclude_each_other() {
        let fields = ["id".to_owned(), "id".to_owned()];
        assert_eq!(Projection::parse(None, None).unwrap(), Projection::All);
        assert_eq!(
            Projection::parse(Some(&fields), None).unwrap(),
            Projection::Fields(vec![FieldName::parse("id").unwrap()])
        );
        assert!(matches!(
            Projection::parse(None, Some("v")),
            Ok(Projection::View(_))
        ));
        assert_eq!(
            Projection::parse(Some(&fields), Some("v"))
                .unwrap_err()
                .param
                .as_deref(),
            Some("view")
        );
        assert_eq!(
            Projection::parse(Some(&[]), None)
                .unwrap_err()
                .param
                .as_deref(),
            Some("fields")
        );
    }
}
