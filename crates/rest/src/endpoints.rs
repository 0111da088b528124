//! The table of routes.

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
const COUNT: Param = Param::one("count", "Whether to count all matches.")
    .with_values(Values::Choice(&["none", "estimated", "exact"]));
const FILTER: Param = Param::named(
    "filter",
    "`filter[field]=value` or `filter[field][gte|gt|lte|lt]=value`; all must hold.",
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
    Param::one("order", "Direction; `desc` unless said.")
        .with_values(Values::Choice(&["asc", "desc"])),
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
const AGGREGATE: &[Param] = &[
    CONNECTION,
    ALIAS,
    CONNECTOR,
    SUBJECT,
    Param::one("metric", "What to compute.")
        .with_values(Values::Choice(&[
            "count",
            "sum",
            "min",
            "max",
            "count_distinct",
        ]))
        .required(),
    Param::one("field", "Over which field; not for `count`."),
    Param::one("group_by", "One figure per value of this field."),
    Param::one(
        "group_by_time",
        "One figure per calendar unit of this field.",
    ),
    Param::one("granularity", "The calendar unit.").with_values(Values::Choice(&[
        "minute", "hour", "day", "week", "month", "quarter", "year",
    ])),
    Param::one(
        "time_zone",
        "The IANA time zone that cuts the units; UTC unless said.",
    ),
    Param::one("limit", "How many groups: 10 unless said.").with_values(Values::Integer(1, 100)),
    FILTER,
];
const SEARCH: &[Param] = &[
    Param::one(
        "q",
        "Words; `\"phrases\"`, `prefix*` and `-excluded` are understood.",
    )
    .required(),
    Param::many("streams", "Only in these streams."),
    CONNECTION,
    ALIAS,
    LIMIT,
    CURSOR,
    COUNT,
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

macro_rules! public {
    ($handler:path) => {
        Handler::Public(|context| Box::pin($handler(context)))
    };
}
macro_rules! reader {
    ($handler:path) => {
        Handler::Reader(|context, caller| Box::pin($handler(context, caller)))
    };
}
macro_rules! owner {
    ($handler:path) => {
        Handler::Owner(|context| Box::pin($handler(context)))
    };
}
macro_rules! operator {
    ($handler:path) => {
        Handler::Operator(|context| Box::pin($handler(context)))
    };
}

macro_rules! oauth {
    ($handler:path) => {
        Handler::OAuth(|context| Box::pin($handler(context)))
    };
}

/// The request type of OAuth endpoints.
const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

/// A read that answers JSON of this schema.
const fn read(
    path: &'static str,
    (operation, summary): (&'static str, &'static str),
    params: &'static [Param],
    schema: &'static str,
    handler: Handler,
) -> Endpoint {
    Endpoint {
        verb: Verb::Get,
        path,
        operation,
        summary,
        params,
        request_type: None,
        success: SuccessResponse {
            status: 200,
            content: Content::Json(schema),
        },
        handler,
    }
}

/// A write by the owner.
const fn write(
    (verb, path): (Verb, &'static str),
    (operation, summary): (&'static str, &'static str),
    (params, request_type): (&'static [Param], Option<&'static str>),
    success: SuccessResponse,
    handler: Handler,
) -> Endpoint {
    Endpoint {
        verb,
        path,
        operation,
        summary,
        params,
        request_type,
        success,
        handler,
    }
}

const fn responds(status: u16, content: Content) -> SuccessResponse {
    SuccessResponse { status, content }
}

/// Every route there is.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    read(
        "/v1/schema",
        ("getSchema", "What this token may ask"),
        SCHEMA,
        "Schema",
        reader!(reads::schema),
    ),
    read(
        "/v1/connectors",
        (
            "listConnectors",
            "The connectors and their streams at a glance",
        ),
        &[],
        "ConnectorList",
        reader!(connectors::connectors),
    ),
    read(
        "/v1/streams",
        (
            "listStreams",
            "The streams, one entry per connection that carries it",
        ),
        STREAMS,
        "StreamPage",
        reader!(reads::streams),
    ),
    read(
        "/v1/streams/{stream}",
        ("getStream", "One stream with its capabilities"),
        SOURCE,
        "StreamMetadata",
        reader!(reads::stream),
    ),
    read(
        "/v1/streams/{stream}/records",
        ("listRecords", "Records of a stream, or what changed in it"),
        RECORDS,
        "RecordPage",
        reader!(reads::records),
    ),
    read(
        "/v1/streams/{stream}/records/{record_id}",
        ("getRecord", "One record"),
        RECORD,
        "Record",
        reader!(reads::record),
    ),
    read(
        "/v1/streams/{stream}/records/{record_id}/field-window",
        ("getFieldWindow", "A bounded part of one long text field"),
        WINDOW,
        "FieldWindow",
        reader!(reads::field_window),
    ),
    read(
        "/v1/streams/{stream}/aggregate",
        (
            "aggregate",
            "One figure over many records, or one per group",
        ),
        AGGREGATE,
        "Aggregation",
        reader!(reads::aggregate),
    ),
    read(
        "/v1/search",
        ("search", "Search all streams at once by words"),
        SEARCH,
        "SearchPage",
        reader!(reads::search),
    ),
    Endpoint {
        verb: Verb::Get,
        path: "/v1/blobs/{blob_id}",
        operation: "getBlob",
        summary: "The bytes a record points at; `Range` is understood",
        params: SOURCE,
        request_type: None,
        success: responds(200, Content::Bytes),
        handler: reader!(blobs::blob),
    },
    read(
        "/v1/openapi.json",
        ("getOpenapi", "This document"),
        &[],
        "Document",
        public!(discovery::openapi),
    ),
    write(
        (Verb::Post, "/v1/ingest/{stream}"),
        (
            "ingest",
            "Take records, one JSON object per line; gzip is understood",
        ),
        (SOURCE, Some("application/x-ndjson")),
        responds(200, Content::Json("Receipt")),
        owner!(writes::ingest),
    ),
    write(
        (Verb::Delete, "/v1/streams/{stream}/records/{record_id}"),
        ("deleteRecord", "Delete a record"),
        (SOURCE, None),
        responds(204, Content::Nothing),
        owner!(writes::delete_record),
    ),
    write(
        (Verb::Delete, "/v1/streams/{stream}/records"),
        ("deleteRecords", "Delete every record of a stream"),
        (SOURCE, None),
        responds(204, Content::Nothing),
        owner!(writes::delete_records),
    ),
    write(
        (Verb::Post, "/v1/blobs"),
        ("putBlob", "Store the bytes a record will point at"),
        (PUT_BLOB, Some("application/octet-stream")),
        responds(200, Content::Json("StoredBlob")),
        owner!(writes::put_blob),
    ),
    write(
        (Verb::Post, "/v1/connectors"),
        (
            "declareConnector",
            "Register a source declaration, or a later version of it",
        ),
        (&[], Some("application/json")),
        responds(201, Content::Json("Declared")),
        owner!(writes::declare),
    ),
    read(
        discovery::METADATA_PATH,
        ("getResourceMetadata", "What this server is (RFC 9728)"),
        &[],
        "ResourceMetadata",
        public!(oauth::resource),
    ),
    read(
        "/.well-known/oauth-protected-resource/mcp",
        ("getMcpResourceMetadata", "What `/mcp` is (RFC 9728)"),
        &[],
        "ResourceMetadata",
        public!(oauth::mcp_resource),
    ),
    read(
        "/.well-known/oauth-authorization-server",
        ("getAuthorizationServer", "How to be authorised (RFC 8414)"),
        &[],
        "AuthorizationServer",
        public!(oauth::authorization_server),
    ),
    read(
        "/.well-known/oauth-authorization-server/mcp",
        (
            "getMcpAuthorizationServer",
            "The same, for who only knows of `/mcp`",
        ),
        &[],
        "AuthorizationServer",
        public!(oauth::authorization_server),
    ),
    write(
        (Verb::Post, "/oauth/register"),
        ("registerClient", "Register an application (RFC 7591)"),
        (&[], Some("application/json")),
        responds(201, Content::Json("RegisteredClient")),
        oauth!(oauth::register),
    ),
    read(
        "/oauth/register/{client_id}",
        ("getClient", "What an application registered"),
        &[],
        "RegisteredClient",
        oauth!(oauth::registered),
    ),
    write(
        (Verb::Post, "/oauth/token"),
        ("issueToken", "Turn a code into tokens, or renew them"),
        (&[], FORM),
        responds(200, Content::Json("Tokens")),
        oauth!(oauth::token),
    ),
    write(
        (Verb::Post, "/oauth/device_authorization"),
        ("authorizeDevice", "Begin a device flow (RFC 8628)"),
        (&[], FORM),
        responds(200, Content::Json("DeviceAuthorization")),
        oauth!(oauth::device_authorization),
    ),
    write(
        (Verb::Post, "/oauth/revoke"),
        ("revokeToken", "End one's own token (RFC 7009)"),
        (&[], FORM),
        responds(200, Content::Nothing),
        oauth!(oauth::revoke),
    ),
    write(
        (Verb::Post, "/oauth/introspect"),
        ("introspectToken", "What a token stands for (RFC 7662)"),
        (&[], FORM),
        responds(200, Content::Json("Introspection")),
        owner!(oauth::introspect),
    ),
    read(
        "/healthz",
        ("getHealth", "Whether the process lives"),
        &[],
        "Status",
        public!(discovery::healthz),
    ),
    read(
        "/readyz",
        ("getReadiness", "Whether reads can be served"),
        &[],
        "Status",
        public!(discovery::readyz),
    ),
    Endpoint {
        verb: Verb::Get,
        path: "/metrics",
        operation: "getMetrics",
        summary: "Figures in the text form of Prometheus",
        params: &[],
        request_type: None,
        success: responds(200, Content::Text),
        handler: operator!(discovery::metrics),
    },
];
