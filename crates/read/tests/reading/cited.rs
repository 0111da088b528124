//! Citations: what becomes of a text that was shown, for whom.

use contract::citation::VerifyQuery;
use contract::grant::{Authority, Grant, GrantedAuthority};
use contract::id::ClientId;
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::time::Instant;
use contract::window::WindowSelector;
use proptest::prelude::*;
use serde_json::{Value, json};
use store::grants::NewApproval;
use store::records::ChangeOp;

use crate::fixture::{Reader, World, field, grant, one, stream, window};

fn verify(reader: &Reader, id: &str, citation: &str) -> Value {
    reader
        .verify(VerifyQuery {
            stream: stream("messages"),
            record_id: id.to_owned(),
            connection_id: Some("work".to_owned()),
            field: None,
            citation: citation.to_owned(),
        })
        .unwrap()
}

fn granted(id: &str, more: &Value) -> Grant {
    let mut granted =
        json!({"name": "messages", "fields": ["id", "subject", "body"], "instance_ids": ["work"]});
    let members = granted.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    grant(id, "demo_mail", json!([granted]))
}

fn client(world: &World, id: &str, more: &Value) -> Reader {
    let granted = GrantedAuthority::from_grant(&granted(id, more)).unwrap();
    world.reader(Authority::Granted(granted))
}

fn whole(world: &World, id: &str) -> Reader {
    client(world, id, &json!({}))
}

fn nothing_said() -> Value {
    json!({"object": "citation_check", "status": "not_yours_to_know"})
}

fn cite(reader: &Reader, id: &str, from: usize, count: usize) -> String {
    let selector = WindowSelector {
        offset_chars: Some(from),
        limit_chars: Some(count),
        ..WindowSelector::default()
    };
    let window = reader.window(window(id, "body", selector)).unwrap();
    window["cite"].as_str().unwrap().to_owned()
}

// GM-20: every excerpt, window and fetched text has a citation, which is current, changed or gone as its record is.
#[test]
fn a_citation_follows_its_record() {
    let world = World::mail();
    let said = json!({"id": "a", "subject": "Tea", "body": "Tea at four, as ever."});
    world.message(&said);
    let reader = whole(&world, "grt_1");
    let hit = reader.find("four").remove(0);
    let excerpt = &hit["evidence_excerpts"][0];
    let fetched = reader.record(one("a")).unwrap();
    let cites = [
        excerpt["cite"].as_str().unwrap().to_owned(),
        cite(&reader, "a", 0, 11),
        fetched["cite"]["body"].as_str().unwrap().to_owned(),
    ];
    let texts = [
        "Tea at four, as ever.",
        "Tea at four",
        "Tea at four, as ever.",
    ];
    assert!(excerpt.to_string().len() > 100);
    assert!(cites[0].len() + r#","cite":"""#.len() <= 30, "{}", cites[0]);
    for (cite, text) in cites.iter().zip(texts) {
        let check = verify(&reader, "a", cite);
        assert_eq!(check["status"], "current");
        assert_eq!(check["field_path"], "body");
        assert_eq!(check["window"]["text"], text);
    }
    // What is said of another field leaves it current; of this one, it is changed, and the version that said it is shown.
    world.message(&json!({"id": "a", "subject": "Coffee", "body": "Tea at four, as ever."}));
    assert_eq!(verify(&reader, "a", &cites[1])["status"], "current");
    world.message(&json!({"id": "a", "subject": "Coffee", "body": "Tea at five."}));
    for (cite, text) in cites.iter().zip(texts) {
        let check = verify(&reader, "a", cite);
        assert_eq!(
            (&check["status"], &check["window"]["text"]),
            (&json!("changed"), &json!(text))
        );
    }
    world.message(&json!({"id": "a", "subject": "Coffee"}));
    assert_eq!(verify(&reader, "a", &cites[1])["status"], "changed");
    world.message(&said);
    assert_eq!(verify(&reader, "a", &cites[1])["status"], "current");
    world.delete("work", "messages", "a");
    let gone = json!({"object": "citation_check", "status": "gone"});
    for cite in &cites {
        assert_eq!(verify(&reader, "a", cite), gone);
    }
    world.store.purge().unwrap();
    assert_eq!(verify(&reader, "a", &cites[1]), gone);
}

// GM-21: under another grant, of another record or field, forged, or nothing at all: the answer is the same, whatever there is.
#[test]
fn a_citation_is_for_its_own_grant() {
    let world = World::mail();
    for id in ["a", "b"] {
        world.message(&json!({"id": id, "body": "Tea at four."}));
    }
    let (one, other) = (whole(&world, "grt_1"), whole(&world, "grt_2"));
    let own = cite(&one, "a", 0, 5);
    assert_eq!(verify(&one, "a", &own)["status"], "current");
    let mut forged = own.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'Q' } else { 'A' });
    let foreign = [
        verify(&other, "a", &own),
        verify(&other, "nothing", &own),
        verify(&one, "b", &own),
        verify(&one, "nothing", &own),
        verify(&one, "a", &forged),
        verify(&one, "a", "tea"),
        verify(&one, "a", &cite(&world.owner(), "a", 0, 5)),
        verify(
            &client(&world, "grt_1", &json!({"fields": ["id", "subject"]})),
            "a",
            &own,
        ),
        verify(
            &world.mail_client(json!([{"name": "attachments", "fields": ["id"]}])),
            "a",
            &own,
        ),
    ];
    for answer in foreign {
        assert_eq!(answer, nothing_said());
    }
}

