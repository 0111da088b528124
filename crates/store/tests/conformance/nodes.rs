//! Several nodes on one database: what one of them decides holds at once on all others. These need a PostgreSQL.

use std::fs::{self, File};
use std::thread;
use std::time::SystemTime;

use contract::time::Instant;
use store::grants::{Revocable, Revoked};
use store::records::{Direction, OrderBy, PageRequest};
use store::registry::{Change, EntryKind, Expect};
use store::{
    Blobs, Catalog, Grants, Nodes as _, PostgresStore, Records as _, Registry, Store, StoreError,
};

use crate::fixture::{
    Work as _, add_mail, approval, connection, disclosure, fresh_owner, grant, grant_id, key,
    messages, noon, put, put_bytes, stream,
};

/// Runs a rule on two nodes of one owner, and a store of another owner on the same database.
fn on_two_nodes(rule: impl Fn(&PostgresStore, &PostgresStore, &PostgresStore)) {
    let [folder, other_folder] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let (Some(owner), Some(other)) = (fresh_owner(folder.path()), fresh_owner(other_folder.path()))
    else {
        return;
    };
    let mut second = owner.clone();
    second.node.push_str("-second");
    second.data_dir = folder.path().join("second");
    let open = |options| PostgresStore::open(options).unwrap();
    rule(&open(owner), &open(second), &open(other));
}

#[test]
fn what_one_node_changes_the_other_sees_at_once_and_another_owner_never() {
    on_two_nodes(|one, two, other| {
        add_mail(one, "work");
        assert_eq!(two.connections().len(), 1);
        two.rename_connection(&connection("work"), "Büro").unwrap();
        let renamed = one.connection(&connection("work")).unwrap();
        assert_eq!(renamed.display_name, "Büro");
        let granted = grant("grt_1", &[("messages", &["work"])]);
        one.approve(&approval(None, vec![granted], 1)).unwrap();
        let blob = put_bytes(one, "work", &key("m1"), b"abc");
        assert!(two.open_blob(&blob).is_ok());
        assert!(
            two.blob(&stream("work", "messages"), &blob)
                .unwrap()
                .is_some()
        );
        one.log_disclosures(&[disclosure(1, &["grt_1"])], &[])
            .unwrap();
        assert!(other.connections().is_empty() && other.declarations().is_empty());
        assert!(other.grants().unwrap().is_empty());
        assert!(other.token_candidates([1; 8]).unwrap().is_empty());
        assert!(other.disclosures(None, None, 9).unwrap().is_empty());
        assert!(matches!(
            other.open_blob(&blob),
            Err(StoreError::UnknownBlob(_))
        ));
        // Names are an owner's own: the same ones are free for another.
        add_mail(other, "work");
        let granted = grant("grt_1", &[("messages", &["work"])]);
        other.approve(&approval(None, vec![granted], 1)).unwrap();
        let revoked = two.revoke(Revocable::Grant(&grant_id("grt_1")), noon());
        assert_eq!(revoked.unwrap(), Revoked::Now);
        let is_live = |store: &PostgresStore| {
            let found = store.token_candidates([1; 8]).unwrap().remove(0);
            match found.subject {
                store::grants::TokenSubject::Grant(grant) => grant.revoked.is_none(),
                _ => panic!("the token stands for a grant"),
            }
        };
        assert!(!is_live(one) && is_live(other));
        two.remove_connection(&connection("work")).unwrap();
        assert!(one.connections().is_empty() && other.connections().len() == 1);
        assert!(matches!(
            one.open_blob(&blob),
            Err(StoreError::UnknownBlob(_))
        ));
    });
}

#[test]
fn of_many_who_redeem_a_code_or_revoke_a_grant_on_several_nodes_one_succeeds() {
    on_two_nodes(|one, two, _| {
        let now = Instant(0);
        let put = |key: &str, expect| Change::put(EntryKind::Code, key, "{}").expecting(expect);
        add_mail(one, "work");
        for round in 0..10 {
            let name: &'static str = Box::leak(format!("code{round}").into_boxed_str());
            let race = |work: &(dyn Fn(&PostgresStore) -> bool + Sync)| -> usize {
                thread::scope(|scope| {
                    let racers = [one, two, one, two].map(|node| scope.spawn(move || work(node)));
                    racers
                        .into_iter()
                        .map(|racer| usize::from(racer.join().unwrap()))
                        .sum()
                })
            };
            // An entry that none of them saw is put by one.
            let added = race(&|node| node.apply(&[put(name, Expect::Absent)], now).unwrap());
            assert_eq!(added, 1);
            let taken = race(&|node| {
                let remove = Change::remove(EntryKind::Code, name).expecting(Expect::Revision(1));
                node.apply(&[remove], now).unwrap()
            });
            assert_eq!(taken, 1);
            let id = format!("grt_{round}");
            let granted = grant(&id, &[("messages", &["work"])]);
            one.approve(&approval(None, vec![granted], round)).unwrap();
            let id = grant_id(&id);
            let ended =
                race(&|node| node.revoke(Revocable::Grant(&id), noon()).unwrap() == Revoked::Now);
            assert_eq!(ended, 1);
        }
    });
}

