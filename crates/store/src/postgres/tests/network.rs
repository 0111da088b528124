//! The network between a node and the database: what is fetched over it, what it loses, and how it is encrypted.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;

use super::*;
use crate::Grants as _;

#[test]
fn large_rows_are_fetched_few_at_a_time_and_small_ones_many() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let trips = || store.pool.round_trips.load(Ordering::Relaxed);
    let fetch = |tx: &Tx<'_>, rows: i64, bytes: i64| {
        let sql = "SELECT repeat('x', $2::int) FROM generate_series(1::bigint, $1)";
        let (before, mut seen) = (trips(), 0);
        tx.each(sql, &[&rows, &bytes], &mut |_| {
            seen += 1;
            Ok(true)
        })?;
        assert_eq!(seen, rows);
        Ok(trips() - before)
    };
    store
        .pool
        .snapshot(|tx| {
            assert!(fetch(tx, 10_000, 10)? < 20);
            assert!(fetch(tx, 40, 4_000_000)? > 8);
            // One that has enough leaves the transaction usable.
            let (mut seen, sql) = (0, "SELECT generate_series(1, 100)");
            let whole = tx.each(sql, &[], &mut |_| {
                seen += 1;
                Ok(seen < 20)
            })?;
            assert_eq!((whole, seen), (false, 20));
            fetch(tx, 0, 0)
        })
        .unwrap();
}

/// Hands bytes on between the server and whoever connects here, until it is told to swallow them.
fn relay(to: String, swallows: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let swallows = Arc::clone(swallows);
    let carry = move |mut from: TcpStream, mut into: TcpStream| {
        let swallows = Arc::clone(&swallows);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                if !swallows.load(Ordering::Acquire) && into.write_all(&buffer[..read]).is_err() {
                    break;
                }
            }
            let _ = into.shutdown(Shutdown::Both);
        });
    };
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(&to) else {
                continue;
            };
            carry(near.try_clone().unwrap(), far.try_clone().unwrap());
            carry(far, near);
        }
    });
    port
}

#[test]
fn a_network_that_swallows_what_is_sent_is_told_soon_and_forgotten_when_it_is_back() {
    let Some(url) = url() else { return };
    let swallows = Arc::new(AtomicBool::new(false));
    let (start, rest) = url.split_once('@').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let port = relay(server.to_owned(), &swallows);
    let store = open(&format!("{start}@127.0.0.1:{port}/{database}"));
    let own = own_notes(&store);
    store.write(&own, vec![note("a", "kept word")]).unwrap();
    assert_eq!(found(&store, "kept"), ["a"]);
    swallows.store(true, Ordering::Release);
    let asked = Moment::now();
    std::thread::scope(|scope| {
        let read = scope.spawn(|| store.index_status().err());
        let asked = scope.spawn(|| store.token_candidates([7; 8]).err());
        let written = scope.spawn(|| store.write(&own, vec![note("b", "lost word")]).err());
        for failed in [read, asked, written] {
            let failed = failed.join().unwrap().unwrap();
            assert!(matches!(failed, StoreError::Unavailable { .. }), "{failed}");
        }
    });
    assert!(asked.elapsed() < Duration::from_secs(15));
    swallows.store(false, Ordering::Release);
    let back = Moment::now();
    while store.index_status().is_err() {
        assert!(back.elapsed() < Duration::from_mins(1));
    }
    assert_eq!(found(&store, "kept"), ["a"]);
}

fn authority() -> Option<PathBuf> {
    std::env::var_os("TEST_POSTGRES_CA").map(PathBuf::from)
}

#[test]
fn an_encrypted_connection_is_taken_only_with_the_right_authority_and_name() {
    let (Some(url), Some(ca)) = (url(), authority()) else {
        return;
    };
    let encrypted = |url: &str, ca: Option<PathBuf>| {
        let mut options = options(&format!("{url}?sslmode=verify-full"));
        options.ca = ca;
        PostgresStore::open(options)
    };
    let store = encrypted(&url, Some(ca.clone())).unwrap();
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let is_encrypted = store.pool.read(|tx| tx.query_one(sql, &[])?.get::<bool>(0));
    assert!(is_encrypted.unwrap(), "it is encrypted");
    let other = ca.with_file_name("other.crt");
    let misnamed = url.replace("@127.0.0.1:", "@localhost:");
    for (what, url, ca) in [
        ("another authority", &url, Some(other)),
        ("those the machine trusts", &url, None),
        ("another name", &misnamed, Some(ca)),
    ] {
        let refused = encrypted(url, ca).err().unwrap().to_string();
        assert!(refused.contains("certificate"), "{what}: {refused}");
    }
}
