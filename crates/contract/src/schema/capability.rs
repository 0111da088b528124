//! What fields and relationships accept, in full and as short flags.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::wire::OrderedMap;

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FieldCapability {
    pub schema: Option<Box<RawValue>>,
    #[serde(rename = "type")]
    pub presentation_type: Option<String>,
    pub role: Option<String>,
    pub granted: Option<bool>,
    /// `filter[field]=value`.
    pub exact_filter: Option<Capability>,
    /// `filter[field][operator]=value`.
    pub range_filter: Option<Capability>,
    pub lexical_search: Option<Capability>,
    pub semantic_search: Option<Capability>,
    pub aggregation: Option<OrderedMap<Capability>>,
}

/// Whether something is declared, and whether this caller may use it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    /// The declaration allows it.
    #[serde(default)]
    pub declared: bool,
    /// This caller may use it.
    #[serde(default)]
    pub usable: bool,
    pub operators: Option<Vec<String>>,
    /// Why it is declared and not usable.
    pub reason: Option<String>,
}

impl Capability {
    /// Declared and usable, or neither.
    pub fn new(usable: bool) -> Capability {
        Capability {
            declared: usable,
            usable,
            ..Capability::default()
        }
    }
}

/// A relationship a read may bring along.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpandCapability {
    /// What to pass as `expand`.
    pub name: String,
    pub stream: Option<String>,
    /// The child stream, under its other name.
    pub target_stream: Option<String>,
    /// `has_many` or `has_one`.
    pub cardinality: Option<String>,
    /// Whether the child stream may be read.
    pub granted: Option<bool>,
    pub usable: Option<bool>,
    /// The field that holds a record key of the other stream.
    pub foreign_key: Option<String>,
    /// The same field, under its other name, where it is the related stream that has it.
    pub child_parent_key_field: Option<String>,
    /// Children when no limit is named.
    pub default_limit: Option<u32>,
    pub max_limit: Option<u32>,
    pub reason: Option<String>,
}

impl FieldCapability {
    /// The flags of a field, comma-separated: `t=` type, `role=`, `g=false` not granted, `eq` exact filter, `r=` range
    /// operators, `lex` and `sem` search, `a=` aggregates. `declared` when there is nothing to say.
    pub fn flags(&self) -> String {
        let mut flags = Vec::new();
        flags.extend(self.type_name().map(|name| format!("t={}", plain(&name))));
        flags.extend(
            self.role
                .as_ref()
                .map(|role| format!("role={}", plain(role))),
        );
        flags.extend((self.granted == Some(false)).then(|| "g=false".to_owned()));
        flags.extend(flag("eq", self.exact_filter.as_ref()));
        flags.extend(self.range_flag());
        flags.extend(flag("lex", self.lexical_search.as_ref()));
        flags.extend(flag("sem", self.semantic_search.as_ref()));
        flags.extend(self.aggregation_flag());
        if flags.is_empty() {
            "declared".to_owned()
        } else {
            flags.join(",")
        }
    }

    /// The presentation type, else the JSON type, several joined by `|`.
    pub fn type_name(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Typed {
            #[serde(rename = "type")]
            types: Types,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Types {
            One(String),
            Several(Vec<String>),
        }
        if self.presentation_type.is_some() {
            return self.presentation_type.clone();
        }
        let schema: Typed = serde_json::from_str(self.schema.as_ref()?.get()).ok()?;
        Some(match schema.types {
            Types::One(name) => name,
            Types::Several(names) => names.join("|"),
        })
    }

    fn range_flag(&self) -> Option<String> {
        let range = self.range_filter.as_ref()?;
        if range.usable
            && let Some(operators) = &range.operators
        {
            return Some(format!("r={}", operators.join("|")));
        }
        flag("r", Some(range))
    }

    fn aggregation_flag(&self) -> Option<String> {
        let aggregates = self.aggregation.as_ref()?;
        let mut usable: Vec<&str> = aggregates
            .iter()
            .filter(|(_, capability)| capability.usable)
            .map(|(name, _)| name)
            .collect();
        usable.sort_unstable();
        (!usable.is_empty()).then(|| format!("a={}", usable.join("|")))
    }
}

fn flag(name: &str, capability: Option<&Capability>) -> Option<String> {
    let capability = capability?;
    match (capability.declared, capability.usable) {
        (_, true) => Some(name.to_owned()),
        (true, false) => {
            let reason = capability.reason.as_deref().unwrap_or("unknown");
            Some(format!("{name}=unusable:{}", plain(reason)))
        }
        (false, false) => None,
    }
}

/// A value that cannot be mistaken for the syntax around it.
fn plain(value: &str) -> String {
    let safe = |c: char| {
        if c.is_whitespace() || ";,[]{}=".contains(c) {
            '_'
        } else {
            c
        }
    };
    value.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> String {
        serde_json::from_str::<FieldCapability>(text)
            .unwrap()
            .flags()
    }

    #[test]
    fn flags_say_what_a_field_accepts() {
        for (field, expected) in [
            (
                r#"{"schema":{"type":"string"},"exact_filter":{"declared":true,"usable":true}}"#,
                "t=string,eq",
            ),
            (r#"{"schema":{"type":["string","null"]}}"#, "t=string|null"),
            (r#"{"schema":{}}"#, "declared"),
            (
                r#"{"schema":{"type":"string"},"type":"text","role":"primary title",
                    "lexical_search":{"declared":true,"usable":true},"semantic_search":{"declared":true,"usable":true}}"#,
                "t=text,role=primary_title,lex,sem",
            ),
            (
                r#"{"range_filter":{"declared":true,"usable":true,"operators":["gte","lt"]},
                    "aggregation":{"sum":{"declared":true,"usable":true},"max":{"declared":true,"usable":true},
                    "min":{"declared":true,"usable":false}}}"#,
                "r=gte|lt,a=max|sum",
            ),
            (
                r#"{"granted":false,"exact_filter":{"declared":true,"usable":false,"reason":"field_not_granted"}}"#,
                "g=false,eq=unusable:field_not_granted",
            ),
        ] {
            assert_eq!(flags(field), expected);
        }
    }
}
