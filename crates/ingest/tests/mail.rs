//! Mail as it is found in real mailboxes: what becomes of which message, and what holds for any bytes.

use std::io::Cursor;

use crate::memory::{Memory, refused_codes};
use ingest::{Export, ImportReport, MailImporter};
use proptest::prelude::*;
use serde_json::{Value, json};

fn mailbox() -> Memory {
    Memory::with_export(Export::MAIL)
}

fn import(store: &Memory, bytes: &[u8], limit: usize) -> ImportReport {
    let acceptor = store.acceptor();
    let bytes = Cursor::new(bytes.to_vec());
    store.import(&mut MailImporter::with_limit(bytes, &acceptor, limit))
}

fn message(bytes: impl AsRef<[u8]>) -> Value {
    let store = mailbox();
    let report = import(&store, bytes.as_ref(), 1 << 20);
    assert_eq!(report.rejections, []);
    let mut all = store.records_of("messages");
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn body(bytes: impl AsRef<[u8]>) -> Value {
    message(bytes)["body"].clone()
}

#[test]
fn the_last_header_counts_though_its_line_is_not_ended() {
    let found = message("From: a@b.c\nMessage-ID: <n@b>\nSubject: last");
    assert_eq!(found["subject"], "last");
    let found = message("From: a@b.c\nMessage-ID: <n@b>\nSubject: la\n st");
    assert_eq!(found["subject"], "la st");
}

const WHOLE: &str = "From 1792@xxx Mon Mar 04 10:11:12 +0000 2024\r
X-GM-THRID: 1792\r
X-Gmail-Labels: =?UTF-8?Q?Posteingang,Ge=C3=B6ffnet,\"A,_B\"?=\r
Delivered-To: me@example.org\r
Received: by 10.0.0.1 with SMTP id x; Mon, 4 Mar 2024 02:11:14 -0800 (PST)\r
Message-ID: <CAF+1@mail.example.org>\r
In-Reply-To: <0@example.org>\r
References: <a@example.org>\r
 <0@example.org>\r
List-Id: Friends of marzipan <marzipan.example.org>\r
Date: Mon, 4 Mar 2024 11:11:12 +0100 (CET)\r
From: =?ISO-8859-1?Q?J=FCrgen?= =?ISO-8859-1?Q?_M=FCller?= <juergen@example.org>\r
To: \"Doe, Jane\" <jane@example.org>, me@example.org\r
Cc: Team: a@example.org, B <b@example.org>;\r
Subject: =?UTF-8?B?w5xiZXIgw4RwZmVs?=\r
 und Birnen\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=\"out er\"\r
\r
This is a multi-part message.\r
--out er\r
Content-Type: multipart/alternative; boundary=inner\r
\r
--inner\r
Content-Type: text/plain; charset=iso-8859-15\r
Content-Transfer-Encoding: quoted-printable\r
\r
Der Preis: 5 =A4, mit einem weichen =\r
Umbruch.\r
>From hier an ist alles gut.\r
--inner\r
Content-Type: text/html; charset=utf-8\r
\r
<p>Der Preis</p>\r
--inner--\r
--out er\r
Content-Type: application/pdf; name=\"ignored.pdf\"\r
Content-Disposition: attachment; filename*=UTF-8''%C3%9Cbersicht.pdf\r
Content-Transfer-Encoding: base64\r
\r
JVBERi0x\r
LjQK\r
--out er\r
Content-Type: message/rfc822\r
\r
Subject: Inside\r
From: c@example.org\r
\r
Forwarded words.\r
--out er--\r
\r
";

#[test]
fn a_message_becomes_a_record_with_all_that_it_says() {
    let store = mailbox();
    let report = import(&store, WHOLE.as_bytes(), 1 << 20);
    assert_eq!((report.read, report.added), (3, 3));
    assert_eq!(
        store.records_of("messages"),
        [json!({
            "id": "CAF+1@mail.example.org",
            "thread_id": "1792",
            "subject": "Über Äpfel und Birnen",
            "from_name": "Jürgen Müller",
            "from_address": "juergen@example.org",
            "to": ["Doe, Jane <jane@example.org>", "me@example.org"],
            "cc": ["a@example.org", "B <b@example.org>"],
            "to_addresses": ["jane@example.org", "me@example.org"],
            "cc_addresses": ["a@example.org", "b@example.org"],
            "participants": [
                "juergen@example.org",
                "jane@example.org",
                "me@example.org",
                "a@example.org",
                "b@example.org",
            ],
            "sent_at": "2024-03-04T11:11:12+01:00",
            "labels": ["Posteingang", "Geöffnet", "A, B"],
            "in_reply_to": "0@example.org",
            "references": ["a@example.org", "0@example.org"],
            "list_id": "marzipan.example.org",
            "body": "Der Preis: 5 €, mit einem weichen Umbruch.\nFrom hier an ist alles gut.",
            "attachments": [
                {"name": "Übersicht.pdf", "media_type": "application/pdf", "size_bytes": 9},
                {"name": null, "media_type": "message/rfc822", "size_bytes": 56},
            ],
        })]
    );
    let files = store.records_of("attachments");
    assert_eq!(
        files[0],
        json!({
            "id": "CAF+1@mail.example.org#1",
            "message_id": "CAF+1@mail.example.org",
            "name": "Übersicht.pdf",
            "media_type": "application/pdf",
            "size_bytes": 9,
            "sent_at": "2024-03-04T11:11:12+01:00",
            "text": null,
            "blob_ref": {
                "blob_id": "blob_sha256_e5c62df5dab5c87b6a015ef3d43597074d1eec433b15f51aec63b8582d0e4ab4",
                "mime_type": "application/pdf",
                "size_bytes": 9,
            },
        })
    );
    let forwarded = "From: c@example.org\nSubject: Inside\n\nForwarded words.";
    assert_eq!(files[1]["text"], forwarded);
    let again = import(&store, WHOLE.as_bytes(), 1 << 20);
    assert_eq!((again.read, again.unchanged), (3, 3));
}

#[test]
fn messages_are_told_apart_as_programs_write_them() {
    let mbox = "\nFrom - Mon Mar 04 10:11:12 2024\nX-Mozilla-Status: 0001\nX-Mozilla-Keys: $label1 work\nSubject: Thunderbird\n\nText.\n>From quoted once.\n>>From quoted twice.\n> From not quoted.\nFrom here it goes on.\n\n\
        From ada@example.org Mon Mar  4 10:11 2024\n>From ada@example.org Mon Mar  4 10:11:12 2024 remote from x\nSubject: Apple\n\nNo blank line at the end\n\
        From MAILER-DAEMON Tue Mar 05 10:11:12 PST 2024\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nX-IMAP: 1\n\nkeep out\n\n\
        From - Tue Mar 05 10:11:12 2024\nX-Mozilla-Status: 0009\nSubject: Deleted\n\nkeep out\n\n\
        From \nSubject: Bare\n\nLast.\n\n\n";
    let store = mailbox();
    let report = import(&store, mbox.as_bytes(), 1 << 20);
    assert_eq!((report.read, report.added), (3, 3), "{report:?}");
    let mut told: Vec<String> = (store.records_of("messages").iter())
        .map(|one| json!([one["subject"], one["body"], one["sent_at"], one["labels"]]).to_string())
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            r#"["Apple","No blank line at the end\n","2024-03-04T10:11:00Z",[]]"#,
            r#"["Bare","Last.\n\n",null,[]]"#,
            r#"["Thunderbird","Text.\nFrom quoted once.\n>From quoted twice.\n> From not quoted.\nFrom here it goes on.\n","2024-03-04T10:11:12Z",["$label1","work"]]"#,
        ]
    );
}

