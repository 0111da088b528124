//! Rules on rows: which records of a granted stream may be seen, by the values of their fields.
//!
//! Operands are kept as the texts of a request, as filters have them, and become typed against the declaration of the
//! stream. A rule that the declaration does not allow has no typed form, and then nothing of the stream may be seen.

use std::cmp::Ordering;
use std::ops::Bound;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::condition::Test;
use crate::declaration::{Declaration, FilterOperator, StreamDeclaration};
use crate::id::{FieldName, StreamName};
use crate::scalar::{FieldKind, Scalar};

/// The longest beginning that a rule may compare with, in bytes.
const MAX_PREFIX_BYTES: usize = 1024;

/// A condition on one declared field, of the record or of the record that a foreign key of it names. The field need not be
/// granted. Null and absent values never meet it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleDocument", into = "RuleDocument")]
pub struct RowRule(RuleDocument);

/// A rule as written, unchecked: one of `eq`, `in`, `contains`, `prefix`, `word`, or one or two bounds. Of an array, `eq`,
/// `in` and `contains` ask for an item. [`RowRule::try_from`] is the way to a rule.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleDocument {
    pub field: FieldName,
    /// The foreign key of the stream that names the record with the field; the field is the stream's own where absent.
    pub via: Option<FieldName>,
    pub eq: Option<String>,
    #[serde(rename = "in")]
    pub one_of: Option<Vec<String>>,
    /// How the text begins, to the letter.
    pub prefix: Option<String>,
    /// Words that all stand in the text, as a search finds them.
    pub word: Option<String>,
    pub gte: Option<String>,
    pub gt: Option<String>,
    pub lte: Option<String>,
    pub lt: Option<String>,
    /// An item that an array has.
    pub contains: Option<String>,
}

/// What is wrong with a rule, and in which of its members.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{rule}")]
pub struct RuleMistake {
    /// The steps of a JSON Pointer within the rule; empty for the whole.
    pub path: String,
    pub rule: String,
}

impl RuleMistake {
    fn new(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
        }
    }
}

impl RuleDocument {
    pub fn new(field: FieldName) -> Self {
        Self {
            field,
            via: None,
            eq: None,
            one_of: None,
            prefix: None,
            word: None,
            gte: None,
            gt: None,
            lte: None,
            lt: None,
            contains: None,
        }
    }

    pub fn operand(&self, operator: FilterOperator) -> Option<&str> {
        match operator {
            FilterOperator::Gte => self.gte.as_deref(),
            FilterOperator::Gt => self.gt.as_deref(),
            FilterOperator::Lte => self.lte.as_deref(),
            FilterOperator::Lt => self.lt.as_deref(),
            FilterOperator::Contains => self.contains.as_deref(),
        }
    }

    pub fn operand_mut(&mut self, operator: FilterOperator) -> &mut Option<String> {
        match operator {
            FilterOperator::Gte => &mut self.gte,
            FilterOperator::Gt => &mut self.gt,
            FilterOperator::Lte => &mut self.lte,
            FilterOperator::Lt => &mut self.lt,
            FilterOperator::Contains => &mut self.contains,
        }
    }
}

impl TryFrom<RuleDocument> for RowRule {
    type Error = RuleMistake;

    fn try_from(document: RuleDocument) -> Result<Self, RuleMistake> {
        let bounded = FilterOperator::BOUNDS
            .iter()
            .any(|operator| document.operand(*operator).is_some());
        let tests = [
            document.eq.is_some(),
            document.one_of.is_some(),
            document.prefix.is_some(),
            document.word.is_some(),
            document.contains.is_some(),
            bounded,
        ];
        if tests.iter().filter(|given| **given).count() != 1 {
            let rule = "a rule needs exactly one of eq, in, contains, prefix, word, or bounds (gte or gt, lte or lt)";
            return Err(RuleMistake::new("", rule));
        }
        check_texts(&document)?;
        for (one, other) in [("gte", "gt"), ("lte", "lt")] {
            let given = |name| FilterOperator::named(name).and_then(|name| document.operand(name));
            if given(one).is_some() && given(other).is_some() {
                let rule = format!("a rule takes one of {one} and {other}");
                return Err(RuleMistake::new(format!("/{other}"), rule));
            }
        }
        let values = document.one_of.as_deref().unwrap_or_default();
        if document.one_of.is_some() && values.is_empty() {
            let rule = "is empty, and an empty list allows nothing; name a value";
            return Err(RuleMistake::new("/in", rule));
        }
        for (at, value) in values.iter().enumerate() {
            if values.iter().take(at).any(|known| known == value) {
                let rule = format!("names {value:?} a second time");
                return Err(RuleMistake::new(format!("/in/{at}"), rule));
            }
        }
        Ok(Self(document))
    }
}

