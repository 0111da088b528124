//! When the data directory is held, damaged, not ours, not writable, or full.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::harness::server::Server;
use crate::harness::{Home, MAIL, NOBODY, Ran, allow, is_root, lines};

#[test]
fn a_server_that_hangs_is_named_and_nobody_waits_for_it_for_ever() {
    // TR-37
    let home = Home::with_mail();
    let server = Server::start(&home);
    let id = server.child.id();
    server.signal("STOP");
    let begun = Instant::now();
    let mut doctor = home.command("doctor");
    let doctor = doctor.stdout(Stdio::piped()).spawn().unwrap();
    let ran = home.run("connections");
    let checked = Ran::new(doctor.wait_with_output().unwrap(), home.folder());
    server.signal("CONT");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let checked = checked.exits(1);
    checked.hides("ok    server");
    checked.shows(format!("pdpp serve (process {id}) does not answer"));
    ran.refused_saying(&[
        &format!("pdpp serve (process {id}) does not answer"),
        &format!("kill -KILL {id}"),
    ]);
    home.run("connections").succeeds();
}

#[test]
fn a_database_emptied_beside_its_log_is_refused_and_not_touched() {
    // Its engine would take the empty file for a new one and throw the log away, and all records with it.
    let home = Home::with_mail();
    let mut import = home.import_under_way();
    import.child.kill().unwrap();
    import.child.wait().unwrap();
    let [path, log] = ["records.db", "records.db-wal"].map(|name| home.data_dir().join(name));
    let (whole, whole_log) = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    assert!(!whole_log.is_empty());
    fs::write(&path, "").unwrap();
    home.run("connections")
        .refused_saying(&["~/data/records.db is damaged", "Restore it from a backup"]);
    assert_eq!(fs::read(&log).unwrap(), whole_log);
    fs::write(&path, &whole).unwrap();
    assert_eq!(home.messages().lines().count(), 1);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let home = Home::with_mail();
    let locked = home.path("locked");
    fs::create_dir(&locked).unwrap();
    allow(&locked, 0o555);
    allow(&home.data_dir(), 0o555);
    let run = |folder: &Path| {
        let mut command = home.without_privileges("connections add mail --name x");
        home.ran(command.arg(folder))
    };
    // There are files that it may not even read.
    run(&home.data_dir()).refused_saying(&["cannot be read: Permission denied (os error 13)."]);
    for folder in [locked.clone(), locked.join("new")] {
        run(&folder).refused_saying(&[
            "cannot be written: Permission denied (os error 13). Make it writable for this user, or choose another folder with --data-dir.",
        ]);
    }
    allow(&home.data_dir(), 0o700);
    // TR-37: what may not be looked at is not said to be well.
    if is_root() {
        let mut doctor = home.without_privileges("doctor");
        let told = home.ran(doctor.arg(home.data_dir())).exits(1);
        told.shows("~/data: Permission denied");
        told.shows("as the user who owns it");
        told.hides("ok ");
    }
}

#[test]
fn a_command_that_only_reads_makes_no_data_directory() {
    // TR-37: a misspelt folder is told, not filled.
    let home = Home::new();
    for command in [
        "search x",
        "query messages",
        "connections",
        "grants",
        "mcp",
        "purge",
    ] {
        let ran = home.run(format!("--data-dir ~/typo {command}"));
        assert_ne!(ran.code, Some(0), "{command}");
        ran.says_all(&[
            "there is no data directory at ~/typo",
            "--data-dir",
            "declare",
        ]);
    }
    home.run("--data-dir ~/typo doctor").exits(1);
    assert!(!home.path("typo").exists());
}

#[test]
fn a_file_that_may_not_be_read_is_told_as_that() {
    // TR-37: it is neither damaged nor older than it was.
    let home = Home::with_mail();
    let data = home.data_dir();
    let run = |line: &str, folder: &Path| home.ran(home.without_privileges(line).arg(folder));
    let give = |path: &Path| {
        if is_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    };
    // A command may write any of the files anew.
    home.run("search x").succeeds();
    give(&data);
    for entry in fs::read_dir(&data).unwrap() {
        give(&entry.unwrap().path());
    }
    for name in ["records.db", "commits.mark", "index"] {
        let file = data.join(name);
        allow(&file, 0o000);
        let told = format!("~/data/{name} cannot be read: ");
        run("search x", &data).refused_saying(&[&told, "the user who owns it"]);
        let doctor = run("doctor", &data).stdout;
        let plain = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains("cannot be read: "), "{doctor}");
        assert!(!plain.contains("restore a backup"), "{doctor}");
        assert!(!plain.contains("back in time"), "{doctor}");
        allow(&file, 0o700);
    }
    // What is below a folder that may not be entered is not known to be absent.
    let closed = home.path("closed");
    fs::create_dir(&closed).unwrap();
    allow(&closed, 0o000);
    let doctor = run("doctor", &closed.join("data"));
    doctor.shows("Permission denied");
    doctor.hides("nothing at");
    allow(&closed, 0o700);
    if is_root() {
        run("backup /nowhere.tar", &data).says("hint: ");
    }
}

