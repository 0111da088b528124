//! Grants in the owner's hands: made without an application that asks, looked at, made anew with a difference, and ended.

use grants::{Flags, Selection};
use serde_json::{Value, json};

use crate::fixture::{Answer, Browser, World};
use crate::shared::connect;

/// What is chosen for a new grant: two fields of the letters at work.
pub(crate) const CHOSEN: &[(&str, &str)] = &[
    ("client", "My script"),
    ("field", "work/messages/id"),
    ("field", "work/messages/subject"),
    ("days", "7"),
    ("mode", "continuous"),
];

impl Browser<'_> {
    async fn review_grant(&mut self, pairs: &[(&str, &str)]) -> Answer {
        self.send_form("/grants/new/review", "/grants/new", pairs)
            .await
    }

    async fn issue_grant(&mut self, pairs: &[(&str, &str)]) -> Answer {
        self.send_form("/grants/new/issue", "/grants/new", pairs)
            .await
    }

    async fn send_form(&mut self, target: &str, page: &str, pairs: &[(&str, &str)]) -> Answer {
        let csrf = self.get(page).await.field("csrf");
        let form = [&[("csrf", csrf.as_str())], pairs].concat();
        self.post(target, &form).await
    }

    /// Reviews a choice and allows what the review shows.
    pub(crate) async fn make(&mut self, pairs: &[(&str, &str)]) -> Answer {
        let review = self.review_grant(pairs).await;
        assert_eq!(review.status, 200, "{}", review.text);
        let digest = review.field("digest");
        let form = [pairs, &[("digest", digest.as_str())]].concat();
        self.issue_grant(&form).await
    }
}

/// The token that a page shows.
pub(crate) fn token(page: &Answer) -> String {
    let shown = page
        .text
        .split_once("<code class=\"token\" data-copy>")
        .unwrap()
        .1;
    shown.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_grant_is_made_by_choice_and_review_and_its_token_is_shown_once() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let form = browser.get("/grants/new").await;
    assert_eq!(
        form.text.matches(" checked").count(),
        1,
        "only that it continues"
    );
    let review = browser.review_grant(CHOSEN).await;
    assert_eq!(review.status, 200, "{}", review.text);
    review.shows("This is what <bdi>My script</bdi> would see");
    // A field that is ticked ticks its stream.
    review.shows("work messages: id, subject");
    review.shows("<b>3 records</b> now.");
    review.hides("hunter2");
    assert!(
        world.store.grants().unwrap().is_empty(),
        "nothing is granted yet"
    );
    let made = browser.make(CHOSEN).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let token = token(&made);
    let read = "/v1/streams/messages/records?limit=1";
    let body = world.read(&token, read).await;
    assert_eq!(body.status, 200);
    assert!(body.text.contains("\"subject\"") && !body.text.contains("hunter2"));
    let listed = browser.get("/grants").await;
    listed.shows("<bdi>My script</bdi>");
    listed.hides(&token);
}

#[tokio::test]
async fn what_is_granted_is_what_was_reviewed() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let review = browser.review_grant(CHOSEN).await;
    let digest = review.field("digest");
    // The form gives more than what was looked at; without a digest nothing was.
    let wider = [CHOSEN, &[("field", "work/messages/body")]].concat();
    for sent in [digest.as_str(), ""] {
        let form = [wider.as_slice(), &[("digest", sent)]].concat();
        let page = browser.issue_grant(&form).await;
        assert_eq!(page.status, 409, "{}", page.text);
        page.shows("Nothing was granted: it would not be what you looked at before.");
        page.shows("work messages: id, subject, body");
        assert!(world.store.grants().unwrap().is_empty());
        // What it shows can be allowed.
        assert_ne!(page.field("digest"), digest);
    }
    let form = [CHOSEN, &[("digest", digest.as_str())]].concat();
    let made = browser.issue_grant(&form).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert_eq!(world.store.grants().unwrap().len(), 1);
}

