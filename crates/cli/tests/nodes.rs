//! Nodes of a database: how they start, what they refuse, and that commands go through them. Those that need a PostgreSQL run
//! where `TEST_POSTGRES` names one.

mod erasing;
mod faults;
mod full_disk;
mod measuring;
mod ready;
mod unreachable;

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::harness::server::{PATIENCE, Server};
use crate::harness::{Home, MAIL, Ran};

/// Nobody listens there.
const CLOSED: &str = "postgres://me:hidden@127.0.0.1:1/pdpp";

/// The nodes of an owner of its own, each with a data directory of its name.
struct Nodes {
    home: Home,
    url: String,
    owner: String,
}

impl Nodes {
    fn at(url: &str) -> Self {
        static OWNERS: AtomicU32 = AtomicU32::new(0);
        let home = Home::new();
        home.file("secret", "5a".repeat(32));
        let number = OWNERS.fetch_add(1, Ordering::Relaxed);
        let started = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        Self {
            home,
            url: url.to_owned(),
            owner: format!("n{number}-{started}.example"),
        }
    }

    /// None where there is no database; the rules of the store say so.
    #[expect(
        clippy::disallowed_methods,
        reason = "says where tests run, and nothing of the program"
    )]
    fn new() -> Option<Self> {
        Some(Self::at(&std::env::var("TEST_POSTGRES").ok()?))
    }

    /// The name of a node, which no test beside this one has.
    fn name(&self, node: &str) -> String {
        format!("{node}-{}", self.owner)
    }

    /// A command on the data directory of a node.
    fn command(&self, node: &str, line: &str) -> Command {
        let mut command = self.home.command(line);
        command.env("PDPP_DATA_DIR", self.home.path(node));
        command
    }

    fn serving(&self, node: &str) -> Command {
        let line = format!(
            "serve --blobs ~/blobs --secret-file ~/secret --drain 1s --node {}",
            self.name(node)
        );
        let mut command = self.command(node, &line);
        command.env("PDPP_LISTEN", "127.0.0.1:0");
        // A password on the command line would be seen by everybody.
        command.env("PDPP_DATABASE", &self.url);
        command.env("PDPP_OWNER", &self.owner);
        command
    }

    fn start(&self, node: &str) -> Server {
        Server::from_command(self.serving(node))
    }

    fn run(&self, node: &str, line: &str) -> Ran {
        self.home.ran(&mut self.command(node, line))
    }

    fn refused(&self, mut serving: Command, words: &[&str]) {
        let ran = self.home.ran(&mut serving).refused_saying(words);
        ran.hides("hidden");
    }
}

