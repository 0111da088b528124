//! Three nodes behind a proxy under mixed load, while nodes are killed: nothing acknowledged is lost, every acknowledged record is
//! found at once on every node that answers, no page repeats or skips, and what is revoked is revoked everywhere.
//!
//! `TEST_KILLS` says how many nodes are killed; `scripts/cluster faults` kills 200. It needs haproxy.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Nodes;
use crate::harness::server::PATIENCE;
use crate::harness::{MAIL, PROGRAM};

const NODES: [&str; 3] = ["a", "b", "c"];
/// Records of one batch.
const BATCH: u64 = 5;

struct Faults {
    /// Holds the data directories of the nodes, each under its name.
    folder: PathBuf,
    ports: [u16; 3],
    proxy: u16,
    token: String,
    done: AtomicBool,
    /// The ids of records that a server has acknowledged.
    acknowledged: Mutex<BTreeSet<String>>,
    violations: Mutex<Vec<String>>,
    searched: AtomicU64,
    incomplete: AtomicU64,
    walks: AtomicU64,
    revoked: AtomicU64,
    /// Records that were replaced or deleted.
    changed: AtomicU64,
}

/// A process that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nodes_that_are_killed_under_load_lose_repeat_and_hide_nothing() {
    let Some(nodes) = Nodes::new() else { return };
    let kills = kills();
    let mut faults = Faults::new(&nodes);
    let mut running: Vec<Ended> = (0..3).map(|at| faults.start(&nodes, at)).collect();
    (0..3).for_each(|at| faults.await_ready(at));
    let _proxy = faults.start_proxy();
    let declaration = nodes.home.file("mail.json", MAIL);
    let declare = format!("declare {declaration}");
    nodes.run("a", &declare).succeeds();
    let add = "connections add mail --name Work";
    nodes.run("a", add).succeeds();
    let token = nodes.run("a", "owner-token").succeeds().stdout;
    token.trim().clone_into(&mut faults.token);
    let faults = &faults;
    thread::scope(|scope| {
        let work = [
            scope.spawn(move || faults.write(0)),
            scope.spawn(move || faults.write(1)),
            scope.spawn(move || faults.change()),
            scope.spawn(move || faults.page()),
            scope.spawn(move || faults.revoke()),
        ];
        faults.kill(&nodes, &mut running, kills);
        faults.done.store(true, Ordering::Release);
        for one in work {
            one.join().unwrap();
        }
    });
    (0..3).for_each(|at| faults.await_ready(at));
    faults.check_all();
    let told = format!(
        "{kills} kills, {} records acknowledged, {} searches for one just written ({} answered that they were not complete), {} walks, {} revocations\n",
        faults.acknowledged().len(),
        faults.searched.load(Ordering::Relaxed),
        faults.incomplete.load(Ordering::Relaxed),
        faults.walks.load(Ordering::Relaxed),
        faults.revoked.load(Ordering::Relaxed),
    );
    // Not by a macro: what those print is shown of failed tests only.
    std::io::stderr().write_all(told.as_bytes()).unwrap();
    assert_eq!(*faults.violations(), Vec::<String>::new(), "{told}");
    assert!(faults.acknowledged().len() as u64 >= BATCH, "{told}");
    for (what, count) in [
        ("searches", &faults.searched),
        ("walks", &faults.walks),
        ("revocations", &faults.revoked),
        ("changes", &faults.changed),
    ] {
        assert!(count.load(Ordering::Relaxed) > 0, "no {what}: {told}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "says how long tests run, and nothing of the program"
)]
fn kills() -> u32 {
    let kills = std::env::var("TEST_KILLS").ok();
    kills.map_or(3, |text| text.parse().unwrap())
}

impl Faults {
    fn new(nodes: &Nodes) -> Self {
        let free: Vec<TcpListener> = (0..4)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let port = |at: usize| free[at].local_addr().unwrap().port();
        Self {
            folder: nodes.home.folder().to_owned(),
            ports: [port(0), port(1), port(2)],
            proxy: port(3),
            token: String::new(),
            done: AtomicBool::new(false),
            acknowledged: Mutex::default(),
            violations: Mutex::default(),
            searched: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
            walks: AtomicU64::new(0),
            revoked: AtomicU64::new(0),
            changed: AtomicU64::new(0),
        }
    }

    /// Kills random nodes and starts them again, until something is wrong.
    fn kill(&self, nodes: &Nodes, running: &mut [Ended], kills: u32) {
        let mut seed = u64::from(std::process::id());
        for _ in 0..kills {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from((seed >> 33) % 3).unwrap();
            thread::sleep(Duration::from_millis((seed >> 40) % 400));
            running[at].0.kill().unwrap();
            running[at].0.wait().unwrap();
            thread::sleep(Duration::from_millis((seed >> 50) % 200));
            running[at] = self.start(nodes, at);
            self.await_ready(at);
            if !self.violations().is_empty() {
                return;
            }
        }
    }

