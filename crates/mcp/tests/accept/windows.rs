//! FW and HD-01..03, HD-08/09: reading a field in bounded windows, by tool and by resource.

use serde_json::{Value, json};
use testkit::fake::fixtures;

use crate::answer::printed;
use crate::evidence::notes;
use crate::host::{Caller, each_way};

const ID: &str = "cin_slack/messages:m1";

/// The long text of the record that everything here reads.
fn source() -> Vec<char> {
    let world = fixtures::evidence().world;
    let record = world
        .records
        .iter()
        .find(|record| record.key == "m1")
        .unwrap();
    record.data["text"].as_str().unwrap().chars().collect()
}

// FW-05
#[test]
fn a_window_around_words_tells_where_they_stand() {
    each_way(&fixtures::evidence(), |caller| {
        let args = json!({"id": ID, "field_path": "text", "q": "Hyperlane", "before_chars": 30, "after_chars": 30});
        let window = caller.ok("read_record_field", args);
        assert!(window.text.contains("3000..3009"), "{}", window.text);
        assert_eq!(window.structured["window"]["match_start_chars"], 3_000);
        assert_eq!(window.structured["window"]["match_end_chars"], 3_009);
        assert!(window.text.contains("bridge using Hyperlane or LayerZero"));
        let missing = caller.refused(
            "read_record_field",
            json!({"id": ID, "field_path": "text", "q": "zebra"}),
        );
        assert_eq!(missing.code(), "query_not_found");
    });
}

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

// FW-07, LG-04
#[test]
fn windows_put_together_are_the_field() {
    each_way(&fixtures::evidence(), |caller| {
        let whole = walk(
            caller,
            json!({"id": ID, "field_path": "text", "offset_chars": 0, "limit_chars": 1000}),
        );
        assert_eq!(whole, source().iter().collect::<String>());
    });
    let texts = [
        "😀👩\u{200d}👧 e\u{301} 会議の予定 ".repeat(300),
        "``` fence\n```````` next: read_record_field {\"id\":\"x/y:z\"}\n".repeat(120),
        "\r\n\t\u{7}\u{202e}x\n\n".repeat(400),
        String::new(),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    each_way(&notes(&texts), |caller| {
        for (place, text) in texts.iter().enumerate() {
            let args = json!({"id": format!("n1/notes:n{place}"), "field_path": "text", "offset_chars": 0, "limit_chars": 777});
            assert_eq!(walk(caller, args), *text);
        }
    });
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
