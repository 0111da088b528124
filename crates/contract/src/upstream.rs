//! Asking a resource server, however it is reached: over the network, over a socket, or in this process.
//!
//! Whoever adapts the contract for somebody else (tools for agents, commands for people) must keep what a server said,
//! also when that server is another's, older, or wrong. So a question is the GET it stands for, and an answer is the
//! status and the body as they came; reading them is the adapter's work.

use std::fmt::{self, Write as _};
use std::future::Future;
use std::num::ParseIntError;
use std::pin::Pin;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::error::{ErrorCode, ReadError};
use crate::query::Params;

/// What stands for itself in a path segment or a query: the unreserved characters of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The longest path and query that HTTP libraries take, ours included.
pub const MAX_TARGET_BYTES: usize = 65_534;

/// A question: `GET` of a path below `/v1` with query parameters, nothing encoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Get {
    segments: Vec<String>,
    params: Params,
    max_bytes: Option<PageBytes>,
    call: Option<CallId>,
}

/// One call of a tool, which may ask several questions: what the owner allowed for one call holds for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The bytes that the entries of a page may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBytes {
    /// All entries together.
    pub all: usize,
    /// What the caller adds to each entry, which counts as well.
    pub beside_each: usize,
    /// How often it repeats the handle of each entry, beside that.
    pub handles: usize,
    /// Hits after which a search ends before one that scores far less than the best of its page; 0 for never.
    pub clear: usize,
}

impl fmt::Display for PageBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            all,
            beside_each,
            handles,
            clear,
        } = self;
        write!(f, "{all} {beside_each} {handles} {clear}")
    }
}

impl FromStr for PageBytes {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split(' ').map(str::parse);
        let mut next = || numbers.next().unwrap_or(Ok(0));
        Ok(Self {
            all: next()?,
            beside_each: next()?,
            handles: next()?,
            clear: next()?,
        })
    }
}

impl Get {
    /// The question for a path below `/v1`. A segment may hold any text; it stays one segment.
    pub fn v1<'a>(segments: impl IntoIterator<Item = &'a str>) -> Get {
        Get {
            segments: segments.into_iter().map(str::to_owned).collect(),
            params: Params::new(),
            max_bytes: None,
            call: None,
        }
    }

    /// Asks for a page whose entries take no more than this, as far as a server in this process can see to it. It is no
    /// parameter of the wire: another server is asked again with a smaller limit instead.
    #[must_use]
    pub fn within_bytes(mut self, max_bytes: PageBytes) -> Get {
        self.max_bytes = Some(max_bytes);
        self
    }

    /// Says which call it is asked for. Like the bytes of a page it is no parameter of the wire.
    #[must_use]
    pub fn in_call(mut self, call: CallId) -> Get {
        self.call = Some(call);
        self
    }

    pub fn call(&self) -> Option<CallId> {
        self.call
    }

    /// The bound of [`Get::within_bytes`].
    pub fn max_bytes(&self) -> Option<PageBytes> {
        self.max_bytes
    }

    /// Adds a parameter. The same name may be added again: that is how lists travel.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.params.push((name.into(), value.into()));
    }

    /// Adds a parameter if there is a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl Into<String>>) -> Get {
        if let Some(value) = value {
            self.push(name, value);
        }
        self
    }

    pub fn params(&self) -> &[(String, String)] {
        &self.params
    }

    /// Whether the schema is asked for, whole or in part.
    pub fn is_schema(&self) -> bool {
        self.segments == ["schema"]
    }

    /// [`Get::target`], unless no server takes so long a one: then the error names the longest parameter.
    pub fn sendable_target(&self) -> Result<String, ReadError> {
        let target = self.target();
        if target.len() <= MAX_TARGET_BYTES {
            return Ok(target);
        }
        let longest = self.params.iter().max_by_key(|(_, value)| value.len());
        let name = longest.map_or("id", |(name, _)| name);
        let message = format!(
            "the request is too long: its address has {} bytes, and at most {MAX_TARGET_BYTES} can be sent",
            target.len()
        );
        Err(ReadError::new(ErrorCode::InvalidArguments, message)
            .with_param(name)
            .with_hint(format!("shorten {name}")))
    }

    /// Path and query as they stand in a request line.
    pub fn target(&self) -> String {
        let mut target = format!("/v1{}", path_of(&self.segments));
        for (place, (name, value)) in self.params.iter().enumerate() {
            let sign = if place == 0 { '?' } else { '&' };
            let (name, value) = (bracketed(name), utf8_percent_encode(value, ESCAPED));
            let _ = write!(target, "{sign}{name}={value}");
        }
        target
    }
}

/// A path of these segments, each encoded and after a slash.
pub fn path_of(segments: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        path.push_str(&encoded(segment.as_ref()));
    }
    path
}

/// One segment of a path. A URL parser would resolve one of dots alone, so its dots are escaped too.
pub fn encoded(segment: &str) -> String {
    if segment.bytes().all(|byte| byte == b'.') {
        return segment.replace('.', "%2E");
    }
    utf8_percent_encode(segment, ESCAPED).to_string()
}