/// A beginning or word that every text or none would have is a mistake.
fn check_texts(document: &RuleDocument) -> Result<(), RuleMistake> {
    let beginning = document.prefix.as_deref();
    if beginning.is_some_and(|text| text.is_empty() || text.len() > MAX_PREFIX_BYTES) {
        let rule = format!("takes 1 to {MAX_PREFIX_BYTES} bytes");
        return Err(RuleMistake::new("/prefix", rule));
    }
    let words = document.word.as_deref();
    if words.is_some_and(|words| !words.contains(char::is_alphanumeric)) {
        return Err(RuleMistake::new("/word", "has no letter and no digit"));
    }
    Ok(())
}

impl From<RowRule> for RuleDocument {
    fn from(rule: RowRule) -> Self {
        rule.0
    }
}

impl RowRule {
    pub fn document(&self) -> &RuleDocument {
        &self.0
    }

    pub fn field(&self) -> &FieldName {
        &self.0.field
    }

    /// The same rule on the field of the record that a foreign key names.
    #[must_use]
    pub fn through(mut self, foreign_key: FieldName, field: FieldName) -> Self {
        self.0.via = Some(foreign_key);
        self.0.field = field;
        self
    }

    /// The rule on the records of a stream, typed, or why the declaration does not allow it.
    pub fn typed(
        &self,
        declaration: &Declaration,
        stream: &StreamDeclaration,
    ) -> Result<TypedRule, RuleMistake> {
        let via = self.0.via.as_ref();
        let via = via
            .map(|key| Via::new(declaration, stream, key))
            .transpose()?;
        let holder = match &via {
            None => stream,
            Some(via) => declaration.stream(via.stream.as_str()).ok_or_else(|| {
                RuleMistake::new(
                    "/via",
                    format!("there is no stream {:?}", via.stream.as_str()),
                )
            })?,
        };
        let (kind, test) = self.test_of(holder)?;
        Ok(TypedRule {
            via,
            kind,
            field: self.0.field.clone(),
            test,
        })
    }

    fn test_of(&self, stream: &StreamDeclaration) -> Result<(FieldKind, Test), RuleMistake> {
        let name = &self.0.field;
        let Some(field) = stream.field(name.as_str()) else {
            let rule = format!(
                "stream {:?} has no field {:?}",
                stream.name.as_str(),
                name.as_str()
            );
            return Err(RuleMistake::new("/field", rule));
        };
        if let Some(kind) = field.items {
            return Ok((kind, self.items_of(stream, kind)?));
        }
        if !field.kind.is_scalar() || self.0.contains.is_some() {
            let rule = format!("{:?} is not a field of one scalar type", name.as_str());
            return Err(RuleMistake::new("/field", rule));
        }
        let operand = |path: String, text: &str| {
            Scalar::from_request(field.kind, text)
                .map_err(|error| RuleMistake::new(path, error.to_string()))
        };
        let test = if let Some(text) = &self.0.eq {
            Test::Equals(operand("/eq".to_owned(), text)?)
        } else if let Some(texts) = &self.0.one_of {
            let texts = texts.iter().enumerate();
            let values = texts.map(|(at, text)| operand(format!("/in/{at}"), text));
            Test::OneOf(values.collect::<Result<_, _>>()?)
        } else if let Some(text) = &self.0.prefix {
            if field.kind != FieldKind::Text || !stream.counts_values_of(name) {
                let rule = format!(
                    "the beginning of {:?} cannot be compared: it is not a text that is declared for group_by or count_distinct",
                    name.as_str()
                );
                return Err(RuleMistake::new("/prefix", rule));
            }
            Test::Prefix(text.clone())
        } else if let Some(text) = &self.0.word {
            if !stream.query.lexical_fields.contains(name) {
                let rule = format!(
                    "the words of {:?} are not declared for search (lexical_fields)",
                    name.as_str()
                );
                return Err(RuleMistake::new("/word", rule));
            }
            Test::Words(text.clone())
        } else {
            self.range_of(stream, &operand)?
        };
        Ok((field.kind, test))
    }