// GM-21: a record that leaves a rule is gone like a deleted one, and an earlier version that the rule hides is not shown.
#[test]
fn a_rule_holds_for_what_was_quoted() {
    let world = World::mail();
    let rules = json!({"except": [{"field": "from_email", "eq": "eve"}]});
    let reader = client(&world, "grt_1", &rules);
    world.message(&json!({"id": "a", "body": "Tea.", "from_email": "ada"}));
    let own = cite(&reader, "a", 0, 4);
    world.message(&json!({"id": "a", "body": "Tea.", "from_email": "eve"}));
    let gone = verify(&reader, "a", &own);
    world.delete("work", "messages", "a");
    assert_eq!(verify(&reader, "a", &own), gone);
    assert_eq!(gone, json!({"object": "citation_check", "status": "gone"}));
    // The same text was hidden under this key before; it is not what was quoted from what is shown.
    world.message(&json!({"id": "b", "body": "Tea.", "from_email": "ada"}));
    let own = cite(&reader, "b", 0, 4);
    world.message(&json!({"id": "b", "body": "Milk.", "from_email": "ada"}));
    assert_eq!(verify(&reader, "b", &own)["window"]["text"], "Tea.");
}

// GM-22: the owner can check what any client was shown, and is told nothing for what no client was.
#[test]
fn the_owner_checks_what_clients_quote() {
    let world = World::mail();
    world.message(&json!({"id": "a", "body": "Tea at four.", "secret": "pin 1234"}));
    let owner = world.owner();
    let own = cite(&owner, "a", 0, 3);
    assert_eq!(verify(&owner, "a", &own)["window"]["text"], "Tea");
    // What a grant shows in part was quoted in part.
    let more = json!({"redact": {"body": "first:7"}});
    let limited = client(&world, "grt_part", &more);
    let kept = NewApproval {
        package: None,
        client_id: ClientId::parse("longview").unwrap(),
        grants: vec![granted("grt_part", &more)],
        issued_at: Instant(0),
        token: None,
        redeem_by: None,
    };
    world.store.approve(&kept).unwrap();
    let part = cite(&limited, "a", 0, 7);
    let check = verify(&owner, "a", &part);
    assert_eq!(check["status"], "current");
    assert_eq!(check["window"]["text"], "Tea at ");
    world.message(&json!({"id": "a", "body": "Tea at five."}));
    assert_eq!(verify(&owner, "a", &part)["status"], "current");
    world.message(&json!({"id": "a", "body": "Coffee."}));
    assert_eq!(verify(&owner, "a", &part)["status"], "changed");
    // A grant that the store does not know made it.
    let unknown = cite(&whole(&world, "grt_unknown"), "a", 0, 3);
    assert_eq!(verify(&owner, "a", &unknown), nothing_said());
}

// GM-21: the version that said it is as old as what the grant sees of it, whatever hidden fields did since.
#[test]
fn a_check_does_not_tell_of_versions_that_differ_in_hidden_fields() {
    let world = World::mail();
    let reader = whole(&world, "grt_1");
    let write = |day: u32, body: &str, hidden: &str| {
        let body = json!({"id": "a", "body": body, "secret": hidden}).to_string();
        let (key, body) = (
            RecordKey::single("a").unwrap(),
            RecordBody::parse(body).unwrap(),
        );
        let day = format!("2026-05-{day:02}T00:00:00Z");
        world.change_at(&day, ("work", "messages"), key, ChangeOp::Upsert(body));
    };
    write(1, "Tea at four.", "one");
    let own = cite(&reader, "a", 0, 3);
    write(2, "Tea at four.", "two");
    write(3, "Tea at five.", "two");
    let check = verify(&reader, "a", &own);
    assert_eq!(
        (&check["status"], &check["emitted_at"]),
        (&json!("changed"), &json!("2026-05-01T00:00:00Z"))
    );
}

// GM-22: what a check shows is noted as disclosed.
#[test]
fn a_check_is_logged() {
    let world = World::mail();
    world.message(&json!({"id": "a", "body": "Tea at four."}));
    let reader = whole(&world, "grt_1");
    let own = cite(&reader, "a", 0, 3);
    verify(&reader, "a", &own);
    let notes = world.notes.0.lock().unwrap();
    let last = notes.last().unwrap();
    assert_eq!((last.operation.as_str(), last.records.len()), ("verify", 1));
    assert_eq!(last.fields, [field("body").to_string()]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    // GM-20: whatever happens to a record, a citation says what the record does.
    #[test]
    fn a_citation_says_what_the_record_does(
        texts in proptest::collection::vec(proptest::option::of("[ab ]{0,3}ß?"), 1..6),
        from in 0_usize..3, count in 1_usize..4,
    ) {
        let world = World::mail();
        let reader = whole(&world, "grt_1");
        let mut made: Vec<(String, String)> = Vec::new();
        for text in &texts {
            match text {
                Some(text) => world.message(&json!({"id": "a", "body": text})),
                None => world.delete("work", "messages", "a"),
            }
            if let Some(text) = text {
                made.push((cite(&reader, "a", from, count), text.clone()));
            }
            for (cite, quoted) in &made {
                let check = verify(&reader, "a", cite);
                let expected = match text {
                    None => "gone",
                    Some(text) if text == quoted => "current",
                    Some(_) => "changed",
                };
                prop_assert_eq!(&check["status"], expected);
                if text.is_some() {
                    let shown: String = quoted.chars().skip(from).take(count).collect();
                    prop_assert_eq!(&check["window"]["text"], &json!(shown));
                }
            }
        }
    }
}
