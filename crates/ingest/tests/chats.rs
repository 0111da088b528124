//! What exports of chats and social networks hold that looks alike, is broken, or is written in a language that nobody knows here.

use std::fs;

use crate::formats;
use crate::memory::{Memory, refused_codes};
use ingest::container::{Limits, walk};
use ingest::{Companions, Export, Format, ImportReport, Input};
use tempfile::TempDir;

/// Imports what a folder with these files holds of an export.
fn import(store: &Memory, export: Export, files: &[(&str, &str)]) -> ImportReport {
    let folder = TempDir::new().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let contents = walk(folder.path(), Limits::default()).unwrap().unwrap();
    let (taken, ..) = formats::sorted(export, &contents);
    formats::import(store, export, &taken)
}

/// The values of a member in the records of a stream, in order.
fn values(store: &Memory, stream: &str, member: &str) -> Vec<String> {
    let records = store.records.borrow();
    let of_stream = records
        .iter()
        .filter(|((of, _), _)| of.as_str() == stream)
        .map(|(_, (_, body))| {
            let value: serde_json::Value = serde_json::from_str(body).unwrap();
            value[member].as_str().unwrap_or("none").to_owned()
        });
    let mut values: Vec<String> = of_stream.collect();
    values.sort();
    values
}

#[test]
fn people_of_one_name_stay_several_also_when_another_of_them_comes() {
    let friends = |years: &[u32]| {
        let friend = |year: &u32| format!(r#"{{"name":"Jo Kim","timestamp":{year}00000000}}"#);
        let list: Vec<String> = years.iter().map(friend).collect();
        format!(r#"{{"friends_v2":[{}]}}"#, list.join(","))
    };
    let store = Memory::with_export(Export::FACEBOOK);
    let path = "connections/friends/your_friends.json";
    let two = friends(&[14, 13]);
    let report = import(&store, Export::FACEBOOK, &[(path, &two)]);
    assert_eq!((report.added, report.updated), (2, 0));
    let again = import(&store, Export::FACEBOOK, &[(path, &two)]);
    assert_eq!((again.added, again.updated), (0, 0));
    import(&store, Export::FACEBOOK, &[(path, &friends(&[15, 14, 13]))]);
    assert_eq!(
        values(&store, "people", "since"),
        [
            "2011-03-13T07:06:40.000Z",
            "2014-05-13T16:53:20.000Z",
            "2017-07-14T02:40:00.000Z"
        ]
    );
}

#[test]
fn a_list_of_meta_keeps_what_stands_around_a_broken_entry_and_before_its_end() {
    let comments = r#"{"comments_v2":[
        {"timestamp":1704001000,"data":[{"comment":{"comment":"one"}}]},
        {"timestamp":1704001100,"data":[{"comment":{"comment":"broken" "x"}}]},
        {"timestamp":1704001200,"attachments":[{"data":[{"media":{"uri":"a/knot.jpg"}}]}]},
        {"timestamp":1704001300,"data":[{"comment":{"comm"#;
    let mut cases = formats::cases().into_iter();
    let case = cases.find(|case| case.export == "facebook").unwrap();
    let contents = walk(&case.path(), Limits::default()).unwrap().unwrap();
    let (taken, ..) = formats::sorted(case.export(), &contents);
    let store = formats::import_bytes(&case, taken[0], comments.as_bytes());
    assert_eq!(values(&store, "posts", "text"), ["none", "one"]);
    assert_eq!(values(&store, "posts", "kind"), ["comment", "comment"]);
}

#[test]
fn a_conversation_that_broke_off_keeps_what_stood_before() {
    let chat = r#"{"participants":[{"name":"Jo"},{"name":"Ida"}],"messages":[
        {"sender_name":"Jo","timestamp_ms":1704489330000,"content":"two"},
        {"sender_name":"Jo","timestamp_ms":1704489320000,"content":"one"},
        {"sender_name":"Jo","timestamp_ms":17044893"#;
    let store = Memory::with_export(Export::FACEBOOK);
    let path = "messages/inbox/jo_1/message_1.json";
    let report = import(&store, Export::FACEBOOK, &[(path, chat)]);
    assert_eq!((report.added, report.rejected), (2, 1));
    assert_eq!(values(&store, "messages", "text"), ["one", "two"]);
    assert_eq!(
        values(&store, "messages", "conversation_id"),
        ["jo_1", "jo_1"]
    );
}

#[test]
fn a_file_of_meta_may_be_larger_than_what_is_held() {
    let long = "x".repeat(51 << 20);
    let comment = |said: &str| {
        format!(r#"{{"timestamp":1704001000,"data":[{{"comment":{{"comment":"{said}"}}}}]}}"#)
    };
    let entries = [comment("one"), comment(&long), comment("two")].join(",\n");
    let comments = format!(r#"{{"comments_v2":[{entries}]}}"#);
    let words = "x".repeat(1 << 20);
    let message = |number: u64| {
        format!(r#"{{"sender_name":"Jo","timestamp_ms":{number},"content":"{number} {words}"}}"#)
    };
    // The newest comes first, and two were sent at once.
    let sent = (1_704_000_000_000..1_704_000_000_060)
        .rev()
        .chain([1_704_000_000_000]);
    let sent: Vec<String> = sent.map(message).collect();
    let chat = format!(
        r#"{{"participants":[{{"name":"Jo"}}],"messages":[{}],"title":"Boats","thread_path":"inbox/boats_7"}}"#,
        sent.join(",\n")
    );
    let store = Memory::with_export(Export::FACEBOOK);
    let files = [
        ("comments/comments.json", comments.as_str()),
        ("messages/inbox/jo_1/message_1.json", chat.as_str()),
    ];
    let report = import(&store, Export::FACEBOOK, &files);
    assert_eq!(values(&store, "posts", "text"), ["one", "two"]);
    assert_eq!(refused_codes(&report), ["2 line_too_long"]);
    let chats = values(&store, "messages", "conversation_id");
    assert_eq!((chats.len(), chats[0].as_str()), (61, "boats_7"));
    assert_eq!(values(&store, "messages", "conversation")[60], "Boats");
    let again = import(&store, Export::FACEBOOK, &files);
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 63));
}

#[test]
fn a_table_of_discord_without_its_folder_is_of_no_conversation() {
    let store = Memory::with_export(Export::DISCORD);
    let message = r#"[{"ID":"1214500000000000001","Timestamp":"2024-01-05 21:15:30","Contents":"x","Attachments":""}]"#;
    let report = import(&store, Export::DISCORD, &[("loose/chat.json", message)]);
    assert_eq!((report.added, report.rejected), (1, 0));
    assert_eq!(values(&store, "messages", "conversation_id"), ["none"]);
}

#[test]
fn half_days_in_an_unknown_language_are_noted() {
    for (line, notes) in [
        ("13/2/24, xyz 9:15 - Anna: x\n", 1),
        ("13/2/24, xyz 21:15 - Anna: x\n", 0),
        ("13/2/24, பிற்பகல் 9:15 - Anna: x\n", 0),
    ] {
        let store = Memory::with_export(Export::WHATSAPP);
        let report = import(&store, Export::WHATSAPP, &[("Anna.txt", line)]);
        assert_eq!(report.notes.len(), notes, "{line}: {:?}", report.notes);
        let said = report
            .notes
            .iter()
            .all(|note| note.contains("twelve hours"));
        assert!(said, "{:?}", report.notes);
    }
}

#[test]
fn a_loose_conversation_is_of_the_service_that_its_messages_name() {
    let chat = |message: &str| {
        format!(
            r#"{{"participants":[{{"name":"noor"}}],"messages":[{{"sender_name":"noor","timestamp_ms":1704103200000{message}}}],"title":"noor"}}"#
        )
    };
    for (path, message, export) in [
        ("chat.json", r#","content":"hi""#, Export::FACEBOOK),
        (
            "chat.json",
            r#","share":{"link":"https://i.example/p/1","original_content_owner":"ada"}"#,
            Export::INSTAGRAM,
        ),
        (
            "message_1.json",
            r#","photos":[{"uri":"your_instagram_activity/messages/inbox/noor_1/photos/1.jpg"}]"#,
            Export::INSTAGRAM,
        ),
        // Where it stands counts for more.
        (
            "facebook-ida/messages/inbox/noor_1/message_1.json",
            r#","share":{"original_content_owner":"ada"}"#,
            Export::FACEBOOK,
        ),
    ] {
        let bytes = std::io::Cursor::new(chat(message).into_bytes());
        let input = Input::from_file(path, path, bytes).unwrap();
        assert_eq!(input.format().unwrap(), Format::Export(export), "{message}");
    }
}

#[test]
fn connections_of_whom_nothing_is_told_are_counted() {
    let table = "First Name,Last Name,URL,Email Address,Company,Position,Connected On\n\
                 Noor,Haddad,https://l.example/in/noor,,,,05 Mar 2024\n,,,,,,06 Mar 2024\n,,,,,,07 Mar 2024\n";
    let store = Memory::with_export(Export::LINKEDIN);
    let report = import(&store, Export::LINKEDIN, &[("Connections.csv", table)]);
    assert_eq!((report.added, report.rejected), (1, 0));
    assert!(
        report.notes[0].ends_with("are left out: 2"),
        "{:?}",
        report.notes
    );
}

#[test]
fn an_export_in_utf_16_is_what_it_is_in_utf_8() {
    let utf_16 = |text: &str| {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let chat = "31.12.23, 21:15 - Mara: Grüß dich\r\n31.12.23, 21:16 - Jonas: Hallo\r\n";
    let input = |name: &str, text: &str| {
        let bytes = std::io::Cursor::new(utf_16(text));
        Input::from_file(name, name, bytes).unwrap()
    };
    let whatsapp = input("Mara.txt", chat);
    assert_eq!(whatsapp.format().unwrap(), Format::Export(Export::WHATSAPP));
    let store = Memory::with_export(Export::WHATSAPP);
    let (acceptor, companions) = (store.acceptor(), Companions::default());
    let report = store.import(
        Export::WHATSAPP
            .importer(whatsapp, &acceptor, &companions)
            .as_mut(),
    );
    assert_eq!((report.added, report.rejected), (3, 0));
    assert_eq!(values(&store, "messages", "text"), ["Grüß dich", "Hallo"]);
    // Other texts are read by whoever takes them.
    let letter = input("letter.txt", "Liebe Ida");
    assert_eq!(letter.format().unwrap(), Format::Export(Export::DOCUMENTS));
}

#[test]
fn statements_that_break_off_are_named() {
    let ofx = "OFXHEADER:100\n\n<OFX><STMTRS><CURDEF>EUR<BANKACCTFROM><BANKID>1<ACCTID>2</BANKACCTFROM>\
               <BANKTRANLIST><STMTTRN><DTPOSTED>20240103<TRNAMT>-1.00<FITID>a</STMTTRN>";
    let end = "</BANKTRANLIST></STMTRS></OFX>\n";
    let swift = ":20:X\n:25:DE02/1\n:60F:C240301EUR1,00\n:61:240304D12,50NTRFNONREF\n";
    let qif = "!Type:Bank\nD1/13/24\nT-1.00\n^\n";
    let paypal = "\"Date\",\"Time\",\"TimeZone\",\"Name\",\"Type\",\"Status\",\"Currency\",\"Gross\",\"Fee\",\"Net\",\
                  \"From Email Address\",\"To Email Address\",\"Transaction ID\",\"Balance\"\n";
    for (name, text, rejected) in [
        ("a.ofx", [ofx, end].concat(), 0),
        ("a.ofx", ofx.to_owned(), 1),
        ("a.sta", [swift, ":62F:C240304EUR2,00\n-\n"].concat(), 0),
        ("a.sta", swift.to_owned(), 1),
        ("a.qif", qif.to_owned(), 0),
        ("a.qif", format!("{qif}D1/14/24\nT-2"), 1),
        ("a.csv", format!("{paypal}\"13/01/2024\",\"10:0"), 1),
    ] {
        let store = Memory::with_export(Export::BANK);
        let report = import(&store, Export::BANK, &[(name, &text)]);
        assert_eq!(report.rejected, rejected, "{text}");
    }
}
