//! Schemas of answers in the `OpenAPI` document: the members a client may rely on. There may be others.
//!
//! They are written in a short notation, one schema per line: its name, the members that are always there, then after a
//! `|` those that may be. A member is a string unless a type follows: `int`, `bool`, `any`, `{}` for any object, another
//! schema, `[type]` for an array, `type?` where it may be null, `=text` for a constant, `a/b` for a choice. Deriving them
//! from the wire types would lose what is always there: those also read other servers' answers, where nothing is.

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "
Error: error:ErrorBody
ErrorBody: type code message request_id | param next retry_with available_connections:[AvailableConnection] available_connection_count:int resource_metadata next_step errors:[{}] needs_broader_grant:BroaderGrant
BroaderGrant: stream | connection_id fields:[string] relation url
AvailableConnection: connection_id | connector_key display_name grant_id
OAuthError: error error_description request_id
Links: self | next:string?
Meta: warnings:[Warning] | count:any
Warning: code message | param
Schema: object=schema bearer:{} connectors:[{}] links:Links meta:Meta search:SearchOptions | detail connector_count:int stream_count:int
SearchOptions: orders:[string] matches:[string] max_excerpts:int
StreamMetadata: object=stream_metadata name field_capabilities:{} links:Links meta:Meta | schema:{} primary_key:[string] cursor_field
Aggregation: object=aggregation stream metric field:string? group_by:string? group_by_time:string? approximate:bool links:Links meta:Meta | granularity:string? time_zone:string? filtered_record_count:int groups:[Group] limit:int other_count:int
Group: key:any count:int | value:any
FieldWindow: object=field_window stream record_id field:WindowField window:Window cite links:Links meta:Meta
CitationCheck: object=citation_check status:current/changed/gone/not_yours_to_know links:Links meta:Meta | field_path window:Window emitted_at
WindowField: path
Window: text start_chars:int end_chars:int total_chars:int limit_chars:int complete:bool has_more:bool | match_start_chars:int? match_end_chars:int? next_offset_chars:int? previous_offset_chars:int?
StreamPage: object=list has_more:bool data:[Stream] links:Links meta:Meta | url next_cursor
RecordPage: object=list has_more:bool data:[ListedRecord] links:Links meta:Meta | url next_cursor next_changes_since
SearchPage: object=list has_more:bool data:[SearchResult] links:Links meta:Meta | url next_cursor
ConnectorList: object=list data:[Connector]
Connector: object=connector source:{} connector_key connector_id stream_count:int streams:[ConnectorStream]
ConnectorStream: object=stream name record_count:int last_updated:string? freshness:Freshness capabilities:{}
Stream: object=stream name record_count:int connection_id connector_instance_id freshness:Freshness | last_updated:string? display_name
Freshness: status
ListedRecord: object=record id stream emitted_at connection_id connector_key | display_name data:{} deleted:bool deleted_at expanded:{} record_json_bytes:int citation_url
Record: object=record id stream emitted_at connection_id connector_key data:{} links:Links meta:Meta | display_name expanded:{} record_json_bytes:int citation_url cite:{}
SearchResult: object=search_result stream record_key connector_key connector_id connection_id emitted_at matched_fields:[string] | display_name citation_url authored_at author title matched_terms:[MatchedTerm] missing_terms:[string] evidence_excerpts:[EvidenceExcerpt] near passage:Passage neighbours:[Neighbour]
MatchedTerm: term kind:exact/form/spelling | found
Passage: field_path text truncated:bool cite
Neighbour: side:before/after id field_path text truncated:bool cite | author
EvidenceExcerpt: field_path preview_text text_start_chars:int text_end_chars:int matches:[MatchSpan] truncated:bool cite read:FieldWindowRead
MatchSpan: start_chars:int end_chars:int
FieldWindowRead: offset_chars:int limit_chars:int
Receipt: stream records_attempted:int records_accepted:int records_rejected:int errors:[any] rejections:[Rejection]
Rejection: input_index:int code receipt_id message | field value
StoredBlob: object=blob blob_id sha256 size_bytes:int mime_type
Declared: connector_id connector_key result:added/unchanged/updated | damaged:[string]
Status: status | index:IndexStatus
IndexStatus: state:current/building/reindexing | percent:int
Document: openapi info:{} paths:{}
ResourceMetadata: resource bearer_methods_supported:[string]
AuthorizationServer: issuer authorization_endpoint token_endpoint | registration_endpoint device_authorization_endpoint revocation_endpoint introspection_endpoint
RegisteredClient: client_id redirect_uris:[string] grant_types:[string] registration_client_uri | client_id_issued_at:int client_name token_endpoint_auth_method=none
Tokens: access_token token_type=Bearer expires_in:int | refresh_token grant_id grant_package_id authorization_details:[{}]
DeviceAuthorization: device_code user_code verification_uri expires_in:int interval:int | verification_uri_complete
Introspection: active:bool | pdpp_token_kind client_id exp:int aud iss authorization_details:[{}]
";

pub(crate) fn schemas() -> Value {
    let lines = SCHEMAS.lines().filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, members)| (name.to_owned(), object(members)))
        .collect::<Map<_, _>>()
        .into()
}

fn object(members: &str) -> Value {
    let required = members.split(" | ").next().unwrap_or(members);
    let required: Vec<&str> = required.split(' ').map(name).collect();
    let all = members.split(' ').filter(|member| *member != "|");
    let properties: Map<String, Value> = all
        .map(|member| (name(member).to_owned(), schema(member)))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn name(member: &str) -> &str {
    member.split([':', '=']).next().unwrap_or(member)
}

fn schema(member: &str) -> Value {
    match (member.split_once('='), member.split_once(':')) {
        (Some((_, constant)), _) => json!({"const": constant}),
        (None, Some((_, kind))) => typed(kind),
        (None, None) => json!({"type": "string"}),
    }
}

fn typed(kind: &str) -> Value {
    if let Some(items) = kind
        .strip_prefix('[')
        .and_then(|kind| kind.strip_suffix(']'))
    {
        return json!({"type": "array", "items": typed(items)});
    }
    match (kind, kind.strip_suffix('?')) {
        ("any", _) => json!({}),
        ("{}", _) => json!({"type": "object"}),
        ("int", _) => json!({"type": "integer"}),
        ("bool", _) => json!({"type": "boolean"}),
        ("string", _) => json!({"type": "string"}),
        ("int?", _) => json!({"type": ["integer", "null"]}),
        (_, Some(_)) => json!({"type": ["string", "null"]}),
        _ if kind.contains('/') => {
            json!({"type": "string", "enum": kind.split('/').collect::<Vec<_>>()})
        }
        _ => json!({"$ref": format!("#/components/schemas/{kind}")}),
    }
}
