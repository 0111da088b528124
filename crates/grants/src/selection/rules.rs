//! Rules on records in a request: read from authorization details or flags, checked against a stream.

use contract::declaration::FilterOperator;
use contract::document::{Mistakes, Node, Object};
use contract::grant::{RowRule, RuleDocument};
use contract::id::FieldName;
use contract::json::{self, JsonKind};
use contract::query::split_condition;

use super::document::{elements, text};
use super::resolve::DeclaredStream;
use super::{Named, RuleRequest, SelectionError};

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
    let mut given = |members: &mut Object, name| {
        let node: Node = members.optional(name)?;
        text(&node, mistakes)
    };
    let via = given(&mut members, "via");
    let prefix = given(&mut members, "prefix").map(|named| named.text);
    let word = given(&mut members, "word").map(|named| named.text);
    let mut bound = |members: &mut Object, name| {
        let node: Node = members.optional(name)?;
        operand(&node, mistakes)
    };
    let bounds =
        FilterOperator::ALL.map(|operator| (operator, bound(&mut members, operator.as_str())));
    members.finish(mistakes);
    let field = parsed_field(field?, mistakes)?;
    let via = via.and_then(|via| parsed_field(via, mistakes));
    if mistakes.0.len() > found {
        return None;
    }
    let mut document = RuleDocument {
        via,
        eq,
        one_of,
        prefix,
        word,
        ..RuleDocument::new(field)
    };
    for (operator, value) in bounds {
        *document.operand_mut(operator) = value;
    }
    request(&node.path, document, false, mistakes)
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

fn request(
    path: &str,
    rule: RuleDocument,
    by_condition: bool,
    mistakes: &mut Mistakes,
) -> Option<RuleRequest> {
    match RowRule::try_from(rule) {
        Ok(rule) => Some(RuleRequest {
            path: path.to_owned(),
            rule,
            by_condition,
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
                "{text:?} is not a condition; write 'field=value', 'field^=beginning', 'field~=word', or 'field>=value' with >=, >, <= or <"
            );
            mistakes.add(flag, rule);
            continue;
        };
        let (name, sign) = match operator {
            None => split_sign(field),
            Some(_) => (field, None),
        };
        let named = Named {
            path: flag.to_owned(),
            text: name.to_owned(),
        };
        let Some(field) = parsed_field(named, mistakes) else {
            continue;
        };
        if let Some(sign) = sign {
            documents.push(sign.rule(field, value));
            continue;
        }
        let same = |known: &RuleDocument| {
            let is_text = known.prefix.is_some() || known.word.is_some();
            known.field == field && !is_text && known.one_of.is_some() == operator.is_none()
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
                let bound = document.operand_mut(operator);
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
    let rules = documents.filter_map(|document| request(flag, document, true, mistakes));
    let rules: Vec<RuleRequest> = rules.collect();
    (!texts.is_empty()).then_some(rules)
}

enum TextSign {
    Prefix,
    Word,
}

impl TextSign {
    fn rule(self, field: FieldName, text: &str) -> RuleDocument {
        let mut document = RuleDocument::new(field);
        let member = match self {
            Self::Prefix => &mut document.prefix,
            Self::Word => &mut document.word,
        };
        *member = Some(text.to_owned());
        document
    }
}

/// The field of `field^=` or `field~=`, and which sign it has.
fn split_sign(field: &str) -> (&str, Option<TextSign>) {
    if let Some(field) = field.strip_suffix('^') {
        return (field, Some(TextSign::Prefix));
    }
    match field.strip_suffix('~') {
        Some(field) => (field, Some(TextSign::Word)),
        None => (field, None),
    }
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
    declared: DeclaredStream<'_>,
    mistakes: &mut Mistakes,
) -> Vec<RowRule> {
    let mut rules = Vec::new();
    for one in asked {
        let RuleRequest { path, rule, .. } = one;
        let is_own = declared.stream.field(rule.field().as_str()).is_some();
        let rule = if one.by_condition && !is_own {
            through_dot(rule.clone())
        } else {
            rule.clone()
        };
        if let Err(mistake) = rule.typed(declared.declaration, declared.stream) {
            // A condition has no members.
            let within = if one.by_condition {
                ""
            } else {
                mistake.path.as_str()
            };
            mistakes.add(format!("{path}{within}"), mistake.rule);
        }
        rules.push(rule);
    }
    rules
}

/// A flag names the field of a related record behind its foreign key and a dot.
fn through_dot(rule: RowRule) -> RowRule {
    let parts = rule.field().as_str().split_once('.');
    let parts = parts.map(|(key, field)| {
        (
            FieldName::parse(key.to_owned()),
            FieldName::parse(field.to_owned()),
        )
    });
    match parts {
        Some((Ok(key), Ok(field))) => rule.through(key, field),
        _ => rule,
    }
}

/// The rules of a flag, for a server whose declarations are not known here: a dot always leads to a related record.
pub fn rules_for_details(flag: &str, texts: &[String]) -> Result<Vec<RowRule>, SelectionError> {
    let mut mistakes = Mistakes::default();
    let asked = from_flags(flag, texts, &mut mistakes).unwrap_or_default();
    let rules = asked.into_iter().map(|one| through_dot(one.rule));
    mistakes.unless_any(rules.collect())
}
