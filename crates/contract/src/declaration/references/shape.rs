//! The types and the format that schemas come to when they apply together or one instead of the other.

use crate::declaration::JsonType;

/// What values a schema accepts, as far as types and formats go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::declaration) struct Shape {
    /// The accepted types; nothing is said when absent, and nothing is accepted when empty.
    pub(in crate::declaration) types: Option<Vec<JsonType>>,
    pub(in crate::declaration) format: Option<String>,
}

impl Shape {
    pub(super) fn nothing() -> Shape {
        Shape {
            types: Some(Vec::new()),
            format: None,
        }
    }

    /// What both accept.
    pub(super) fn and(self, other: Shape) -> Shape {
        let types = match (self.types, other.types) {
            (None, types) | (types, None) => types,
            (Some(mine), Some(theirs)) => {
                // Of a number and an integer, the integer is what both accept.
                let mut both: Vec<JsonType> = Vec::new();
                for (one, others) in [(&mine, &theirs), (&theirs, &mine)] {
                    for kind in one {
                        let is_covered = others.iter().any(|other| other.covers(*kind));
                        if is_covered && !both.contains(kind) {
                            both.push(*kind);
                        }
                    }
                }
                Some(both)
            }
        };
        Shape {
            types,
            format: self.format.or(other.format),
        }
    }

    /// What one of them accepts. A format counts where all texts have it.
    pub(super) fn any_of(branches: Vec<Shape>) -> Shape {
        let mut types = Some(Vec::new());
        let mut formats: Vec<Option<String>> = Vec::new();
        for branch in branches {
            let holds_text = |types: &Vec<JsonType>| types.contains(&JsonType::String);
            if branch.types.as_ref().is_none_or(holds_text) {
                formats.push(branch.format);
            }
            types = match (types, branch.types) {
                (Some(mut known), Some(more)) => {
                    for kind in more {
                        if !known.contains(&kind) {
                            known.push(kind);
                        }
                    }
                    Some(known)
                }
                _ => None,
            };
        }
        // Whole numbers are numbers.
        if let Some(types) = &mut types
            && types.contains(&JsonType::Number)
        {
            types.retain(|kind| *kind != JsonType::Integer);
        }
        let first = formats.first().cloned().flatten();
        let agree = formats.iter().all(|format| *format == first);
        Shape {
            types,
            format: first.filter(|_| agree),
        }
    }

    pub(super) fn to_json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut members = Vec::new();
        if let Some(types) = &self.types {
            let names: Vec<String> = types.iter().map(|kind| quoted(kind.as_str())).collect();
            let types = match names.as_slice() {
                [only] => only.clone(),
                _ => format!("[{}]", names.join(",")),
            };
            members.push(format!("\"type\":{types}"));
        }
        if let Some(format) = &self.format {
            members.push(format!("\"format\":{}", quoted(format)));
        }
        format!("{{{}}}", members.join(","))
    }
}
