//! Connectors and connections: declared once, configured often, removed for good.

use contract::declaration::Declaration;
use store::StoreError;
use store::catalog::{Declared, NewConnection};

use crate::fixture::{
    LEDGER, MAIL, Work, add_ledger, add_mail, all, connection, message, on_every_backend,
    on_every_mailbox, stream,
};

fn new(name: &str, id: Option<&str>) -> NewConnection {
    NewConnection {
        connector: "mail".parse().unwrap(),
        name: name.to_owned(),
        id: id.map(connection),
    }
}

#[test]
fn a_declaration_is_added_once_and_kept_as_written() {
    on_every_backend(|store| {
        let mail = Declaration::parse(MAIL).unwrap();
        let key = mail.connector_key();
        assert!(store.declaration(key).is_none());
        assert_eq!(store.declare(&mail).unwrap(), Declared::Added);
        assert_eq!(store.declare(&mail).unwrap(), Declared::Unchanged);
        let respelled = MAIL.replace('\n', " ");
        let respelled = Declaration::parse(&respelled).unwrap();
        assert_eq!(store.declare(&respelled).unwrap(), Declared::Unchanged);
        assert_eq!(store.declaration(key).unwrap().as_str(), MAIL);
        store.declare(&Declaration::parse(LEDGER).unwrap()).unwrap();
        let declared = store.declarations();
        let keys: Vec<&str> = declared
            .iter()
            .map(|declaration| declaration.connector_key().as_str())
            .collect();
        assert_eq!(keys, ["ledger", "mail"]);
    });
}

#[test]
fn connections_are_listed_oldest_first_with_their_empty_streams() {
    on_every_mailbox(|store| {
        add_ledger(store, "books");
        add_mail(store, "home");
        let ids: Vec<String> = store
            .connections()
            .iter()
            .map(|connection| connection.id.to_string())
            .collect();
        assert_eq!(ids, ["work", "books", "home"]);
        let stats = store.stream_stats().unwrap();
        assert_eq!(stats.len(), 2 + 3 + 2);
        assert!(stats.iter().all(|stats| stats.records == 0));
        let found = store.connection(&connection("books")).unwrap();
        assert_eq!(found.connector.as_str(), "ledger");
        assert_eq!(
            found.created_at,
            crate::fixture::instant("2026-06-01T12:00:00Z")
        );
        assert_eq!(store.connection(&connection("nobody")), None);
    });
}

#[test]
fn a_connection_without_an_id_gets_a_free_one_made_of_connector_and_name() {
    // Decision 8.
    on_every_backend(|store| {
        store.declare(&Declaration::parse(MAIL).unwrap()).unwrap();
        let id = |name: &str| {
            store
                .add_connection(new(name, None))
                .unwrap()
                .id
                .to_string()
        };
        assert_eq!(id("Work"), "mail-work");
        assert_eq!(id("Work!"), "mail-work-2");
        assert_eq!(id("work"), "mail-work-3");
        assert_eq!(id("日本"), "mail");
        let long = "a very long name that does not fit into an id";
        let first = id(long);
        let second = id(long);
        assert!(first.len() <= 32 && second.len() <= 32 && second.ends_with("-2"));
        assert_ne!(first, second);
    });
}

#[test]
fn a_taken_id_and_an_unknown_connector_are_refused() {
    on_every_backend(|store| {
        let error = store.add_connection(new("x", None)).unwrap_err();
        assert!(matches!(error, StoreError::UnknownConnector(_)), "{error}");
        add_mail(store, "work");
        let error = store.add_connection(new("x", Some("work"))).unwrap_err();
        assert!(matches!(&error, StoreError::ConnectionExists(id) if id.as_str() == "work"));
        assert_eq!(store.connections().len(), 1);
    });
}

#[test]
fn renaming_changes_the_label_and_nothing_else() {
    on_every_backend(|store| {
        let before = add_mail(store, "work");
        store.put(vec![message("m1", "x", "")]);
        let after = store.rename_connection(&before.id, "Büro").unwrap();
        assert_eq!(after.display_name, "Büro");
        assert_eq!(
            (&after.id, after.created_at),
            (&before.id, before.created_at)
        );
        assert_eq!(store.connection(&before.id), Some(after));
        assert_eq!(all(store, &stream("work", "messages")).len(), 1);
        let error = store
            .rename_connection(&connection("nobody"), "x")
            .unwrap_err();
        assert!(matches!(error, StoreError::UnknownConnection(_)), "{error}");
    });
}

#[test]
fn counts_follow_every_write() {
    on_every_mailbox(|store| {
        store.put(vec![message("a", "", ""), message("b", "", "")]);
        store.put(vec![
            message("a", "x", ""),
            crate::fixture::delete("messages", "b"),
        ]);
        let stats = store.stream_stats().unwrap();
        let messages = stats
            .iter()
            .find(|stats| stats.stream == stream("work", "messages"));
        assert_eq!(messages.unwrap().records, 1);
    });
}

#[test]
fn a_name_that_not_every_database_can_keep_is_refused() {
    on_every_mailbox(|store| {
        let refused = store.rename_connection(&connection("work"), "a\0b");
        assert!(matches!(refused, Err(StoreError::NulInName)));
        let refused = store.add_connection(new("\0", None));
        assert!(matches!(refused, Err(StoreError::NulInName)));
        assert_eq!(store.connections().len(), 1);
    });
}
