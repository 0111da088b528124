//! What one stream accepts, read from compact flags or from full capability objects alike.
//!
//! Nothing is assumed that a server does not advertise; what it leaves open is said to be open.

use contract::schema::FieldCapability;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use super::document::Stream;
use crate::answer::naming::text;
use crate::args::{can_be_listed, is_filter_name};

/// Each abbreviation and what it stands for.
const LEGEND: [(&str, &str); 10] = [
    ("t", "declared type"),
    ("role", "what the field is for"),
    ("g=false", "not granted, cannot be used"),
    ("eq", "exact filter, {\"field\":value}"),
    (
        "r",
        "filter with these operators, {\"field\":{\"gte\":value}} (contains: an array has this item)",
    ),
    ("lex", "searched by words"),
    ("sem", "searched by meaning"),
    (
        "a",
        "aggregate: sum, min, max, count_distinct are metrics of the field; group_by, group_by_time group by it",
    ),
    ("unusable", "declared, but not usable for the reason given"),
    ("declared", "readable, nothing more is advertised"),
];

/// What `query_records` may be asked to count.
pub(crate) const COUNTS: [&str; 3] = ["none", "estimated", "exact"];

/// The aggregates of fields, metrics first.
const AGGREGATES: [&str; 6] = [
    "count_distinct",
    "sum",
    "min",
    "max",
    "group_by",
    "group_by_time",
];

#[derive(Debug, Default)]
pub(crate) struct Capabilities {
    pub(crate) fields: Vec<Field>,
    pub(crate) sort: Option<String>,
    /// Ids of named projections; nothing where the server's answer does not speak of them.
    pub(crate) views: Option<Vec<String>>,
    /// Whether records may be counted by `aggregate`; nothing where the answer does not say.
    pub(crate) counts_records: Option<bool>,
    pub(crate) expand: Vec<Relation>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) flags: String,
    pub(crate) type_name: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) granted: bool,
    uses: Vec<Use>,
    /// Whether the server would filter by it, but no tool can carry its name there.
    refuses_filter: bool,
    /// Operators; nothing where ranges are not accepted, empty where the operators are not told.
    pub(crate) range: Option<Vec<String>>,
    pub(crate) aggregates: Vec<String>,
}

/// What a field is good for, besides being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// `filter` by equality.
    Exact,
    /// `search` by words.
    Lexical,
    /// `search` by meaning.
    Semantic,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct Relation {
    pub(crate) name: String,
    pub(crate) usable: bool,
    #[serde(rename = "target_stream")]
    pub(crate) target: Option<String>,
    /// The field there that holds the key of the record they belong to.
    #[serde(skip)]
    pub(crate) foreign_key: Option<String>,
    pub(crate) cardinality: Option<String>,
    pub(crate) default_limit: Option<u64>,
    pub(crate) max_limit: Option<u64>,
    pub(crate) reason: Option<String>,
}

impl Capabilities {
    pub(crate) fn new(row: &Stream) -> Self {
        let members = row.members.members();
        let sort = members.get("cursor_field").and_then(Value::as_str);
        let query = members.get("query").and_then(Value::as_object);
        let counts = query.map(|query| {
            let count = query.get("aggregations").and_then(|all| all.get("count"));
            count == Some(&Value::Bool(true))
        });
        Self {
            fields: fields(members),
            sort: sort
                .filter(|field| !field.is_empty() && can_be_listed(field))
                .map(str::to_owned),
            views: members.get("views").and_then(views),
            counts_records: counts,
            expand: relations(members),
        }
    }

    pub(crate) fn names(&self, test: impl Fn(&Field) -> bool) -> Vec<&str> {
        let fields = self.fields.iter().filter(|field| test(field));
        fields.map(|field| field.name.as_str()).collect()
    }

    /// What the server takes and no tool can say, because of characters that separate names on the wire: the argument,
    /// and the fields it cannot name.
    pub(crate) fn unsayable(&self) -> Vec<(&'static str, Vec<&str>)> {
        let unlisted = self.names(|field| field.granted && !can_be_listed(&field.name));
        let unfiltered = self.names(|field| field.refuses_filter);
        [("fields", unlisted), ("filter", unfiltered)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .collect()
    }

    /// Each aggregate with the fields it takes, those without any left out.
    pub(crate) fn aggregates(&self) -> Vec<(&'static str, Vec<&str>)> {
        let named = |name: &'static str| {
            let takes = |field: &Field| field.aggregates.iter().any(|known| known == name);
            (name, self.names(takes))
        };
        let all = AGGREGATES.into_iter().map(named);
        all.filter(|(_, fields)| !fields.is_empty()).collect()
    }

    /// Whether its flags use an abbreviation.
    fn abbreviates(&self, known: &str) -> bool {
        let mut flags = self.fields.iter().flat_map(|field| field.flags.split(','));
        flags.any(|flag| match known {
            "g=false" => flag == "g=false",
            "unusable" => flag.contains("=unusable"),
            known => flag.split('=').next() == Some(known),
        })
    }
}

/// The abbreviations that the flags of these rows use, each with its meaning.
pub(crate) fn legend(rows: &[&Capabilities]) -> Vec<(&'static str, &'static str)> {
    let is_used = |(known, _): &(&str, &str)| rows.iter().any(|row| row.abbreviates(known));
    LEGEND.into_iter().filter(is_used).collect()
}

