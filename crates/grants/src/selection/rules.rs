//! Rules on records in a request: read from authorization details or flags, checked against a stream.

use contract::declaration::{RangeOperator, StreamDeclaration};
use contract::document::{Mistakes, Node, Object};
use contract::grant::{RowRule, RuleDocument};
use contract::id::FieldName;
use contract::json::{self, JsonKind};
use contract::query::split_condition;

use super::document::{elements, text};
use super::{Named, RuleRequest};

/// The rules of a member `where` or `except`; `None` with mistakes where one of them cannot be read.
pub(super) fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Vec<RuleRequest>> {
    let rules = elements(node, mistakes)?;
    rules.iter().map(|rule| read_rule(rule, mistakes)).collect()
}

fn read_rule(node: &Node, mistakes: &mut Mistakes) -> Option<RuleRequest> {
    let mut members = node.object(mistakes)?;
    let field = members.required("field", mistakes);
    let field = field.and_then(|node| text(&node, mistakes));
    let found = mistakes.0.len();
    let eq = members.optional("eq");
    let eq = eq.and_then(|node| operand(&node, mistakes));
    let one_of = members.optional("in").map(|node| {
        let values = node.array(mistakes).unwrap_or_default();
        let values = values.iter().map(|value| operand(value, mistakes));
        values.collect::<Option<Vec<String>>>().unwrap_or_default()
    });
    let mut bound = |members: &mut Object, name| {
        let node: Node = members.optional(name)?;
        operand(&node, mistakes)
    };
    let bounds =
        RangeOperator::ALL.map(|operator| (operator, bound(&mut members, operator.as_str())));
    members.finish(mistakes);
    let field = parsed_field(field?, mistakes)?;
    if mistakes.0.len() > found {
        return None;
    }
    let mut document = RuleDocument {
        eq,
        one_of,
        ..RuleDocument::new(field)
    };
    for (operator, value) in bounds {
        *document.bound_mut(operator) = value;
    }
    request(&node.path, document, mistakes)
}

/// A value to compare with: a string, a number, true or false, as the text of a filter.
fn operand(node: &Node, mistakes: &mut Mistakes) -> Option<String> {
    match json::kind_of(&node.raw) {
        JsonKind::String => json::decode_string(&node.raw).map(std::borrow::Cow::into_owned),
        JsonKind::Number | JsonKind::Boolean => Some(node.raw.trim().to_owned()),
        _ => {
            let rule = format!(
                "must be a string, a number, true or false, {}",
                node.found()
            );
            mistakes.add(&node.path, rule);
            None
        }
    }
}

fn parsed_field(field: Named, mistakes: &mut Mistakes) -> Option<FieldName> {
    match FieldName::parse(field.text) {
        Ok(field) => Some(field),
        Err(error) => {
            mistakes.add(field.path, error.to_string());
            None
        }
    }
}

fn request(path: &str, rule: RuleDocument, mistakes: &mut Mistakes) -> Option<RuleRequest> {
    match RowRule::try_from(rule) {
        Ok(rule) => Some(RuleRequest {
            path: path.to_owned(),
            rule,
        }),
        Err(mistake) => {
            mistakes.add(format!("{path}{}", mistake.path), mistake.rule);
            None
        }
    }
}

/// The rules of a flag. Values of one field given by equality are one list, and bounds of one field one range.
pub(super) fn from_flags(
    flag: &str,
    texts: &[String],
    mistakes: &mut Mistakes,
) -> Option<Vec<RuleRequest>> {
    let mut documents: Vec<RuleDocument> = Vec::new();
    for text in texts {
        let Some((field, operator, value)) = split_condition(text) else {
            let rule = format!(
                "{text:?} is not a condition; write 'field=value', or 'field>=value' with >=, >, <= or <"
            );
            mistakes.add(flag, rule);
            continue;
        };
        let named = Named {
            path: flag.to_owned(),
            text: field.to_owned(),
        };
        let Some(field) = parsed_field(named, mistakes) else {
            continue;
        };
        let same = |known: &RuleDocument| {
            known.field == field && known.one_of.is_some() == operator.is_none()
        };
        let mut document = match documents.iter().position(same) {
            Some(at) => documents.remove(at),
            None => RuleDocument::new(field),
        };
        match operator {
            None => {
                let values = document.one_of.get_or_insert_default();
                if !values.iter().any(|known| known == value) {
                    values.push(value.to_owned());
                }
            }
            Some(operator) => {
                let bound = document.bound_mut(operator);
                if bound.as_deref().is_some_and(|known| known != value) {
                    mistakes.add(
                        flag,
                        format!("{text:?} gives a second bound of the same kind"),
                    );
                }
                *bound = Some(value.to_owned());
            }
        }
        documents.push(document);
    }
    let documents = documents.into_iter().map(alone);
    let rules = documents.filter_map(|document| request(flag, document, mistakes));
    let rules: Vec<RuleRequest> = rules.collect();
    (!texts.is_empty()).then_some(rules)
}

/// A list of one value is that value.
fn alone(mut document: RuleDocument) -> RuleDocument {
    if let Some([value]) = document.one_of.as_deref() {
        document.eq = Some(value.clone());
        document.one_of = None;
    }
    document
}

/// The rules as they are granted. Each must fit the declaration of the stream.
pub(super) fn checked(
    asked: &[RuleRequest],
    stream: &StreamDeclaration,
    mistakes: &mut Mistakes,
) -> Vec<RowRule> {
    for RuleRequest { path, rule } in asked {
        if let Err(mistake) = rule.typed(stream) {
            // A flag has no members.
            let within = if path.starts_with('/') {
                mistake.path.as_str()
            } else {
                ""
            };
            mistakes.add(format!("{path}{within}"), mistake.rule);
        }
    }
    asked.iter().map(|one| one.rule.clone()).collect()
}
