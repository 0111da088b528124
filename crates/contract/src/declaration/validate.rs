//! The rules a declaration must keep beyond its shape: which fields may serve which purpose, how a source id yields
//! a connector key, and what a schema as a whole must be.

use super::field::FieldDeclaration;
use crate::document::{Mistakes, Node};
use crate::id::ConnectorKey;
use crate::json::{self, JsonKind};
use crate::scalar::FieldKind;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What a declaration uses a field for; each use asks for certain kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldUse {
    PrimaryKey,
    Cursor,
    ConsentTime,
    Shown,
    ForeignKey,
    Range,
    Contains,
    Sum,
    Extreme,
    Group,
    GroupByTime,
    Search,
}

impl FieldUse {
    fn allows(self, field: &FieldDeclaration) -> bool {
        use FieldKind::{Date, DateTime, Integer, Number, Text};
        let kind = field.kind;
        match self {
            FieldUse::Shown => true,
            FieldUse::Contains => field.items.is_some(),
            FieldUse::PrimaryKey | FieldUse::ForeignKey => {
                matches!(kind, Text | Date | DateTime | Integer)
            }
            FieldUse::Cursor | FieldUse::Range | FieldUse::Extreme => {
                matches!(kind, Integer | Number | Date | DateTime)
            }
            FieldUse::ConsentTime => matches!(kind, Text | Date | DateTime),
            FieldUse::Sum => matches!(kind, Integer | Number),
            FieldUse::Group => kind.is_scalar() || field.items.is_some(),
            FieldUse::GroupByTime => matches!(kind, Date | DateTime),
            FieldUse::Search => matches!(kind, Text | Date | DateTime) || field.items == Some(Text),
        }
    }

    fn rule(self) -> &'static str {
        match self {
            FieldUse::Shown => "must be a declared field",
            FieldUse::PrimaryKey => "a primary key field must be of type string or integer",
            FieldUse::ForeignKey => "a foreign key must be of type string or integer",
            FieldUse::Cursor => {
                "a cursor field must be of type integer or number, or a string with format date or date-time"
            }
            FieldUse::Range => {
                "a range filter needs a field of type integer or number, or a string with format date or date-time"
            }
            FieldUse::Contains => "contains needs an array whose items have one scalar type",
            FieldUse::Extreme => {
                "min and max need a field of type integer or number, or a string with format date or date-time"
            }
            FieldUse::ConsentTime => {
                "a consent time field must be a string that holds a date or a date-time"
            }
            FieldUse::Sum => "sum needs a field of type integer or number",
            FieldUse::Group => {
                "group_by and count_distinct need a field of one scalar type, or an array of such items"
            }
            FieldUse::GroupByTime => {
                "group_by_time needs a string field with format date or date-time"
            }
            FieldUse::Search => {
                "a search field must be of type string (null allowed besides), or an array of strings"
            }
        }
    }

    /// Why the field cannot serve, or `None` when it can.
    pub(super) fn refusal(self, field: &FieldDeclaration) -> Option<String> {
        if self.allows(field) {
            return None;
        }
        let types: Vec<&str> = field
            .types
            .iter()
            .map(|declared| declared.as_str())
            .collect();
        let stated = if types.is_empty() {
            "no type".to_owned()
        } else {
            format!("type {}", types.join("|"))
        };
        Some(format!(
            "{}; {:?} has {stated}",
            self.rule(),
            field.name.as_str()
        ))
    }
}

/// The connector key a source id yields: the last path segment of an absolute URI.
pub fn connector_key_of(source_id: &str) -> Result<ConnectorKey, String> {
    const RULE: &str = "must be an absolute URI whose last path segment is the connector key \
                        (lower-case letters, digits, '.', '_' and '-', at most 64), \
                        such as https://sources.example/demo_mail";
    let refused = |why: &str| format!("{RULE}; {source_id:?} {why}");
    let Some((scheme, rest)) = source_id.split_once(':') else {
        return Err(refused("has no scheme"));
    };
    let scheme_is_valid = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !scheme_is_valid
        || source_id
            .chars()
            .any(|c| c.is_whitespace() || c.is_control())
    {
        return Err(refused("is not a URI"));
    }
    if rest.contains(['?', '#']) {
        return Err(refused("has a query or a fragment"));
    }
    let path = match rest.strip_prefix("//") {
        Some(after) => after.split_once('/').map_or("", |(_, path)| path),
        None => rest,
    };
    let segment = path.rsplit('/').next().unwrap_or_default();
    if segment.is_empty() {
        return Err(refused("ends without one"));
    }
    ConnectorKey::parse(segment).map_err(|error| refused(&format!("ends in {segment:?}: {error}")))
}

/// Checks that a schema names no other dialect and describes an object.
///
/// Values are looked at as text: a number too large for any machine type is no reason to look away.
pub(super) fn check_schema(schema: &Node, mistakes: &mut Mistakes) {
    let members = members_of(schema);
    let member = |name: &str| {
        members
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, node)| node)
    };
    if let Some(dialect) = member("$schema") {
        let uri = json::decode_string(&dialect.raw);
        if uri.is_none_or(|uri| uri.trim_end_matches('#') != DIALECT) {
            let rule = format!("must be {DIALECT:?} when present, {}", dialect.found());
            mistakes.add(&dialect.path, rule);
        }
    }
    if let Some(declared) = member("type")
        && json::decode_string(&declared.raw).is_none_or(|name| name != "object")
    {
        let rule = format!(
            "a record is an object: must be \"object\", {}",
            declared.found()
        );
        mistakes.add(&declared.path, rule);
    }
}

/// The members of an object; none of anything else.
fn members_of(node: &Node) -> Vec<(String, Node)> {
    if json::kind_of(&node.raw) != JsonKind::Object {
        return Vec::new();
    }
    let object = node.object(&mut Mistakes::default());
    object.map(|object| object.members()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_key_is_the_last_segment_of_an_absolute_uri() {
        for (id, key) in [
            ("https://sources.example/demo_mail", "demo_mail"),
            (
                "https://registry.example.org/connectors/bench.mail-2",
                "bench.mail-2",
            ),
            ("pdpp:notes", "notes"),
        ] {
            assert_eq!(connector_key_of(id).unwrap().as_str(), key);
        }
    }

    #[test]
    fn a_source_id_without_a_usable_key_states_the_rule() {
        for (id, why) in [
            ("demo_mail", "has no scheme"),
            ("https://demo_mail", "ends without one"),
            ("https://sources.example/mail/", "ends without one"),
            ("https://sources.example/Demo", "ends in \"Demo\""),
            ("https://sources.example/a%20b", "ends in"),
            ("https://sources.example/mail?x=1", "has a query"),
            ("https://sources.example/ma il", "is not a URI"),
            ("1http://sources.example/mail", "is not a URI"),
            ("", "has no scheme"),
        ] {
            let rule = connector_key_of(id).unwrap_err();
            assert!(
                rule.contains("last path segment is the connector key"),
                "{rule}"
            );
            assert!(rule.contains(why), "{rule}");
        }
    }
}
