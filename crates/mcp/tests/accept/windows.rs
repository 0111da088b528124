//! FW and HD-01..03, HD-08/09: reading a field in bounded windows, by tool and by resource.

use serde_json::{Value, json};
use testkit::fake::fixtures;

use crate::answer::printed;
use crate::host::{Caller, each_way};

const ID: &str = "cin_slack/messages:m1";

/// Walks to the end by what is printed before the window; nothing else is looked at.
pub(crate) fn walk(caller: &Caller, mut args: Value) -> String {
    let mut whole = String::new();
    for _ in 0..1_000 {
        let window = caller.ok("read_record_field", args);
        whole.push_str(&fenced(&window.text));
        let head = window.text.split("\nwindow of ").next().unwrap();
        let Some(next) = head.split("\nnext: ").nth(1) else {
            assert!(
                head.contains(" complete=") && window.text.contains("the end")
                    || head.contains("complete=true"),
                "{head}"
            );
            return whole;
        };
        args = printed(next, "read_record_field").remove(0);
    }
    panic!("no end");
}

/// The text between the fences, by its stated size.
pub(crate) fn fenced(text: &str) -> String {
    let stated = text.split("\nwindow of ").nth(1).unwrap();
    let bytes = stated.split(" characters, ").nth(1).unwrap();
    let bytes: usize = bytes.split(' ').next().unwrap().parse().unwrap();
    let body = stated.split_once('\n').unwrap().1;
    let (fence, body) = body.split_once('\n').unwrap();
    assert!(
        fence.len() >= 3 && fence.chars().all(|c| c == '`'),
        "{fence}"
    );
    assert!(
        !body[..bytes].contains(fence),
        "the fence is longer than any inside"
    );
    assert!(
        body[bytes..].starts_with(&format!("\n{fence}")),
        "the window ends where it says"
    );
    body[..bytes].to_owned()
}

// HD-02: no resources, only printed calls.
#[test]
fn a_preview_is_continued_to_the_whole_field_by_tools_alone() {
    each_way(&fixtures::evidence(), |caller| {
        let hits = caller.ok("search", json!({"query": "Hyperlane"}));
        let mut args = hits.printed("read_record_field").remove(0);
        args.as_object_mut().unwrap().remove("q");
        args["offset_chars"] = json!(0);
        assert_eq!(walk(caller, args).chars().count(), 6_000);
    });
    each_way(&fixtures::big_of(2, 200_000), |caller| {
        let document = caller.ok("fetch", json!({"id": "c1/mail:m1"}));
        assert_eq!(document.structured["metadata"]["text_complete"], false);
        let next = &document.structured["metadata"]["next"];
        let shown = document.structured["text"].as_str().unwrap();
        let rest = walk(caller, next["args"].clone());
        let record = fixtures::big_of(2, 200_000).world.records.remove(1);
        let body = record.data["body"].as_str().unwrap().to_owned();
        let from = usize::try_from(next["args"]["offset_chars"].as_u64().unwrap()).unwrap();
        assert!(body.starts_with(&shown.chars().take(1_000).collect::<String>()));
        let head: String = body.chars().take(from).collect();
        assert!(
            shown.starts_with(&head),
            "what is shown reaches to where the next begins"
        );
        assert_eq!(format!("{head}{rest}"), body);
    });
}

// HD-03, HD-07, HD-09, FW-08; that the address is shown nowhere else is held for every answer
#[test]
fn the_hidden_address_reads_the_same_window_with_the_same_authority() {
    each_way(&fixtures::evidence(), |caller| {
        for args in [
            json!({"id": ID, "field_path": "text", "offset_chars": 100, "limit_chars": 300}),
            json!({"id": ID, "field_path": "text", "q": "Hyperlane", "before_chars": 20}),
        ] {
            let window = caller.ok("read_record_field", args.clone());
            let uri = window.raw["_meta"]["dev.pdpp/field_window_uri"]
                .as_str()
                .unwrap()
                .to_owned();
            assert_eq!(caller.resource(&uri).unwrap(), window.text);
            // The same refusals.
            caller
                .rs
                .change(|state| state.access.token = Some("swapped".to_owned()));
            let error = caller.resource(&uri).unwrap_err();
            let refused = caller.refused("read_record_field", args.clone());
            assert_eq!(
                error["data"]["error"]["code"],
                refused.structured["error"]["code"]
            );
            assert_eq!(error["data"]["http_status"], 401);
            caller
                .rs
                .change(|state| state.access.token = Some(testkit::fake::TOKEN.to_owned()));
            caller
                .rs
                .change(|state| state.world.delete("cin_slack", "messages", "m1"));
            let error = caller.resource(&uri).unwrap_err();
            let refused = caller.refused("read_record_field", args);
            assert_eq!(
                error["data"]["error"]["code"],
                refused.structured["error"]["code"]
            );
            assert_eq!(error["data"]["http_status"], 404);
            caller.rs.change(|state| *state = fixtures::evidence());
        }
    });
}
