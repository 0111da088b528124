//! A client asks beyond its grant in a call: what it is told, what the owner allows and for how long, and that it cannot nag.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::fixture::{Answer, Browser, World};

const CALL: &str = "/v1/streams/messages/records?fields=id,from_email,body&limit=1";

pub(crate) struct Granted {
    pub(crate) token: String,
    pub(crate) id: String,
}

/// A client that may read ids and subjects of the letters at work, for a week.
pub(crate) async fn granted(world: &World, browser: &mut Browser<'_>) -> Granted {
    let form = [
        ("client", "My script"),
        ("field", "work/messages/id"),
        ("field", "work/messages/subject"),
        ("days", "7"),
        ("mode", "continuous"),
    ];
    let made = browser.make(&form).await;
    let token = made
        .text
        .split_once("<code class=\"token\" data-copy>")
        .unwrap()
        .1;
    Granted {
        token: token.split('<').next().unwrap().to_owned(),
        id: world.store.grants().unwrap()[0].id.to_string(),
    }
}

fn needs(answer: &Answer) -> Value {
    assert_eq!(answer.status, 403, "{}", answer.text);
    answer.json()["error"]["needs_broader_grant"].clone()
}

/// The path of the page where the owner decides.
fn page(answer: &Answer) -> String {
    page_of(&needs(answer))
}

fn page_of(needed: &Value) -> String {
    let url = needed["url"].as_str().unwrap_or_else(|| panic!("{needed}"));
    url[url.find("/asks/").unwrap()..].to_owned()
}

async fn decide(browser: &mut Browser<'_>, path: &str, decision: &str) -> Answer {
    let shown = browser.get(path).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    let (csrf, digest) = (shown.field("csrf"), shown.field("digest"));
    let form = [
        ("csrf", csrf.as_str()),
        ("digest", &digest),
        ("decision", decision),
    ];
    browser.post(path, &form).await
}

// GM-23: the refusal keeps its code and says what is missing; the owner sees that alone and allows it for ten minutes; the same
// call then succeeds, and ten minutes later it does not.
#[tokio::test]
async fn what_is_allowed_for_ten_minutes_ends_then() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, id } = granted(&world, &mut browser).await;
    let refused = world.read(&token, CALL).await;
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "field_not_granted");
    assert!(
        refused
            .header("www-authenticate")
            .contains("error=\"insufficient_scope\"")
    );
    let needed = needs(&refused);
    assert_eq!(needed["stream"], "messages");
    assert_eq!(needed["fields"], json!(["from_email", "body"]));
    assert!(
        error["next"]
            .as_str()
            .unwrap()
            .contains(needed["url"].as_str().unwrap())
    );
    let path = page(&refused);
    let shown = browser.get(&path).await;
    shown.shows("from_email, body");
    shown.hides("subject");
    // Nobody who is not signed in sees or decides it.
    assert_eq!(world.get(&path).await.status, 303);
    assert_eq!(decide(&mut browser, &path, "ten_minutes").await.status, 200);
    assert_eq!(world.read(&token, CALL).await.status, 200);
    browser
        .get(&format!("/grants/{id}"))
        .await
        .shows("from_email");
    world.pass(Duration::from_secs(599));
    assert_eq!(world.read(&token, CALL).await.status, 200);
    world.pass(Duration::from_secs(2));
    assert_eq!(
        page(&world.read(&token, CALL).await),
        path,
        "it can be asked for again"
    );
    browser
        .get("/")
        .await
        .shows("asks for more than its grant gives");
}

// GM-23: what is allowed once is good for one call; what is added stays until it is taken back.
#[tokio::test]
async fn what_is_allowed_once_is_used_up_and_what_is_added_stays() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, id } = granted(&world, &mut browser).await;
    let path = page(&world.read(&token, CALL).await);
    decide(&mut browser, &path, "once").await;
    // A call that does not need it does not use it up, and sees nothing of it.
    let schema = world.read(&token, "/v1/schema").await;
    assert!(!schema.text.contains("from_email"));
    assert_eq!(world.read(&token, CALL).await.status, 200);
    assert_eq!(world.read(&token, CALL).await.status, 403);
    let path = page(&world.read(&token, CALL).await);
    decide(&mut browser, &path, "lasting").await;
    world.pass(Duration::from_secs(2_000));
    assert_eq!(world.read(&token, CALL).await.status, 200);
    assert!(
        world
            .read(&token, "/v1/schema")
            .await
            .text
            .contains("from_email")
    );
    let csrf = browser.get(&format!("/grants/{id}")).await.field("csrf");
    let taken = [("csrf", csrf.as_str()), ("change", "end")];
    browser.post(&format!("/grants/{id}/asking"), &taken).await;
    assert_eq!(world.read(&token, CALL).await.status, 403);
}

// GM-23: a tool that reads twice for one call is allowed both, and the next call neither; no client can say that two are one.
#[tokio::test]
async fn what_is_allowed_once_is_good_for_one_call_of_a_tool() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, .. } = granted(&world, &mut browser).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "read_record_field",
        "arguments": {"stream": "messages", "record_id": "m2", "connection_id": "work", "field_path": "size_bytes"},
    }});
    let ask = async || {
        let request = Request::post("/mcp")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("pdpp-call", "0000000000000001")
            .body(Body::from(call.to_string()));
        let answer = world.send(request.unwrap()).await.json();
        answer["result"].clone()
    };
    let needed = |result: &Value| {
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"], "field_not_granted", "{result}");
        page_of(&error["needs_broader_grant"])
    };
    let path = needed(&ask().await);
    decide(&mut browser, &path, "once").await;
    // The field is no text, so the tool reads the record after the window was refused.
    let read = ask().await;
    assert_ne!(read["isError"], true, "{read}");
    assert_eq!(needed(&ask().await), path);
    decide(&mut browser, &path, "once").await;
    let target = "/v1/streams/messages/records/m2?connection_id=work&fields=size_bytes";
    for status in [200, 403] {
        let request = Request::get(target)
            .header("authorization", format!("Bearer {token}"))
            .header("pdpp-call", "0000000000000001");
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{}", answer.text);
    }
}

