//! FE: documents and projection.

use serde_json::json;
use testkit::fake::fixtures;

use crate::host::each_way;

// FE-05, FE-06, FE-07, FE-08, FE-09
#[test]
fn a_projected_document_is_made_of_the_projection_alone() {
    for state in [fixtures::proj_ok(), fixtures::proj()] {
        each_way(&state, |caller| {
            let document = caller.ok("fetch", json!({"id": "c1/mail:m1", "fields": ["subject"]}));
            let told = document.raw.to_string();
            assert!(!told.contains("SECRET"), "{told}");
            assert!(!told.contains("pdpp://record/"));
            assert_eq!(document.structured["id"], "c1/mail:m1");
            assert_eq!(document.structured["title"], "S");
            let metadata = &document.structured["metadata"];
            assert_eq!(
                (
                    &metadata["stream"],
                    &metadata["connection_id"],
                    &metadata["connector_key"]
                ),
                (&json!("mail"), &json!("c1"), &json!("gmail"))
            );
            let absent = caller.call("fetch", json!({"id": "c1/mail:m1", "fields": ["nothing"]}));
            assert!(!absent.raw.to_string().contains("SECRET"));
        });
    }
}

// FE-10, FE-12, ID-27
#[test]
fn projected_rows_keep_identity_and_paging_and_nothing_else() {
    for state in [fixtures::proj_ok(), fixtures::proj()] {
        each_way(&state, |caller| {
            let page = caller.ok(
                "query_records",
                json!({"stream": "mail", "fields": ["subject"]}),
            );
            assert!(!page.raw.to_string().contains("SECRET"), "{}", page.raw);
            let row = &page.structured["data"]["data"][0];
            assert_eq!(row["data"], json!({"subject": "S"}));
            for (name, value) in [("id", "m1"), ("stream", "mail"), ("connection_id", "c1")] {
                assert_eq!(row[name], value);
            }
            // FE-11: what survives is listed in the description, by name.
            let description = tool_description("query_records");
            for name in row
                .as_object()
                .unwrap()
                .keys()
                .filter(|name| *name != "data")
            {
                assert!(
                    description.contains(name.as_str()),
                    "{name} is not documented"
                );
            }
        });
    }
    each_way(&fixtures::rows(30), |caller| {
        let page = caller.ok(
            "query_records",
            json!({"stream": "mail", "fields": ["subject"], "limit": 5}),
        );
        assert!(page.structured["data"]["next_cursor"].is_string());
        assert_eq!(page.structured["data"]["has_more"], true);
    });
}

fn tool_description(name: &str) -> String {
    let tool = mcp::Server::tools()
        .into_iter()
        .find(|tool| tool.name == name);
    tool.unwrap().description.unwrap().into_owned()
}
