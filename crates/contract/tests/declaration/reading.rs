//! What a file reads into, and how each mistake in it is told.

use contract::declaration::{
    Cardinality, Declaration, FilterOperator, Pointing, PresetPart, Semantics, SourceKind,
};
use contract::{FieldKind, FieldName};

use crate::{GOOD, edited, mistakes};

#[test]
fn a_declaration_with_everything_reads_into_types() {
    let declaration = Declaration::parse(GOOD).unwrap();
    assert_eq!(declaration.connector_key().as_str(), "demo_mail");
    assert_eq!(declaration.as_str(), GOOD);
    assert_eq!(declaration.source.kind, SourceKind::Connector);
    assert_eq!(declaration.display_name, "Demo mail");
    assert_eq!(declaration.publisher_id, "https://sources.example");
    assert_eq!(
        declaration.extensions["https://ext.example/a"],
        r#"{"n": 1.50}"#
    );

    let messages = declaration.stream("messages").unwrap();
    assert_eq!(messages.semantics, Semantics::MutableState);
    assert_eq!(messages.primary_key, [FieldName::parse("id").unwrap()]);
    assert_eq!(messages.label.as_deref(), Some("Messages"));
    assert!(messages.selection.fields && !messages.selection.resources);
    assert_eq!(messages.view("all").unwrap().label, "all");
    assert_eq!(
        messages.relationship("attachments").unwrap().cardinality,
        Cardinality::HasMany
    );
    assert_eq!(
        messages.query.range_filters["received_at"],
        [FilterOperator::Gte, FilterOperator::Lt]
    );
    assert_eq!(
        (
            messages.query.expand[0].default_limit,
            messages.query.expand[0].max_limit
        ),
        (5, 5)
    );
    assert!(messages.query.aggregations.as_ref().unwrap().count);
    assert!(
        declaration
            .stream("attachments")
            .unwrap()
            .selection
            .resources
    );
    assert_eq!(
        declaration.selection_presets[1].streams[0].part,
        PresetPart::Whole
    );
    assert!(
        matches!(&declaration.selection_presets[0].streams[0].part, PresetPart::View(id) if *id == "envelope")
    );
}

#[test]
fn fields_keep_the_order_of_the_file_and_carry_their_kind() {
    let declaration = Declaration::parse(GOOD).unwrap();
    let messages = declaration.stream("messages").unwrap();
    let kinds: Vec<_> = messages
        .fields
        .iter()
        .map(|field| (field.name.as_str(), field.kind, field.nullable))
        .collect();
    assert_eq!(
        kinds,
        [
            ("id", FieldKind::Text, false),
            ("subject", FieldKind::Text, true),
            ("body", FieldKind::Text, false),
            ("size_bytes", FieldKind::Integer, false),
            ("price", FieldKind::Number, false),
            ("received_at", FieldKind::DateTime, false),
            ("day", FieldKind::Date, true),
            ("seen", FieldKind::Boolean, false),
            ("labels", FieldKind::Array, false),
            ("extra", FieldKind::Object, false),
            ("either", FieldKind::Mixed, false),
            ("anything", FieldKind::Mixed, true),
            ("always", FieldKind::Mixed, true),
            ("$ref", FieldKind::Text, false),
            ("blob_ref", FieldKind::Object, false),
        ]
    );
    let subject = messages.field("subject").unwrap();
    assert_eq!(
        (
            subject.role.as_deref(),
            subject.presentation_type.as_deref()
        ),
        (Some("title"), Some("text"))
    );
}

#[test]
fn a_field_accepts_by_json_type_alone() {
    let declaration = Declaration::parse(GOOD).unwrap();
    let accepts = |name: &str, raw: &str| {
        declaration
            .stream("messages")
            .unwrap()
            .field(name)
            .unwrap()
            .accepts(raw)
    };
    assert!(
        accepts("size_bytes", "1.0")
            && accepts("size_bytes", "1e3")
            && !accepts("size_bytes", "1.5")
    );
    assert!(accepts("price", "3") && !accepts("price", "\"3\""));
    assert!(
        accepts("received_at", "\"yesterday\""),
        "a format is not a type"
    );
    assert!(accepts("subject", "null") && !accepts("body", "null"));
    assert!(accepts("either", "\"x\"") && accepts("either", "2") && !accepts("either", "true"));
    assert!(accepts("anything", "[1]") && accepts("extra", "{}") && !accepts("extra", "7"));
}

