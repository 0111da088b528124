//! What is noted is on disk within a second, in one unbroken chain, whatever happens to the process.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use crate::world::World;
use contract::id::{ClientId, GrantId};
use contract::seal::SealingKey;
use contract::time::Clock;
use grants::receipts::{verify_receipts, write_receipts};
use grants::{DisclosureLog, verify};
use store::grants::Disclosure;
use store::{EmbeddedStore, Grants as _, OpenOptions, Store};

fn log(world: &World) -> DisclosureLog {
    DisclosureLog::start(Arc::clone(&world.store) as Arc<dyn Store>).unwrap()
}

fn call(world: &World, grant: &GrantId, number: usize) -> Disclosure {
    Disclosure {
        bytes: None,
        at: world.now(),
        grant_ids: vec![grant.clone()],
        client_id: ClientId::parse("agent").unwrap(),
        operation: "search".to_owned(),
        records: vec![format!("home/messages:m{number}")],
        fields: vec!["subject".to_owned()],
    }
}

fn entries(store: &dyn Store) -> u64 {
    let check = verify(store).unwrap();
    assert_eq!(check.broken, None);
    check.entries
}

#[test]
fn a_note_is_on_disk_within_a_second() {
    let world = World::new();
    let grant = world.issue_for(&["home"]).grant_id.unwrap();
    let log = log(&world);
    log.note(call(&world, &grant, 1)).unwrap();
    let started = Moment::now();
    while entries(world.store()) == 0 {
        assert!(started.elapsed() < Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(log.trouble().is_none());
}

#[test]
fn closing_and_dropping_write_what_is_left() {
    let world = World::new();
    let grant = world.issue_for(&["home"]).grant_id.unwrap();
    let first = log(&world);
    first.note(call(&world, &grant, 1)).unwrap();
    first.close().unwrap();
    assert_eq!(entries(world.store()), 1);
    let second = log(&world);
    second.note(call(&world, &grant, 2)).unwrap();
    drop(second);
    assert_eq!(entries(world.store()), 2);
    let idle = log(&world);
    idle.flush().unwrap();
    idle.close().unwrap();
}

#[test]
fn notes_from_many_threads_make_one_chain_with_each_of_them_once() {
    let world = World::new();
    let grant = world.issue_for(&["home"]).grant_id.unwrap();
    let log = log(&world);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (log, world, grant) = (&log, &world, &grant);
            scope.spawn(move || {
                for number in 0..500 {
                    log.note(call(world, grant, thread * 500 + number)).unwrap();
                    if number % 100 == 0 {
                        log.flush().unwrap();
                    }
                }
            });
        }
    });
    log.flush().unwrap();
    assert_eq!(entries(world.store()), 4_000);
    let logged = world.store.disclosures(Some(&grant), None, 10_000).unwrap();
    let mut records: Vec<String> = logged
        .into_iter()
        .flat_map(|entry| entry.disclosure.records)
        .collect();
    records.sort();
    records.dedup();
    assert_eq!(records.len(), 4_000);
}

#[test]
fn many_notes_share_few_transactions() {
    let world = World::new();
    let grant = world.issue_for(&["home"]).grant_id.unwrap();
    let log = log(&world);
    let started = Moment::now();
    for number in 0..5_000 {
        log.note(call(&world, &grant, number)).unwrap();
    }
    log.close().unwrap();
    // One durable transaction each would take many times as long, even on a fast disk.
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(entries(world.store()), 5_000);
}

#[test]
fn a_crash_loses_at_most_what_was_not_flushed_and_the_chain_stays_whole() {
    let world = World::new();
    let grant = world.issue_for(&["home"]).grant_id.unwrap();
    let log = log(&world);
    for number in 0..20 {
        log.note(call(&world, &grant, number)).unwrap();
    }
    log.flush().unwrap();
    for number in 20..30 {
        log.note(call(&world, &grant, number)).unwrap();
    }
    // What a crash at this moment would leave: the files as they are, nothing closed.
    let left = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(world.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, left.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let options = OpenOptions::new(
        "after the crash",
        Arc::clone(&world.clock) as Arc<dyn Clock>,
    );
    let after = Arc::new(EmbeddedStore::open(left.path(), options).unwrap());
    let kept = entries(&*after);
    assert!((20..=30).contains(&kept), "{kept}");
    let log = DisclosureLog::start(Arc::clone(&after) as Arc<dyn Store>).unwrap();
    log.note(call(&world, &grant, 99)).unwrap();
    log.close().unwrap();
    assert_eq!(entries(&*after), kept + 1);
}

#[test]
fn the_last_use_of_tokens_and_grants_is_kept() {
    let world = World::new();
    let issued = world.issue_for(&["home", "team"]);
    let owner = grants::owner_token(world.store(), Duration::from_hours(1), &*world.clock).unwrap();
    let resolved =
        grants::resolve(world.store(), issued.access_token.expose(), world.now()).unwrap();
    let log = log(&world);
    world.wait(Duration::from_mins(1));
    log.note_use(&owner.token_id, world.now());
    log.note(call(&world, &resolved.grant_ids[0], 1)).unwrap();
    log.note_use(&resolved.token_id, world.now());
    log.flush().unwrap();
    let at = Some("2026-06-01T12:01:00.000Z".to_owned());
    let id = issued.grant_package_id.unwrap().to_string();
    let shown = grants::show(world.store(), &id, world.now(), 5).unwrap();
    assert_eq!(shown.overview.last_used_at, at);
    assert_eq!(shown.disclosures.len(), 1);
    assert_eq!(shown.disclosures[0].records, ["home/messages:m1"]);
    let owners = grants::owner_tokens(world.store(), world.now()).unwrap();
    assert_eq!(owners[0].last_used_at, at);
    let untouched = resolved.grant_ids[1].as_str();
    let shown = grants::show(world.store(), untouched, world.now(), 5).unwrap();
    assert_eq!(
        (shown.overview.last_used_at, shown.disclosures.len()),
        (None, 0)
    );
}

// GM-27: however long the log is, all of it is written, oldest first, and checked.
#[test]
fn receipts_hold_every_entry_of_a_long_log() {
    let world = World::new();
    let grant = world.issue_for(&["home"]).grant_id.unwrap();
    let other = world.issue_for(&["home"]).grant_id.unwrap();
    let calls = (0..2_500).map(|number| call(&world, &grant, number));
    let calls: Vec<Disclosure> = calls.chain([call(&world, &other, 1)]).collect();
    world.store().log_disclosures(&calls, &[]).unwrap();
    for (about, count) in [(None, 2_501), (Some(&grant), 2_500), (Some(&other), 1)] {
        let mut file = Vec::new();
        let key = SealingKey::from_bytes([3; 32]);
        write_receipts(world.store(), &key, about, world.now(), &mut file).unwrap();
        let checked = verify_receipts(file.as_slice(), None).unwrap();
        assert_eq!(checked.disclosures, count);
    }
}
