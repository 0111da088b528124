//! EV: what was proven, where it stands, how to read on.

use serde_json::{Value, json};
use testkit::fake::fixtures::{self, UriForm};
use testkit::fake::{Connector, Field, State, Stream, World};

use crate::host::each_way;
use crate::paging::{ids, shown};

// EV-07, EV-08
#[test]
fn a_hit_without_proof_claims_none() {
    each_way(&fixtures::meta_only(), |caller| {
        let hits = caller.ok("search", json!({"query": "acme"}));
        assert!(
            !hits.text.contains("Evidence") && !hits.text.contains("matched"),
            "{}",
            hits.text
        );
        for field in ["field_path=text", "field_path=body", "content=", "message="] {
            assert!(!hits.text.contains(field));
        }
        assert!(hits.results()[0].get("evidence_preview").is_none());
        let ladder = hits.structured["content_ladder"].to_string();
        assert!(
            !ladder.contains("evidence_preview") && !ladder.contains("\"field_path\""),
            "{ladder}"
        );
        let id = shown(&hits, "first_fetch_id").unwrap();
        assert_eq!(id, "cin_slack/messages:m9");
        assert!(hits.text.contains("call fetch"));
        assert_eq!(
            caller.ok("fetch", json!({"id": id})).structured["text"],
            "Lunch at noon in the small room"
        );
    });
}

// EV-09: other names, same decisions.
#[test]
fn names_decide_nothing() {
    let rename = |hit: &Value, [connector, stream, field]: [&str; 3]| -> Value {
        let text = hit.to_string();
        let text = text
            .replace("\"slack\"", &format!("\"{connector}\""))
            .replace("\"messages\"", &format!("\"{stream}\""));
        let text = text
            .replace("/messages/", &format!("/{stream}/"))
            .replace("\"text\":\"…", "\"T\":\"…");
        let text = text.replace(
            "\"field_path\":\"text\"",
            &format!("\"field_path\":\"{field}\""),
        );
        serde_json::from_str(&text.replace("\"field\":\"text\"", &format!("\"field\":\"{field}\"")))
            .unwrap()
    };
    for names in [
        ["slack", "messages", "text"],
        ["zq", "wobble", "blarg"],
        ["text", "body", "subject"],
    ] {
        let [_, stream, field] = names;
        let proven = rename(&fixtures::evidence().search_hits.unwrap()[0], names);
        let mut bare = rename(&fixtures::meta_only().search_hits.unwrap()[0], names);
        bare["matched_fields"] = json!([field]);
        bare["data"] = json!({field: "we agreed to bridge using Hyperlane"});
        let world = World::default().with(
            Connector::new(names[0])
                .connection("cin_slack", "Acme Slack")
                .stream(Stream::new(stream).field(Field::text(field))),
        );
        each_way(&State::new(world).with_hits(vec![proven, bare]), |caller| {
            let hits = caller.ok("search", json!({"query": "Hyperlane"}));
            let excerpts: Vec<&str> = hits
                .text
                .lines()
                .filter(|line| line.contains("field_path="))
                .collect();
            assert_eq!(excerpts.len(), 1, "{names:?}: {}", hits.text);
            assert!(
                excerpts[0].contains(&format!("field_path={field} ")),
                "{}",
                excerpts[0]
            );
            assert!(hits.results()[0].get("evidence_preview").is_some());
            assert!(hits.results()[1].get("evidence_preview").is_none());
        });
    }
}

// EV-13, EV-14, EV-15, HD-11
#[test]
fn a_record_known_by_a_uri_is_shown_by_its_id() {
    for form in [UriForm::Base64, UriForm::Percent, UriForm::ResourceUri] {
        each_way(&fixtures::uri(form), |caller| {
            let hits = caller.ok("search", json!({"query": "Hyperlane"}));
            let id = "cin_slack/messages:m1";
            assert_eq!(hits.results()[0]["id"], id);
            assert_eq!(hits.structured["content_ladder"]["records"][0]["id"], id);
            let beside = [
                &hits.structured["results"],
                &hits.structured["content_ladder"],
            ];
            assert!(
                beside
                    .iter()
                    .all(|part| !part.to_string().contains("pdpp://"))
            );
            assert!(!hits.text.contains("pdpp://"), "{}", hits.text);
            let calls = hits.printed("read_record_field");
            assert_eq!(calls[0]["id"], id);
            assert!(
                caller
                    .ok("read_record_field", calls[0].clone())
                    .text
                    .contains("Hyperlane")
            );
            assert_eq!(ids(&hits.text), [id]);
        });
    }
}
