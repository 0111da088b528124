//! What a caller sent for an argument, before it is checked. This is the only place that looks into a caller's JSON.

use serde::Serialize;
use serde_json::{Number, Value};

/// One value of a caller.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given(Value);

/// A text, a number or a truth value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Scalar {
    Text(String),
    Number(Number),
    Bool(bool),
}

impl Given {
    /// None where it is null, which is an argument that was not given.
    pub(super) fn new(value: Value) -> Option<Self> {
        (!value.is_null()).then_some(Self(value))
    }

    pub(super) fn text(self) -> Option<String> {
        match self.0 {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        self.0.is_number()
    }

    /// A whole number, also when it was written like `5.0`.
    pub(super) fn whole(&self) -> Option<u64> {
        self.0.as_u64().or_else(|| {
            let number = self.0.as_f64()?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be whole and within what a double holds exactly"
            )]
            (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
        })
    }

    /// A list of texts, none of them empty.
    pub(super) fn names(self) -> Option<Vec<String>> {
        let Value::Array(list) = self.0 else {
            return None;
        };
        let text = |one| Self(one).text().filter(|text| !text.is_empty());
        list.into_iter().map(text).collect()
    }

    /// The members of an object; itself where it is none.
    pub(super) fn members(self) -> Result<Vec<(String, Self)>, Self> {
        match self.0 {
            Value::Object(members) => {
                let members = members.into_iter();
                Ok(members.map(|(name, value)| (name, Self(value))).collect())
            }
            other => Err(Self(other)),
        }
    }

    pub(super) fn scalar(self) -> Option<Scalar> {
        match self.0 {
            Value::String(text) => Some(Scalar::Text(text)),
            Value::Number(number) => Some(Scalar::Number(shortest(number))),
            Value::Bool(truth) => Some(Scalar::Bool(truth)),
            _ => None,
        }
    }
}

impl Scalar {
    /// As it stands in a question.
    pub(super) fn to_param(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Bool(truth) => truth.to_string(),
        }
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// `3.0` is the number `3`, which is what servers of integers read. Larger ones are left as they were written.
fn shortest(number: Number) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "checked to be whole and within what a double holds exactly"
            )]
            let whole = float as i64;
            whole.into()
        }
        _ => number,
    }
}
