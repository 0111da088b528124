//! The one table of errors: each code with its HTTP status, its wire type and its exit code.
//! A surface never invents a code or a status; it prints what stands here. Messages say what happened to this input,
//! hints name the next call, and both are safe to show: what went wrong inside is logged, never sent.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::step_up::Beyond;

/// Connections that the message of an ambiguous read names.
const NAMED_CONNECTIONS: usize = 3;

/// How many connections an ambiguity error lists.
pub const LISTED_CONNECTIONS: usize = 12;

/// Process exit codes, where they are more than "failed".
mod exit {
    pub(super) const FAILED: u8 = 1;
    pub(super) const USAGE: u8 = 2;
    pub(super) const UNREACHABLE: u8 = 69;
    pub(super) const OWNER_REFUSED: u8 = 77;
    pub(super) const NO_CREDENTIAL: u8 = 78;
}

/// Who raises a code, which decides its wire type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raised {
    /// A resource server: the type follows the status.
    Served,
    /// Our side of the wire, before or instead of a resource server.
    Adapter,
}

macro_rules! error_codes {
    ($($variant:ident $raised:ident $code:literal $status:literal $exit:ident $doc:literal;)*) => {
        /// Every code an answer may carry.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode {
            $(#[doc = $doc] $variant,)*
        }

        impl ErrorCode {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn row(self) -> (Raised, &'static str, u16, u8) {
                match self {
                    $(Self::$variant => (Raised::$raised, $code, $status, exit::$exit),)*
                }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $doc,)*
                }
            }
        }
    };
}

