//! The owner's door: a password or a code, a cookie, and no guessing.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use contract::time::Clock as _;

use crate::fixture::{Answer, Browser, PASSWORD, World};

async fn enter(browser: &mut Browser<'_>, more: &[(&str, &str)]) -> Answer {
    let csrf = browser.get("/sign-in").await.field("csrf");
    let form = [&[("csrf", csrf.as_str())], more].concat();
    browser.post("/sign-in", &form).await
}

fn cookies(answer: &Answer) -> Vec<&str> {
    let set = answer.headers.get_all("set-cookie").iter();
    set.map(|cookie| cookie.to_str().unwrap()).collect()
}

#[tokio::test]
async fn the_cookie_is_for_this_server_alone() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    let answer = enter(&mut browser, &[("password", PASSWORD)]).await;
    let mut cookies = cookies(&answer).into_iter();
    let session = cookies.find(|cookie| cookie.contains("session")).unwrap();
    assert!(
        session.starts_with("__Host-pdpp_session=pdpp_session_"),
        "{session}"
    );
    assert!(session.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure"));

    let world = World::at("http://127.0.0.1:7420").await;
    let mut browser = Browser::new(&world);
    let answer = enter(&mut browser, &[("password", PASSWORD)]).await;
    assert_eq!(answer.status, 303);
    assert!(
        browser.cookies.contains_key("pdpp_session"),
        "{:?}",
        browser.cookies
    );
    assert_eq!(browser.get("/").await.status, 200);
}

#[tokio::test]
async fn signing_out_ends_the_session_on_the_server() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let stolen = browser.cookies.clone();
    let csrf = browser.get("/").await.field("csrf");
    let answer = browser.post("/sign-out", &[("csrf", &csrf)]).await;
    assert_eq!(answer.header("location"), "/sign-in");
    browser.cookies = stolen;
    assert_eq!(browser.get("/").await.header("location"), "/sign-in");
}

#[tokio::test]
async fn a_link_with_a_code_signs_in_once_and_only_when_it_is_sent() {
    let world = World::new().await;
    let code = grants::sign_in::new_code(&*world.store, world.clock.now()).unwrap();
    let mut browser = Browser::new(&world);
    let link = format!("/sign-in?code={}", code.expose());
    // What looks at links uses nothing up.
    for _ in 0..2 {
        let page = browser.get(&link).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.field("code"), code.expose());
        assert_eq!(page.header("referrer-policy"), "same-origin");
    }
    let answer = enter(&mut browser, &[("code", code.expose())]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (303, "/")
    );
    assert_eq!(browser.get("/").await.status, 200);
    let mut other = Browser::new(&world);
    let answer = enter(&mut other, &[("code", code.expose())]).await;
    assert_eq!(answer.status, 403);
    answer.shows("not valid any more");
    crate::listening::kept_secret([code.expose()]);
}

// TR-18: where a code is asked for, the link that the terminal printed is as good.
#[tokio::test]
async fn a_pasted_link_signs_in_like_its_code() {
    let world = World::at("http://127.0.0.1:7420").await;
    for pasted in [
        "CODE",
        " CODE\n",
        "http://pdpp.localhost:7420/sign-in?code=CODE",
        "Console: http://127.0.0.1:7420/sign-in?code=CODE&return_to=/ ",
        "pdpp.localhost:7420/sign-in?return_to=%2F&code=CODE#top",
    ] {
        let code = grants::sign_in::new_code(&*world.store, world.clock.now()).unwrap();
        let pasted = pasted.replace("CODE", code.expose());
        let mut browser = Browser::new(&world);
        let answer = enter(&mut browser, &[("code", &pasted)]).await;
        assert_eq!(answer.status, 303, "{pasted}: {}", answer.text);
        assert_eq!(browser.get("/").await.status, 200);
    }
    let mut browser = Browser::new(&world);
    let answer = enter(&mut browser, &[("code", "http://pdpp.localhost:7420/")]).await;
    assert_eq!(answer.status, 403);
    answer.shows("pdpp sign-in");
}

