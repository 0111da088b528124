//! What a granted row demands of records besides their keys: a time and rules, typed once against the declaration.

use contract::declaration::{Declaration, StreamDeclaration};
use contract::grant::{GrantedRow, RuleMistake, TimeConstraint};
use contract::id::FieldName;
use contract::json::RecordBody;
use contract::scalar::FieldKind;
use contract::time::{Instant, TimeRange};
use store::search::Rules;

use crate::conditions::Conditions;

#[derive(Debug, Clone)]
pub(super) enum TimeLimit {
    Within(FieldName, TimeRange),
    /// The constraint cannot be evaluated, so no record meets it.
    Never,
}

impl TimeLimit {
    /// A constraint is evaluated on a field that holds dates, or on the stream's own consent time.
    pub(super) fn new(stream: &StreamDeclaration, constraint: &TimeConstraint) -> Self {
        let holds_time = stream
            .field(constraint.field.as_str())
            .is_some_and(|field| {
                matches!(field.kind, FieldKind::Date | FieldKind::DateTime)
                    || (field.kind == FieldKind::Text
                        && stream.consent_time_field.as_ref() == Some(&constraint.field))
            });
        match constraint.range() {
            Ok(range) if holds_time => Self::Within(constraint.field.clone(), range),
            _ => Self::Never,
        }
    }

    pub(super) fn admits(&self, body: &RecordBody) -> bool {
        match self {
            Self::Never => false,
            Self::Within(field, range) => body
                .text(field.as_str())
                .and_then(|text| Instant::parse(&text))
                .is_some_and(|moment| range.contains(moment)),
        }
    }
}

#[derive(Debug)]
pub(super) struct RowRules {
    only: Conditions,
    except: Conditions,
}

impl RowRules {
    pub(super) fn new(
        declaration: &Declaration,
        stream: &StreamDeclaration,
        row: &GrantedRow,
    ) -> Result<Self, RuleMistake> {
        let conditions = |rules| Conditions::from_rules(declaration, stream, rules);
        Ok(Self {
            only: conditions(&row.only)?,
            except: conditions(&row.except)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.except.is_empty()
    }

    /// The rules, as the index evaluates them.
    pub(super) fn in_scope(&self) -> Rules {
        Rules {
            only: self.only.filters(),
            except: self.except.filters(),
        }
    }

    pub(super) fn admit(&self, body: &RecordBody) -> bool {
        self.only.pass(body) && !self.except.any_may_hold(body)
    }
}