fn text(headers: &str, text: &[u8]) -> Value {
    let head = format!("Subject: x\nMIME-Version: 1.0\n{headers}\n\n");
    body([head.as_bytes(), text].concat())
}

#[test]
fn text_is_read_in_whatever_charset_it_comes() {
    for (says, bytes, expected) in [
        ("charset=utf-8", "naïve".as_bytes(), "naïve"),
        ("charset=\"koi8-r\"", b"\xd0\xd2\xc9\xd7\xc5\xd4", "привет"),
        ("charset=gb2312", b"\xc4\xe3\xba\xc3", "你好"),
        ("charset=iso-2022-jp", b"\x1b$B$3$s\x1b(B", "こん"),
        ("charset=no-such-thing", b"na\xefve", "naïve"),
        ("format=flowed", b"na\xefve \x93so\x94", "naïve “so”"),
        ("name=\"body.txt\"", b"named", "named"),
    ] {
        let headers = format!("Content-Type: text/plain; {says}");
        assert_eq!(text(&headers, bytes), expected, "{says}");
    }
    let raw = message(b"From: J\xfcrgen <j@example.org>\nSubject: \xc3\x84pfel\n\n".as_slice());
    assert_eq!(raw["from_name"], "Jürgen");
    assert_eq!(raw["subject"], "Äpfel");
    assert_eq!(raw["body"], Value::Null);
}

