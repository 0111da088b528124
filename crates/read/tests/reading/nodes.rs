//! What a read costs on a node, where whatever is asked of the store may be a round trip to the database. Needs the PostgreSQL that
//! `TEST_POSTGRES` names.

use std::sync::Arc;
use std::time::SystemTime;

use contract::time::Clock;
use serde_json::json;
use store::{BlobPlace, PostgresOptions, PostgresStore};

use crate::fixture::{MAIL, NOON, Reader, World, one, words};

#[expect(
    clippy::disallowed_methods,
    reason = "says where tests run, and nothing of the program"
)]
fn node() -> Option<(World, Arc<PostgresStore>)> {
    let url = std::env::var("TEST_POSTGRES").ok()?;
    let folder = tempfile::tempdir().unwrap();
    let started = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let owner = format!("r{}-{}", std::process::id(), started.as_nanos());
    let clock: Arc<dyn Clock> = Arc::new(NOON);
    let options = PostgresOptions {
        url,
        ca: None,
        add_owner: true,
        data_dir: folder.path().join("node"),
        blobs: BlobPlace::Folder(folder.path().join("blobs")),
        node: owner.clone(),
        owner,
        holder: "a test of the reader".to_owned(),
        clock,
        secret: [7; 32],
        other_secret: None,
    };
    let store = Arc::new(PostgresStore::open(options).unwrap());
    Some((World::on(store.clone(), folder), store))
}

#[test]
fn a_read_asks_the_database_no_more_often_where_more_is_granted() {
    let Some((world, store)) = node() else { return };
    let connections: Vec<String> = (0..8).map(|at| format!("work{at}")).collect();
    for id in &connections {
        world.connect(MAIL, id, id);
        let record = json!({"id": format!("m-{id}"), "subject": format!("word{id}")});
        world.put(id, "messages", &record);
    }
    let client = |connections: &[String]| {
        world.client(
            "demo_mail",
            json!([{"name": "messages", "instance_ids": connections, "fields": ["id", "subject"]}]),
        )
    };
    let trips = |reader: &Reader, read: &dyn Fn(&Reader)| {
        read(reader);
        let before = store.round_trips();
        read(reader);
        store.round_trips() - before
    };
    let search = |reader: &Reader| {
        let page = reader.search(words("wordwork0")).unwrap();
        assert_eq!(page["data"][0]["record_key"], "m-work0", "{page}");
    };
    let get = |reader: &Reader| {
        let mut query = one("m-work0");
        query.connection_id = Some("work0".to_owned());
        reader.record(query).unwrap();
    };
    let (few, many) = (client(&connections[..1]), client(&connections));
    for (what, read, most) in [("search", &search as &dyn Fn(&Reader), 5), ("get", &get, 5)] {
        let (few, many) = (trips(&few, read), trips(&many, read));
        assert_eq!(few, many, "{what}");
        assert!(many <= most, "{what}: {many}");
    }
}
