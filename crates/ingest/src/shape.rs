//! Declarations in a few lines: a shape names the streams and fields of a connector, and what each field is good for; the
//! declaration follows from it. Times and numbers can be ranged over, fields that are grouped by can be counted apart, and lists
//! of texts can be filtered and grouped by each of their items.

use serde_json::{Map, Value, json};

pub(crate) struct Shape {
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) streams: &'static [Stream],
}

pub(crate) struct Stream {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) about: &'static str,
    /// The field that tells when; it also orders.
    pub(crate) time: Option<&'static str>,
    /// The first is the key.
    pub(crate) fields: &'static [Field],
    /// Streams whose records point at these, with the field they do it by.
    pub(crate) children: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy)]
pub(crate) struct Field {
    name: &'static str,
    kind: Kind,
    role: Option<&'static str>,
    about: Option<&'static str>,
    is_searched: bool,
    is_grouped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Date,
    Time,
    Texts,
    Object,
    Blob,
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        role: None,
        about: None,
        is_searched: false,
        is_grouped: false,
    }
}

pub(crate) const fn text(name: &'static str) -> Field {
    field(name, Kind::Text)
}

pub(crate) const fn integer(name: &'static str) -> Field {
    field(name, Kind::Integer)
}

pub(crate) const fn number(name: &'static str) -> Field {
    field(name, Kind::Number)
}

pub(crate) const fn date(name: &'static str) -> Field {
    field(name, Kind::Date)
}

pub(crate) const fn boolean(name: &'static str) -> Field {
    field(name, Kind::Boolean)
}

pub(crate) const fn time(name: &'static str) -> Field {
    field(name, Kind::Time)
}

pub(crate) const fn texts(name: &'static str) -> Field {
    field(name, Kind::Texts)
}

pub(crate) const fn object(name: &'static str) -> Field {
    field(name, Kind::Object)
}

pub(crate) const fn blob(name: &'static str) -> Field {
    field(name, Kind::Blob)
}

impl Field {
    /// `title`, `body`, `author`, `url`, `thread` or `order`.
    pub(crate) const fn role(mut self, role: &'static str) -> Self {
        self.role = Some(role);
        self
    }

    pub(crate) const fn about(mut self, about: &'static str) -> Self {
        self.about = Some(about);
        self
    }

    pub(crate) const fn searched(mut self) -> Self {
        self.is_searched = true;
        self
    }

    pub(crate) const fn grouped(mut self) -> Self {
        self.is_grouped = true;
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Integer => json!({"type": "integer"}),
            Kind::Number => json!({"type": "number"}),
            Kind::Date => json!({"type": "string", "format": "date"}),
            Kind::Boolean => json!({"type": "boolean"}),
            Kind::Time => json!({"type": "string", "format": "date-time"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Object => json!({"type": "object"}),
            Kind::Blob => json!({
                "type": "object",
                "required": ["blob_id"],
                "properties": {
                    "blob_id": {"type": "string"},
                    "mime_type": {"type": "string"},
                    "size_bytes": {"type": "integer"},
                },
            }),
        };
        for (name, value) in [("x_pdpp_role", self.role), ("description", self.about)] {
            if let (Some(value), Some(members)) = (value, schema.as_object_mut()) {
                members.insert(name.to_owned(), value.into());
            }
        }
        schema
    }

    fn is_ranged(&self) -> bool {
        matches!(
            self.kind,
            Kind::Integer | Kind::Number | Kind::Date | Kind::Time
        )
    }
}

impl Shape {
    pub(crate) fn declaration(&self) -> String {
        let streams: Vec<Value> = self.streams.iter().map(Stream::declaration).collect();
        json!({
            "protocol_version": "0.1.0",
            "source": {"kind": "connector", "id": format!("https://pdpp.dev/connectors/{}", self.key)},
            "declaration_version": "5",
            "publisher": {"id": "https://pdpp.dev"},
            "display": {"name": self.name},
            "streams": streams,
        })
        .to_string()
    }
}

impl Stream {
    fn declaration(&self) -> Value {
        let key = self.fields.first().map(|field| field.name);
        let properties: Map<String, Value> = self
            .fields
            .iter()
            .map(|field| (field.name.to_owned(), field.schema()))
            .collect();
        let mut stream = json!({
            "name": self.name,
            "display": {"label": self.label},
            "description": self.about,
            "semantics": "mutable_state",
            "primary_key": [key],
            "selection": {"fields": true, "resources": true},
            "schema": {"type": "object", "required": [key], "properties": properties},
            "query": self.query(),
        });
        if let (Some(time), Some(members)) = (self.time, stream.as_object_mut()) {
            members.insert("cursor_field".to_owned(), time.into());
            members.insert("consent_time_field".to_owned(), time.into());
        }
        if let (false, Some(members)) = (self.children.is_empty(), stream.as_object_mut()) {
            let children = self.children.iter().map(|(stream, foreign_key)| {
                json!({"name": stream, "stream": stream, "foreign_key": foreign_key, "cardinality": "has_many"})
            });
            members.insert("relationships".to_owned(), children.collect());
        }
        stream
    }

    fn query(&self) -> Value {
        let named = |wanted: &dyn Fn(&Field) -> bool| -> Vec<&str> {
            let fields = self.fields.iter().filter(|field| wanted(field));
            fields.map(|field| field.name).collect()
        };
        let ranged = named(&Field::is_ranged);
        let lists = named(&|field| field.kind == Kind::Texts).into_iter();
        let operators: Map<String, Value> = ranged
            .iter()
            .map(|name| ((*name).to_owned(), json!(["gte", "gt", "lte", "lt"])))
            .chain(lists.map(|name| (name.to_owned(), json!(["contains"]))))
            .collect();
        let numbers = named(&|field| matches!(field.kind, Kind::Integer | Kind::Number));
        let grouped = named(&|field| field.is_grouped || field.kind == Kind::Texts);
        let expand = self.children.iter();
        let expand: Vec<Value> = expand
            .map(|(stream, _)| json!({"name": stream, "default_limit": 10, "max_limit": 100}))
            .collect();
        let mut query = json!({
            "aggregations": {
                "count": true,
                "sum": numbers,
                "min": ranged,
                "max": ranged,
                "group_by": grouped,
                "group_by_time": named(&|field| matches!(field.kind, Kind::Date | Kind::Time)),
                "count_distinct": grouped,
            },
        });
        let searched = named(&|field| field.is_searched);
        if let Some(members) = query.as_object_mut() {
            if !operators.is_empty() {
                members.insert("range_filters".to_owned(), operators.into());
            }
            if !searched.is_empty() {
                members.insert("search".to_owned(), json!({"lexical_fields": searched}));
            }
            if !expand.is_empty() {
                members.insert("expand".to_owned(), expand.into());
            }
        }
        query
    }
}