#[test]
fn text_is_found_in_whatever_shape_it_comes() {
    for (encoding, bytes, expected) in [
        ("BASE64", b"SGVs\nbG8=\n".as_slice(), "Hello"),
        ("base64", b"SGVsbG8", "Hello"),
        ("8bit", b"= 100 %=3D", "= 100 %=3D"),
        (
            "quoted-printable",
            b"a =3D b =\nc = d=f6=\r\n=",
            "a = b c = dö",
        ),
    ] {
        let headers = format!("Content-Transfer-Encoding: {encoding}");
        assert_eq!(text(&headers, bytes), expected, "{encoding}");
    }
    let (mixed, alternative) = ("multipart/mixed", "multipart/alternative");
    let rich = "--x\nContent-Type: text/html\n\n<b>rich</b>\n";
    for (kind, bytes, expected) in [
        (
            "text/html",
            "<style>p {}</style><p>Hello</p><p>you &amp; I",
            "Hello\n\nyou & I",
        ),
        (mixed, "never separated", "never separated"),
        (mixed, "--y\n\nother", "--y\n\nother"),
        (mixed, &format!("--x\n\none\n{rich}"), "one\n\nrich"),
        (alternative, &format!("--x\n\n \n{rich}--x--\n"), "rich"),
        (
            alternative,
            &format!("{rich}--x\n\nplain\n--x--\n"),
            "plain",
        ),
    ] {
        let headers = format!("Content-Type: {kind}; boundary=x");
        assert_eq!(text(&headers, bytes.as_bytes()), expected, "{bytes}");
    }
    assert_eq!(text("Content-Type: multipart/mixed", b"none"), "none");
}

#[test]
fn a_date_that_cannot_be_gives_way_to_one_that_can() {
    let sent_at = |headers: &str| {
        message(format!(
            "From - Tue Mar 05 10:11:12 2024\n{headers}\nSubject: x\n\nx\n"
        ))["sent_at"]
            .clone()
    };
    let received = "Received: from a by b; Mon, 4 Mar 2024 02:11:14 -0800 (PST)";
    for (headers, expected) in [
        (
            "Date: 4 Mar 24 11:11 GMT".to_owned(),
            "2024-03-04T11:11:00Z",
        ),
        (
            format!("Date: Fri, 31 Feb 2024 10:00:00 +0000\n{received}"),
            "2024-03-04T02:11:14-08:00",
        ),
        (
            format!("Date: Thu, 1 Jan 1970 00:00:00 +0000\n{received}"),
            "2024-03-04T02:11:14-08:00",
        ),
        ("Date: yesterday".to_owned(), "2024-03-05T10:11:12Z"),
        (
            "Date: Mon, 4 Mar 99999 10:11:12 +0000".to_owned(),
            "2024-03-05T10:11:12Z",
        ),
        (
            "Date: Mon, 4 Mar 67560 10:11:12 +0000".to_owned(),
            "2024-03-05T10:11:12Z",
        ),
        ("X-No: date".to_owned(), "2024-03-05T10:11:12Z"),
    ] {
        assert_eq!(sent_at(&headers), expected, "{headers}");
    }
    assert_eq!(
        message("Subject: x\nFrom: a@example.org\n\nx")["sent_at"],
        Value::Null
    );
}