/// Two streams, of which the second has these relationships and this semantics.
fn two_streams(relationships: &str, semantics: &str) -> Result<Declaration, String> {
    let text = format!(
        r#"{{"protocol_version":"0.1.0","source":{{"kind":"connector","id":"https://a.example/budget"}},
        "declaration_version":"1","streams":[
        {{"name":"accounts","semantics":"mutable_state","primary_key":["id"],
          "schema":{{"properties":{{"id":{{"type":"string"}},"budget_id":{{"type":"string"}}}}}}}},
        {{"name":"budgets","semantics":"mutable_state","primary_key":["budget_id"],
          "schema":{{"properties":{{"budget_id":{{"type":"string"}},"owner":{{"type":"string"}}}}}}}},
        {{"name":"balances","semantics":"{semantics}","primary_key":["id"],
          "schema":{{"properties":{{"id":{{"type":"string"}},"account_id":{{"type":"string"}},"budget_id":{{"type":"string"}},
                                   "odd":{{"type":"array"}}}}}},
          "relationships":[{relationships}]}}]}}"#
    );
    Declaration::parse(&text).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn a_record_may_point_at_the_one_it_is_related_to() {
    // TR-30
    let account = r#"{"name":"account","stream":"accounts","foreign_key":"account_id","cardinality":"has_one"}"#;
    let budget =
        r#"{"name":"budget","stream":"budgets","foreign_key":"budget_id","cardinality":"has_one"}"#;
    let declaration = two_streams(&format!("{account},{budget}"), "append").unwrap();
    let balances = declaration.stream("balances").unwrap();
    assert_eq!(balances.semantics, Semantics::AppendOnly);
    let log = two_streams("", "immutable_log").unwrap();
    assert_eq!(log.streams[2].semantics, Semantics::AppendOnly);
    let pointing = |name: &str| balances.relationship(name).unwrap().pointing;
    assert_eq!(pointing("account"), Pointing::There);
    // Both streams have the field, and it is what identifies a budget.
    assert_eq!(pointing("budget"), Pointing::There);
    // Both have it, and it tells by its name whom it points at.
    let both = [("budget", "There"), ("account", "Here")];
    for (name, expected) in both {
        let relationship = format!(
            r#"{{"name":"{name}","stream":"accounts","foreign_key":"budget_id","cardinality":"has_one"}}"#
        );
        let declaration = two_streams(&relationship, "append_only").unwrap();
        let found = declaration.streams[2].relationships[0].pointing;
        assert_eq!(format!("{found:?}"), expected, "{name}");
    }
    let whole = Declaration::parse(GOOD).unwrap();
    let attachments = &whole.stream("messages").unwrap().relationships[0];
    assert_eq!(attachments.pointing, Pointing::Here);
}