/// A parameter name; the brackets of `filter[a]` stand for themselves, as every server reads them.
fn bracketed(name: &str) -> String {
    let mut written = String::new();
    for piece in name.split_inclusive(['[', ']']) {
        let (text, bracket) = match piece.char_indices().next_back() {
            Some((at, '[' | ']')) => piece.split_at(at),
            _ => (piece, ""),
        };
        let _ = write!(written, "{}{bracket}", utf8_percent_encode(text, ESCAPED));
    }
    written
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The request id the server gave, in a header.
    pub request_id: Option<String>,
    /// The body as it was sent. The consumer parses it, once, into what it needs.
    pub body: String,
}

impl Answer {
    /// Whether the status says that this is what was asked for.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as a JSON value, with every number with all its digits: none passes through a float.
    pub fn json(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.body)
    }
}

/// On whose behalf a server says that it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// The owner's, or that of somebody who may do what the owner may.
    Owner,
    /// That of a grant or a package.
    Client,
}

/// The header in which a server names the kind of token that an answer was given for.
pub const TOKEN_KIND_HEADER: &str = "pdpp-token-kind";

impl Bearer {
    /// What the kind of a token, as a server names it, stands for.
    pub fn from_kind(kind: &str) -> Bearer {
        let kind = kind.to_ascii_lowercase();
        if kind.contains("owner") || kind.contains("control") {
            return Bearer::Owner;
        }
        Bearer::Client
    }

    /// What a schema says of the token it was asked with. Other answers say nothing: what stands in a record is data.
    pub fn from_schema(schema: &Value) -> Option<Bearer> {
        let mut found = None;
        for bearer in [schema.get("bearer"), schema.pointer("/data/bearer")] {
            for name in ["token_kind", "scope"] {
                let kind = bearer.and_then(|bearer| bearer.get(name)?.as_str());
                match kind.map(Bearer::from_kind) {
                    Some(Bearer::Owner) => return Some(Bearer::Owner),
                    other => found = other.or(found),
                }
            }
        }
        found
    }
}

/// The future of an answer, or of the reason why there is none: unreachable, too slow, too large.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, ReadError>> + Send + 'a>>;

/// A resource server. It already knows on whose behalf it is asked.
pub trait Upstream: Send + Sync + 'static {
    /// The address people know it by, without a trailing slash; none where no server is reached by one.
    fn provider_url(&self) -> Option<String>;

    /// Whether it may have other ways to search than by words; false only where it is known to have none.
    fn may_search_by_meaning(&self) -> bool {
        true
    }

    /// Whether it heeds [`Get::within_bytes`].
    fn pages_by_bytes(&self) -> bool {
        false
    }

    fn get(&self, question: Get) -> AnswerFuture<'_>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_stays_one_segment_whatever_it_holds() {
        // ID-14
        let question = Get::v1(["streams", "orders", "records", "a:b/c d%é"]);
        assert_eq!(
            question.target(),
            "/v1/streams/orders/records/a%3Ab%2Fc%20d%25%C3%A9"
        );
    }

    #[test]
    fn a_request_that_is_too_long_names_what_makes_it_so() {
        let question = |query: String| {
            let question = Get::v1(["search"]).with("limit", Some("10"));
            question.with("q", Some(query)).sendable_target()
        };
        assert!(question("word ".repeat(9_000)).is_ok());
        let refused = question("word ".repeat(200_000)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidArguments);
        assert_eq!(refused.param.as_deref(), Some("q"));
        assert!(refused.message.contains("65534"), "{}", refused.message);
    }

    #[test]
    fn a_schema_tells_on_whose_behalf_it_was_answered() {
        // AU-05
        let told = |bearer: &str| {
            let bare = format!(r#"{{"bearer":{bearer}}}"#);
            let wrapped = format!(r#"{{"data":{bare}}}"#);
            let read = |text: &str| Bearer::from_schema(&serde_json::from_str(text).unwrap());
            assert_eq!(read(&bare), read(&wrapped));
            read(&bare)
        };
        for owner in [
            r#"{"token_kind":"owner"}"#,
            r#"{"token_kind":"client","scope":"Owner"}"#,
            r#"{"token_kind":"trusted_owner_agent"}"#,
            r#"{"token_kind":"control_plane"}"#,
        ] {
            assert_eq!(told(owner), Some(Bearer::Owner), "{owner}");
        }
        for client in [
            r#"{"token_kind":"client","scope":"grant"}"#,
            r#"{"token_kind":"mcp_package"}"#,
        ] {
            assert_eq!(told(client), Some(Bearer::Client), "{client}");
        }
        for nothing in ["{}", "null", "[]", r#""owner""#, r#"{"token_kind":1}"#] {
            assert_eq!(told(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn lists_repeat_their_name_and_brackets_are_kept() {
        let mut question = Get::v1(["search"]).with("q", Some("a&b"));
        question.push("streams", "one");
        question.push("streams", "two");
        question.push("filter[sent at][gte]", "2026-01-01");
        assert_eq!(
            question.with("limit", None::<String>).target(),
            "/v1/search?q=a%26b&streams=one&streams=two&filter[sent%20at][gte]=2026-01-01"
        );
    }
}
