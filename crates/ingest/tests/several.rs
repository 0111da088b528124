//! What stands in several files of one import: a file tells no more than its part, and must not undo what another one told.

use std::fs;

use ingest::container::{Limits, walk};
use ingest::{Export, FileContents, Format, ImportReport, Input};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::formats::{import, sorted};
use crate::memory::Memory;

/// Imports files as they stand in a folder, and the same once more, which must change nothing.
fn twice(store: &Memory, export: Export, files: &[(&str, &str)]) -> ImportReport {
    let report = once(store, export, files);
    let again = once(store, export, files);
    assert_eq!((again.added, again.updated), (0, 0), "{export:?}");
    report
}

fn once(store: &Memory, export: Export, files: &[(&str, &str)]) -> ImportReport {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("export");
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let contents = walk(&root, Limits::default()).unwrap().unwrap();
    let (taken, _, others) = sorted(export, &contents);
    assert!(others.is_empty(), "{others:?}");
    import(store, export, &taken)
}

fn record(store: &Memory, stream: &str, key: &str) -> Value {
    let body = store.body(stream, key);
    assert!(body.is_some(), "no {stream} {key}");
    serde_json::from_str(&body.unwrap()).unwrap()
}

/// One member of all records of a stream, sorted.
fn told(store: &Memory, stream: &str, member: &str) -> Vec<Value> {
    let records = store.records_of(stream).into_iter();
    let mut told: Vec<Value> = records.map(|record| record[member].clone()).collect();
    told.sort_by_key(Value::to_string);
    told
}

fn mt940(day: &str, balance: &str) -> String {
    format!(
        ":20:X\n:25:DE02/1\n:60F:C240301EUR1,00\n:61:{day}D12,50NTRFNONREF\n:86:Rent of {day}\n:62F:C{day}EUR{balance}\n-\n"
    )
}

#[test]
fn of_two_statements_of_an_account_the_later_one_tells_its_balance() {
    let (older, newer) = (mt940("240304", "10,00"), mt940("240404", "20,00"));
    let files = [("a.sta", newer.as_str()), ("b.sta", older.as_str())];
    let store = Memory::with_export(Export::BANK);
    twice(&store, Export::BANK, &files);
    let account = &store.records_of("accounts")[0];
    assert_eq!(account["balance_on"], "2024-04-04");
    // Nor does one that comes later by itself go back, whatever it holds.
    let report = twice(&store, Export::BANK, &files[1..]);
    assert_eq!(
        (report.read, report.unchanged, report.kept_newer),
        (2, 1, 1),
        "what stays has come, and is not pruned"
    );
    assert_eq!(told(&store, "accounts", "balance").len(), 1);
    assert_eq!(account, &store.records_of("accounts")[0]);
    let both = [newer, older].concat();
    let store = Memory::with_export(Export::BANK);
    twice(&store, Export::BANK, &[("both.sta", &both)]);
    assert_eq!(told(&store, "accounts", "balance_on"), ["2024-04-04"]);
    assert_eq!(store.records_of("transactions").len(), 2);
}

fn camt(reference: &str, entries: &[(&str, &str)]) -> String {
    let entries = entries.iter().map(|(number, day)| {
        format!(
            "<Ntry><{reference}>{number}</{reference}><Amt Ccy='EUR'>5.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>\
             <BookgDt><Dt>{day}</Dt></BookgDt></Ntry>"
        )
    });
    format!(
        "<Document><BkToCstmrStmt><Stmt><Acct><Id><IBAN>X1</IBAN></Id></Acct>{}</Stmt></BkToCstmrStmt></Document>",
        entries.collect::<String>()
    )
}

#[test]
fn numbers_of_entries_within_a_statement_are_no_keys() {
    let (march, april) = (
        camt("NtryRef", &[("1", "2024-03-04"), ("2", "2024-03-05")]),
        camt("NtryRef", &[("1", "2024-04-04")]),
    );
    let files = [("march.xml", march.as_str()), ("april.xml", april.as_str())];
    let store = Memory::with_export(Export::BANK);
    twice(&store, Export::BANK, &files);
    assert_eq!(store.records_of("transactions").len(), 3);
    let named = camt("AcctSvcrRef", &[("A-7", "2024-05-04")]);
    twice(&store, Export::BANK, &[("may.xml", &named)]);
    assert_eq!(
        record(&store, "transactions", "X1-A-7")["booked_on"],
        "2024-05-04"
    );
    // What an earlier release called by its number keeps that key, and the others come beside it.
    let old = Memory::with_export(Export::BANK);
    let as_before = [("march.xml", march.replace("NtryRef", "AcctSvcrRef"))];
    let as_before = as_before
        .each_ref()
        .map(|(name, text)| (*name, text.as_str()));
    twice(&old, Export::BANK, &as_before);
    let again = once(&old, Export::BANK, &files[..1]);
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 3));
    let more = twice(&old, Export::BANK, &files);
    assert_eq!((more.added, more.updated), (1, 0));
}

