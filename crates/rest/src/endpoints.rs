//! The table of routes.

use contract::aggregate::{Granularity, MetricKind};
use contract::query::{Count, Order};
use contract::search::{Matching, SearchOrder};

use crate::table::{Content, Endpoint, Handler, Param, SuccessResponse, Values, Verb};
use crate::{blobs, connectors, discovery, oauth, reads, writes};

const CONNECTION: Param = Param::one(
    "connection_id",
    "The connection to read. Needed where more than one carries the stream.",
);
const ALIAS: Param = Param::one(
    "connector_instance_id",
    "Deprecated name of `connection_id`; answered with a warning.",
);
const CONNECTOR: Param = Param::one(
    crate::connection_selector::CONNECTOR,
    "For the owner: the connector, where it has one connection. Ignored for clients.",
);
const SUBJECT: Param = Param::one(
    "subject_id",
    "Accepted and ignored: a server keeps the data of one person.",
);
const FIELDS: Param = Param::many("fields", "Return exactly these top-level fields in `data`.");
const VIEW: Param = Param::one(
    "view",
    "Return the fields of a declared view; excludes `fields`.",
);
const LIMIT: Param =
    Param::one("limit", "Entries per page: 25 unless said, at most 100.").with_values(Values::Size);
const CURSOR: Param = Param::one("cursor", "Continue where a page ended; opaque.");
const COUNT: Param =
    Param::one("count", "Whether to count all matches.").with_values(Values::Choice(Count::NAMES));
const FILTER: Param = Param::named(
    "filter",
    "`filter[field]=value` or `filter[field][gte|gt|lte|lt|contains]=value`; all must hold.",
);
const EXPAND: Param = Param::many("expand", "Relationships to bring along.");
const EXPAND_LIMIT: Param = Param::named("expand_limit", "`expand_limit[relationship]=number`.");

const SCHEMA: &[Param] = &[
    Param::one("view", "`compact` for a short text per field."),
    Param::one(
        "detail",
        "`full` for everything about one stream; needs `stream`.",
    ),
    Param::one("stream", "Only this stream."),
    CONNECTION,
    ALIAS,
    Param::one(
        crate::connection_selector::CONNECTOR,
        "Only this connector: its key, or the id of its source.",
    ),
];
const SOURCE: &[Param] = &[CONNECTION, ALIAS, CONNECTOR];
const STREAMS: &[Param] = &[CONNECTION, ALIAS, CONNECTOR, SUBJECT];
const RECORDS: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    SUBJECT,
    LIMIT,
    CURSOR,
    Param::one("order", "Direction; `desc` unless said.").with_values(Values::Choice(Order::NAMES)),
    Param::many(
        "sort",
        "The stream's `cursor_field`, with `-` for descending.",
    ),
    FIELDS,
    VIEW,
    FILTER,
    EXPAND,
    EXPAND_LIMIT,
    COUNT,
    Param::one("window", "Whether to report the time span of all matches.")
        .with_values(Values::Choice(&["none", "exact"])),
    Param::one(
        "changes_since",
        "`beginning`, or a bookmark: what changed since.",
    ),
];
const RECORD: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    FIELDS,
    VIEW,
    EXPAND,
    EXPAND_LIMIT,
];
const WINDOW: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    Param::one("field", "The text field, literally.").required(),
    Param::one("offset_chars", "Where to start, in characters.")
        .with_values(Values::Integer(0, u32::MAX)),
    Param::one(
        "limit_chars",
        "How many characters: 4096 unless said, at most 16384.",
    )
    .with_values(Values::Integer(1, u32::MAX)),
    Param::one("q", "Start at the first occurrence of this text instead."),
    Param::one("before_chars", "Context before the match.").with_values(Values::Integer(0, 8192)),
    Param::one("after_chars", "Context after the match.").with_values(Values::Integer(0, 8192)),
];
const VERIFY: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    Param::one("cite", "The citation, as an excerpt or a window had it.").required(),
    Param::one("field", "The field, where it is known."),
];
const AGGREGATE: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    SUBJECT,
    Param::one("metric", "What to compute.")
        .with_values(Values::Choice(MetricKind::NAMES))
        .required(),
    Param::one("field", "Over which field; not for `count`."),
    Param::one("group_by", "One figure per value of this field."),
    Param::one(
        "group_by_time",
        "One figure per calendar unit of this field.",
    ),
    Param::one("granularity", "The calendar unit.").with_values(Values::Choice(Granularity::NAMES)),
    Param::one(
        "time_zone",
        "The IANA time zone that cuts the units; UTC unless said.",
    ),
    Param::one("limit", "How many groups: 10 unless said, by time 100.")
        .with_values(Values::Integer(1, 100)),
    FILTER,
];
const SINCE: Param = Param::one(
    "since",
    "Only records from then on, a date or a date-time, by the time field of their stream.",
);
const UNTIL: Param = Param::one("until", "Only records before then, likewise.");
const SEARCH: &[Param] = &[
    Param::one(
        "q",
        "A question in one's own words; `\"phrases\"`, `+required`, `prefix*` and `-excluded` are understood.",
    )
    .required(),
    Param::many("streams", "Only in these streams."),
    CONNECTION,
    ALIAS,
    LIMIT,
    CURSOR,
    COUNT,
    Param::one("match", "Whether any word may occur, in any form, or all must as written; `any` unless said.")
        .with_values(Values::Choice(Matching::NAMES)),
    Param::one(
        "order",
        "Which hits come first; by time, records without one come last.",
    )
    .with_values(Values::Choice(SearchOrder::NAMES)),
    Param::one("excerpts", "Excerpts per hit at most: 1 unless said.")
        .with_values(Values::Integer(1, 5)),
    SINCE,
    UNTIL,
    FILTER,
];
const MEANING: &[Param] = &[
    Param::one("q", "A question in one's own words.").required(),
    Param::many("streams", "Only in these streams."),
    CONNECTION,
    ALIAS,
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    FILTER,
];
const PUT_BLOB: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    Param::one("stream", "The stream of the record.").required(),
    Param::one(
        "record_key",
        "The record it belongs to, by its canonical key.",
    )
    .required(),
    Param::one(
        "mime_type",
        "What the bytes are; the request's Content-Type unless said.",
    ),
];