#[test]
fn only_a_text_points_at_a_record_with_a_compound_key() {
    // TR-30: from either side. Anything else would be accepted, and never lead anywhere.
    let text = |key: &str, kind: &str, here: &str, there: &str| {
        format!(
            r#"{{"protocol_version":"0.1.0","source":{{"kind":"connector","id":"https://a.example/budget"}},
            "declaration_version":"1","streams":[
            {{"name":"accounts","semantics":"mutable_state","primary_key":{key},
              "schema":{{"properties":{{"bank":{{"type":"string"}},"number":{{"type":"string"}}}}}},"relationships":[{here}]}},
            {{"name":"balances","semantics":"append_only","primary_key":["id"],
              "schema":{{"properties":{{"id":{{"type":"string"}},"account_id":{{"type":"{kind}"}}}}}},"relationships":[{there}]}}]}}"#
        )
    };
    let many = r#"{"name":"balances","stream":"balances","foreign_key":"account_id","cardinality":"has_many"}"#;
    let one = r#"{"name":"account","stream":"accounts","foreign_key":"account_id","cardinality":"has_one"}"#;
    for (here, there, at) in [(many, "", 0), ("", one, 1)] {
        let compound = r#"["bank","number"]"#;
        assert!(Declaration::parse(&text(r#"["number"]"#, "integer", here, there)).is_ok());
        assert!(Declaration::parse(&text(compound, "string", here, there)).is_ok());
        let refused = Declaration::parse(&text(compound, "integer", here, there)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "/streams/{at}/relationships/0/foreign_key: a record of accounts is identified by 2 fields, and only a text can hold \
                 such a key, as a JSON array of its parts; \"account_id\" of balances is none: make it a string, give accounts a \
                 primary_key of one field, or leave the relationship out"
            )
        );
    }
}

#[test]
fn a_relationship_that_cannot_be_says_why() {
    // TR-30
    for (foreign_key, cardinality, why) in [
        (
            "acount_id",
            "has_one",
            "must be a field in schema.properties of accounts, or of balances; neither has \"acount_id\" (did you mean \"account_id\"?)",
        ),
        (
            "account_id",
            "has_many",
            "many records of accounts can only be told by a field of accounts, and it has no \"account_id\"; \
             balances has: if a record of balances points at one of accounts, the cardinality is has_one",
        ),
        ("odd", "has_one", "\"odd\" has type array"),
    ] {
        let relationship = format!(
            r#"{{"name":"x","stream":"accounts","foreign_key":"{foreign_key}","cardinality":"{cardinality}"}}"#
        );
        let refused = two_streams(&relationship, "append_only").unwrap_err();
        assert!(refused.contains(why), "{refused}");
        assert!(
            refused.starts_with("/streams/2/relationships/0/foreign_key: "),
            "{refused}"
        );
    }
}

#[test]
fn a_manifest_of_the_reference_implementation_is_a_declaration() {
    // TR-30
    let manifest = |key: &str, stream: &str| {
        format!(
            r#"{{"protocol_version":"0.1.0","connector_id":"https://registry.example/connectors/budget","connector_key":"{key}",
            "manifest_uri":"https://registry.example/connectors/budget","version":"0.3.0","display_name":"Budget",
            "runtime_requirements":{{"bindings":{{}}}},"capabilities":{{"human_interaction":[]}},"setup":{{"modality":"x"}},
            "streams":[{{"name":"days","semantics":"append","primary_key":["id"],"cursor_field":"day","incremental":true,
            "coverage_strategy":"full_inventory","selection":{{"fields":true,"resources":true}},{stream}
            "schema":{{"type":"object","required":["id"],"properties":{{"id":{{"type":"string"}},
            "day":{{"type":"string","format":"date"}}}}}},"query":{{"search":{{}}}}}}]}}"#
        )
    };
    let read = Declaration::parse(&manifest("budget", "")).unwrap();
    assert_eq!(read.source.id, "https://registry.example/connectors/budget");
    assert_eq!(read.connector_key().as_str(), "budget");
    assert_eq!(
        (
            read.declaration_version.as_str(),
            read.display_name.as_str()
        ),
        ("0.3.0", "Budget")
    );
    assert_eq!(read.streams[0].semantics, Semantics::AppendOnly);
    let mistaken = Declaration::parse(&manifest(
        "other",
        r#""views":[{"id":"v","fields":["nope"]}],"#,
    ));
    let mistaken = mistaken.unwrap_err().to_string();
    assert!(
        mistaken.contains("/connector_key: must be the last path segment"),
        "{mistaken}"
    );
    assert!(
        mistaken.contains("/streams/0/views/0/fields/0: "),
        "{mistaken}"
    );
}

#[test]
fn a_bare_declaration_gets_defaults() {
    let text = r#"{"protocol_version":"0.1.0","source":{"kind":"provider_native","id":"https://a.example/notes"},
        "declaration_version":"1","streams":[{"name":"notes","semantics":"append_only","primary_key":["id"],
        "schema":{"properties":{"id":{"type":"integer"}}}}]}"#;
    let declaration = Declaration::parse(text).unwrap();
    assert_eq!(declaration.display_name, "notes");
    assert_eq!(declaration.publisher_id, "https://a.example/notes");
    assert!(declaration.streams[0].query.aggregations.is_none());
}

/// One broken file per line: the place changed in the good one, its new value (`-` takes it out), where the mistake is
/// reported (`=` the same place), and words of its rule.
const BROKEN_IDENTITY: &str = r#"
/protocol_version | "0.2.0" | = | must be one of 0.1.0
/protocol_version | - |  | protocol_version is required and missing
/source/kind | "conector" | = | did you mean "connector"?
/source/id | "demo_mail" | = | last path segment is the connector key
/source/name | 1 | = | unknown member "name"
/source | [] | = | must be an object, found []
/declaration_version | 3 | = | must be a non-empty string, found 3
/publisher/id | "" | = | must be a non-empty string
/display/nmae | "x" | = | did you mean "name"?
/extensions | 7 | = | must be an object
/stream | [] | = | did you mean "streams"?
/streams | [] | = | at least one
/streams/9 | "x" | /streams/2 | must be an object
"#;

