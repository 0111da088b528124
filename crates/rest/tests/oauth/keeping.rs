//! Looking after the data in the browser: importing, renaming and removing connections, and a backup.

use crate::fixture::{Answer, Browser, World};

const MBOX: &str = "From a@example.test Mon Mar  2 09:00:00 2026\nFrom: A <a@example.test>\nTo: b@example.test\nSubject: About the <b>harbour</b>\n\
    Date: Mon, 02 Mar 2026 09:00:00 +0000\nMessage-ID: <one@example.test>\n\nThe quay is closed.\n\n\
    From c@example.test Tue Mar  3 09:00:00 2026\nFrom: C <c@example.test>\nTo: b@example.test\nSubject: Re: About the harbour\n\
    Date: Tue, 03 Mar 2026 09:00:00 +0000\nMessage-ID: <two@example.test>\n\nUntil when?\n";

/// Where the form of a page goes.
pub(crate) fn action(page: &Answer) -> String {
    let form = page.text.split_once("action=\"/import/").unwrap().1;
    format!("/import/{}", form.split('"').next().unwrap())
}

/// Follows an upload to the page that says what came of it.
pub(crate) async fn settled(browser: &mut Browser<'_>, sent: Answer) -> Answer {
    assert_eq!(sent.status, 303, "{}", sent.text);
    let target = sent.header("location").to_owned();
    for _ in 0..600 {
        let page = browser.get(&target).await;
        if !page.text.contains("data-live") {
            return page;
        }
        page.shows("<noscript><meta http-equiv=\"refresh\"");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{target} does not come to its end");
}

pub(crate) fn uploads(world: &World) -> usize {
    let folder = std::fs::read_dir(world.folder.path().join("uploads"));
    folder.map_or(0, Iterator::count)
}

#[tokio::test]
async fn an_export_is_recognised_tried_and_imported() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let form = browser.get("/import").await;
    form.shows("enctype=\"multipart/form-data\"");
    let csrf = form.field("csrf");
    let review = browser
        .upload(&csrf, &[("mail.mbox", MBOX), ("note.xyz", "\u{1}\u{2}")])
        .await;
    let review = settled(&mut browser, review).await;
    assert_eq!(review.status, 200, "{}", review.text);
    review.shows("Nothing is imported yet.");
    review.shows("a new connection, Mailbox");
    review.shows("<b>2</b> <span>new</span>");
    review.shows("note.xyz");
    review.shows("<summary>Some of them</summary>");
    review.shows("The quay is closed.");
    assert_eq!(
        world.store.connections().len(),
        2,
        "nothing is added by a try"
    );
    let target = action(&review);
    let pairs = [
        ("csrf", csrf.as_str()),
        ("to0", "new"),
        ("action", "import"),
    ];
    let done = browser.post(&target, &pairs).await;
    let done = settled(&mut browser, done).await;
    assert_eq!(done.status, 200, "{}", done.text);
    done.shows("<b>2</b> <span>new</span>");
    done.shows("href=\"/connections/mailbox\"");
    assert_eq!(uploads(&world), 0, "nothing is kept of it");
    let found = browser.get("/search?q=harbour").await;
    found.shows("About the &#60;b&#62;harbour&#60;/b&#62;");
    // The same again changes nothing, and the upload is gone.
    let again = browser.upload(&csrf, &[("mail.mbox", MBOX)]).await;
    let again = settled(&mut browser, again).await;
    again.shows("<b>2</b> <span>here already</span>");
    assert_eq!(browser.post(&target, &pairs).await.status, 404);
    let discard = [("csrf", csrf.as_str()), ("action", "discard")];
    assert_eq!(browser.post(&action(&again), &discard).await.status, 303);
    assert_eq!(uploads(&world), 0);
    // What was imported is told later, too, until its connection goes.
    let earlier = browser.get("/import").await;
    earlier.shows("<b><bdi>Mailbox: 2 records</bdi></b>");
    earlier.shows("mail.mbox");
    browser.get("/").await.shows("Mailbox: 2 records");
    browser.get(&target).await.shows("<h1>Imported</h1>");
    let confirm = [("csrf", csrf.as_str()), ("confirm", "mailbox")];
    browser.post("/connections/mailbox/remove", &confirm).await;
    browser.get("/import").await.hides("mail.mbox");
}

#[tokio::test]
async fn lines_go_where_the_owner_says() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let lines = "{\"id\":\"x1\",\"subject\":\"Zeppelin\",\"secret\":\"s\"}\n{\"id\":\"x2\",\"subject\":7,\"secret\":\"s\"}\n";
    let review = browser.upload(&csrf, &[("letters.jsonl", lines)]).await;
    let review = settled(&mut browser, review).await;
    review.shows("value=\"home/messages\"");
    let pairs = [
        ("csrf", csrf.as_str()),
        ("to0", "home/messages"),
        ("action", "try"),
    ];
    let tried = browser.post(&action(&review), &pairs).await;
    let tried = settled(&mut browser, tried).await;
    tried.shows("<b>1</b> <span>new</span>");
    tried.shows("<b>1</b> <span>refused</span>");
    tried.shows("line 2: ");
    let pairs = [
        ("csrf", csrf.as_str()),
        ("to0", "home/messages"),
        ("action", "import"),
    ];
    let done = browser.post(&action(&review), &pairs).await;
    let done = settled(&mut browser, done).await;
    done.shows("<b>1</b> <span>new</span>");
    browser
        .get("/search?q=zeppelin")
        .await
        .shows("/records/home/messages/x1");
}