    fn start(&self, nodes: &Nodes, at: usize) -> Ended {
        let mut serving = nodes.serving(NODES[at]);
        let port = self.ports[at];
        serving.args(["--listen", &format!("127.0.0.1:{port}")]);
        serving.env(
            "PDPP_PUBLIC_URL",
            format!("http://localhost:{}", self.proxy),
        );
        serving.env("PDPP_LOG", "error");
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("{}.log", NODES[at])));
        serving.stdout(Stdio::null()).stderr(log.unwrap());
        Ended(serving.spawn().unwrap())
    }

    fn await_ready(&self, at: usize) {
        let began = Instant::now();
        while self
            .ask(self.ports[at], "GET /readyz", None, "")
            .map(|one| one.0)
            != Some(200)
        {
            if began.elapsed() > PATIENCE {
                let log = self.folder.join(format!("{}.log", NODES[at]));
                panic!("not ready: {}", fs::read_to_string(log).unwrap());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn start_proxy(&self) -> Ended {
        let mut servers = String::new();
        for (name, port) in NODES.iter().zip(self.ports) {
            writeln!(
                servers,
                "  server {name} 127.0.0.1:{port} check inter 200ms fall 1 rise 1"
            )
            .unwrap();
        }
        let config = format!(
            "defaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n  retries 2\n  option redispatch\n\
             listen nodes\n  bind 127.0.0.1:{}\n  balance roundrobin\n  option httpchk GET /readyz\n{servers}",
            self.proxy
        );
        let file = self.folder.join("haproxy.cfg");
        fs::write(&file, config).unwrap();
        let mut proxy = Command::new("haproxy");
        let path = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin";
        proxy.env("PATH", path).arg("-db").arg("-f").arg(file);
        let started = proxy.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ended(started.expect("haproxy is needed: scripts/cluster installs it"))
    }

    /// Asks once; `None` where there was no whole answer.
    fn ask(
        &self,
        port: u16,
        request: &str,
        token: Option<&str>,
        body: &str,
    ) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let text = format!(
            "{request} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{body}",
            self.proxy,
            token.unwrap_or_default(),
            body.len()
        );
        stream.write_all(text.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = serde_json::from_str(body);
        // Of an answer that was cut nothing is known.
        match body {
            Ok(body) => Some((status, body)),
            Err(_) if status != 200 => Some((status, Value::Null)),
            Err(_) => None,
        }
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    fn acknowledged(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.acknowledged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn violations(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes batches through the proxy, each until it is acknowledged, and looks for each on every node at once.
    fn write(&self, writer: u64) {
        let mut batch = 0;
        while !self.is_done() {
            let ids: Vec<String> = (0..BATCH)
                .map(|at| format!("w{writer}b{batch:06}r{at}"))
                .collect();
            let line = |id: &String| {
                json!({"key": id, "data": {"id": id, "subject": format!("every word{id}")}})
                    .to_string()
            };
            let lines: Vec<String> = ids.iter().map(line).collect();
            let lines = lines.join("\n");
            let target = "POST /v1/ingest/messages?connection_id=mail-work";
            let answer = self.ask(self.proxy, target, Some(&self.token), &lines);
            match answer {
                Some((200, receipt)) if receipt["records_accepted"] == BATCH => {
                    self.acknowledged().extend(ids.iter().cloned());
                    self.find_everywhere(&ids[0]);
                    batch += 1;
                }
                Some((200, receipt)) => {
                    self.violations().push(format!("refused: {receipt}"));
                    return;
                }
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Replaces a record again and again, and deletes it every fourth time: on every node only its last form is found, at once.
    fn change(&self) {
        let target = "POST /v1/ingest/messages?connection_id=mail-work";
        let id = "changing";
        // Not alike, so that none is found as another spelled wrong.
        let word_of =
            |round: u64| format!("c{:016x}", (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for round in 0_u64.. {
            let (word, is_deleted) = (word_of(round), round % 4 == 3);
            let line = if is_deleted {
                json!({"key": id, "op": "delete"})
            } else {
                json!({"key": id, "data": {"id": id, "subject": format!("changing {word}")}})
            };
            let line = line.to_string();
            while !matches!(
                self.ask(self.proxy, target, Some(&self.token), &line),
                Some((200, receipt)) if receipt["records_accepted"] == 1
            ) {
                if self.is_done() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
            self.changed.fetch_add(1, Ordering::Relaxed);
            if is_deleted {
                self.find("changing", None);
            } else {
                self.find(&word, Some(id));
            }
            if let Some(before) = round.checked_sub(1) {
                self.find(&word_of(before), None);
            }
            if self.is_done() {
                return;
            }
        }
    }

    fn find_everywhere(&self, id: &str) {
        self.find(&format!("word{id}"), Some(id));
    }

    /// Every node that answers finds this record by the word, or none.
    fn find(&self, word: &str, id: Option<&str>) {
        let target = format!("GET /v1/search?q={word}");
        for (at, port) in self.ports.into_iter().enumerate() {
            let Some((200, page)) = self.ask(port, &target, Some(&self.token), "") else {
                continue;
            };
            self.searched.fetch_add(1, Ordering::Relaxed);
            if page["meta"]["recall"]["complete"] == false {
                self.incomplete.fetch_add(1, Ordering::Relaxed);
            } else if page["data"][0]["record_key"].as_str() != id {
                let node = NODES[at];
                let told = format!(
                    "{word} finds {id:?} by what was acknowledged, and not on {node}: {page}"
                );
                self.violations().push(told);
            }
        }
    }

    /// Walks through all records page by page, through the proxy, so that pages come from several nodes.
    fn page(&self) {
        while !self.is_done() {
            let before = self.acknowledged().clone();
            if let Some(found) = self.walk(self.proxy)
                && let Some(missed) = before.iter().find(|id| !found.contains(*id))
            {
                self.violations().push(format!("a walk missed {missed}"));
            }
        }
    }

    /// All ids; `None` if the work ended before it was through.
    fn walk(&self, port: u16) -> Option<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut cursor = String::new();
        let began = Instant::now();
        loop {
            let target = format!("GET /v1/streams/messages/records?limit=100{cursor}");
            let Some((200, page)) = self.ask(port, &target, Some(&self.token), "") else {
                assert!(began.elapsed() < PATIENCE, "no page comes");
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            for record in page["data"].as_array().unwrap() {
                let id = record["data"]["id"].as_str().unwrap().to_owned();
                if !found.insert(id.clone()) {
                    self.violations().push(format!("{id} stood on two pages"));
                }
            }
            let Some(next) = page["next_cursor"].as_str() else {
                self.walks.fetch_add(1, Ordering::Relaxed);
                return Some(found);
            };
            cursor = format!("&cursor={next}");
        }
    }

    /// Issues grants on one node and revokes them on another: from then on no node answers.
    fn revoke(&self) {
        let list = "GET /v1/streams/messages/records?limit=1";
        let create = "grant create --client agent --connection mail-work --json";
        for round in 0.. {
            if self.is_done() {
                return;
            }
            let Some(made) = self.run(NODES[round % 3], create) else {
                continue;
            };
            let text = |member: &str| made[member].as_str().unwrap().to_owned();
            let (id, token) = (text("grant_id"), text("access_token"));
            let answer = self.ask(self.proxy, list, Some(&token), "");
            if let Some((401 | 403, refused)) = answer {
                let told = format!("a grant that was issued does not hold: {refused}");
                self.violations().push(told);
            }
            let revoke = format!("grant revoke {id} --json");
            if self.run(NODES[(round + 1) % 3], &revoke).is_none() {
                continue;
            }
            self.revoked.fetch_add(1, Ordering::Relaxed);
            for (at, port) in self.ports.into_iter().enumerate() {
                if let Some((200, _)) = self.ask(port, list, Some(&token), "") {
                    let node = NODES[at];
                    let told = format!("{id} was revoked and is answered by {node}");
                    self.violations().push(told);
                }
            }
        }
    }

    /// A command on a node; `None` where it failed.
    fn run(&self, node: &str, line: &str) -> Option<Value> {
        let mut command = Command::new(PROGRAM);
        command.env("PDPP_DATA_DIR", self.folder.join(node));
        let ran = command.args(line.split(' ')).output().unwrap();
        let answer = || serde_json::from_slice(&ran.stdout).unwrap_or_default();
        ran.status.success().then(answer)
    }

    /// Every acknowledged record is there and found, on each node.
    fn check_all(&self) {
        let acknowledged = self.acknowledged().clone();
        for port in self.ports {
            let found = self.walk(port).unwrap();
            let lost: Vec<&String> = acknowledged.difference(&found).collect();
            if !lost.is_empty() {
                self.violations().push(format!("lost: {lost:?}"));
            }
        }
        for id in acknowledged
            .iter()
            .rev()
            .step_by(acknowledged.len() / 50 + 1)
        {
            self.find_everywhere(id);
        }
        // Nothing is written any more, so soon nothing is missing.
        let began = Instant::now();
        let is_complete = |port: &u16| {
            let answer = self.ask(*port, "GET /v1/search?q=every", Some(&self.token), "");
            answer.is_some_and(|(status, page)| {
                status == 200 && page["meta"]["recall"]["complete"] == true
            })
        };
        while !self.ports.iter().all(is_complete) {
            assert!(began.elapsed() < PATIENCE, "answers stay incomplete");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