#[tokio::test]
async fn the_right_password_is_taken_while_a_crowd_at_its_address_guesses() {
    // TR-06: more of them than ever waited at once, before and after it.
    let world = World::new().await;
    let guess = async || {
        let mut stranger = Browser::new(&world);
        let answer = enter(&mut stranger, &[("password", "hunter3 hunter3")]).await;
        // A guess that comes late may not be checked at all.
        assert!(
            [403, 503].contains(&answer.status.as_u16()),
            "{}",
            answer.text
        );
    };
    let owner = async {
        let mut browser = Browser::new(&world);
        let answer = enter(&mut browser, &[("password", PASSWORD)]).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
    };
    let mut all: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    all.extend((0..3).map(|_| Box::pin(guess()) as _));
    all.push(Box::pin(owner));
    all.extend((0..70).map(|_| Box::pin(guess()) as _));
    poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[tokio::test]
async fn a_browser_is_known_again_after_signing_out() {
    // TR-06
    let world = World::new().await;
    let mut browser = world.browser().await;
    let known = browser.cookies["__Host-pdpp_browser"].clone();
    let csrf = browser.get("/").await.field("csrf");
    browser.post("/sign-out", &[("csrf", &csrf)]).await;
    let answer = enter(&mut browser, &[("password", PASSWORD)]).await;
    let cookies = cookies(&answer);
    let kept = format!(
        "__Host-pdpp_browser={known}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000; Secure"
    );
    assert!(cookies.contains(&kept.as_str()), "{cookies:?}");
    // Knowing a browser lets nobody in.
    browser.cookies.retain(|name, _| name.contains("browser"));
    assert_eq!(browser.get("/").await.header("location"), "/sign-in");
    crate::listening::kept_secret([known.as_str()]);
}

#[tokio::test]
async fn the_form_has_to_be_ours() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    let answer = browser.post("/sign-in", &[("password", PASSWORD)]).await;
    assert_eq!(answer.status, 403);
    browser.get("/sign-in").await;
    let answer = browser
        .post("/sign-in", &[("csrf", ""), ("password", PASSWORD)])
        .await;
    assert_eq!(answer.status, 403);
    assert!(browser.cookies.keys().all(|name| !name.contains("session")));
}

#[tokio::test]
async fn without_a_password_the_page_asks_for_a_code() {
    let world = World::new().await;
    grants::sign_in::remove_password(&*world.store, world.clock.now()).unwrap();
    let page = Browser::new(&world).get("/sign-in").await;
    page.shows("Sign-in link or code");
    page.hides("type=\"password\"");
    page.shows("pdpp owner-password");
}

/// Sends the form of the settings page that sets a password.
async fn set_password(browser: &mut Browser<'_>, current: &str, new: &str, again: &str) -> Answer {
    let csrf = browser.get("/settings").await.field("csrf");
    let form = [
        ("csrf", csrf.as_str()),
        ("current", current),
        ("new", new),
        ("again", again),
    ];
    browser.post("/settings/password", &form).await
}

#[tokio::test]
async fn a_password_is_changed_with_the_one_that_holds_and_signs_everybody_out() {
    let world = World::new().await;
    let (mut browser, mut other) = (world.browser().await, world.browser().await);
    let new = "some other good words";
    for (current, new, again, why) in [
        ("a wrong guess", new, new, "That is not the password."),
        (
            PASSWORD,
            new,
            "some other bad words",
            "The two new passwords differ.",
        ),
        (PASSWORD, "short", "short", "at least 12 characters"),
    ] {
        let refused = set_password(&mut browser, current, new, again).await;
        assert_eq!(refused.status, 400);
        refused.shows(why);
    }
    let foreign = [
        ("csrf", "made-up"),
        ("current", PASSWORD),
        ("new", new),
        ("again", new),
    ];
    assert_eq!(
        browser.post("/settings/password", &foreign).await.status,
        403
    );
    let set = set_password(&mut browser, PASSWORD, new, new).await;
    assert_eq!(set.header("location"), "/sign-in?return_to=%2Fsettings");
    for browser in [&mut browser, &mut other] {
        assert_eq!(browser.get("/settings").await.status, 303);
    }
    for (password, status) in [(PASSWORD, 403), (new, 303)] {
        let entered = enter(&mut browser, &[("password", password)]).await;
        assert_eq!(entered.status, status);
    }
    assert_eq!(browser.get("/settings").await.status, 200);
}

#[tokio::test]
async fn a_first_password_is_set_shortly_after_signing_in() {
    let world = World::new().await;
    let sign_in = async || {
        let code = grants::sign_in::new_code(&*world.store, world.clock.now()).unwrap();
        let mut browser = Browser::new(&world);
        let entered = enter(&mut browser, &[("code", code.expose())]).await;
        assert_eq!(entered.status, 303);
        browser
    };
    grants::sign_in::remove_password(&*world.store, world.clock.now()).unwrap();
    let mut browser = sign_in().await;
    world.pass(Duration::from_mins(16));
    let late = set_password(&mut browser, "", PASSWORD, PASSWORD).await;
    assert_eq!(late.status, 400);
    late.shows("Sign in with a new link");
    let mut browser = sign_in().await;
    let set = set_password(&mut browser, "", PASSWORD, PASSWORD).await;
    assert_eq!(set.status, 303, "{}", set.text);
    world.browser().await;
}
