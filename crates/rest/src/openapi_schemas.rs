//! Schemas of answers in the `OpenAPI` document: the members a client may rely on. There may be others.

use serde_json::{Value, json};

/// All schemas, by name.
pub(crate) fn schemas() -> Value {
    let mut all = answers();
    for part in [
        figures(),
        parts(),
        lists(),
        records(),
        writes(),
        authorization(),
        tokens(),
    ] {
        if let (Some(all), Value::Object(part)) = (all.as_object_mut(), part) {
            all.extend(part);
        }
    }
    all
}

fn answers() -> Value {
    json!({
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {
                "type": "object",
                "required": ["type", "code", "message", "request_id"],
                "properties": {
                    "type": {"type": "string"},
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "request_id": {"type": "string"},
                    "param": {"type": "string"},
                    "next": {"type": "string"},
                    "retry_with": {"type": "string"},
                    "available_connections": {"type": "array", "items": {"$ref": "#/components/schemas/AvailableConnection"}},
                    "available_connection_count": {"type": "integer"},
                    "resource_metadata": {"type": "string"},
                    "next_step": {"type": "string"},
                    "errors": {"type": "array", "items": {"type": "object"}},
                },
            }},
        },
        "Schema": {
            "type": "object",
            "required": ["object", "bearer", "connectors", "links", "meta"],
            "properties": {
                "object": {"const": "schema"},
                "detail": {"type": "string"},
                "bearer": {"type": "object"},
                "connectors": {"type": "array", "items": {"type": "object"}},
                "connector_count": {"type": "integer"},
                "stream_count": {"type": "integer"},
                "links": {"$ref": "#/components/schemas/Links"},
                "meta": {"$ref": "#/components/schemas/Meta"},
            },
        },
        "StreamMetadata": {
            "type": "object",
            "required": ["object", "name", "field_capabilities", "links", "meta"],
            "properties": {
                "object": {"const": "stream_metadata"},
                "name": {"type": "string"},
                "schema": {"type": "object"},
                "primary_key": {"type": "array", "items": {"type": "string"}},
                "cursor_field": {"type": "string"},
                "field_capabilities": {"type": "object"},
                "links": {"$ref": "#/components/schemas/Links"},
                "meta": {"$ref": "#/components/schemas/Meta"},
            },
        },
    })
}

fn figures() -> Value {
    json!({
        "Aggregation": {
            "type": "object",
            "required": ["object", "stream", "metric", "field", "group_by", "group_by_time", "approximate", "links", "meta"],
            "properties": {
                "object": {"const": "aggregation"},
                "stream": {"type": "string"},
                "metric": {"type": "string"},
                "field": {"type": ["string", "null"]},
                "group_by": {"type": ["string", "null"]},
                "group_by_time": {"type": ["string", "null"]},
                "granularity": {"type": ["string", "null"]},
                "time_zone": {"type": ["string", "null"]},
                "filtered_record_count": {"type": "integer"},
                "approximate": {"type": "boolean"},
                "groups": {"type": "array", "items": {"type": "object", "required": ["key", "count"]}},
                "limit": {"type": "integer"},
                "other_count": {"type": "integer"},
                "links": {"$ref": "#/components/schemas/Links"},
                "meta": {"$ref": "#/components/schemas/Meta"},
            },
        },
        "FieldWindow": {
            "type": "object",
            "required": ["object", "stream", "record_id", "field", "window", "links", "meta"],
            "properties": {
                "object": {"const": "field_window"},
                "stream": {"type": "string"},
                "record_id": {"type": "string"},
                "field": {"type": "object", "required": ["path"]},
                "window": {"$ref": "#/components/schemas/Window"},
                "links": {"$ref": "#/components/schemas/Links"},
                "meta": {"$ref": "#/components/schemas/Meta"},
            },
        },
    })
}

fn parts() -> Value {
    json!({
        "AvailableConnection": {
            "type": "object",
            "required": ["connection_id"],
            "properties": {
                "connection_id": {"type": "string"},
                "connector_key": {"type": "string"},
                "display_name": {"type": "string"},
                "grant_id": {"type": "string"},
            },
        },
        "Links": {
            "type": "object",
            "required": ["self"],
            "properties": {"self": {"type": "string"}, "next": {"type": ["string", "null"]}},
        },
        "Meta": {
            "type": "object",
            "required": ["warnings"],
            "properties": {
                "count": {},
                "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/Warning"}},
            },
        },
        "Warning": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "param": {"type": "string"},
            },
        },
        "Window": {
            "type": "object",
            "required": ["text", "start_chars", "end_chars", "total_chars", "limit_chars", "complete", "has_more"],
            "properties": {
                "text": {"type": "string"},
                "start_chars": {"type": "integer"},
                "end_chars": {"type": "integer"},
                "total_chars": {"type": "integer"},
                "limit_chars": {"type": "integer"},
                "match_start_chars": {"type": ["integer", "null"]},
                "match_end_chars": {"type": ["integer", "null"]},
                "complete": {"type": "boolean"},
                "has_more": {"type": "boolean"},
                "next_offset_chars": {"type": ["integer", "null"]},
                "previous_offset_chars": {"type": ["integer", "null"]},
            },
        },
    })
}