const BROKEN_STREAMS: &str = r#"
/streams/1/name | "messages" | = | stream names must be unique
/streams/0/name | "*" | = | '*' is not a valid stream name
/streams/0/semantics | - | /streams/0 | semantics is required and missing
/streams/0/semantics | "replace" | = | append_only, mutable_state
/streams/0/cursor_feild | "id" | = | did you mean "cursor_field"?
/streams/0/primary_key | [] | = | at least one
/streams/0/primary_key | ["id", "id"] | /streams/0/primary_key/1 | must be unique
/streams/0/primary_key | ["idd"] | /streams/0/primary_key/0 | did you mean "id"?
/streams/0/primary_key | "price" | = | string or integer; "price" has type number
/streams/0/cursor_field | "subject" | = | a cursor field must be
/streams/0/consent_time_field | "size_bytes" | = | must be a string
/streams/0/consent_time_field | "sent" | = | there is no "sent"
/streams/0/selection/fields | "yes" | = | true or false, found "yes"
/streams/0/views/1/id | "envelope" | = | view ids must be unique
/streams/0/views/0/fields | [] | = | at least one
/streams/0/views/0/fields/1 | "nope" | = | there is no "nope"
/streams/0/relationships/0/stream | "attachment" | = | did you mean "attachments"?
/streams/0/relationships/0/foreign_key | "id" | = | the cardinality is has_one
/streams/0/relationships/0/foreign_key | "message_idd" | = | did you mean "message_id"?
/streams/0/relationships/0/cardinality | "many" | = | has_many, has_one
/streams/0/display/title | "x" | = | unknown member
"#;

const BROKEN_QUERIES: &str = r#"
/streams/0/query/filters | {} | = | unknown member
/streams/0/query/range_filters/subject | ["gte"] | = | a range filter needs
/streams/0/query/range_filters/nope | ["gte"] | = | there is no "nope"
/streams/0/query/range_filters/size_bytes | ["like"] | /streams/0/query/range_filters/size_bytes/0 | gte, gt, lte, lt
/streams/0/query/range_filters/size_bytes | [] | = | at least one
/streams/0/query/range_filters/size_bytes | ["contains"] | = | contains needs an array
/streams/0/query/expand/0/name | "attachment" | = | did you mean "attachments"?
/streams/0/query/expand/0/default_limit | 6 | = | not be larger than max_limit (5)
/streams/0/query/expand/0/max_limit | 0 | = | a positive integer, found 0
/streams/0/query/search/lexical_fields/0 | "size_bytes" | = | must be of type string
/streams/0/query/search/semantic_fields/0 | "extra" | = | must be of type string
/streams/0/query/aggregations/sum/0 | "subject" | = | sum needs
/streams/0/query/aggregations/min/0 | "seen" | = | min and max need
/streams/0/query/aggregations/group_by/0 | "extra" | = | an array of such items
/streams/0/query/aggregations/group_by_time/0 | "price" | = | date or date-time
/streams/0/query/aggregations/count_distinct/0 | "either" | = | has type string|integer
/streams/0/query/aggregations/average | [] | = | unknown member
/streams/0/query/aggregations/count | "yes" | = | true or false
"#;

const BROKEN_PRESETS: &str = r#"
/selection_presets/1/id | "light" | = | preset ids must be unique
/selection_presets/0/streams/0/name | "mail" | = | there is no "mail"
/selection_presets/0/streams/0/view | "envelop" | = | did you mean "envelope"?
/selection_presets/0/streams/0/fields | ["id"] | /selection_presets/0/streams/0 | mutually exclusive
/selection_presets/0/streams/1/fields/0 | "nope" | = | there is no "nope"
/selection_presets/1/streams | [] | = | at least one
"#;

const BROKEN_SCHEMAS: &str = r#"
/streams/0/schema | - | /streams/0 | schema is required and missing
/streams/0/schema | true | = | must be an object
/streams/0/schema/properties | - | /streams/0/schema | properties is required and missing
/streams/0/schema/type | "array" | = | a record is an object
/streams/0/schema/$schema | "http://json-schema.org/draft-07/schema#" | = | draft/2020-12
/streams/0/schema/properties/labels/items/$ref | "https://x.example/s" | = | must stay inside this schema
/streams/0/schema/properties/a~1b | {"$ref": 7} | /streams/0/schema/properties/a~1b/$ref | must stay inside this schema
/streams/0/schema/properties/seen | 3 | = | must be an object
/streams/0/schema/properties/seen/type | "bolean" | = | did you mean "boolean"?
/streams/0/schema/properties/seen/type | ["boolean", "boolean"] | /streams/0/schema/properties/seen/type/1 | must be unique
/streams/0/schema/properties/seen/x_pdpp_role | 1 | = | non-empty string
/streams/0/schema/properties/blob_ref/type | "string" | /streams/0/schema/properties/blob_ref | must have type object
/streams/0/schema/properties/blob_ref/required | - | /streams/0/schema/properties/blob_ref | list blob_id in required
/streams/0/schema/properties/blob_ref/properties | {} | = | property blob_id
"#;