#[test]
fn two_mailboxes_may_hold_different_messages_under_one_id() {
    let message = |subject: &str| {
        format!(
            "From - Mon Mar 04 10:11:12 2024\nMessage-ID: <a@example.org>\nFrom: Noor <Noor@Example.org>\n\
             To: Ida Lund <ida@example.org>, \"Ben\" <ben@example.org>\nCc: ida@example.org\nSubject: {subject}\n\nHello\n\n"
        )
    };
    let (sent, list) = (message("Tides"), message("[boats] Tides"));
    let files = [
        ("Inbox.mbox", sent.as_str()),
        ("List.mbox", &list),
        ("Sent.mbox", &sent),
    ];
    let store = Memory::with_export(Export::MAIL);
    let report = twice(&store, Export::MAIL, &files);
    assert_eq!((report.added, report.unchanged), (2, 1));
    let sent = record(&store, "messages", "a@example.org");
    assert_eq!(sent["subject"], "Tides");
    let people = json!(["noor@example.org", "ida@example.org", "ben@example.org"]);
    assert_eq!(sent["participants"], people);
}

#[test]
fn what_an_agent_handed_on_is_no_session() {
    let line = |uuid: &str, sidechain: bool, said: &str| {
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":{sidechain},\"sessionId\":\"s1\",\"cwd\":\"/boat\",\"type\":\"user\",\"uuid\":\"{uuid}\",\
             \"timestamp\":\"2026-01-02T10:00:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"{said}\"}}}}\n"
        )
    };
    let (own, handed) = (line("u1", false, "Plan it"), line("u2", true, "Look it up"));
    let files = [
        ("s1.jsonl", own.as_str()),
        ("s1/subagents/agent-7.jsonl", &handed),
    ];
    let store = Memory::with_export(Export::CLAUDE_CODE);
    twice(&store, Export::CLAUDE_CODE, &files);
    assert_eq!(told(&store, "sessions", "title"), ["Plan it"]);
    assert_eq!(store.records_of("messages").len(), 2);
}

#[test]
fn notes_of_one_second_and_title_stay_two() {
    let note = |text: &str| {
        format!(
            "<note><title>Untitled</title><content>{text}</content><created>20240305T100000Z</created></note>"
        )
    };
    let book = |notes: &str| format!("<en-export>{notes}</en-export>");
    let both = book(&(note("tides") + &note("moorings") + &note("tides")));
    let other = book(&note("harbours"));
    let files = [("Boat.enex", both.as_str()), ("Harbour.enex", &other)];
    let store = Memory::with_export(Export::EVERNOTE);
    twice(&store, Export::EVERNOTE, &files);
    let texts = told(&store, "notes", "text");
    assert_eq!(texts, ["harbours", "moorings", "tides"]);
}