fn lists() -> Value {
    let page = |items: &str| {
        json!({
            "type": "object",
            "required": ["object", "has_more", "data", "links", "meta"],
            "properties": {
                "object": {"const": "list"},
                "url": {"type": "string"},
                "has_more": {"type": "boolean"},
                "next_cursor": {"type": "string"},
                "next_changes_since": {"type": "string"},
                "data": {"type": "array", "items": {"$ref": format!("#/components/schemas/{items}")}},
                "links": {"$ref": "#/components/schemas/Links"},
                "meta": {"$ref": "#/components/schemas/Meta"},
            },
        })
    };
    json!({
        "StreamPage": page("Stream"),
        "RecordPage": page("ListedRecord"),
        "SearchPage": page("SearchResult"),
        "ConnectorList": {
            "type": "object",
            "required": ["object", "data"],
            "properties": {
                "object": {"const": "list"},
                "data": {"type": "array", "items": {"$ref": "#/components/schemas/Connector"}},
            },
        },
        "Connector": {
            "type": "object",
            "required": ["object", "source", "connector_key", "connector_id", "stream_count", "streams"],
            "properties": {
                "object": {"const": "connector"},
                "source": {"type": "object"},
                "connector_key": {"type": "string"},
                "connector_id": {"type": "string"},
                "stream_count": {"type": "integer"},
                "streams": {"type": "array", "items": {"type": "object", "required": ["object", "name", "record_count", "last_updated", "freshness", "capabilities"]}},
            },
        },
        "Stream": {
            "type": "object",
            "required": ["object", "name", "record_count", "connection_id", "connector_instance_id", "freshness"],
            "properties": {
                "object": {"const": "stream"},
                "name": {"type": "string"},
                "record_count": {"type": "integer"},
                "last_updated": {"type": ["string", "null"]},
                "connection_id": {"type": "string"},
                "connector_instance_id": {"type": "string"},
                "display_name": {"type": "string"},
                "freshness": {"type": "object", "required": ["status"]},
            },
        },
    })
}

fn records() -> Value {
    let members = json!({
        "object": {"const": "record"},
        "id": {"type": "string"},
        "stream": {"type": "string"},
        "emitted_at": {"type": "string"},
        "connection_id": {"type": "string"},
        "connector_instance_id": {"type": "string"},
        "connector_key": {"type": "string"},
        "display_name": {"type": "string"},
        "data": {"type": "object"},
        "deleted": {"type": "boolean"},
        "deleted_at": {"type": "string"},
        "expanded": {"type": "object"},
        "record_json_bytes": {"type": "integer"},
        "citation_url": {"type": "string"},
        "links": {"$ref": "#/components/schemas/Links"},
        "meta": {"$ref": "#/components/schemas/Meta"},
    });
    json!({
        "ListedRecord": {
            "type": "object",
            "required": ["object", "id", "stream", "emitted_at", "connection_id", "connector_instance_id", "connector_key"],
            "properties": members,
        },
        "Record": {
            "type": "object",
            "required": ["object", "id", "stream", "emitted_at", "connection_id", "connector_instance_id", "connector_key", "data", "links", "meta"],
            "properties": members,
        },
        "SearchResult": {
            "type": "object",
            "required": ["object", "stream", "record_key", "connection_id", "connector_instance_id", "record_url", "emitted_at", "matched_fields"],
            "properties": {
                "object": {"const": "search_result"},
                "stream": {"type": "string"},
                "record_key": {"type": "string"},
                "connection_id": {"type": "string"},
                "connector_instance_id": {"type": "string"},
                "record_url": {"type": "string"},
                "citation_url": {"type": "string"},
                "emitted_at": {"type": "string"},
                "title": {"type": "string"},
                "matched_fields": {"type": "array", "items": {"type": "string"}},
                "snippet": {"type": "object", "required": ["field", "text"]},
                "evidence_excerpts": {"type": "array", "items": {"type": "object", "required": ["object", "field_path", "text", "text_start_chars", "text_end_chars", "matches", "preview_text", "truncated", "provenance", "read"]}},
            },
        },
    })
}