fn fields(members: &Map<String, Value>) -> Vec<Field> {
    if let Some(Value::Object(fields)) = members.get("field_capabilities") {
        let read = |(name, value): (&String, &Value)| Field::read(name, &flags_of(value));
        return fields.iter().map(read).collect();
    }
    // A server that tells no capabilities may still tell the properties.
    let properties = members
        .get("schema")
        .and_then(|schema| schema.get("properties"));
    let Some(Value::Object(properties)) = properties else {
        return Vec::new();
    };
    let read = |(name, schema): (&String, &Value)| {
        Field::read(name, &flags_of(&json!({ "schema": schema })))
    };
    properties.iter().map(read).collect()
}

fn flags_of(value: &Value) -> String {
    match value {
        Value::String(flags) => flags.clone(),
        value => FieldCapability::deserialize(value)
            .map_or_else(|_| "declared".to_owned(), |field| field.flags()),
    }
}

impl Field {
    fn read(name: &str, flags: &str) -> Self {
        let mut field = Self {
            name: name.to_owned(),
            flags: String::new(),
            type_name: None,
            role: None,
            granted: true,
            uses: Vec::new(),
            refuses_filter: false,
            range: None,
            aggregates: Vec::new(),
        };
        let mut shown = Vec::new();
        let is_filter = |flag: &str| {
            let name = flag.split('=').next().unwrap_or_default();
            matches!(name, "eq" | "r")
        };
        for flag in flags.split(',').map(plain_flag) {
            if is_filter(&flag) && !is_filter_name(name) {
                field.refuses_filter = true;
            } else if !flag.is_empty() {
                field.take(&flag);
                shown.push(flag);
            }
        }
        field.flags = if shown.is_empty() {
            "declared".to_owned()
        } else {
            shown.join(",")
        };
        field
    }

    fn take(&mut self, flag: &str) {
        let list = |value: &str| value.split('|').map(str::to_owned).collect();
        match flag.split_once('=').unwrap_or((flag, "")) {
            (_, value) if value.starts_with("unusable") => {}
            ("t", value) => self.type_name = Some(value.to_owned()),
            ("role", value) => self.role = Some(value.to_owned()),
            ("g", "false") => self.granted = false,
            ("eq", _) => self.uses.push(Use::Exact),
            ("r", "") => self.range = Some(Vec::new()),
            ("r", value) => self.range = Some(list(value)),
            ("lex", _) => self.uses.push(Use::Lexical),
            ("sem", _) => self.uses.push(Use::Semantic),
            ("a", value) => self.aggregates = list(value),
            _ => {}
        }
    }

    /// Whether records may be filtered by an equal value.
    pub(crate) fn takes_exact_filter(&self) -> bool {
        self.granted && self.is_for(Use::Exact)
    }

    /// Whether records may be filtered from a value on.
    pub(crate) fn takes_range_filter(&self) -> bool {
        // Where the operators are not told, all of them are.
        let from = |operators: &Vec<String>| {
            operators.is_empty() || operators.iter().any(|one| one == "gte")
        };
        self.granted && self.range.as_ref().is_some_and(from)
    }

    /// Whether records may be filtered by an item of its array.
    pub(crate) fn takes_contains(&self) -> bool {
        let told = self.range.as_deref().unwrap_or_default();
        self.granted && told.iter().any(|one| one == "contains")
    }

    pub(crate) fn is_for(&self, this: Use) -> bool {
        self.uses.contains(&this)
    }

    /// Whether its values are numbers.
    pub(crate) fn is_number(&self) -> bool {
        let types = self.type_name.as_deref().unwrap_or_default();
        types
            .split('|')
            .any(|name| matches!(name, "integer" | "number" | "float" | "currency"))
    }
}

/// A flag in characters that cannot be taken for the syntax around it.
fn plain_flag(flag: &str) -> String {
    let flag = flag.trim();
    let safe = |character: char| {
        if character.is_ascii_alphanumeric() || "=|:_-.".contains(character) {
            character
        } else {
            '_'
        }
    };
    flag.chars().take(120).map(safe).collect()
}

fn views(value: &Value) -> Option<Vec<String>> {
    let listed = value.as_array()?.iter();
    let id = |view: &Value| {
        let id = ["id", "name"].iter().find_map(|name| text(view, name));
        id.or_else(|| view.as_str()).map(str::to_owned)
    };
    Some(listed.filter_map(id).collect())
}

fn relations(members: &Map<String, Value>) -> Vec<Relation> {
    let listed = members.get("expand_capabilities").and_then(Value::as_array);
    let read = |relation: &Value| {
        let member = |name: &str| text(relation, name).map(str::to_owned);
        let bare = || relation.as_str().map(str::to_owned);
        let refused = |name: &str| relation.get(name) == Some(&Value::Bool(false));
        let whole = |name: &str| relation.get(name).and_then(Value::as_u64);
        let name = member("name")
            .or_else(|| member("relation"))
            .or_else(bare)?;
        Some(Relation {
            target: member("target_stream").or_else(|| member("stream")),
            foreign_key: member("foreign_key").or_else(|| member("child_parent_key_field")),
            cardinality: member("cardinality"),
            usable: !refused("usable") && !refused("granted") && can_be_listed(&name),
            reason: member("reason"),
            default_limit: whole("default_limit"),
            max_limit: whole("max_limit"),
            name,
        })
    };
    listed.map_or_else(Vec::new, |listed| listed.iter().filter_map(read).collect())
}
