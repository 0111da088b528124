//! Databases of browsers: histories under any name, and what is left of everything else that browsers keep.

use std::fs;

use crate::memory::Memory;
use crate::sheets::make_database;
use ingest::{Companions, Export, FileContents, Format, Input};
use tempfile::TempDir;

#[test]
fn a_history_with_large_pages_is_known_under_any_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("places");
    make_database(
        &path,
        "PRAGMA page_size = 65536; CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT, title TEXT);
             CREATE TABLE moz_historyvisits (id INTEGER PRIMARY KEY, place_id INTEGER, visit_date INTEGER, visit_type INTEGER);",
    );
    let input = Input::from_file("x", "x", fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(input.format().unwrap(), Format::Export(Export::BROWSER));
}

#[test]
fn what_is_no_table_of_a_history_is_not_run() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("History");
    make_database(
        &path,
        "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER, transition INTEGER);
             INSERT INTO visits VALUES (1, 1, 13354106400000000, 0);
             CREATE VIEW urls AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'https://x' AS url, '' AS title FROM n;",
    );
    let store = Memory::with_export(Export::BROWSER);
    let (acceptor, companions) = (store.acceptor(), Companions::default());
    let input = Input::from_file("History", "History", fs::File::open(&path).unwrap()).unwrap();
    let mut importer = Export::BROWSER.importer(input, &acceptor, &companions);
    let (_, error) = store.try_import(importer.as_mut(), "History");
    let error = error.unwrap();
    assert!(error.to_string().contains("no history"), "{error}");
}

#[test]
fn what_browsers_keep_for_themselves_is_no_table_under_any_name() {
    let folder = TempDir::new().unwrap();
    for (name, sql) in [
        (
            "anything.db",
            "CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR); CREATE TABLE bounces(site TEXT);",
        ),
        (
            "copy",
            "CREATE TABLE cookies(creation_utc INTEGER NOT NULL, host_key TEXT);",
        ),
        (
            "forms",
            "CREATE TABLE moz_formhistory (id INTEGER PRIMARY KEY, value TEXT);",
        ),
        (
            "keys",
            "CREATE TABLE nssPrivate (id PRIMARY KEY UNIQUE ON CONFLICT ABORT, a0);",
        ),
        ("x.default-release/any.db", "CREATE TABLE a(b);"),
        ("Safari/CloudTabs.db", "CREATE TABLE a(b);"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make_database(&path, sql);
        let input = Input::from_file(name, name, fs::File::open(&path).unwrap()).unwrap();
        assert!(matches!(input.contents(), FileContents::Left(_)), "{name}");
    }
}

#[test]
fn settings_and_secrets_are_no_tables_under_any_name() {
    for (name, text) in [
        ("Preferences", "{\"account_info\":[]}"),
        ("Default/Secure Preferences", "{\"protection\":{}}"),
        ("Local State", "{\"os_crypt\":{}}"),
        (
            "Passwords.csv",
            "Title,URL,Username,Password,Notes,OTPAuth\nx,https://x.example,ida,secret,,\n",
        ),
        (
            "export.csv",
            "\"url\",\"username\",\"password\",\"httpRealm\"\r\n\"https://x.example\",\"ida\",\"secret\",\r\n",
        ),
        (
            "vault.csv",
            "name,login_uri,login_username,login_password\nx,y,ida,secret\n",
        ),
        (
            "PaymentCards.json",
            "{\"metadata\":{\"data_type\":\"payment_cards\"},\"payment_cards\":[{\"card_number\":\"1\"}]}",
        ),
        (
            "keepass.csv",
            "\"Account\",\"Login Name\",\"Password\",\"Web Site\"\n\"x\",\"ida\",\"secret\",\"\"\n",
        ),
        (
            "vault.json",
            "{\"encrypted\":false,\"folders\":[],\"items\":[{\"login\":{\"password\":\"secret\"}}]}",
        ),
        (
            "locked.json",
            "{\"encrypted\":true,\"passwordProtected\":true,\"salt\":\"x\",\"data\":\"y\"}",
        ),
    ] {
        let input = Input::from_file(name, name, text.as_bytes()).unwrap();
        assert!(matches!(input.contents(), FileContents::Left(_)), "{name}");
    }
}