error_codes! {
    InvalidRequest Served "invalid_request" 400 FAILED "A parameter is malformed, unknown or not supported here.";
    InvalidCursor Served "invalid_cursor" 400 FAILED "The cursor is not one of ours, or belongs to another request.";
    InvalidSort Served "invalid_sort" 400 FAILED "The stream cannot be sorted like this.";
    InvalidExpand Served "invalid_expand" 400 FAILED "The relation cannot be expanded like this.";
    InvalidArgument Served "invalid_argument" 400 FAILED "Arguments contradict one another.";
    UnknownField Served "unknown_field" 400 FAILED "The stream declares no such field; for owners only.";
    InvalidWindow Served "invalid_window" 400 FAILED "The window selectors are out of range or contradictory.";
    InvalidFieldPath Served "invalid_field_path" 400 FAILED "The field name is missing or cannot be one.";
    UnsupportedVersion Served "unsupported_version" 400 FAILED "The requested contract version is not served.";
    AuthenticationError Served "authentication_error" 401 NO_CREDENTIAL "There is no token, or it is unknown or expired.";
    InvalidToken Served "invalid_token" 401 NO_CREDENTIAL "The token's grant has ended; hosts authorise again.";
    FieldNotGranted Served "field_not_granted" 403 FAILED "The field lies outside the grant, whether it exists or not.";
    GrantStreamNotAllowed Served "grant_stream_not_allowed" 403 FAILED "The stream lies outside the grant, whether it exists or not.";
    InsufficientScope Served "insufficient_scope" 403 FAILED "The expanded relation lies outside the grant.";
    GrantRevoked Served "grant_revoked" 403 FAILED "The grant was revoked.";
    GrantExpired Served "grant_expired" 403 FAILED "The grant has expired.";
    GrantInvalid Served "grant_invalid" 403 FAILED "The grant no longer stands for anything.";
    GrantPaused Served "grant_paused" 403 FAILED "The grant is paused until its owner has looked.";
    GrantConsumed Served "grant_consumed" 403 FAILED "The single-use grant was used.";
    PackageRevoked Served "package_revoked" 403 FAILED "The package was revoked.";
    PermissionError Served "permission_error" 403 FAILED "The route is for another kind of token.";
    NotFound Served "not_found" 404 FAILED "It does not exist, or this grant cannot see it.";
    StreamNotDeclared Served "stream_not_declared" 404 FAILED "No declaration has the stream; for owners only.";
    ConnectionNotFound Served "connection_not_found" 404 FAILED "The connection is unknown or not granted.";
    BlobNotFound Served "blob_not_found" 404 FAILED "The blob is unknown, unreferenced or not visible.";
    FieldNotFound Served "field_not_found" 404 FAILED "This record does not have the field.";
    QueryNotFound Served "query_not_found" 404 FAILED "The searched text does not occur in the field.";
    MethodNotAllowed Served "method_not_allowed" 405 FAILED "The route exists, but not for this method.";
    AmbiguousConnection Served "ambiguous_connection" 409 FAILED "More than one granted connection carries the stream.";
    AmbiguousSchemaDetail Served "ambiguous_schema_detail" 409 FAILED "More than one source has the stream whose schema is asked.";
    CursorExpired Served "cursor_expired" 410 FAILED "The bookmark is older than the history that is kept.";
    MisdirectedRequest Served "misdirected_request" 421 FAILED "The request was meant for another host.";
    ResourceLimit Served "resource_limit" 413 FAILED "The request is larger than allowed.";
    FieldNotText Served "field_not_text" 422 FAILED "The field is not a text that can be read in windows.";
    RateLimitExceeded Served "rate_limit_exceeded" 429 FAILED "Too many attempts; wait.";
    BudgetExhausted Served "budget_exhausted" 429 FAILED "The owner's budget for this grant is used up for today.";
    InternalError Served "internal_error" 500 FAILED "Something failed on our side; the request id finds it in the log.";
    RecordDamaged Served "record_damaged" 500 FAILED "A record that the answer needs was damaged on the server's disk.";
    IndexBuilding Served "index_building" 503 FAILED "The search index is being built, and this cannot be answered before it is; ask again.";
    ConnectorInstanceBusy Served "connector_instance_busy" 503 FAILED "The connection is being written by someone else.";
    IngestBatchStorageError Served "ingest_batch_storage_error" 503 FAILED "Nothing of the batch is acknowledged; send it again.";
    StoreRolledBack Served "store_rolled_back" 503 FAILED "The server lost what it had acknowledged, and answers nobody until its owner has confirmed that.";
    StorageUnavailable Served "storage_unavailable" 503 FAILED "The server cannot write what the answer needs, such as the log of what was disclosed; its disk may be full.";
    RunTerminal Served "run_terminal" 503 FAILED "The ingest run has ended.";
    InvalidId Adapter "invalid_id" 400 FAILED "The text is not a record id or handle.";
    InvalidFilter Adapter "invalid_filter" 400 FAILED "The filter argument does not have the form of one.";
    InvalidStream Adapter "invalid_stream" 400 FAILED "The text cannot be a stream name.";
    InvalidConnectionId Adapter "invalid_connection_id" 400 FAILED "The text cannot be a connection id.";
    ConflictingConnectionId Adapter "conflicting_connection_id" 400 FAILED "The id names one connection and the argument another.";
    InvalidFieldWindowSelector Adapter "invalid_field_window_selector" 400 FAILED "The window arguments exclude one another.";
    InvalidResourceUri Adapter "invalid_resource_uri" 400 FAILED "The resource URI names nothing we serve.";
    InvalidArguments Adapter "invalid_arguments" 400 USAGE "Arguments are missing, unknown or of the wrong type.";
    LimitOutOfRange Adapter "limit_out_of_range" 400 FAILED "The limit is outside what the call allows.";
    ModeNotSupported Adapter "mode_not_supported" 400 FAILED "The server has no such search mode.";
    OwnerTokenRefused Adapter "owner_token_refused" 403 OWNER_REFUSED "Owner credentials never work here.";
    RsUnreachable Adapter "rs_unreachable" 502 UNREACHABLE "The resource server did not answer.";
    RsTimeout Adapter "rs_timeout" 504 UNREACHABLE "The resource server did not answer in time.";
    RsBadResponse Adapter "rs_bad_response" 502 FAILED "The resource server's answer is not the contract's.";
    NoProviderUrl Adapter "no_provider_url" 400 USAGE "No server was named.";
    InvalidProviderUrl Adapter "invalid_provider_url" 400 USAGE "The server's address is not an http or https URL.";
    NotConnected Adapter "not_connected" 401 NO_CREDENTIAL "There is no credential for this server.";
    CredentialExpired Adapter "credential_expired" 401 NO_CREDENTIAL "The stored credential has expired.";
    CredentialInvalid Adapter "credential_invalid" 401 NO_CREDENTIAL "The stored credential is not usable.";
}

impl ErrorCode {
    /// The code on the wire.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The HTTP status it is sent with.
    pub fn http_status(self) -> u16 {
        self.row().2
    }

    /// The exit code of a command that ends with it. `pdpp mcp` answers 64 where this is 2.
    pub fn exit_code(self) -> u8 {
        self.row().3
    }

    /// The wire `type`: `adapter_error` for our side of the wire, else what the status says.
    pub fn error_type(self) -> &'static str {
        match self.row() {
            (Raised::Adapter, ..) => "adapter_error",
            (Raised::Served, _, status, _) => error_type_of_status(status),
        }
    }

    /// The code with this wire text. Other servers send codes that are not in the table.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|known| known.as_str() == code)
    }
}