#[tokio::test]
async fn all_of_a_source_is_one_tick() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let whole = [("client", "App"), ("source", "work")];
    let review = browser.review_grant(&whole).await;
    assert_eq!(review.status, 200, "{}", review.text);
    for stream in ["messages", "attachments", "receipts", "events"] {
        review.shows(&format!("work {stream}: "));
    }
    review.hides("home messages");
    // In a consent, it is all of the source that was asked for.
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let review = browser.review(&request, &[("source", "home")]).await;
    assert_eq!(review.status, 200, "{}", review.text);
    review.shows("home messages: ");
    review.hides("work messages");
}

#[tokio::test]
async fn what_cannot_be_granted_is_told_and_the_form_is_kept() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    for (pairs, told) in [
        (&[("client", "App")][..], "nothing is selected"),
        (
            &[("client", "local"), ("stream", "work/messages")],
            "is what grants without a client",
        ),
        (
            &[("client", " "), ("stream", "work/messages")],
            "cannot be used",
        ),
        (&[("client", "App"), ("stream", "work/nowhere")], "nowhere"),
    ] {
        for target in ["/grants/new/review", "/grants/new/issue"] {
            let page = browser.send_form(target, "/grants/new", pairs).await;
            assert_eq!(page.status, 400, "{told}");
            page.shows(told);
            page.shows("Nothing was granted yet");
        }
    }
    let foreign = browser.post("/grants/new/issue", CHOSEN).await;
    assert_eq!(foreign.status, 403);
    assert!(world.store.grants().unwrap().is_empty());
}

// GM-01: a grant made from another keeps its rules, unless the owner drops them.
#[tokio::test]
async fn another_like_it_keeps_the_rules() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let selection = Selection::from_flags(Flags {
        connections: all(&["work"]),
        streams: all(&["messages"]),
        except: all(&["subject=<tea>"]),
        ..Flags::default()
    });
    let issued = grants::issue(
        &*world.store,
        &selection.unwrap(),
        "App",
        None,
        &*world.clock,
    );
    let id = issued.unwrap().grant_id.unwrap().to_string();
    let rule = "; never where subject is &#34;&#60;tea&#62;&#34;";
    browser.get(&format!("/grants/{id}")).await.shows(rule);
    let form = browser.get(&format!("/grants/new?from={id}")).await;
    form.shows("name=\"except-rule:work/messages\"");
    form.shows("<bdi>never where subject is &#34;&#60;tea&#62;&#34;</bdi>");
    let kept = r#"{"field":"subject","eq":"<tea>"}"#;
    let kept = ("except-rule:work/messages", kept);
    let wanted = [CHOSEN, &[("from", &id), kept]].concat();
    let review = browser.review_grant(&wanted).await;
    review.shows(&format!("work messages: id, subject{rule}"));
    let dropped = [CHOSEN, &[("from", &id)]].concat();
    let review = browser.review_grant(&dropped).await;
    review.shows("Not any more:");
    review.shows(rule);
}

/// A stream, and every kind of rule on it: as lines, and as details.
fn every_rule() -> [(&'static str, &'static str, Value); 2] {
    [
        (
            "messages",
            "from_email=a@example.test\nfrom_email=b@example.test\nfrom_email^=bank\nsubject~=salary\nsize_bytes>=2\nsize_bytes<=9\nseen=true",
            json!([
                {"field": "from_email", "in": ["a@example.test", "b@example.test"]},
                {"field": "from_email", "prefix": "bank"},
                {"field": "subject", "word": "salary"},
                {"field": "size_bytes", "gte": "2", "lte": "9"},
                {"field": "seen", "eq": "true"},
            ]),
        ),
        (
            "attachments",
            "message_id.from_email^=bank\nmessage_id.subject~=salary",
            json!([
                {"via": "message_id", "field": "from_email", "prefix": "bank"},
                {"via": "message_id", "field": "subject", "word": "salary"},
            ]),
        ),
    ]
}

