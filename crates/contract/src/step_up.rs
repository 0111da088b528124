//! Asking for more than a grant gives, in the middle of a call.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What a refused call named beyond its grant, as it was named. It says nothing about what exists.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    pub stream: String,
    pub connection_id: Option<String>,
    /// Of a stream that is granted otherwise.
    pub fields: Option<Vec<String>>,
    pub relation: Option<String>,
}

impl Beyond {
    pub fn stream(stream: impl Into<String>, connection_id: Option<&str>) -> Self {
        Self {
            stream: stream.into(),
            connection_id: connection_id.map(str::to_owned),
            fields: None,
            relation: None,
        }
    }
}