#[test]
fn a_full_disk_ends_an_import_and_keeps_what_was_acknowledged() {
    let home = Home::with_mail();
    let lines = lines(6_000, |n| {
        let body = "word ".repeat(150);
        format!("{{\"id\":\"{n:05}\",\"subject\":\"s{n}\",\"body\":\"{body}\"}}\n")
    });
    let file = home.file("messages.jsonl", lines);
    let ran = home
        .typed(
            "trap '' XFSZ; ulimit -f 3000; exec pdpp import ~/messages.jsonl -v --batch-lines 100",
        )
        .refused_saying(&[
            "error: no space left while writing ~/data/records.db",
            "Free some space and run the command again; everything acknowledged so far is kept.",
        ]);
    ran.hides("defect");
    let mut told = ran
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "));
    let last = told.next_back().expect("some batches fit");
    let acknowledged: usize = last.parse().unwrap();
    assert!(acknowledged < 6_000);
    let exported = home.messages();
    let kept: Vec<&str> = exported.lines().collect();
    assert!(
        kept.len() >= acknowledged && kept.len().is_multiple_of(100),
        "{} {acknowledged}",
        kept.len()
    );
    for (n, line) in kept.iter().enumerate() {
        assert!(line.starts_with(&format!("{{\"key\":\"{n:05}\"")), "{line}");
    }
    let json = home.run(format!("import {file} --json")).succeeds().json();
    assert_eq!(json["unchanged"], kept.len());
    assert_eq!(json["added"], 6_000 - kept.len());
}

#[test]
fn a_server_that_breaks_off_is_not_told_to_have_ended() {
    // TR-37: a live server is not "ended".
    let home = Home::with_mail();
    let socket = UnixListener::bind(home.data_dir().join("owner.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in socket.incoming() {
            let mut stream = stream.unwrap();
            // Whoever only looks whether somebody is there sends nothing.
            if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
                    .unwrap();
            }
        }
    });
    let ran = home.run("connections").refused_saying(&[
        "error: the running server broke off its answer",
        "pdpp doctor",
    ]);
    ran.hides("ended");
}

#[test]
fn a_local_command_tells_the_cause_and_names_nobody_else() {
    // TR-37: local commands do not speak of whoever runs the server.
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"x\"}\n")
        .succeeds();
    let index = home.data_dir().join("index");
    fs::remove_dir_all(&index).unwrap();
    fs::write(&index, "in the way").unwrap();
    let ran = home
        .run("search x")
        .refused_saying(&["~/data/index", "pdpp doctor"]);
    ran.hides("whoever runs");
    // Records are read as before.
    assert_eq!(home.messages().lines().count(), 1);
}

// TR-35: one damaged record does not end an export: it is left out, named, and the command ends with 1.
#[test]
fn a_damaged_record_is_left_out_and_named_at_the_end() {
    let home = Home::with_mail();
    let lines = concat!(
        r#"{"key":"b","emitted_at":"2026-03-01","data":{"id":"b","size":1.50e1}}"#,
        "\n",
        r#"{"key":"a","emitted_at":"2026-03-01","data":{}}"#,
        "\n",
        r#"{"key":"a1","emitted_at":"2026-03-01","data":{"id":"a1"}}"#,
        "\n"
    );
    home.import_messages(lines).succeeds();
    let whole = home.messages();
    let path = home.path("data/records.db");
    let mut bytes = fs::read(&path).unwrap();
    let text = b"1.50e1";
    let found: Vec<usize> = (0..bytes.len() - text.len())
        .filter(|at| bytes[*at..].starts_with(text))
        .collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
    let ran = home.run("export messages").refused_saying(&[
        "'b' of mail-work/messages",
        "everything else was given",
        "Import",
    ]);
    let others: String = whole.split_inclusive('\n').take(2).collect();
    assert_eq!(ran.stdout, others);
    // Nor does it keep the owner from declaring.
    let second = MAIL
        .replace(
            "\"declaration_version\": \"1\"",
            "\"declaration_version\": \"2\"",
        )
        .replace("\"read\": {\"type\": \"boolean\"},", "");
    let file = home.file("second.json", &second);
    let ran = home.run(format!("declare {file}")).succeeds();
    assert_eq!(
        ran.stderr,
        "Updated to version 2.\nLeft out because damaged on the disk: 'b' of mail-work/messages. Importing again mends that; pdpp doctor --thorough lists all damage.\n"
    );
}
