//! What JSON can say and plain Rust types blur: the tag of an object, null against absent, members in order.
//!
//! Answers come from our own reader and from servers we do not control. These types let both share one envelope. Members
//! that the contract does not name are passed over: whoever passes an answer on keeps its text.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Members of an answer that the contract does not name, kept for callers that know them.
pub type Other = serde_json::Map<String, serde_json::Value>;

/// The `object` member: what kind of object this is. Absent when a server did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectTag(Cow<'static, str>);

impl ObjectTag {
    pub const LIST: ObjectTag = ObjectTag(Cow::Borrowed("list"));
    pub const RECORD: ObjectTag = ObjectTag(Cow::Borrowed("record"));
    pub const STREAM: ObjectTag = ObjectTag(Cow::Borrowed("stream"));
    pub const STREAM_METADATA: ObjectTag = ObjectTag(Cow::Borrowed("stream_metadata"));
    pub const CONNECTOR: ObjectTag = ObjectTag(Cow::Borrowed("connector"));
    pub const SCHEMA: ObjectTag = ObjectTag(Cow::Borrowed("schema"));
    pub const SEARCH_RESULT: ObjectTag = ObjectTag(Cow::Borrowed("search_result"));
    pub const FIELD_WINDOW: ObjectTag = ObjectTag(Cow::Borrowed("field_window"));
    pub const CITATION_CHECK: ObjectTag = ObjectTag(Cow::Borrowed("citation_check"));
    pub const AGGREGATION: ObjectTag = ObjectTag(Cow::Borrowed("aggregation"));

    /// The tag as text; empty when absent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the object says nothing about what it is.
    pub fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

/// A member that may be absent, null, or a value; each is written back as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Nullable<T> {
    #[default]
    Absent,
    Null,
    Value(T),
}

impl<T> Nullable<T> {
    pub fn is_absent(&self) -> bool {
        matches!(self, Nullable::Absent)
    }

    pub fn as_option(&self) -> Option<&T> {
        match self {
            Nullable::Value(value) => Some(value),
            Nullable::Null | Nullable::Absent => None,
        }
    }

    /// A member that is always there, null where there is no value.
    pub fn or_null(value: Option<T>) -> Nullable<T> {
        value.map_or(Nullable::Null, Nullable::Value)
    }

    /// A member that is left out where there is no value.
    pub fn or_absent(value: Option<T>) -> Nullable<T> {
        value.map_or(Nullable::Absent, Nullable::Value)
    }
}

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_option().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(deserializer).map(Nullable::or_null)
    }
}

/// A JSON object with free member names, in the order written.
#[derive(Debug, Clone)]
pub struct OrderedMap<V>(pub Vec<(String, V)>);

impl<V> OrderedMap<V> {
    pub fn get(&self, name: &str) -> Option<&V> {
        self.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<V> Default for OrderedMap<V> {
    fn default() -> Self {
        OrderedMap(Vec::new())
    }
}

impl<V> FromIterator<(String, V)> for OrderedMap<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(members: I) -> Self {
        OrderedMap(members.into_iter().collect())
    }
}

impl<V: Serialize> Serialize for OrderedMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
            type Value = OrderedMap<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = OrderedMap::default();
                while let Some(member) = map.next_entry()? {
                    members.0.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Reads a member that is there as `Some`, also when it is null.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Sample {
        #[serde(default, skip_serializing_if = "Nullable::is_absent")]
        next: Nullable<String>,
        #[serde(default)]
        members: OrderedMap<u8>,
    }

    #[test]
    fn null_absent_and_order_survive() {
        for text in [
            r#"{"next":null,"members":{"b":1,"a":2}}"#,
            r#"{"members":{}}"#,
            r#"{"next":"x","members":{"z":0}}"#,
        ] {
            let sample: Sample = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&sample).unwrap(), text);
        }
    }
}
