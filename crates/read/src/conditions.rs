//! The caller's own conditions: checked against what the row offers, evaluated by the index, and held against each record
//! once more.

use std::ops::Bound;

use contract::declaration::{Declaration, FilterOperator, StreamDeclaration};
use contract::error::{ErrorCode, ReadError};
use contract::grant::{RowRule, RuleMistake};
use contract::id::FieldName;
use contract::json::{self, JsonKind, RecordBody};
use contract::query::{Filter, FilterTest};
use contract::scalar::{FieldKind, Scalar, ScalarError};
use store::search::{Filter as StoreFilter, Test};

use crate::enforce::Row;

#[derive(Debug, Default)]
pub(crate) struct Conditions(Vec<(FieldKind, StoreFilter)>);

impl Conditions {
    /// Checks what was asked against what the row offers.
    pub(crate) fn new(row: &Row, filters: &[Filter]) -> Result<Self, ReadError> {
        let mut conditions = Self::default();
        for filter in filters {
            conditions.add(row, filter)?;
        }
        Ok(conditions)
    }

    /// The rules of a grant, unless the declaration does not allow one of them. Their fields need not be visible. A rule
    /// on related records must have been resolved before.
    pub(crate) fn from_rules(
        declaration: &Declaration,
        stream: &StreamDeclaration,
        rules: &[RowRule],
    ) -> Result<Self, RuleMistake> {
        let typed = rules.iter().map(|rule| {
            let typed = rule.typed(declaration, stream)?;
            if typed.via.is_some() {
                return Err(RuleMistake {
                    path: "/via".to_owned(),
                    rule: "is not resolved".to_owned(),
                });
            }
            let filter = StoreFilter {
                field: typed.field,
                test: typed.test,
            };
            Ok((typed.kind, filter))
        });
        typed.collect::<Result<_, _>>().map(Self)
    }

    fn add(&mut self, row: &Row, filter: &Filter) -> Result<(), ReadError> {
        let name = &filter.field;
        let param = format!("filter[{name}]");
        let field = row.field(name.as_str(), &param)?;
        let kind = field.items.unwrap_or(field.kind);
        if !kind.is_scalar() {
            let message = format!(
                "filters are supported only on top-level fields of one scalar type, and arrays of such items; '{name}' is neither"
            );
            return Err(refused(&param, message));
        }
        let operand = |text: &str| {
            Scalar::from_request(kind, text).map_err(|error: ScalarError| {
                refused(&param, format!("filter on '{name}': {error}"))
            })
        };
        let mut push = |test| {
            let field = name.clone();
            self.0.push((kind, StoreFilter { field, test }));
        };
        match &filter.test {
            FilterTest::Exact(_) if field.items.is_some() => {
                let message =
                    format!("'{name}' is an array, which is filtered by one of its items");
                let hint = format!(
                    "use filter[{name}][contains]=value, in tools {{\"{name}\":{{\"contains\":value}}}}"
                );
                return Err(refused(&param, message).with_hint(hint));
            }
            FilterTest::Exact(text) => push(Test::Equals(operand(text)?)),
            FilterTest::Range(bounds) => {
                let offered = row.range_operators(name).ok_or_else(|| {
                    refused(
                        &param,
                        format!("range filters are not declared for '{name}'"),
                    )
                })?;
                for (operator, text) in bounds {
                    if !offered.contains(operator) {
                        let message =
                            format!("the range operator '{operator}' is not declared for '{name}'");
                        return Err(refused(&param, message));
                    }
                    push(operated(*operator, operand(text)?));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The filters, as the index evaluates them.
    pub(crate) fn filters(&self) -> Vec<StoreFilter> {
        self.0.iter().map(|(_, filter)| filter.clone()).collect()
    }

    /// The fields they look at.
    pub(crate) fn fields(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(_, filter)| filter.field.to_string())
    }

    /// Whether a record meets one of them, or holds a value of which that cannot be told. Null and absent values do not.
    pub(crate) fn any_may_hold(&self, body: &RecordBody) -> bool {
        self.0.iter().any(|(kind, filter)| {
            let mut values = values(&filter.field, &filter.test, body).into_iter();
            values.any(|raw| {
                let value = Scalar::from_json(*kind, raw);
                value.is_none_or(|value| filter.test.holds(&value, text::has_words))
            })
        })
    }

    /// Whether a record meets them all. Null, absent and unreadable values never do.
    pub(crate) fn pass(&self, body: &RecordBody) -> bool {
        self.0.iter().all(|(kind, filter)| {
            let mut values = values(&filter.field, &filter.test, body).into_iter();
            values.any(|raw| {
                let value = Scalar::from_json(*kind, raw);
                value.is_some_and(|value| filter.test.holds(&value, text::has_words))
            })
        })
    }
}

/// The values that a test looks at, as JSON: that of its field, or the items of an array. Nulls are none.
pub(crate) fn values<'b>(field: &FieldName, test: &Test, body: &'b RecordBody) -> Vec<&'b str> {
    let raw = body.get(field.as_str());
    let mut values = match (raw, test) {
        (None, _) => Vec::new(),
        // What is no array holds one item: no rule may be evaded by another type.
        (Some(raw), Test::Contains(_)) if json::kind_of(raw) == JsonKind::Array => {
            json::elements(raw).collect()
        }
        (Some(raw), _) => vec![raw],
    };
    values.retain(|raw| json::kind_of(raw) != JsonKind::Null);
    values
}

fn operated(operator: FilterOperator, bound: Scalar) -> Test {
    match operator {
        FilterOperator::Contains => Test::Contains(vec![bound]),
        FilterOperator::Gte => Test::Range(Bound::Included(bound), Bound::Unbounded),
        FilterOperator::Gt => Test::Range(Bound::Excluded(bound), Bound::Unbounded),
        FilterOperator::Lte => Test::Range(Bound::Unbounded, Bound::Included(bound)),
        FilterOperator::Lt => Test::Range(Bound::Unbounded, Bound::Excluded(bound)),
    }
}

/// One text per set of conditions, in whatever order they were given; cursors are bound to it.
pub(crate) fn fingerprint(filters: &[Filter]) -> String {
    let mut parts = Vec::new();
    for filter in filters {
        let field = filter.field.as_str();
        match &filter.test {
            FilterTest::Exact(text) => parts.push((field, "eq", text.as_str())),
            FilterTest::Range(bounds) => {
                let bounds = bounds.iter();
                parts.extend(
                    bounds.map(|(operator, text)| (field, operator.as_str(), text.as_str())),
                );
            }
        }
    }
    parts.sort_unstable();
    parts.dedup();
    serde_json::json!(parts).to_string()
}

pub(crate) fn refused(param: &str, message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorCode::InvalidRequest, message).with_param(param)
}
