//! Whole answers, kept: a member that changes its name, its place or its value shows here. Search is asked by a client, for
//! whom the answer holds no scores.

use serde_json::Value;

use crate::fixture::World;

/// Citations are made for one grant, whose id is another each time.
fn mask_citations(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(cite) if name == "cite" => "<cite>".clone_into(cite),
                    Value::Object(cites) if name == "cite" => {
                        cites.values_mut().for_each(|cite| *cite = "<cite>".into());
                    }
                    value => mask_citations(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(mask_citations),
        _ => {}
    }
}

#[tokio::test]
async fn whole_answers_stay_as_they_are() {
    let world = World::new().await;
    let fields = ["id", "subject", "body", "received_at", "size_bytes"];
    let (client, _) = world.grant(&["work"], &["messages"], &fields);
    for (name, token, target) in [
        ("connectors", &client, "/v1/connectors"),
        ("streams", &client, "/v1/streams"),
        ("stream", &client, "/v1/streams/messages"),
        ("schema_compact", &world.owner, "/v1/schema?view=compact"),
        (
            "records",
            &client,
            "/v1/streams/messages/records?count=exact&window=exact&fields=subject,id",
        ),
        ("record", &client, "/v1/streams/messages/records/m3"),
        (
            "field_window",
            &client,
            "/v1/streams/messages/records/m1/field-window?field=body&q=fee&before_chars=4&after_chars=4",
        ),
        (
            "aggregate",
            &world.owner,
            "/v1/streams/messages/aggregate?connection_id=work&metric=sum&field=size_bytes&group_by_time=received_at&granularity=month",
        ),
        ("search", &client, "/v1/search?q=overdraft&limit=5"),
        (
            "expanded",
            &world.owner,
            "/v1/streams/messages/records/m1?connection_id=work&fields=id&expand=attachments,receipt",
        ),
        (
            "resource_metadata",
            &client,
            "/.well-known/oauth-protected-resource",
        ),
    ] {
        let mut answer = world.get(token, target).await;
        mask_citations(&mut answer.body);
        let text = serde_json::to_string_pretty(&answer.body).unwrap();
        insta::assert_snapshot!(
            name,
            format!("GET {target}\n{} {text}", answer.status.as_u16())
        );
    }
}

#[tokio::test]
async fn whole_errors_stay_as_they_are() {
    let world = World::new().await;
    let (client, grant) = world.grant(&["work"], &["messages"], &["id"]);
    for (name, token, target) in [
        ("error_unknown_token", "pdpp_at_x", "/v1/schema"),
        ("error_unknown_parameter", &client, "/v1/streams?zzz=1"),
        (
            "error_field_not_granted",
            &client,
            "/v1/streams/messages/records?fields=body",
        ),
        (
            "error_ambiguous_connection",
            &world.owner,
            "/v1/streams/messages/records",
        ),
        ("error_no_route", &client, "/v1/nope"),
    ] {
        let answer = world.get(token, target).await;
        let id = answer.header("request-id");
        let text = serde_json::to_string_pretty(&answer.body)
            .unwrap()
            .replace(id, "<id>")
            .replace(&grant, "<grant>");
        insta::assert_snapshot!(
            name,
            format!("GET {target}\n{} {text}", answer.status.as_u16())
        );
    }
}