fn import(nodes: &Nodes, node: &str, id: &str, subject: &str) {
    let line = format!(r#"{{"id":"{id}","subject":"{subject}"}}"#);
    let file = nodes.home.file(&format!("{id}.jsonl"), line);
    let ran = nodes.run(node, &format!("import {file} --as mail/messages"));
    ran.succeeds();
}

#[test]
fn what_is_written_through_one_node_is_found_through_another_and_commands_need_one_that_runs() {
    let Some(nodes) = Nodes::new() else { return };
    let [a, b] = ["a", "b"].map(|node| nodes.start(node));
    let declaration = nodes.home.file("mail.json", MAIL);
    nodes.run("a", &format!("declare {declaration}")).succeeds();
    nodes
        .run("b", "connections add mail --name Work")
        .succeeds();
    import(&nodes, "a", "m1", "Overdraft notice");
    let found = nodes.run("b", "search overdraft --json").succeeds();
    assert_eq!(found.json()["data"][0]["record_key"], "m1");
    // A cursor of one node goes on at another, and a grant that one issued is revoked at once for both.
    import(&nodes, "b", "m2", "Overdraft again");
    let create = "grant create --client agent --connection mail-work --json";
    let made = nodes.run("a", create).succeeds();
    let token = made.text("access_token");
    let ask =
        |server: &Server, target: &str| server.ask(&format!("GET {target}"), Some(&token), "");
    let list = "/v1/streams/messages/records?limit=1";
    let (status, first) = ask(&a, list);
    assert_eq!(status, 200, "{first}");
    let cursor = first["next_cursor"].as_str().unwrap();
    let (status, second) = ask(&b, &format!("{list}&cursor={cursor}"));
    assert_eq!(status, 200, "{second}");
    assert_ne!(first["data"][0]["id"], second["data"][0]["id"]);
    let grant = made.text("grant_id");
    nodes.run("b", &format!("grant revoke {grant}")).succeeds();
    assert_eq!(ask(&a, list).0, 403);
    a.stop();
    let alone = nodes.run("a", "search overdraft");
    let of = format!("the folder of node {:?} of postgres://", nodes.name("a"));
    alone.refused_saying(&[&of, "pdpp serve --database"]);
    // A node that starts again goes on where it was; one whose folder is gone is as good.
    fs::remove_dir_all(nodes.home.path("a")).unwrap();
    let a = nodes.start("a");
    let found = nodes.run("a", "search again --json").succeeds();
    assert_eq!(found.json()["data"][0]["record_key"], "m2");
    drop((a, b));
}

// TR-05
#[test]
fn registrations_are_limited_on_all_nodes_together() {
    let Some(nodes) = Nodes::new() else { return };
    let both = ["a", "b"].map(|node| nodes.start(node));
    let body = r#"{"redirect_uris":["https://app.example/cb"]}"#;
    let register = |node: &Server| node.ask("POST /oauth/register", None, body).0;
    let begun = Instant::now();
    let mut accepted = 0;
    for node in both.iter().cycle().take(135) {
        match register(node) {
            201 => accepted += 1,
            status => assert_eq!(status, 429),
        }
    }
    // 120 at once, and another every five seconds.
    let later = begun.elapsed().as_secs() / 5 + 1;
    assert!((120..=120 + later).contains(&accepted), "{accepted}");
    assert_eq!(both.map(|node| register(&node)), [429; 2]);
}

#[test]
fn a_node_takes_a_folder_of_its_own_and_an_owner_that_it_is_told() {
    let home = Home::with_mail();
    let mut nodes = Nodes::at(CLOSED);
    let serving = |nodes: &Nodes| {
        let mut serving = nodes.serving("a");
        serving.env("PDPP_DATA_DIR", home.data_dir());
        serving
    };
    let other = ["holds records of its own", "--data-dir"];
    nodes.refused(serving(&nodes), &other);
    home.run("connections").succeeds().shows("mail-work");
    let Some(real) = Nodes::new() else { return };
    nodes.url.clone_from(&real.url);
    let one = real.start("a");
    let held = ["in use by pdpp serve"];
    real.refused(real.serving("a"), &held);
    drop(one);
    // A new public address does not look as if all data were gone.
    let mut moved = real.serving("a");
    moved.env_remove("PDPP_OWNER");
    moved.args(["--public-url", "https://new-address.example"]);
    real.refused(moved, &["nothing of new-address.example", "--owner"]);
}

#[test]
fn settings_of_a_node_that_make_no_sense_are_refused_with_the_next_step() {
    let nodes = Nodes::at(CLOSED);
    let serve = |line: &str| nodes.home.run(format!("serve {line}"));
    serve("--node a").exits(2).says("--database");
    let database = format!("--database {CLOSED}");
    serve(&database).exits(2).says("--node");
    let named = format!("{database} --node");
    serve(&format!("{named} 'a b'"))
        .exits(2)
        .says("'a b' is not a name");
    serve(&format!("{named} a")).exits(2).says("--blobs");
    // Without a secret, one is made in the folder of blobs.
    serve(&format!("{named} a --blobs ~/blobs")).refused_saying(&["does not answer"]);
    assert!(nodes.home.folder().join("blobs/secret").exists());
    let full = format!("{named} a --blobs ~/blobs --secret-file ~/secret");
    let ran = serve(&full.replace("postgres://", "mysql://"));
    ran.refused_saying(&["--database", "postgres://"]);
    let far = full.replace("127.0.0.1:1/pdpp", "db.example/pdpp?sslmode=disable");
    serve(&far).refused_saying(&["sslmode=disable", "--database-ca"]);
    serve(&format!("{full} --database-ca ~/none")).refused_saying(&["~/none"]);
    nodes.home.file("secret", "short");
    serve(&full).refused_saying(&["~/secret is not a secret", "64 hex digits"]);
}

#[test]
fn a_database_that_cannot_be_used_is_told_with_the_next_step() {
    let mut nodes = Nodes::at(CLOSED);
    let gone = ["postgres://127.0.0.1:1/pdpp does not answer", "Try again"];
    nodes.refused(nodes.serving("a"), &gone);
    let Some(real) = Nodes::new() else { return };
    let (_, server) = real.url.split_once('@').unwrap();
    nodes.url = format!("postgres://pdpp:hidden@{server}");
    nodes.refused(
        nodes.serving("a"),
        &["cannot be used", "a password that it knows"],
    );
    let (server, _) = real.url.rsplit_once('/').unwrap();
    nodes.url = format!("{server}/no_such_database");
    let missing = ["cannot be used", "no_such_database", "Create it"];
    nodes.refused(nodes.serving("a"), &missing);
}

/// What people see of a store, less the address it is served at.
fn seen(run: impl Fn(&str) -> Ran) -> Vec<String> {
    let keys = |ran: &Ran| {
        let answer = ran.json();
        let rows = answer["data"].as_array().unwrap().iter();
        rows.map(|row| row["record_key"].to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut seen = vec![
        run("connections --json").succeeds().stdout,
        run("grants --json").succeeds().stdout,
        run("export notes").succeeds().stdout,
        run("export messages --connection-id mail-private")
            .succeeds()
            .stdout,
    ];
    for words in ["bridge", "\"garden\" -mail", "brücke"] {
        let found = run(&format!("search '{words}' --limit 20 --json")).succeeds();
        seen.push(keys(&found));
    }
    let counted = "aggregate messages count --group-by-time received_at --granularity month --connection-id mail-work --json";
    let counted = run(counted).succeeds();
    seen.push(counted.json()["groups"].to_string());
    run("grants verify").succeeds();
    run("doctor --thorough").succeeds();
    seen
}

#[test]
fn the_sample_life_moves_into_a_database_and_a_backup_of_it_becomes_a_directory() {
    let Some(nodes) = Nodes::new() else { return };
    let home = &nodes.home;
    let on = |folder: &str, line: &str| nodes.run(folder, line);
    let serving = nodes.command("own", "serve --demo --listen 127.0.0.1:0");
    Server::from_command(serving).stop();
    on("own", "delete mail-work/messages:m-04397 --yes").succeeds();
    let create = "grant create --client agent --connection mail-work --json";
    let token = on("own", create).succeeds().text("access_token");
    let expected = seen(|line| on("own", line));
    let moving = |line: &str| {
        let mut command = nodes.command("own", line);
        command.env("PDPP_DATABASE", &nodes.url);
        command.env("PDPP_OWNER", &nodes.owner);
        home.ran(&mut command)
    };
    moving("move --from ~/none --blobs ~/blobs --secret-file ~/secret")
        .exits(2)
        .says("~/none is not a data directory");
    let line = "move --blobs ~/blobs --secret-file ~/secret";
    moving(line).succeeds().says("1 grant");
    moving(line).refused_saying(&["is not empty: it has declarations"]);
    let a = nodes.start("a");
    // A node that is new derives its index first.
    on("a", "index rebuild").succeeds();
    assert_eq!(seen(|line| on("a", line)), expected);
    on("a", "backup ~/all.tar.gz").succeeds();
    let list = "GET /v1/streams/messages/records?limit=1";
    let (status, page) = a.ask(list, Some(&token), "");
    assert_eq!(status, 200, "{page}");
    a.stop();
    on("restored", "restore ~/all.tar.gz").succeeds();
    assert_eq!(seen(|line| on("restored", line)), expected);
    // It goes back into a database as well, for another owner, but not on top of one.
    let line = "restore ~/all.tar.gz --to --blobs ~/blobs --secret-file ~/secret";
    moving(line).refused_saying(&["is not empty: it has declarations"]);
    let again = Nodes::at(&nodes.url);
    fs::copy(home.path("all.tar.gz"), again.home.path("all.tar.gz")).unwrap();
    let mut command = again.command("none", line);
    command.env("PDPP_DATABASE", &again.url);
    command.env("PDPP_OWNER", &again.owner);
    let told = again.home.ran(&mut command).succeeds();
    told.says_all(&["into the database", "start its nodes"]);
    let _b = again.start("b");
    again.run("b", "index rebuild").succeeds();
    assert_eq!(seen(|line| again.run("b", line)), expected);
    on("own", "restore ~/all.tar.gz --owner me.example")
        .exits(2)
        .says("the database is not named");
}

#[test]
fn a_node_is_ready_when_it_has_caught_up_and_not_while_it_drains() {
    let Some(nodes) = Nodes::new() else { return };
    let a = nodes.start("a");
    let ready = |server: &Server| server.ask("GET /readyz", None, "").0;
    let until = |wanted: u16| {
        let began = Instant::now();
        while ready(&a) != wanted {
            assert!(began.elapsed() < PATIENCE);
        }
    };
    until(200);
    assert_eq!(a.ask("GET /healthz", None, "").0, 200);
    a.signal("TERM");
    until(503);
    let told = a.ended();
    assert_eq!(told.0, Some(0), "{}", told.1);
}

#[test]
fn what_was_erased_is_known_to_be_on_the_disk_of_a_node_that_is_away_until_it_is_forgotten() {
    let Some(nodes) = Nodes::new() else { return };
    let [a, b] = ["a", "b"].map(|node| nodes.start(node));
    let declaration = nodes.home.file("mail.json", MAIL);
    nodes.run("a", &format!("declare {declaration}")).succeeds();
    let add = "connections add mail --name Work";
    nodes.run("a", add).succeeds();
    import(&nodes, "a", "m1", "Overdraft notice");
    nodes.run("b", "search overdraft").succeeds();
    let list = || nodes.run("a", "nodes --json").succeeds().json();
    assert_eq!(list()[0]["is_this"], true);
    assert_eq!(list()[1]["state"], "running");
    let [name_a, name_b] = ["a", "b"].map(|node| nodes.name(node));
    let running = nodes.run("a", &format!("nodes forget {name_b}"));
    running.refused_saying(&["runs. Stop it first"]);
    b.stop();
    assert_eq!(list()[1]["state"], "stopped");
    let remove = "connections remove mail-work --yes";
    nodes.run("a", remove).succeeds();
    let doctor = nodes.run("a", "doctor");
    doctor.exits(1).shows_all(&[&name_b, "nodes forget"]);
    // It erases its own disk when it is back.
    let b = nodes.start("b");
    let began = Instant::now();
    while list()[1]["holds_erased"] == true {
        assert!(began.elapsed() < PATIENCE);
    }
    // A deletion that a node has not seen is not erased: it would never learn of it.
    nodes.run("a", add).succeeds();
    import(&nodes, "a", "m2", "Overdraft again");
    nodes.run("b", "search overdraft").succeeds();
    b.stop();
    nodes
        .run("a", "delete mail-work/messages:m2 --yes")
        .succeeds();
    let behind = nodes.run("a", "purge");
    behind.refused_saying(&[&name_b, "nodes forget"]);
    nodes.run("a", &format!("nodes forget {name_b}")).succeeds();
    nodes
        .run("a", "purge")
        .succeeds()
        .says("Purged 1 deleted record");
    let unknown = nodes.run("a", "nodes forget nobody");
    unknown.refused_saying(&["\"nobody\" is not known", "pdpp nodes"]);
    nodes.run("a", "nodes").succeeds().shows(&name_a);
    // Should it come back, its index is derived anew, and holds nothing of what it missed.
    let b = nodes.start("b");
    let found = nodes.run("b", "search overdraft --json").succeeds();
    assert_eq!(found.json()["data"].as_array().unwrap().len(), 0);
    drop((a, b));
}

#[test]
fn calls_at_one_node_are_taken_from_what_is_left_at_another() {
    let Some(nodes) = Nodes::new() else { return };
    let [a, b] = ["a", "b"].map(|node| {
        let mut serving = nodes.serving(node);
        serving.env("PDPP_CALLS_PER_MINUTE", "60");
        Server::from_command(serving)
    });
    let declaration = nodes.home.file("mail.json", MAIL);
    nodes.run("a", &format!("declare {declaration}")).succeeds();
    let add = "connections add mail --name Work";
    nodes.run("a", add).succeeds();
    let create = "grant create --client agent --connection mail-work --json";
    let token = nodes.run("a", create).succeeds().text("access_token");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let is_taken = |node: &Server| node.ask("POST /mcp", Some(&token), ping).0 != 429;
    let second = Duration::from_millis(1_100);
    // Each has told of itself once before it is judged.
    assert!(is_taken(&a) && is_taken(&b));
    thread::sleep(second);
    // They refill one by one, each second.
    let allowed = (0..60).filter(|_| is_taken(&a)).count();
    assert!(allowed >= 50, "{allowed}");
    // A call tells and hears, and those after it are judged by that. Alone the other node would allow 60.
    let heard = (0..6).any(|_| {
        is_taken(&a);
        thread::sleep(second);
        !(0..5).all(|_| is_taken(&b))
    });
    assert!(heard, "the other node never hears");
}

#[test]
fn two_nodes_of_one_name_are_refused_and_a_data_directory_has_none() {
    let home = Home::with_mail();
    home.run("nodes").refused_saying(&["one process has alone"]);
    let Some(nodes) = Nodes::new() else { return };
    let one = nodes.start("a");
    let mut other = nodes.serving("a");
    other.env("PDPP_DATA_DIR", nodes.home.path("elsewhere"));
    nodes.refused(other, &["another node runs under the name", "--node"]);
    drop(one);
}
