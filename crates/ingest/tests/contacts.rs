//! Contact files of all versions, as phones and programs really write them, become contacts.

use crate::memory::{self, Memory, refused};
use ingest::{ContactsImporter, Export, ImportReport};
use proptest::prelude::*;
use serde_json::{Value, json};

fn store() -> Memory {
    Memory::with_export(Export::CONTACTS)
}

fn import(store: &Memory, bytes: &[u8], limit: usize) -> ImportReport {
    let acceptor = store.acceptor();
    store.import(&mut ContactsImporter::with_limit(bytes, &acceptor, limit))
}

/// What a file becomes when nothing is wrong with it.
fn records(file: &[u8]) -> Vec<Value> {
    let store = store();
    let report = import(&store, file, 1 << 20);
    assert_eq!(report.rejected, 0, "{:?}", report.rejections);
    let again = import(&store, file, 1 << 20);
    assert_eq!(again.unchanged, report.read);
    store.records_of("contacts")
}

fn contact(version: &str, properties: &str) -> Value {
    let file = format!("BEGIN:VCARD\r\nVERSION:{version}\r\n{properties}\r\nEND:VCARD\r\n");
    let mut records = records(file.as_bytes());
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn a_contact_keeps_what_people_need_to_know() {
    let found = records(include_bytes!("exports/apple.vcf"));
    let expected: Value = serde_json::from_str(include_str!("exports/apple.json")).unwrap();
    assert_eq!(Value::Array(found), expected);
}

#[test]
fn version_two_has_other_encodings_types_folds_and_escapes() {
    let found = contact(
        "2.1",
        "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;\r\n\
         TEL;CELL;PREF:0170 1\r\n\
         TEL;HOME;VOICE:089 1\r\n\
         EMAIL;INTERNET:joerg@example.org\r\n\
         ADR;HOME;QUOTED-PRINTABLE:;;Gasse 1=0D=0A=\r\nTop 2;Wien;;1010;=C3=96sterreich\r\n\
         NOTE:C:\\new is a\r\n folder\\; really\r\n\
         BDAY:19800229\r\n\
         PHOTO;ENCODING=BASE64;JPEG:/9j/4AAQ\r\nSkZJRgABAQAAAQABAAD=\r\n\r\n\
         X-ANDROID-CUSTOM:vnd.android.cursor.item/nickname;Jo;1;;;;;;;;;;;;;",
    );
    assert_eq!(
        found,
        json!({
            "id": found["id"], "name": "Jörg Müller", "given_name": "Jörg", "family_name": "Müller",
            "kind": "individual", "email": "joerg@example.org", "phone": "0170 1",
            "emails": [{ "address": "joerg@example.org" }],
            "phones": [{ "number": "0170 1", "label": "cell" }, { "number": "089 1", "label": "home" }],
            "addresses": [{
                "street": "Gasse 1\nTop 2", "city": "Wien", "postal_code": "1010", "country": "Österreich",
                "label": "home",
            }],
            "city": "Wien", "country": "Österreich",
            "reached_at": "joerg@example.org\n0170 1\n089 1\nGasse 1, Top 2, 1010 Wien, Österreich",
            "birthday": "1980-02-29", "note": "C:\\new is a folder; really",
        })
    );
}

#[test]
fn version_four_writes_addresses_as_uris_and_counts_preferences() {
    let found = contact(
        "4.0",
        "FN:Example Group\r\nKIND:group\r\nUID:urn:uuid:4fbe\r\n\
         TEL;VALUE=uri;PREF=2;TYPE=\"voice,home\":tel:+1-555-555-5555\r\n\
         TEL;VALUE=uri;PREF=1;TYPE=work:tel:+1-555-555-0000;ext=5\r\n\
         BDAY:--0412\r\nANNIVERSARY;VALUE=text:circa 1800\r\nREV:20260301T100000Z\r\n\
         NOTE:one\r\nNOTE:two",
    );
    assert_eq!(
        found,
        json!({
            "id": "urn:uuid:4fbe", "name": "Example Group", "kind": "group", "phone": "+1-555-555-0000;ext=5",
            "phones": [
                { "number": "+1-555-555-5555", "label": "home" },
                { "number": "+1-555-555-0000;ext=5", "label": "work" },
            ],
            "reached_at": "+1-555-555-5555\n+1-555-555-0000;ext=5",
            "birthday": "--04-12", "anniversary": "circa 1800", "updated_at": "2026-03-01T10:00:00.000Z",
            "note": "one\n\ntwo",
        })
    );
}

#[test]
fn birthdays_are_days_where_they_can_be() {
    for (written, held) in [
        ("BDAY:1985-04-12", "1985-04-12"),
        ("BDAY:1985-04-12T00:00:00Z", "1985-04-12"),
        ("BDAY;VALUE=date:19850412", "1985-04-12"),
        ("BDAY:--04-12", "--04-12"),
        ("BDAY:1985-02-30", "1985-02-30"),
        ("BDAY:--0230", "--0230"),
        ("BDAY:1985", "1985"),
        ("BDAY:in spring", "in spring"),
    ] {
        let found = contact("3.0", &format!("FN:A\r\n{written}"));
        assert_eq!(found["birthday"], held, "{written}");
    }
}

#[test]
fn without_a_uid_equal_contacts_are_one_and_others_are_others() {
    let one = contact("3.0", "FN:Anna\r\nitem1.TEL:1\r\nREV:20260101T000000Z");
    let same = contact("3.0", "FN:Anna\r\nitem7.TEL:1\r\nREV:20260202T000000Z");
    let other = contact("3.0", "FN:Anna\r\nitem1.TEL:2");
    assert!(one["id"].as_str().unwrap().starts_with("sha256-"));
    assert_eq!(one["id"], same["id"]);
    assert_ne!(one["id"], other["id"]);
}

#[test]
fn bad_contacts_are_refused_by_line_and_the_rest_is_kept() {
    let file = b"BEGIN:VCARD\nVERSION:3.0\nEND:VCARD\n\
        BEGIN:VCARD\nFN:J\xFCrgen\nEND:VCARD\n\
        FN:outside\n\
        begin:vcard\nfn:kept\nuid:kept\nend:vcard\n\
        BEGIN:VCALENDAR\nEND:VCALENDAR\n\
        BEGIN:VCARD\nFN:open\nBEGIN:VCARD\nFN:last";
    let store = store();
    let report = import(&store, file, 1 << 20);
    assert_eq!(
        refused(&report),
        [
            "1 malformed_export: the contact has no name, organization, address or number",
            "4 invalid_utf8: line 5: the value of FN is not UTF-8",
            "7 malformed_export: FN stands outside of any contact",
            "12 unsupported_item: 'VCALENDAR' is no contact (VCARD)",
            "14 malformed_export: VCARD is not ended before line 16",
            "16 malformed_export: VCARD is not ended before the file ends",
        ]
    );
    assert_eq!((report.read, report.added), (7, 1));
    assert!(store.body("contacts", "kept").is_some());
}

/// Pieces of which contacts, right and wrong, are put together.
const PIECES: &[&str] = &[
    "BEGIN:VCARD",
    "END:VCARD",
    "BEGIN:X",
    "END:X",
    "VERSION:2.1",
    "FN:Anna",
    "N:;;;",
    "ORG:;",
    "TEL;PREF=300:1",
    "TEL;VALUE=uri:tel:",
    "ADR:",
    "ADR;QUOTED-PRINTABLE:;=C3=",
    "UID:1",
    "BDAY:--",
    "BDAY;X-APPLE-OMIT-YEAR=:--0101",
    "item1.TEL:2",
    "item1.X-ABLABEL:_$!<>!$_",
    "PHOTO:",
    "NOTE:\\",
    "REV:99991231T235959Z",
    "CATEGORIES:,",
    "X",
    "\u{feff}",
    " ",
];

proptest! {
    #[test]
    fn whatever_the_bytes_every_contact_is_answered_for_and_twice_is_the_same(
        bytes in memory::bytes_of(PIECES, &["\n", "\r\n", "=\n", "\n ", ""]),
        limit in proptest::sample::select(vec![300, 1 << 20]),
    ) {
        let store = store();
        store.twice_alike(|| import(&store, &bytes, limit));
    }
}