/// The wire `type` of a status, also for codes that are not in the table.
pub fn error_type_of_status(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        410 => "gone_error",
        413 => "request_entity_too_large_error",
        429 => "rate_limit_error",
        _ => "api_error",
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A connection the caller may name instead of leaving it open.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AvailableConnection {
    /// The grant it belongs to; absent for the owner.
    pub grant_id: Option<String>,
    /// The kind of source.
    pub connector_key: Option<String>,
    /// What to pass as `connection_id`.
    pub connection_id: String,
    /// The owner's label.
    pub display_name: Option<String>,
}

/// The connections to choose from: the first [`LISTED_CONNECTIONS`], and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionChoice {
    listed: Vec<AvailableConnection>,
    total: usize,
}

impl ConnectionChoice {
    /// Keeps the first of all connections and remembers how many there were.
    pub fn new(mut all: Vec<AvailableConnection>) -> Self {
        let total = all.len();
        all.truncate(LISTED_CONNECTIONS);
        Self { listed: all, total }
    }

    /// Those that are listed.
    pub fn listed(&self) -> &[AvailableConnection] {
        &self.listed
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// How many are not listed.
    pub fn omitted(&self) -> usize {
        self.total - self.listed.len()
    }
}

/// A refused or failed read, as every surface shows it. It serialises to the wire's `error` object.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ReadError {
    /// Which row of the table.
    pub code: ErrorCode,
    /// What happened to this input.
    pub message: String,
    /// The next call to make; `next` on the wire.
    pub hint: Option<String>,
    /// The parameter at fault.
    pub param: Option<String>,
    /// The parameter to add when asking again.
    pub retry_with: Option<&'static str>,
    /// What that parameter may be. Boxed: few errors have it, every result carries the size.
    pub connections: Option<Box<ConnectionChoice>>,
    /// What went wrong inside, for the owner at the machine itself. Never on the wire.
    pub cause: Option<Box<Cause>>,
    /// What a client named beyond its grant. A surface that can lead to the owner sends it as `needs_broader_grant`.
    pub beyond: Option<Box<Beyond>>,
    /// Whether there was an answer, larger than any that is taken. Never on the wire.
    pub is_too_large: bool,
}

/// What went wrong inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause(pub String);

impl ReadError {
    /// An error with its message; add the rest with the methods below.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            param: None,
            retry_with: None,
            connections: None,
            cause: None,
            beyond: None,
            is_too_large: false,
        }
    }

    /// A failure on our side. The cause belongs in the log, so it is not an argument.
    pub fn internal() -> Self {
        Self::new(
            ErrorCode::InternalError,
            "the server could not answer this request",
        )
        .with_hint("try again; if it stays, give the request id to whoever runs the server")
    }

    /// Keeps what went wrong inside for the owner.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(Box::new(Cause(cause.into())));
        self
    }

    /// More than one granted connection carries the stream: the caller must name one of them.
    pub fn ambiguous_connection(stream: &str, all: Vec<AvailableConnection>) -> Self {
        let message = format!("{} connections carry the stream '{stream}'", all.len());
        Self::new(ErrorCode::AmbiguousConnection, message).with_connections(all)
    }

    /// Names what lies beyond the grant.
    #[must_use]
    pub fn with_beyond(mut self, beyond: Beyond) -> Self {
        self.beyond = Some(Box::new(beyond));
        self
    }

    /// Names the next call.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names the parameter at fault.
    #[must_use]
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Names the first connections to choose from in the message, lists at most [`LISTED_CONNECTIONS`] of them, and asks for
    /// `connection_id`.
    #[must_use]
    pub fn with_connections(mut self, all: Vec<AvailableConnection>) -> Self {
        let named = all.iter().take(NAMED_CONNECTIONS);
        let named: Vec<&str> = named.map(|choice| choice.connection_id.as_str()).collect();
        let more = match all.len().saturating_sub(NAMED_CONNECTIONS) {
            0 => String::new(),
            more => format!(" or one of {more} more"),
        };
        // Many clients show nothing but the message.
        self.message = format!(
            "{}; name one of them as connection_id: {}{more}",
            self.message,
            named.join(", ")
        );
        let choice = ConnectionChoice::new(all);
        self.hint = Some(match choice.omitted() {
            0 => "repeat the call with one of these as connection_id".to_owned(),
            more => format!(
                "repeat the call with a connection_id; schema lists the {more} not shown here"
            ),
        });
        self.retry_with = Some("connection_id");
        self.connections = Some(Box::new(choice));
        self
    }

    /// The connections to choose from; empty where there is no choice to make.
    pub fn available_connections(&self) -> &[AvailableConnection] {
        self.connections
            .as_deref()
            .map_or(&[], ConnectionChoice::listed)
    }
}