    /// The test of an array's items.
    fn items_of(&self, stream: &StreamDeclaration, kind: FieldKind) -> Result<Test, RuleMistake> {
        let name = &self.0.field;
        let declared = stream.query.range_filters.get(name);
        if !declared.is_some_and(|declared| declared.contains(&FilterOperator::Contains)) {
            let rule = format!("contains is not declared for {:?}", name.as_str());
            return Err(RuleMistake::new("/field", rule));
        }
        let operand = |path: String, text: &String| {
            Scalar::from_request(kind, text)
                .map_err(|error| RuleMistake::new(path, error.to_string()))
        };
        let document = &self.0;
        let values = match (&document.contains, &document.eq, &document.one_of) {
            (Some(text), ..) => vec![operand("/contains".to_owned(), text)?],
            (_, Some(text), _) => vec![operand("/eq".to_owned(), text)?],
            (.., Some(texts)) => {
                let texts = texts.iter().enumerate();
                let values = texts.map(|(at, text)| operand(format!("/in/{at}"), text));
                values.collect::<Result<_, _>>()?
            }
            (None, None, None) => {
                let rule = format!(
                    "{:?} is an array, which takes contains, eq or in",
                    name.as_str()
                );
                return Err(RuleMistake::new("", rule));
            }
        };
        Ok(Test::Contains(values))
    }

    fn range_of(
        &self,
        stream: &StreamDeclaration,
        operand: &dyn Fn(String, &str) -> Result<Scalar, RuleMistake>,
    ) -> Result<Test, RuleMistake> {
        let name = &self.0.field;
        let bound = |operator: FilterOperator| {
            let Some(text) = self.0.operand(operator) else {
                return Ok(None);
            };
            let path = format!("/{operator}");
            let declared = stream.query.range_filters.get(name);
            if !declared.is_some_and(|declared| declared.contains(&operator)) {
                let rule = format!(
                    "the range operator '{operator}' is not declared for {:?}",
                    name.as_str()
                );
                return Err(RuleMistake::new(path, rule));
            }
            operand(path, text).map(Some)
        };
        let either = |included: Option<Scalar>, excluded: Option<Scalar>| match included {
            Some(value) => Bound::Included(value),
            None => excluded.map_or(Bound::Unbounded, Bound::Excluded),
        };
        let low = either(bound(FilterOperator::Gte)?, bound(FilterOperator::Gt)?);
        let high = either(bound(FilterOperator::Lte)?, bound(FilterOperator::Lt)?);
        if is_empty(&low, &high) {
            return Err(RuleMistake::new("", "no value lies between the bounds"));
        }
        Ok(Test::Range(low, high))
    }
}

/// A rule that the declaration allows.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedRule {
    pub via: Option<Via>,
    /// The kind of the field, and the test of its value.
    pub kind: FieldKind,
    pub field: FieldName,
    pub test: Test,
}

/// The way from a record to the one that its foreign key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via {
    pub foreign_key: FieldName,
    pub kind: FieldKind,
    /// The stream of the named record, in the same connection.
    pub stream: StreamName,
}

impl Via {
    /// The stream that a field of another points at, as one of the two declares it.
    fn new(
        declaration: &Declaration,
        stream: &StreamDeclaration,
        key: &FieldName,
    ) -> Result<Self, RuleMistake> {
        let refused = |rule: String| Err(RuleMistake::new("/via", rule));
        let mut targets = declaration.pointed_at_by(&stream.name);
        targets.retain(|(field, _)| field == key);
        let name = key.as_str();
        let target = match targets.as_slice() {
            [(_, target)] => declaration.stream(target.as_str()),
            [] => return refused(format!("no relationship is declared by the field {name:?}")),
            _ => return refused(format!("{name:?} names records of more than one stream")),
        };
        let (Some(target), Some(field)) = (target, stream.field(name)) else {
            return refused(format!(
                "stream {:?} has no field {name:?}",
                stream.name.as_str()
            ));
        };
        if target.primary_key.len() != 1 {
            return refused(format!(
                "records of {:?} have a key of several fields",
                target.name.as_str()
            ));
        }
        Ok(Self {
            foreign_key: key.clone(),
            kind: field.kind,
            stream: target.name.clone(),
        })
    }
}

fn is_empty(low: &Bound<Scalar>, high: &Bound<Scalar>) -> bool {
    let (least, most, both) = match (low, high) {
        (Bound::Included(least), Bound::Included(most)) => (least, most, true),
        (
            Bound::Included(least) | Bound::Excluded(least),
            Bound::Included(most) | Bound::Excluded(most),
        ) => (least, most, false),
        _ => return false,
    };
    match least.compare(most) {
        Some(Ordering::Less) => false,
        Some(Ordering::Equal) => !both,
        _ => true,
    }
}