// GM-01: every kind of rule can be said in details, by flags and on the page, and is the same rule each time.
#[tokio::test]
async fn every_rule_can_be_said_in_three_ways() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let excepted = |id: &str| {
        let all = world.store.grants().unwrap();
        let grant = all.iter().find(|grant| grant.id.as_str() == id).unwrap();
        let document: Value = serde_json::from_str(&grant.document).unwrap();
        document["streams"][0]["except"].clone()
    };
    for (stream, lines, rules) in every_rule() {
        let details = json!({
            "type": "https://pdpp.dev/data-access",
            "source": {"id": "https://sources.example/demo_mail"},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [{"name": stream, "instance_ids": ["work"], "except": rules}],
        });
        let flags = Flags {
            connections: vec!["work".to_owned()],
            streams: vec![stream.to_owned()],
            except: lines.lines().map(str::to_owned).collect(),
            ..Flags::default()
        };
        let said = [
            Selection::from_details(&details.to_string()),
            Selection::from_flags(flags),
        ];
        for selection in said {
            let (store, clock) = (&*world.store, &*world.clock);
            let issued = grants::issue(store, &selection.unwrap(), "agent", None, clock).unwrap();
            assert_eq!(excepted(issued.grant_id.unwrap().as_str()), rules);
        }
        let name = format!("except-lines:work/{stream}");
        let form = [
            ("client", "My script"),
            ("stream", &format!("work/{stream}")),
            ("days", "7"),
            ("mode", "continuous"),
            (name.as_str(), lines),
        ];
        let made = browser.make(&form);
        let made = made.await;
        let (_, id) = made.text.split_once("href=\"/grants/grt_").unwrap();
        let id = id.split('"').next().unwrap();
        assert_eq!(excepted(&format!("grt_{id}")), rules);
    }
}

// GM-05: values with counts to choose from, how many records the rules leave, and records inside and just outside.
#[tokio::test]
async fn a_choice_by_values_shows_what_it_means() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser
        .send_form("/grants/new", "/grants/new", CHOSEN)
        .await;
    page.shows("<bdi>bank@example.test</bdi></td><td>3</td>");
    page.shows("name=\"only:work/messages\" value=\"from_email=bank@example.test\"");
    let only = ("only:work/messages", "from_email=bank@example.test");
    let never = ("except-lines:work/messages", "subject~=2\n");
    let ruled = [CHOSEN, &[only, never]].concat();
    let page = browser
        .send_form("/grants/new", "/grants/new", &ruled)
        .await;
    page.shows("<b>2 of 3 records</b> with these rules.");
    page.shows(
        "value=\"from_email=bank@example.test\" aria-label=\"only bank@example.test\" checked",
    );
    let review = browser.review_grant(&ruled).await;
    review.shows("<b>2 records</b> now.");
    let (inside, outside) = review.text.split_once("Just outside").unwrap();
    assert!(inside.contains("Letter 1") && !inside.contains("Letter 2"));
    assert!(outside.contains("Letter 2") && !outside.contains("Letter 1"));
    let wrong = [CHOSEN, &[("only-lines:work/messages", "subject")]].concat();
    let page = browser.review_grant(&wrong).await;
    assert_eq!(page.status, 400);
    page.shows("is not a condition");
    // The same choice at consent.
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let csrf = browser.picker(&request).await.field("csrf");
    let form = [
        &[("csrf", csrf.as_str()), ("request", &request)],
        ruled.as_slice(),
    ]
    .concat();
    let page = browser.post("/consent", &form).await;
    page.shows("<b>2 of 3 records</b> with these rules.");
    let review = browser.review(&request, &ruled).await;
    review.shows("Just outside");
}