#[test]
fn lists_of_people_and_saved_posts_are_told_by_their_files() {
    let one = |name: &str| {
        format!(
            "[{{\"title\":\"\",\"string_list_data\":[{{\"href\":\"https://i.example/{name}\",\"value\":\"{name}\",\"timestamp\":1600000000}}]}}]"
        )
    };
    let folder = "connections/followers_and_following";
    let comment = r#"[{"string_map_data":{"Kommentar":{"value":"Schön"},"Medieninhaber":{"value":"noor"},"Zeit":{"timestamp":1709632900}}}]"#;
    let reels = format!(
        "{{\"comments_reels_comments\":{}}}",
        comment.replace("Schön", "Wow")
    );
    let saved = r#"{"saved_saved_media":[{"title":"noor","string_map_data":{"Gespeichert am":{"href":"https://i.example/p/1","timestamp":1709632950}}}]}"#;
    let store = Memory::with_export(Export::INSTAGRAM);
    let files = [
        (&*format!("{folder}/followers_1.json"), &*one("noor")),
        (&*format!("{folder}/following.json"), &*one("ada")),
        ("comments/post_comments_1.json", comment),
        ("comments/reels_comments.json", &*reels),
        ("saved/saved_posts.json", saved),
    ];
    twice(&store, Export::INSTAGRAM, &files);
    record(&store, "people", "follower-noor");
    record(&store, "people", "following-ada");
    assert_eq!(told(&store, "posts", "text"), ["Schön", "Wow"]);
    assert_eq!(told(&store, "posts", "title")[0], "On a post of noor");
    let likes = store.records_of("likes");
    assert_eq!(
        (&likes[0]["kind"], &likes[0]["url"]),
        (&json!("saved"), &json!("https://i.example/p/1"))
    );
}

#[test]
fn conversations_that_were_encrypted_and_lists_of_groups_are_read() {
    let chat = r#"{"participants":["Noor Haddad","Ida Lund"],"threadName":"Noor Haddad_3","messages":[
        {"senderName":"Ida Lund","timestamp":1709632800000,"text":"Größe?","type":"text","media":[],"reactions":[]},
        {"senderName":"Noor Haddad","timestamp":1709632900000,"text":"38","type":"text","media":[{"uri":"./media/a.jpg"}],"reactions":[]}]}"#;
    let group = r#"{"group_posts_v2":[{"timestamp":1709632800,"data":[{"post":"Who has a mooring?"}],"title":"Ida posted in Boats."}]}"#;
    let people = r#"{"following_v3":[{"name":"Harbour News","timestamp":1600000000}]}"#;
    let reactions = r#"{"reactions_v2":[{"timestamp":1709633000,"data":[{"reaction":{"reaction":"LOVE","actor":"Ida"}}],"title":"Ida likes it."}]}"#;
    let store = Memory::with_export(Export::FACEBOOK);
    let files = [
        ("instagram-backup/messages/Noor Haddad_3.json", chat),
        (
            "your_facebook_activity/groups/your_posts_in_groups.json",
            group,
        ),
        ("your_facebook_activity/reactions.json", reactions),
        ("connections/pages.json", people),
    ];
    // The innermost folder that names one of the two decides; nothing else tells of the chat.
    let instagram = once(
        &Memory::with_export(Export::INSTAGRAM),
        Export::INSTAGRAM,
        &files[..1],
    );
    assert_eq!(instagram.added, 2);
    let chat = (
        "your_facebook_activity/messages/e2ee/Noor Haddad_3.json",
        chat,
    );
    twice(&store, Export::FACEBOOK, &[&[chat], &files[1..]].concat());
    let messages = store.records_of("messages");
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["conversation"], "Noor Haddad");
    assert_eq!(
        messages[0]["participants"],
        json!(["Noor Haddad", "Ida Lund"])
    );
    assert_eq!(told(&store, "messages", "text"), ["38", "Größe?"]);
    assert_eq!(told(&store, "posts", "text"), ["Who has a mooring?"]);
    assert_eq!(told(&store, "likes", "kind"), ["love"]);
    assert_eq!(told(&store, "people", "kind"), ["following"]);
}

#[test]
fn tables_of_reddit_without_texts_are_no_likes() {
    let headers = "id,permalink,date,ip,subreddit,gildings,link,parent\nc1,https://www.reddit.com/r/x/c1,2024-03-05 10:00:00 UTC,,boats,0,,\n";
    let store = Memory::with_export(Export::REDDIT);
    let files = [
        ("comment_headers.csv", headers),
        ("friends.csv", "username,note\nnoor,\n"),
        (
            "saved_posts.csv",
            "id,permalink\np1,https://www.reddit.com/r/x/p1\n",
        ),
    ];
    twice(&store, Export::REDDIT, &files);
    assert_eq!(told(&store, "likes", "id"), ["saved-p1"]);
    assert_eq!(told(&store, "people", "id"), ["following-noor"]);
}