#[tokio::test]
async fn what_is_no_upload_of_the_owner_is_refused_and_nothing_is_kept() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let foreign = browser.upload("made-up", &[("mail.mbox", MBOX)]).await;
    assert_eq!(foreign.status, 403);
    let nothing = browser.upload(&csrf, &[("", "")]).await;
    assert_eq!(nothing.status, 400);
    nothing.shows("no file was chosen");
    let unknown = browser
        .upload(&csrf, &[("../../x.bin", "\u{1}\u{2}\u{3}")])
        .await;
    assert_eq!(unknown.status, 400, "{}", unknown.text);
    unknown.shows("<h1>Nothing to import</h1>");
    let broken = "--xYz\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n";
    let kind = ("content-type", "multipart/form-data; boundary=xYz");
    let broken = [("", broken)];
    let half = browser.post_with("/import", &broken, &[kind]).await;
    assert!(half.status.is_client_error(), "{}", half.status);
    half.shows("<html lang=\"en\">");
    assert_eq!(uploads(&world), 0);
    assert_eq!(world.store.connections().len(), 2);
    for id in ["0123456789abcdef0123456789abcdef", "..", "x"] {
        let pairs = [("csrf", csrf.as_str()), ("action", "import")];
        let answer = browser.post(&format!("/import/{id}"), &pairs).await;
        assert_eq!(answer.status, 404, "{id}");
    }
}

#[tokio::test]
async fn a_connection_is_renamed_and_removed_when_its_id_is_typed() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    browser
        .get("/connections")
        .await
        .shows("href=\"/connections/work\"");
    let page = browser.get("/connections/work").await;
    page.shows("3 records");
    page.shows("href=\"/browse/work/messages\"");
    let csrf = page.field("csrf");
    let pairs = [("csrf", csrf.as_str()), ("name", "Office <i>")];
    let renamed = browser.post("/connections/work/rename", &pairs).await;
    assert_eq!(renamed.header("location"), "/connections/work");
    browser
        .get("/connections/work")
        .await
        .shows("<h1><bdi>Office &#60;i&#62;</bdi></h1>");
    let empty = [("csrf", csrf.as_str()), ("name", " ")];
    assert_eq!(
        browser
            .post("/connections/work/rename", &empty)
            .await
            .status,
        400
    );
    let wrong = [("csrf", csrf.as_str()), ("confirm", "home")];
    let kept = browser.post("/connections/work/remove", &wrong).await;
    assert_eq!(kept.status, 400);
    kept.shows("Nothing was removed");
    assert_eq!(
        browser
            .post("/connections/work/remove", &[("confirm", "work")])
            .await
            .status,
        403
    );
    assert_eq!(world.store.connections().len(), 2);
    let right = [("csrf", csrf.as_str()), ("confirm", "work")];
    let removed = browser.post("/connections/work/remove", &right).await;
    assert_eq!(removed.header("location"), "/connections");
    assert_eq!(browser.get("/connections/work").await.status, 404);
    assert_eq!(browser.get("/records/work/messages/m1").await.status, 404);
}

#[tokio::test]
async fn settings_tell_the_state_and_give_a_backup() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/settings").await;
    page.shows("You sign in with a password.");
    page.shows("6 records");
    page.shows("https://pdpp.example/mcp");
    let csrf = page.field("csrf");
    assert_eq!(browser.post("/settings/backup", &[]).await.status, 403);
    let backup = browser.post("/settings/backup", &[("csrf", &csrf)]).await;
    let disposition = backup.header("content-disposition");
    assert_eq!(disposition, "attachment; filename=\"pdpp-backup.tar\"");
    assert_eq!(backup.header("content-type"), "application/x-tar");
    browser
        .get("/settings")
        .await
        .shows("The last one was made <time");
    assert!(
        backup.text.contains("records.db"),
        "{} bytes",
        backup.text.len()
    );
}

#[tokio::test]
async fn a_record_is_deleted_after_one_question_and_stays_so() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    browser
        .get("/records/work/messages/m1")
        .await
        .shows("href=\"/records/work/messages/m1/delete\"");
    let page = browser.get("/records/work/messages/m1/delete").await;
    page.shows("cannot be taken back");
    let csrf = page.field("csrf");
    let target = "/records/work/messages/m1/delete";
    assert_eq!(browser.post(target, &[]).await.status, 403);
    assert_eq!(browser.get("/records/work/messages/m1").await.status, 200);
    let pairs = [("csrf", csrf.as_str())];
    let gone = browser.post(target, &pairs).await;
    assert_eq!(gone.header("location"), "/browse/work/messages");
    assert_eq!(browser.get("/records/work/messages/m1").await.status, 404);
    assert_eq!(browser.post(target, &pairs).await.status, 404);
}