/// A handler of one kind, boxed.
macro_rules! handler {
    (Reader, $handler:path) => {
        Handler::Reader(|context, caller| Box::pin($handler(context, caller)))
    };
    ($kind:ident, $handler:path) => {
        Handler::$kind(|context| Box::pin($handler(context)))
    };
}

/// One row: method and path, name, description, parameters, media type of the request body, status and content of the
/// answer, who may call it, and what answers.
macro_rules! route {
    (
        $verb:ident $path:expr, $operation:literal, $summary:literal,
        $params:expr, $body:expr => $status:literal $content:expr, $kind:ident $handler:path
    ) => {
        Endpoint {
            verb: Verb::$verb,
            path: $path,
            operation: $operation,
            summary: $summary,
            params: $params,
            request_type: $body,
            success: SuccessResponse {
                status: $status,
                content: $content,
            },
            handler: handler!($kind, $handler),
        }
    };
}

const FORM: Option<&str> = Some("application/x-www-form-urlencoded");
const JSON: Option<&str> = Some("application/json");

#[rustfmt::skip]
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    route!(Get "/v1/schema", "getSchema", "What this token may ask",
        SCHEMA, None => 200 Content::Json("Schema"), Reader reads::schema),
    route!(Get "/v1/connectors", "listConnectors", "The connectors and their streams at a glance",
        &[], None => 200 Content::Json("ConnectorList"), Reader connectors::connectors),
    route!(Get "/v1/streams", "listStreams", "The streams, one entry per connection that carries it",
        STREAMS, None => 200 Content::Json("StreamPage"), Reader reads::streams),
    route!(Get "/v1/streams/{stream}", "getStream", "One stream with its capabilities",
        SOURCE, None => 200 Content::Json("StreamMetadata"), Reader reads::stream),
    route!(Get "/v1/streams/{stream}/records", "listRecords", "Records of a stream, or what changed in it",
        RECORDS, None => 200 Content::Json("RecordPage"), Reader reads::records),
    route!(Get "/v1/streams/{stream}/records/{record_id}", "getRecord", "One record",
        RECORD, None => 200 Content::Json("Record"), Reader reads::record),
    route!(Get "/v1/streams/{stream}/records/{record_id}/field-window", "getFieldWindow",
        "A bounded part of one long text field",
        WINDOW, None => 200 Content::Json("FieldWindow"), Reader reads::field_window),
    route!(Get "/v1/streams/{stream}/records/{record_id}/verify", "verifyCitation",
        "Whether what was quoted from a record still stands there",
        VERIFY, None => 200 Content::Json("CitationCheck"), Reader reads::verify),
    route!(Get "/v1/streams/{stream}/aggregate", "aggregate", "One figure over many records, or one per group",
        AGGREGATE, None => 200 Content::Json("Aggregation"), Reader reads::aggregate),
    route!(Get "/v1/search", "search", "Search all streams at once by words",
        SEARCH, None => 200 Content::Json("SearchPage"), Reader reads::search),
    route!(Get "/v1/search/semantic", "searchByMeaning", "Search all streams at once by meaning; only with a sentence model",
        MEANING, None => 200 Content::Json("SearchPage"), Reader reads::search_semantic),
    route!(Get "/v1/search/hybrid", "searchByBoth", "Search all streams at once by words and meaning; only with a sentence model",
        MEANING, None => 200 Content::Json("SearchPage"), Reader reads::search_hybrid),
    route!(Get "/v1/blobs/{blob_id}", "getBlob", "The bytes a record points at; `Range` is understood",
        SOURCE, None => 200 Content::Bytes, Reader blobs::blob),
    route!(Get "/v1/openapi.json", "getOpenapi", "This document",
        &[], None => 200 Content::Json("Document"), Public discovery::openapi),
    route!(Post "/v1/ingest/{stream}", "ingest", "Take records, one JSON object per line; gzip is understood",
        SOURCE, Some("application/x-ndjson") => 200 Content::Json("Receipt"), Owner writes::ingest),
    route!(Delete "/v1/streams/{stream}/records/{record_id}", "deleteRecord", "Delete a record",
        SOURCE, None => 204 Content::Nothing, Owner writes::delete_record),
    route!(Delete "/v1/streams/{stream}/records", "deleteRecords", "Delete every record of a stream",
        SOURCE, None => 204 Content::Nothing, Owner writes::delete_records),
    route!(Post "/v1/blobs", "putBlob", "Store the bytes a record will point at",
        PUT_BLOB, Some("application/octet-stream") => 200 Content::Json("StoredBlob"), Owner writes::put_blob),
    route!(Post "/v1/connectors", "declareConnector", "Register a source declaration, or a later version of it",
        &[], JSON => 201 Content::Json("Declared"), Owner writes::declare),
    route!(Get discovery::METADATA_PATH, "getResourceMetadata", "What this server is (RFC 9728)",
        &[], None => 200 Content::Json("ResourceMetadata"), Public oauth::resource),
    route!(Get "/.well-known/oauth-protected-resource/mcp", "getMcpResourceMetadata", "What `/mcp` is (RFC 9728)",
        &[], None => 200 Content::Json("ResourceMetadata"), Public oauth::mcp_resource),
    route!(Get "/.well-known/oauth-authorization-server", "getAuthorizationServer", "How to be authorised (RFC 8414)",
        &[], None => 200 Content::Json("AuthorizationServer"), Public oauth::authorization_server),
    route!(Get "/.well-known/oauth-authorization-server/mcp", "getMcpAuthorizationServer",
        "The same, for who only knows of `/mcp`",
        &[], None => 200 Content::Json("AuthorizationServer"), Public oauth::authorization_server),
    route!(Post "/oauth/register", "registerClient", "Register an application (RFC 7591)",
        &[], JSON => 201 Content::Json("RegisteredClient"), OAuth oauth::register),
    route!(Get "/oauth/register/{client_id}", "getClient", "What an application registered",
        &[], None => 200 Content::Json("RegisteredClient"), OAuth oauth::registered),
    route!(Post "/oauth/token", "issueToken", "Turn a code into tokens, or renew them",
        &[], FORM => 200 Content::Json("Tokens"), OAuth oauth::token),
    route!(Post "/oauth/device_authorization", "authorizeDevice", "Begin a device flow (RFC 8628)",
        &[], FORM => 200 Content::Json("DeviceAuthorization"), OAuth oauth::device_authorization),
    route!(Post "/oauth/revoke", "revokeToken", "End one's own token (RFC 7009)",
        &[], FORM => 200 Content::Nothing, OAuth oauth::revoke),
    route!(Post "/oauth/introspect", "introspectToken", "What a token stands for (RFC 7662)",
        &[], FORM => 200 Content::Json("Introspection"), Owner oauth::introspect),
    route!(Get "/healthz", "getHealth", "Whether the process lives",
        &[], None => 200 Content::Json("Status"), Public discovery::healthz),
    route!(Get "/readyz", "getReadiness", "Whether reads can be served",
        &[], None => 200 Content::Json("Status"), Public discovery::readyz),
    route!(Get "/metrics", "getMetrics", "Figures in the text form of Prometheus",
        &[], None => 200 Content::Text, Operator discovery::metrics),
];
