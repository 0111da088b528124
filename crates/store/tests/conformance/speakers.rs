//! Who speaks in a conversation, as a part of what is compared by meaning.

use contract::declaration::Declaration;
use serde_json::{Value, json};
use testkit::tiny_model;

use crate::fixture::{MAIL, Work, field, message_with, on_every_mailbox, scope};
use crate::meanings::{add_model, ask, embed};

#[test]
fn who_speaks_counts_for_those_only_who_may_see_it() {
    // FI-32, FI-33
    on_every_mailbox(|store| {
        add_model(store, tiny_model::GROUPS);
        let mut document: Value = serde_json::from_str(MAIL).unwrap();
        document["declaration_version"] = json!("2");
        let properties = &mut document["streams"][0]["schema"]["properties"];
        properties["thread_id"] = json!({"type": "string"});
        properties["from_email"]["x_pdpp_role"] = json!("author");
        let declaration = Declaration::parse(&document.to_string()).unwrap();
        store.declare(&declaration).unwrap();
        let said = |author: &str| {
            let members = format!(r#""from_email":"{author}","body":"qq qq""#);
            store.put(vec![message_with("m", &members)]);
        };
        let found = |author: Option<&str>| {
            let mut scope = scope("work", "messages", &["body"]);
            scope.author = author.map(field);
            let answer = ask(store, "doctor", vec![scope], false);
            let window = answer.hits.first().and_then(|hit| hit.window.clone());
            window.map(|window| (window.field, window.start_chars, window.end_chars))
        };
        said("physician");
        embed(store);
        assert_eq!(found(Some("from_email")), Some((field("body"), 0, 5)));
        assert_eq!(found(None), None);
        assert_eq!(found(Some("to")), None, "another author");
        // Somebody else says it: what was signed before is gone at once.
        said("zz");
        assert_eq!(found(Some("from_email")), None);
        embed(store);
        assert_eq!(found(Some("from_email")), None);
    });
}