// GM-06: the sentence that was agreed to is kept with its digest, and shown with the grant.
// GM-08: only the granted part of a field is shown.
#[tokio::test]
async fn what_was_agreed_to_is_kept_and_a_part_of_a_field_is_given() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let part = [
        ("field", "work/messages/from_email"),
        ("redact:work/messages/from_email", "domain"),
    ];
    let wanted = [CHOSEN, &part].concat();
    let made = browser.make(&wanted);
    let token = token(&made.await);
    let read = world
        .read(&token, "/v1/streams/messages/records?limit=1")
        .await;
    assert!(
        read.text.contains(r#""from_email":"example.test""#),
        "{}",
        read.text
    );
    let grant = world.store.grants().unwrap()[0].clone();
    let document: Value = serde_json::from_str(&grant.document).unwrap();
    let agreed = &document["agreed"];
    let sentence = "work messages: id, subject, from_email; of from_email only the domain";
    assert_eq!(agreed["lines"], json!([sentence]));
    let page = browser.get(&format!("/grants/{}", grant.id)).await;
    page.shows(&format!(
        "agreed to as {}",
        agreed["digest"].as_str().unwrap()
    ));
    page.shows(sentence);
}

// GM-09: a selection is kept by name and fills in the form again; a connection that comes later is no part of it.
#[tokio::test]
async fn a_template_fills_in_the_form_without_what_came_later() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let never = ("except-lines:work/messages", "subject~=2");
    let kept = [CHOSEN, &[never, ("save_as", "work <only>")]].concat();
    let made = browser.make(&kept);
    assert_eq!(made.await.status, 200);
    let form = browser.get("/grants/new").await;
    form.shows("Fill in with the template <bdi>work &#60;only&#62;</bdi>");
    form.hides("which came later");
    assert_eq!(form.text.matches(" checked").count(), 1);
    connect(&*world.store, "demo_mail", "later", "Later");
    let form = browser.get("/grants/new?template=work%20%3Conly%3E").await;
    form.shows("without <bdi>Later</bdi>, which came later");
    form.shows("value=\"work/messages/subject\" checked");
    form.shows("subject~=2");
    form.hides("value=\"later/messages\" checked");
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let page = format!("/consent?request={request}&template=work%20%3Conly%3E");
    browser
        .get(&page)
        .await
        .shows("value=\"work/messages/subject\" checked");
}

#[tokio::test]
async fn another_like_it_shows_the_difference() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let since = [CHOSEN, &[("since:work/messages", "2026-03-02")]].concat();
    browser.make(&since).await;
    let id = world.store.grants().unwrap()[0].id.to_string();
    let form = browser.get(&format!("/grants/new?from={id}")).await;
    form.shows("value=\"work/messages/subject\" checked");
    form.shows("value=\"2026-03-02\"");
    form.shows("value=\"My script\"");
    let wider = [CHOSEN, &[("field", "work/messages/body"), ("from", &id)]].concat();
    let review = browser.review_grant(&wider).await;
    review.shows(&format!("The difference to {id}"));
    review.shows("<ul class=\"new\"><li><bdi>work messages: id, subject, body</bdi></li></ul>");
    review.shows("<ul class=\"gone\"><li><bdi>work messages: id, subject; only received_at from 2026-03-02 00:00 UTC</bdi></li></ul>");
    let made = browser.make(&wider).await;
    made.shows(&format!("/grants/{id}/end"));
    assert_eq!(world.store.grants().unwrap().len(), 2);
}

#[tokio::test]
async fn ending_asks_once_and_says_what_cannot_be_taken_back() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let made = browser.make(CHOSEN).await;
    let token = token(&made);
    let id = world.store.grants().unwrap()[0].id.to_string();
    let ask = format!("/grants/{id}/end");
    let page = browser.get(&ask).await;
    page.shows("What it has read until then cannot be taken back.");
    let read = "/v1/streams/messages/records";
    assert_eq!(
        world.read(&token, read).await.status,
        200,
        "a GET ends nothing"
    );
    let ended = browser
        .send_form(&format!("/grants/{id}/revoke"), &ask, &[])
        .await;
    assert_eq!(ended.header("location"), "/grants");
    assert_eq!(world.read(&token, read).await.status, 403);
    // There is nothing to end any more.
    assert_eq!(browser.get(&ask).await.status, 303);
    browser
        .get("/grants")
        .await
        .shows("<h2 id=\"ended\">Ended</h2>");
}