#[test]
fn a_chat_names_all_who_wrote_in_it_though_an_export_holds_a_part() {
    let head = r#"{"name":"Boats","type":"private_group","id":3,"messages":["#;
    let said = |id: u32, who: &str| {
        format!(
            "{{\"id\":{id},\"type\":\"message\",\"date\":\"2024-01-01T10:00:00\",\"from\":\"{who}\",\"from_id\":\"user{id}\",\"text\":\"x\"}}"
        )
    };
    let whole = format!("{head}{},{}]}}", said(1, "Noor"), said(2, "Ida"));
    let part = format!("{head}{}]}}", said(2, "Ida"));
    let store = Memory::with_export(Export::TELEGRAM);
    twice(&store, Export::TELEGRAM, &[("result.json", &whole)]);
    let again = once(&store, Export::TELEGRAM, &[("result.json", &part)]);
    assert_eq!((again.added, again.updated), (0, 0));
    assert_eq!(
        record(&store, "chats", "chat3")["participants"],
        json!(["Ida", "Noor"])
    );

    let lines = "12/31/23, 9:15 PM - Noor: Hello\n12/31/23, 9:16 PM - Ida: Here\n";
    let store = Memory::with_export(Export::WHATSAPP);
    let name = "WhatsApp Chat with Boats.txt";
    twice(&store, Export::WHATSAPP, &[(name, lines)]);
    let part = lines.split_once('\n').unwrap().1;
    once(&store, Export::WHATSAPP, &[(name, part)]);
    assert_eq!(
        record(&store, "chats", "Boats")["participants"],
        json!(["Ida", "Noor"])
    );
}

#[test]
fn texts_of_programs_in_slack_and_hidden_ones_of_chatgpt_are_told_as_they_are() {
    let posts = r#"[{"type":"message","subtype":"bot_message","bot_id":"B1","username":"weather","text":"","ts":"1709640000.000300",
        "attachments":[{"fallback":"storm","title":"Warning","text":"A storm is near"},{"fallback":"Only this"}]},
        {"type":"message","bot_id":"B1","username":"tides","text":"","ts":"1709640001.000300",
        "blocks":[{"type":"section","text":{"type":"mrkdwn","text":"High water at nine"}}]}]"#;
    let store = Memory::with_export(Export::SLACK);
    twice(&store, Export::SLACK, &[("boats/2024-03-05.json", posts)]);
    assert_eq!(
        told(&store, "messages", "text"),
        ["High water at nine", "Warning\nA storm is near\nOnly this"]
    );
    let node = |id: &str, parent: &str, hidden: bool| {
        format!(
            "\"{id}\":{{\"id\":\"{id}\",\"parent\":{parent},\"children\":[],\"message\":{{\"id\":\"{id}\",\"author\":{{\"role\":\"user\"}},\
            \"content\":{{\"content_type\":\"text\",\"parts\":[\"said {id}\"]}},\"metadata\":{{\"is_visually_hidden_from_conversation\":{hidden}}}}}}}"
        )
    };
    let chat = format!(
        "[{{\"title\":\"Keel\",\"create_time\":1709640000,\"mapping\":{{{},{}}},\"current_node\":\"b\",\"conversation_id\":\"c\"}}]",
        node("a", "null", true),
        node("b", "\"a\"", false)
    );
    let store = Memory::with_export(Export::CHATGPT);
    twice(&store, Export::CHATGPT, &[("conversations.json", &chat)]);
    assert_eq!(told(&store, "messages", "is_shown"), [false, true]);
}

#[test]
fn hashtags_are_tags_also_in_archives_of_before() {
    let tweet = r#"window.YTD.tweet.part0 = [{"id_str":"7","full_text":"Ahoy #Boats","created_at":"Tue Mar 05 10:00:00 +0000 2019","entities":{"hashtags":[{"text":"Boats"}]}}]"#;
    let store = Memory::with_export(Export::X);
    twice(&store, Export::X, &[("tweet.js", tweet)]);
    assert_eq!(record(&store, "posts", "7")["tags"], json!(["Boats"]));
    let posts = r#"[{"media":[{"uri":"a.jpg","creation_timestamp":1709632800,"title":"Out #sea #sea, #Größe!"}]}]"#;
    let store = Memory::with_export(Export::INSTAGRAM);
    twice(&store, Export::INSTAGRAM, &[("posts_1.json", posts)]);
    assert_eq!(told(&store, "posts", "tags"), [json!(["sea", "Größe"])]);
}