/// Rows of a table as (changed place, file, reported place, words of the rule).
fn broken(
    table: &'static str,
) -> impl Iterator<Item = (&'static str, String, &'static str, &'static str)> {
    table.lines().filter(|line| !line.is_empty()).map(|line| {
        let mut cells = line.splitn(4, " | ");
        let mut cell = || cells.next().unwrap();
        let (pointer, value, path, rule) = (cell(), cell(), cell(), cell());
        let value = (value != "-").then(|| serde_json::from_str(value).unwrap());
        (
            pointer,
            edited(pointer, value),
            if path == "=" { pointer } else { path },
            rule,
        )
    })
}

#[test]
fn each_mistake_is_reported_alone_with_its_place_and_rule() {
    let tables = [
        BROKEN_IDENTITY,
        BROKEN_STREAMS,
        BROKEN_QUERIES,
        BROKEN_PRESETS,
    ];
    for (pointer, text, path, rule) in tables.into_iter().flat_map(broken) {
        let found = mistakes(&text);
        assert!(
            found
                .iter()
                .any(|(at, said)| at == path && said.contains(rule)),
            "{pointer}: wanted {path:?} {rule:?}, found {found:#?}"
        );
        // A broken name or an empty list takes others with it; everything else is one mistake.
        if !["/streams", "/streams/1/name", "/streams/0/name"].contains(&pointer) {
            assert_eq!(found.len(), 1, "{pointer}: {found:#?}");
        }
    }
}

#[test]
fn a_broken_schema_is_reported_without_blaming_what_depends_on_it() {
    for (pointer, text, path, rule) in broken(BROKEN_SCHEMAS) {
        let found = mistakes(&text);
        assert!(
            found
                .iter()
                .any(|(at, said)| at == path && said.contains(rule)),
            "{pointer}: wanted {path:?} {rule:?}, found {found:#?}"
        );
        assert!(
            !found
                .iter()
                .any(|(at, _)| at.starts_with("/streams/0/primary_key")),
            "{found:#?}"
        );
    }
}

#[test]
fn a_number_beyond_every_machine_type_hides_no_mistake() {
    let text = GOOD.replace(
        r#""price": {"type": "number"}"#,
        r#""price": {"type": "number", "maximum": 1e999, "$ref": "x"}"#,
    );
    assert!(text.contains("1e999"));
    let found = mistakes(&text);
    assert_eq!(
        found[0].0, "/streams/0/schema/properties/price/$ref",
        "{found:?}"
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = r#"{"source":{"kind":"connector","id":"x"},"declaration_version":"","streams":[
        {"name":"a b/c","semantics":"x","primary_key":["no"],"schema":{"properties":{"id":{"type":"text"}}}},
        {"name":"ok"}],"extra":1}"#;
    let paths: Vec<String> = mistakes(text).into_iter().map(|(path, _)| path).collect();
    for path in [
        "",
        "/source/id",
        "/declaration_version",
        "/streams/0/name",
        "/streams/0/semantics",
        "/streams/0/primary_key/0",
        "/streams/0/schema/properties/id/type",
        "/streams/1",
        "/extra",
    ] {
        assert!(
            paths.contains(&path.to_owned()),
            "{path} missing in {paths:?}"
        );
    }
}

#[test]
fn malformed_json_names_line_and_column() {
    let found = mistakes("{\n  \"source\": oops\n}");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "");
    assert!(found[0].1.contains("line 2, column 13"), "{found:?}");
    assert!(mistakes("[1]")[0].1.contains("line 1"));
    assert_eq!(mistakes("").len(), 1);
}

#[test]
fn a_repeated_member_names_its_place() {
    let text = GOOD.replace(
        "\"semantics\": \"append_only\",",
        "\"semantics\": \"append_only\", \"name\": \"again\",",
    );
    let found = mistakes(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "/streams/1/name");
    assert!(found[0].1.contains("line "), "{found:?}");
}

#[test]
fn errors_read_as_one_line_each() {
    let errors = Declaration::parse(&edited("/protocol_version", None)).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "(whole file): protocol_version is required and missing"
    );
}
