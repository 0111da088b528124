//! Singer taps and watched folders: their output becomes records, and each run goes on where the last one ended.

use std::fs;
use std::time::{Duration, Instant};

use crate::harness::{Home, allow};

/// What a tap prints: a stream with a key, one without, a record that does not fit, and where to go on.
const PRINTED: &str = r#"{"type": "SCHEMA", "stream": "boats", "schema": {"properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}, "seen_at": {"type": "string", "format": "date-time"}}}, "key_properties": ["id"], "bookmark_properties": ["seen_at"]}
{"type": "RECORD", "stream": "boats", "record": {"id": 1, "name": "Marguerite", "seen_at": "2024-03-05T10:00:00Z"}, "time_extracted": "2024-03-06T00:00:00Z"}
{"type": "SCHEMA", "stream": "notes", "schema": {"type": "object", "properties": {"text": {"type": "string"}}}, "key_properties": []}
{"type": "RECORD", "stream": "notes", "record": {"text": "The keel is painted"}}
{"type": "RECORD", "stream": "notes", "record": {"text": "The keel is painted"}}
{"type": "STATE", "value": {"bookmarks": {"boats": 1}}}
"#;

fn tap(home: &Home) -> String {
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> \"$0.arguments\"\ncat <<'END'\n{PRINTED}END\nif [ \"$1\" = --state ]; then echo '{{\"type\":\"RECORD\",\"stream\":\"boats\",\"record\":{{\"id\":2,\"name\":\"Albatross\",\"seen_at\":\"2024-04-05T10:00:00Z\"}}}}'; fi\n"
    );
    home.file("tap.sh", script);
    allow(&home.path("tap.sh"), 0o755);
    home.path("tap.sh").display().to_string()
}

#[test]
fn what_a_tap_prints_is_imported_from_a_pipe_and_from_a_file() {
    let home = Home::new();
    let first = home
        .run_with("import --connection harbour -", PRINTED.as_bytes())
        .succeeds();
    first.says_all(&[
        "Recognised what a tap prints. Added the connection 'harbour' for it.\n",
        "Imported into 'harbour': 1 boat, 2 notes: 3 added, 0 updated, 0 unchanged, 0 rejected.\n",
    ]);
    home.file("tap.out", PRINTED.replace("\"Marguerite\"", "7"));
    home.run("import --connection harbour ~/tap.out")
        .exits(1)
        .says_all(&[
            "2 notes: 0 added, 0 updated, 2 unchanged, 1 rejected.\n",
            "line 2: invalid_field_type: field 'name' must be null or string, got 7",
        ]);
    let found = home.run("search marguerite --json").succeeds().json();
    assert_eq!(found["data"].as_array().unwrap().len(), 1, "{found}");
    home.run_with("import --connection nowhere -", b"{\"a\":1}\n")
        .refused_saying(&["error: there is no connection 'nowhere'"]);
}

#[test]
fn a_program_is_remembered_and_goes_on_where_it_ended() {
    let home = Home::new();
    let tap = tap(&home);
    home.run(format!("collect add harbour -- '{tap}'"))
        .succeeds()
        .says("Remembered.");
    home.run("collect list").succeeds().shows("never ran");
    home.run("collect run harbour").succeeds().says(": 3 added");
    home.run("collect run")
        .succeeds()
        .says(": 1 added, 0 updated, 3 unchanged");
    let arguments = fs::read_to_string(home.path("tap.sh.arguments")).unwrap();
    assert!(
        arguments.starts_with('\n') && arguments.contains("--state "),
        "{arguments}"
    );
    home.run("collect list").succeeds().shows("; ran ");
    home.run("collect add broken -- /bin/sh -c 'echo no >&2; exit 3'")
        .succeeds();
    home.run("collect run broken").exits(1).says_all(&[
        "error: /bin/sh ended with exit status: 3\n",
        "hint: what it said is in ",
    ]);
    home.run("collect list").succeeds().shows("failed ");
    home.run("collect remove broken").succeeds();
    home.run("collect run broken")
        .refused("error: nothing is collected as 'broken'\nhint: collected: harbour");
}

#[test]
fn a_folder_is_looked_through_each_time() {
    let home = Home::new();
    fs::create_dir(home.path("inbox")).unwrap();
    home.file(
        "inbox/one.vcf",
        "BEGIN:VCARD\nVERSION:3.0\nUID:a\nFN:Ada\nEND:VCARD\n",
    );
    home.run("collect add inbox --folder ~/inbox").succeeds();
    home.run("collect add slip --folder ~/inbxo")
        .refused("error: ~/inbxo: there is no such folder");
    home.run("collect run inbox").succeeds().says(": 1 added");
    home.file(
        "inbox/two.vcf",
        "BEGIN:VCARD\nVERSION:3.0\nUID:b\nFN:Ben\nEND:VCARD\n",
    );
    home.run("collect run inbox")
        .succeeds()
        .says(": 1 added, 0 updated, 1 unchanged");
}

#[test]
fn a_program_runs_in_the_folder_in_which_it_was_added() {
    let home = Home::new();
    fs::create_dir(home.path("here")).unwrap();
    fs::write(home.path("here/printed.jsonl"), PRINTED).unwrap();
    let mut add = home.command("collect add near -- /bin/cat printed.jsonl");
    home.ran(add.current_dir(home.path("here"))).succeeds();
    home.run("collect run near").succeeds().says(": 3 added");
}

#[test]
fn a_running_server_collects_what_is_due() {
    let home = Home::new();
    let tap = tap(&home);
    home.run(format!("collect add harbour --every 1h -- '{tap}'"))
        .succeeds();
    let mut server = home.command("serve --listen 127.0.0.1:0").spawn().unwrap();
    let begun = Instant::now();
    while !home
        .run("collect list")
        .succeeds()
        .stdout
        .contains("; ran ")
    {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "nothing was collected"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    home.run("collect list").succeeds().shows("; next ");
    server.kill().unwrap();
    server.wait().unwrap();
    let found = home.run("search keel --json").succeeds().json();
    assert_eq!(found["data"].as_array().unwrap().len(), 2, "{found}");
}