#[test]
fn notes_of_logseq_have_no_copies_and_may_be_of_any_encoding() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("graph");
    for (name, content) in [
        ("pages/keel.md", b"# Keel\n\nOak, caf\xe9.".as_slice()),
        ("logseq/bak/pages/keel/1.md", b"# Keel\n\nElm."),
        ("pages/wide.md", b"\xff\xfeT\0i\0d\0e\0s\0"),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let contents = walk(&root, Limits::default()).unwrap().unwrap();
    let (taken, left, _) = sorted(Export::MARKDOWN, &contents);
    assert_eq!((taken.len(), left), (2, 1));
    let store = Memory::with_export(Export::MARKDOWN);
    let report = import(&store, Export::MARKDOWN, &taken);
    assert_eq!((report.added, report.rejected), (2, 0));
    let texts = told(&store, "notes", "text");
    assert!(
        texts[0].as_str().unwrap().ends_with("Oak, café."),
        "{texts:?}"
    );
    assert_eq!(texts[1], "Tides");
}

#[test]
fn bookmarks_of_firefox_are_read_from_its_backup() {
    let backup = r#"{"guid":"root________","title":"","dateAdded":1709632800000000,"type":"text/x-moz-place-container","root":"placesRoot","children":[
        {"guid":"menu________","title":"menu","type":"text/x-moz-place-container","children":[
        {"guid":"abc","title":"Tides","uri":"https://tide.example/x","dateAdded":1709632800000000,"tags":"boat,sea","type":"text/x-moz-place"}]}]}"#;
    let store = Memory::with_export(Export::BROWSER);
    twice(&store, Export::BROWSER, &[("bookmarks-2024.json", backup)]);
    let bookmark = record(&store, "bookmarks", "abc");
    assert_eq!(bookmark["folder"], "menu");
    assert_eq!(
        (&bookmark["tags"], &bookmark["site"]),
        (&json!(["boat", "sea"]), &json!("tide.example"))
    );
}

#[test]
fn activity_written_in_german_has_its_times_and_a_store_of_before_keeps_what_it_has() {
    let cell = |time: &str| {
        format!(
            "<div class=\"outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp\"><div class=\"mdl-grid\"><p class=\"mdl-typography--title\">Suche<br></p>\
            <div class=\"content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1\">Gesucht nach <a href=\"https://g.example/q\">tide</a><br>{time}<br></div></div></div>"
        )
    };
    let page = |zone: &str| {
        let cells = ["05.03.2024, 10:00:00", "06.07.2024, 10:00:00"]
            .map(|time| cell(&format!("{time} {zone}")));
        format!(
            "<html><body class=\"mdl-x\">{}</body></html>",
            cells.concat()
        )
    };
    let store = Memory::with_export(Export::GOOGLE_ACTIVITY);
    twice(
        &store,
        Export::GOOGLE_ACTIVITY,
        &[("MyActivity.html", &page("MEZ"))],
    );
    let times = told(&store, "activities", "done_at");
    assert_eq!(times, ["2024-03-05T09:00:00Z", "2024-07-06T09:00:00Z"]);
    // A zone that nobody knows stands for what an earlier release could not read.
    let old = Memory::with_export(Export::GOOGLE_ACTIVITY);
    twice(
        &old,
        Export::GOOGLE_ACTIVITY,
        &[("MyActivity.html", &page("XYZ"))],
    );
    let again = once(
        &old,
        Export::GOOGLE_ACTIVITY,
        &[("MyActivity.html", &page("MEZ"))],
    );
    assert_eq!((again.added, again.updated), (0, 0));
}

#[test]
fn a_table_that_is_called_like_one_of_an_archive_is_a_table() {
    for (name, own, foreign) in [
        ("Skills.csv", "Name\nSailing\n", "skill,level\nSailing,3\n"),
        (
            "Profile.csv",
            "First Name,Last Name,Maiden Name\nIda,Lund,\n",
            "x,y\n1,2\n",
        ),
        (
            "statistics.csv",
            "statistic,value\na,1\n",
            "month,count\n1,2\n",
        ),
    ] {
        let contents = |text: &'static str| {
            let input = Input::from_file(name, name, text.as_bytes()).unwrap();
            input.contents().clone()
        };
        assert!(matches!(contents(own), FileContents::Left(_)), "{name}");
        let table = FileContents::from(Format::Csv);
        assert_eq!(contents(foreign), table, "{name}");
    }
}