// GM-23: the page says all that limits what would be added, as it then holds.
#[tokio::test]
async fn the_page_says_all_that_limits_what_is_added() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let details = json!({
        "type": "https://pdpp.dev/data-access",
        "source": {"id": "https://sources.example/demo_mail"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "messages", "instance_ids": ["work"], "fields": ["id", "subject"],
                     "except": [{"field": "size_bytes", "eq": "2"}]}],
    });
    let selection = grants::Selection::from_details(&details.to_string()).unwrap();
    let issued = grants::issue(&*world.store, &selection, "agent", None, &*world.clock).unwrap();
    let token = issued.access_token.expose();
    let call = "/v1/streams/messages/records?connection_id=home";
    let refused = world.read(token, call).await;
    assert_eq!(refused.status, 404);
    let path = page_of(&refused.json()["error"]["needs_broader_grant"]);
    let shown = browser.get(&path).await;
    shown.shows("id, subject</bdi>");
    shown.shows("never where size_bytes is");
    shown.shows("What is said here is all that limits these records");
    decide(&mut browser, &path, "ten_minutes").await;
    let read = world.read(token, call).await.json();
    let keys: Vec<&str> = read["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(!read.to_string().contains("overdraft"));
}

// GM-24: names that do not exist are refused alike, byte for byte but for the name, and the owner is told that there is nothing.
#[tokio::test]
async fn names_that_do_not_exist_are_refused_alike() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, .. } = granted(&world, &mut browser).await;
    for (real, made_up) in [
        (
            "/v1/streams/messages/records?fields=id,body",
            "/v1/streams/messages/records?fields=id,bogy",
        ),
        (
            "/v1/streams/attachments/records",
            "/v1/streams/attachmants/records",
        ),
        (
            "/v1/streams/messages/records?expand=attachments",
            "/v1/streams/messages/records?expand=attachmants",
        ),
        (
            "/v1/streams/messages/records?connection_id=home",
            "/v1/streams/messages/records?connection_id=hame",
        ),
    ] {
        let (real, made_up) = (
            world.read(&token, real).await,
            world.read(&token, made_up).await,
        );
        let alike = |answer: &Answer| {
            let mut error = answer.json()["error"].clone();
            let id = error["request_id"].as_str().unwrap().to_owned();
            let url = error["needs_broader_grant"]["url"]
                .as_str()
                .unwrap()
                .to_owned();
            error["next"] = error["next"].as_str().unwrap().replace(&url, "URL").into();
            error["needs_broader_grant"]["url"] = url.len().into();
            let text = error.to_string().replace(&id, "ID");
            let text = text.replace("bogy", "body").replace("hame", "home");
            text.replace("attachmants", "attachments")
        };
        assert_eq!(alike(&real), alike(&made_up));
        assert_eq!(real.status, made_up.status);
        let needed = &made_up.json()["error"]["needs_broader_grant"];
        let nothing = browser.get(&page_of(needed)).await;
        nothing.shows("There is nothing of that name here");
        nothing.hides("Allow once");
    }
}

// GM-24: a client cannot nag: what was denied is not asked for again, a day has ten asks, and asking can be switched off.
#[tokio::test]
async fn a_client_cannot_nag() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, id } = granted(&world, &mut browser).await;
    let first = world.read(&token, CALL).await;
    assert_eq!(
        page(&first),
        page(&world.read(&token, CALL).await),
        "one ask, however often"
    );
    decide(&mut browser, &page(&first), "deny").await;
    let denied = world.read(&token, CALL).await;
    assert!(needs(&denied)["fields"].is_array() && needs(&denied)["url"].is_null());
    for number in 1..10 {
        let call = format!("/v1/streams/made_up_{number}/records");
        assert!(
            needs(&world.read(&token, &call).await)["url"].is_string(),
            "{number}"
        );
    }
    let more = world.read(&token, "/v1/streams/made_up_10/records").await;
    assert!(needs(&more)["url"].is_null());
    world.pass(Duration::from_hours(25));
    let mut browser = world.browser().await;
    let again = page(&world.read(&token, CALL).await);
    decide(&mut browser, &again, "never").await;
    world.pass(Duration::from_hours(25));
    let mut browser = world.browser().await;
    assert!(needs(&world.read(&token, CALL).await)["url"].is_null());
    browser
        .get(&format!("/grants/{id}"))
        .await
        .shows("It may not ask for more");
}

// GM-23: a decision is about what was shown.
#[tokio::test]
async fn only_what_was_shown_is_allowed() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, .. } = granted(&world, &mut browser).await;
    let path = page(&world.read(&token, CALL).await);
    let csrf = browser.get(&path).await.field("csrf");
    let form = [
        ("csrf", csrf.as_str()),
        ("digest", "0000000000000000"),
        ("decision", "lasting"),
    ];
    assert_eq!(browser.post(&path, &form).await.status, 400);
    assert_eq!(world.read(&token, CALL).await.status, 403);
}