impl Serialize for ReadError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.code.error_type())?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        let texts = [
            ("param", self.param.as_deref()),
            ("retry_with", self.retry_with),
            ("next", self.hint.as_deref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if let Some(choice) = &self.connections {
            map.serialize_entry("available_connections", &choice.listed)?;
            map.serialize_entry("available_connection_count", &choice.total)?;
            if choice.omitted() > 0 {
                map.serialize_entry("available_connections_truncated", &true)?;
                map.serialize_entry("available_connections_omitted", &choice.omitted())?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::HashSet;

    fn connection(n: usize) -> AvailableConnection {
        AvailableConnection {
            grant_id: Some("g1".to_owned()),
            connector_key: Some("gmail".to_owned()),
            connection_id: format!("gmail-{n}"),
            display_name: None,
        }
    }

    #[test]
    fn every_code_is_its_own_and_reads_back() {
        let codes: HashSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(code.as_str()), Some(*code));
            let snake = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(code.as_str().chars().all(snake), "{code}");
            assert!(code.meaning().ends_with('.'), "{code}");
        }
        assert_eq!(ErrorCode::from_code("context.active_false"), None);
    }

    #[test]
    fn every_code_has_a_status_a_type_and_an_exit_code_that_agree() {
        for code in ErrorCode::ALL {
            let status = code.http_status();
            assert!((400..=504).contains(&status), "{code}");
            assert_eq!(code.exit_code() == 78, status == 401, "{code}");
            assert!([1, 2, 69, 77, 78].contains(&code.exit_code()), "{code}");
            assert!(
                [error_type_of_status(status), "adapter_error"].contains(&code.error_type()),
                "{code}"
            );
        }
    }

    #[test]
    fn statuses_and_types_are_those_of_the_contract() {
        for (code, status, kind) in [
            ("invalid_cursor", 400, "invalid_request_error"),
            ("authentication_error", 401, "authentication_error"),
            ("field_not_granted", 403, "permission_error"),
            ("connection_not_found", 404, "not_found_error"),
            ("ambiguous_connection", 409, "api_error"),
            ("cursor_expired", 410, "gone_error"),
            ("resource_limit", 413, "request_entity_too_large_error"),
            ("field_not_text", 422, "api_error"),
            ("rate_limit_exceeded", 429, "rate_limit_error"),
            ("internal_error", 500, "api_error"),
            ("invalid_id", 400, "adapter_error"),
        ] {
            let found = ErrorCode::from_code(code).unwrap();
            assert_eq!(
                (found.http_status(), found.error_type()),
                (status, kind),
                "{code}"
            );
        }
    }

    #[test]
    fn the_wire_object_has_only_what_applies() {
        let error = ReadError::new(ErrorCode::UnknownField, "no field 'x'").with_param("fields");
        assert_eq!(
            serde_json::to_value(&error).unwrap(),
            json!({"type":"invalid_request_error","code":"unknown_field","message":"no field 'x'","param":"fields"})
        );
    }

    #[test]
    fn an_ambiguity_lists_every_connection_when_they_are_few() {
        // AM-03
        let error = ReadError::ambiguous_connection("repos", (0..2).map(connection).collect());
        let wire = serde_json::to_value(&error).unwrap();
        assert_eq!(wire["retry_with"], "connection_id");
        assert_eq!(wire["available_connection_count"], 2);
        assert_eq!(
            wire["available_connections"][1],
            json!({"grant_id":"g1","connector_key":"gmail","connection_id":"gmail-1"})
        );
        assert!(wire.get("available_connections_truncated").is_none());
    }

    #[test]
    fn an_ambiguity_among_many_is_capped_and_says_so() {
        // AM-05, AM-07
        for count in [25, 1000] {
            let error =
                ReadError::ambiguous_connection("repos", (0..count).map(connection).collect());
            let wire = serde_json::to_value(&error).unwrap();
            assert_eq!(wire["available_connections"].as_array().unwrap().len(), 12);
            assert_eq!(wire["available_connection_count"], count);
            assert_eq!(wire["available_connections_truncated"], true);
            assert_eq!(wire["available_connections_omitted"], count - 12);
            assert!(wire["next"].as_str().unwrap().contains("schema"));
            assert!(wire.to_string().len() < 6_000);
        }
    }
}