fn writes() -> Value {
    json!({
        "Receipt": {
            "type": "object",
            "required": ["stream", "records_attempted", "records_accepted", "records_rejected", "errors", "rejections"],
            "properties": {
                "stream": {"type": "string"},
                "records_attempted": {"type": "integer"},
                "records_accepted": {"type": "integer"},
                "records_rejected": {"type": "integer"},
                "errors": {"type": "array"},
                "rejections": {"type": "array", "items": {
                    "type": "object",
                    "required": ["input_index", "code", "receipt_id", "message"],
                    "properties": {
                        "input_index": {"type": "integer"},
                        "code": {"type": "string"},
                        "receipt_id": {"type": "string"},
                        "message": {"type": "string"},
                        "field": {"type": "string"},
                        "value": {"type": "string"},
                    },
                }},
            },
        },
        "StoredBlob": {
            "type": "object",
            "required": ["object", "blob_id", "sha256", "size_bytes", "mime_type"],
            "properties": {
                "object": {"const": "blob"},
                "blob_id": {"type": "string"},
                "sha256": {"type": "string"},
                "size_bytes": {"type": "integer"},
                "mime_type": {"type": "string"},
            },
        },
        "Declared": {
            "type": "object",
            "required": ["connector_id", "connector_key", "result"],
            "properties": {
                "connector_id": {"type": "string"},
                "connector_key": {"type": "string"},
                "result": {"type": "string", "enum": ["added", "unchanged", "updated"]},
            },
        },
        "ResourceMetadata": {
            "type": "object",
            "required": ["resource", "bearer_methods_supported"],
            "properties": {"resource": {"type": "string"}},
        },
        "Status": status(),
        "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
    })
}

/// Liveness or readiness, with the progress of the index.
fn status() -> Value {
    json!({
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"type": "string"},
            "index": {
                "type": "object",
                "required": ["state"],
                "properties": {
                    "state": {"type": "string", "enum": ["current", "building", "reindexing"]},
                    "percent": {"type": "integer"},
                },
            },
        },
    })
}

fn authorization() -> Value {
    json!({
        "OAuthError": {
            "type": "object",
            "required": ["error", "error_description", "request_id"],
            "properties": {
                "error": {"type": "string"},
                "error_description": {"type": "string"},
                "request_id": {"type": "string"},
            },
        },
        "AuthorizationServer": {
            "type": "object",
            "required": ["issuer", "authorization_endpoint", "token_endpoint"],
            "properties": {
                "issuer": {"type": "string"},
                "authorization_endpoint": {"type": "string"},
                "token_endpoint": {"type": "string"},
                "registration_endpoint": {"type": "string"},
                "device_authorization_endpoint": {"type": "string"},
                "revocation_endpoint": {"type": "string"},
                "introspection_endpoint": {"type": "string"},
            },
        },
        "RegisteredClient": {
            "type": "object",
            "required": ["client_id", "redirect_uris", "grant_types", "registration_client_uri"],
            "properties": {
                "client_id": {"type": "string"},
                "client_id_issued_at": {"type": "integer"},
                "client_name": {"type": "string"},
                "redirect_uris": {"type": "array", "items": {"type": "string"}},
                "grant_types": {"type": "array", "items": {"type": "string"}},
                "token_endpoint_auth_method": {"const": "none"},
                "registration_client_uri": {"type": "string"},
            },
        },
    })
}

fn tokens() -> Value {
    json!({
        "Tokens": {
            "type": "object",
            "required": ["access_token", "token_type", "expires_in"],
            "properties": {
                "access_token": {"type": "string"},
                "token_type": {"const": "Bearer"},
                "expires_in": {"type": "integer"},
                "refresh_token": {"type": "string"},
                "grant_id": {"type": "string"},
                "grant_package_id": {"type": "string"},
                "authorization_details": {"type": "array", "items": {"type": "object"}},
            },
        },
        "DeviceAuthorization": {
            "type": "object",
            "required": ["device_code", "user_code", "verification_uri", "expires_in", "interval"],
            "properties": {
                "device_code": {"type": "string"},
                "user_code": {"type": "string"},
                "verification_uri": {"type": "string"},
                "verification_uri_complete": {"type": "string"},
                "expires_in": {"type": "integer"},
                "interval": {"type": "integer"},
            },
        },
        "Introspection": {
            "type": "object",
            "required": ["active"],
            "properties": {
                "active": {"type": "boolean"},
                "pdpp_token_kind": {"type": "string"},
                "client_id": {"type": "string"},
                "exp": {"type": "integer"},
                "aud": {"type": "string"},
                "iss": {"type": "string"},
                "authorization_details": {"type": "array", "items": {"type": "object"}},
            },
        },
    })
}