#[test]
fn a_message_without_an_id_of_its_own_has_a_stable_one() {
    let one = message("Subject: x\nFrom: a@example.org\nX-Gmail-Labels: Inbox\n\nHello\n");
    let other =
        message("X-Gmail-Labels: Archive\r\nSubject: x\r\nFrom: a@example.org\r\n\r\nHello\r\n");
    assert_eq!(one["id"], other["id"]);
    assert!(one["id"].as_str().unwrap().starts_with("sha256:"), "{one}");
    assert_eq!(one["thread_id"], one["id"]);
    let differs = message("Subject: x\nFrom: a@example.org\n\nHello!\n");
    assert_ne!(one["id"], differs["id"]);
    let long = format!("Message-ID: <{}@x>\nSubject: x\n\n", "a".repeat(600));
    assert!(message(long)["id"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn copies_under_one_id_are_one_record_if_they_say_the_same() {
    let copy = |subject: &str| {
        format!("From - Mon Mar 04 10:11:12 2024\nMessage-ID: <a@x>\nSubject: {subject}\n\nx\n\n")
    };
    let mbox = [
        copy("One"),
        copy("[list] One"),
        copy("One"),
        copy("[list] One"),
    ]
    .concat();
    let store = mailbox();
    let report = import(&store, mbox.as_bytes(), 1 << 20);
    assert_eq!((report.read, report.added, report.unchanged), (4, 2, 2));
    let again = import(&store, mbox.as_bytes(), 1 << 20);
    assert_eq!((again.read, again.unchanged), (4, 4));
    let keys: Vec<Value> = store
        .records_of("messages")
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(keys[0], "a@x");
    assert!(keys[1].as_str().unwrap().starts_with("a@x#"), "{keys:?}");
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line_and_the_rest_kept() {
    let parts = "--x\n\n\n".repeat(1_001);
    let mbox = format!(
        "From - Mon Mar 04 10:11:12 2024\nnot a header\n\nx\n\n\
         From - Mon Mar 04 10:11:12 2024\nSubject: long\n\n{}\n\n\
         From - Mon Mar 04 10:11:12 2024\nSubject: many\nContent-Type: multipart/mixed; boundary=x\n\n{parts}\n\
         From - Mon Mar 04 10:11:12 2024\nSubject: good\n\nx\n",
        "long ".repeat(2_000)
    );
    let store = mailbox();
    let report = import(&store, mbox.as_bytes(), 9_000);
    assert_eq!((report.read, report.added, report.rejected), (4, 1, 3));
    let told = ["1 malformed_mail", "6 line_too_long", "11 malformed_mail"];
    assert_eq!(refused_codes(&report), told);
    assert_eq!(store.records_of("messages")[0]["subject"], "good");
}

#[test]
fn parts_within_parts_end_somewhere() {
    let mut deep = String::from("Subject: deep\n");
    deep.extend(
        (0..5_000).map(|level| {
            format!("Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n")
        }),
    );
    let deep = message(deep);
    assert_eq!(deep["attachments"].as_array().unwrap().len(), 1);
    let mut nested = String::from("Subject: nested\n");
    nested.push_str(&"Content-Type: message/rfc822\n\n".repeat(20_000));
    assert_eq!(
        message(nested)["attachments"][0]["media_type"],
        "message/rfc822"
    );
}

#[test]
fn an_empty_mailbox_holds_nothing() {
    for nothing in [
        "",
        "\n\n",
        "From - Mon Mar 04 10:11:12 2024\nX-Mozilla-Status: 0008\nSubject: x\n\n",
    ] {
        let report = import(&mailbox(), nothing.as_bytes(), 1 << 20);
        let notes = ["the input holds no record, so nothing was imported"];
        assert_eq!(
            (report.read, &report.notes[..]),
            (0, &notes.map(str::to_owned)[..]),
            "{nothing}"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered_for_twice_alike(
        pieces in prop::collection::vec(prop_oneof![
            Just(b"From - Mon Mar 04 10:11:12 2024\n".to_vec()),
            Just(b"From: =?utf-8?q?a?= <a@b>\r\n".to_vec()),
            Just(b"Subject: x\n".to_vec()),
            Just(b"Date: Mon, 4 Mar 2024 11:11:12 +0100\n".to_vec()),
            Just(b"Message-ID: <a@b>\n".to_vec()),
            Just(b"Content-Type: multipart/alternative; boundary=\"b\"\n".to_vec()),
            Just(b"Content-Type: message/rfc822\n".to_vec()),
            Just(b"Content-Type: text/html; charset=shift_jis\n".to_vec()),
            Just(b"Content-Transfer-Encoding: base64\n".to_vec()),
            Just(b"Content-Transfer-Encoding: quoted-printable\n".to_vec()),
            Just(b"Content-Disposition: attachment; filename*0*=utf-8''%e2; filename*1=x\n".to_vec()),
            Just(b"\n--b\n".to_vec()),
            Just(b"\n--b--\n".to_vec()),
            Just(b"\n".to_vec()),
            prop::collection::vec(any::<u8>(), 0..40),
        ], 0..30)
    ) {
        let bytes = pieces.concat();
        let store = mailbox();
        let first = import(&store, &bytes, 1_000);
        let second = import(&store, &bytes, 1_000);
        prop_assert_eq!(first.read, second.read);
        prop_assert_eq!(second.unchanged + second.rejected, second.read);
    }
}