#[test]
fn the_log_that_several_nodes_extend_is_one_chain() {
    on_two_nodes(|one, two, other| {
        thread::scope(|scope| {
            for (number, node) in (0..).zip([one, two, one, two]) {
                scope.spawn(move || {
                    for at in 0..15 {
                        let entry = disclosure(number * 100 + at, &["grt_1"]);
                        node.log_disclosures(&[entry.clone(), entry], &[]).unwrap();
                    }
                });
            }
        });
        let check = two.check_disclosures().unwrap();
        assert_eq!((check.entries, check.broken), (120, None));
        assert_eq!(other.check_disclosures().unwrap().entries, 0);
    });
}

#[test]
fn a_grant_of_a_connection_that_is_removed_meanwhile_is_refused_or_narrowed() {
    on_two_nodes(|one, two, _| {
        for round in 0..10 {
            add_mail(one, "home");
            let id = format!("grt_{round}");
            let granted = grant(&id, &[("messages", &["home"])]);
            let approved = thread::scope(|scope| {
                let approving =
                    scope.spawn(|| one.approve(&approval(None, vec![granted.clone()], round)));
                two.remove_connection(&connection("home")).unwrap();
                approving.join().unwrap()
            });
            let found = one.grant(&grant_id(&id)).unwrap();
            match approved {
                Ok(()) => assert!(found.unwrap().revoked.is_some()),
                Err(StoreError::UnknownConnection(_)) => assert_eq!(found, None),
                Err(error) => panic!("{error}"),
            }
        }
    });
}

#[test]
fn what_one_node_acknowledges_the_other_finds_counts_and_pages_through_at_once() {
    on_two_nodes(|one, two, _| {
        add_mail(one, "work");
        for round in 0..20 {
            let nodes: [&dyn Store; 2] = [one, two];
            let (writer, reader) = (nodes[round % 2], nodes[(round + 1) % 2]);
            let id = format!("m{round:02}");
            writer.put(vec![put(
                "messages",
                &format!(r#"{{"id":"{id}","subject":"round everyround word{round}"}}"#),
            )]);
            assert_eq!(reader.found(&format!("word{round}")), [id.as_str()]);
            let all = reader.extent(&messages("work"), 1).unwrap();
            assert_eq!(all.records, round as u64 + 1);
        }
        let (mut ids, mut after) = (Vec::new(), None);
        for round in 0.. {
            let node = if round % 2 == 0 { one } else { two };
            let request = PageRequest {
                after: after.take(),
                ..PageRequest::first(OrderBy::Key, Direction::Ascending, 3)
            };
            let page = node.page(&stream("work", "messages"), &request).unwrap();
            ids.extend(page.records.iter().map(|one| one.key.to_string()));
            after = page.records.last().map(|last| last.position.clone());
            if page.is_last {
                break;
            }
        }
        let expected: Vec<String> = (0..20).map(|number| format!("m{number:02}")).collect();
        assert_eq!(ids, expected);
    });
}

#[test]
fn files_of_blobs_that_a_crash_left_are_swept_once_nobody_can_be_about_to_bind_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(owner) = fresh_owner(folder.path()) else {
        return;
    };
    let store = PostgresStore::open(owner).unwrap();
    add_mail(&store, "work");
    let kept = put_bytes(&store, "work", &key("m1"), b"kept");
    let mut folders = fs::read_dir(folder.path().join("blobs")).unwrap();
    let root = folders.next().unwrap().unwrap().path();
    let left = |name: &str, is_old: bool| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(&path).unwrap();
        if is_old {
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        path
    };
    let hash = "0".repeat(62);
    let swept = [
        left("arriving-x", true),
        left(&format!("aa/{hash}"), true),
        left(&format!("bb/{hash}"), true),
    ];
    let stays = [
        left("arriving-y", false),
        left(&format!("cc/{hash}"), false),
        left("aa/not-ours", true),
    ];
    store.purge().unwrap();
    assert_eq!(swept.map(|path| path.exists()), [false; 3]);
    assert_eq!(stays.map(|path| path.exists()), [true; 3]);
    assert!(store.open_blob(&kept).is_ok());
}

#[test]
fn an_owner_neither_forgets_nor_replaces_the_stopped_node_of_another() {
    let [folder, other_folder] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let (Some(owner), Some(mut other)) =
        (fresh_owner(folder.path()), fresh_owner(other_folder.path()))
    else {
        return;
    };
    let name = owner.node.clone();
    let mut second = owner.clone();
    second.node.push_str("-second");
    second.data_dir = folder.path().join("second");
    let second = PostgresStore::open(second).unwrap();
    let away = PostgresStore::open(owner).unwrap();
    away.leave().unwrap();
    drop(away);
    let foreign = PostgresStore::open(other.clone()).unwrap();
    let refused = foreign.forget_node(&name).unwrap_err();
    assert!(matches!(refused, StoreError::UnknownNode(_)), "{refused}");
    drop(foreign);
    other.node.clone_from(&name);
    other.data_dir = other_folder.path().join("other");
    let refused = PostgresStore::open(other.clone()).err().unwrap();
    assert!(matches!(refused, StoreError::NodeOfOthers(_)), "{refused}");
    let known = || {
        second
            .nodes()
            .unwrap()
            .into_iter()
            .any(|node| node.name == name)
    };
    assert!(known());
    second.forget_node(&name).unwrap();
    assert!(!known());
    PostgresStore::open(other).unwrap();
}
