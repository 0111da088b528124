//! `pdpp doctor` before what is broken: each check fails once, and says what to do about it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::harness::{Home, files, lines};
use serde_json::{Value, json};

/// How a server answers, each with who asks for what, the status, and the body.
const WELL: [(&str, u16, &str); 4] = [
    (
        "metadata",
        200,
        r#"{"resource": "URL", "authorization_servers": ["URL"]}"#,
    ),
    (
        "sign-in",
        200,
        r#"{"issuer": "URL", "device_authorization_endpoint": "URL/device"}"#,
    ),
    (
        "stranger",
        401,
        r#"{"error": {"code": "authentication_error", "message": "no"}}"#,
    ),
    (
        "client",
        200,
        r#"{"object": "schema", "detail": "compact", "stream_count": 1, "connectors": []}"#,
    ),
];

/// Each fault: what is answered otherwise, with what; the check that finds it, what it says, and what is to be done.
const FAULTS: &str = r#"
metadata | 200 | {"resource": "https://elsewhere.example", "authorization_servers": ["URL"]} | metadata | the server says it is https://elsewhere.example, and clients believe that | use https://elsewhere.example, or start the server with --public-url URL
metadata | 200 | {} | metadata | the server does not say what it is | check that the address is that of a PDPP server, and what stands before it
metadata | 404 | {} | metadata | /.well-known/oauth-protected-resource answers with status 404 | check that the address is that of a PDPP server, and what stands before it
sign-in | 200 | {"issuer": "https://elsewhere.example"} | sign-in | the authorization server at URL calls itself something else | start the server with --public-url URL
sign-in | 200 | {"issuer": "URL"} | sign-in | URL offers no device flow and no authorization code | update the server; until then its owner has to give you a token another way
sign-in | 404 | {} | sign-in | URL publishes nothing about signing in (status 404) | update the server; until then grants are issued at its terminal with `pdpp grant create`
stranger | 401 | {} | challenge | strangers are refused, but not told where to sign in | let the proxy pass the header WWW-Authenticate on
stranger | 200 | {"object": "schema"} | challenge | strangers may read: no token is asked for | stop whatever adds a token on the way, at once
clock | 0 | {} | clock | the server's clock and this one are N seconds apart | set both by NTP; credentials end too early or too late otherwise
client | 401 | {"error": {"code": "authentication_error", "message": "not any more"}} | read | the stored credential is refused: not any more | pdpp connect URL --cache-root ~/cache
"#;

/// What a server answers otherwise than it should.
type Fault = (&'static str, u16, &'static str);

/// A server with that fault, or none. It ends with the test program.
fn server(fault: Option<Fault>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that went away is not this test's.
            let _ = answer(stream.unwrap(), &own, fault);
        }
    });
    url
}

fn answer(mut stream: TcpStream, url: &str, fault: Option<Fault>) -> Option<()> {
    let lines = BufReader::new(stream.try_clone().ok()?).lines();
    let lines = lines.map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let asked = match head.first()?.split(' ').nth(1)? {
        "/.well-known/oauth-protected-resource" => "metadata",
        "/.well-known/oauth-authorization-server" => "sign-in",
        _ if head.iter().any(|line| line.contains("sesame-open")) => "client",
        _ => "stranger",
    };
    let broken = fault.filter(|(what, ..)| *what == asked);
    let (_, status, body) = broken.or(WELL.into_iter().find(|(what, ..)| *what == asked))?;
    let mut headers = String::new();
    if asked == "stranger" && broken.is_none() {
        headers = format!("www-authenticate: Bearer resource_metadata=\"{url}/x\"\r\n");
    }
    if fault.is_some_and(|(what, ..)| what == "clock") {
        headers.push_str("date: Thu, 01 Jan 2015 00:00:00 GMT\r\n");
    }
    let body = body.replace("URL", url);
    let size = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {size}\r\n\r\n{body}"
    )
    .ok()
}

fn findings(home: &Home, url: &str) -> (Option<i32>, Vec<Value>) {
    let credential = json!({"access_token": "sesame-open", "token_kind": "client"});
    home.keep_credential(url.strip_prefix("http://").unwrap(), &credential);
    let ran = home.run(format!("doctor {url} --cache-root ~/cache --json"));
    let told = ran.json();
    (ran.code, told["findings"].as_array().unwrap().clone())
}

#[test]
fn every_fault_of_a_server_is_found_alone_and_has_a_remedy() {
    let home = Home::new();
    let (code, all) = findings(&home, &server(None));
    assert_eq!(code, Some(0), "{all:?}");
    for row in FAULTS.trim().lines() {
        let [what, status, body, expected @ ..] = &row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let url = server(Some((what, status.parse().unwrap(), body)));
        let (code, all) = findings(&home, &url);
        let ill: Vec<&Value> = all.iter().filter(|one| one["ok"] == false).collect();
        assert_eq!((code, ill.len()), (Some(1), 1), "{row}: {all:?}");
        let told = ["check", "message", "remedy"].map(|name| {
            let text = ill[0][name].as_str().unwrap().replace(&url, "URL");
            match text.split_once("this one are ") {
                Some((before, _)) => format!("{before}this one are N seconds apart"),
                None => text,
            }
        });
        assert_eq!(told, expected);
    }
}

#[test]
fn a_clock_behind_the_data_and_a_damaged_store_are_found_here() {
    let home = Home::with_mail();
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(7_000_000_000);
    let database = home.data_dir().join("records.db");
    let open = File::options().append(true).open(&database).unwrap();
    open.set_modified(later).unwrap();
    home.run("doctor").exits(1).shows_all(&[
        "but data was written later than that\n",
        "do: set the clock of this machine, for example by NTP\n",
    ]);
    let home = Home::with_mail();
    fs::write(home.data_dir().join("records.db"), "nonsense").unwrap();
    let ran = home.run("doctor").exits(1);
    ran.shows_all(&["FAIL  records ", "is damaged", "do: restore a backup"]);
    ran.hides("index rebuild");
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x10;
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_thorough_look_names_the_damaged_file_and_what_to_do() {
    let home = Home::with_mail();
    let message = |at| format!("{{\"id\":\"m{at}\",\"subject\":\"hello {at}\"}}\n");
    home.import_messages(&lines(200, message)).succeeds();
    home.run("search hello").succeeds();
    home.run("doctor --thorough").succeeds().shows_all(&[
        "records  200 can be read",
        "blobs    0 are",
        "index    its files",
    ]);
    let index = files(&home.data_dir().join("index"));
    let is_positions = |file: &&PathBuf| file.extension().is_some_and(|kind| kind == "pos");
    let words = index.iter().find(is_positions);
    flip(words.unwrap(), 3);
    let ran = home.run("doctor --thorough").exits(1);
    ran.shows_all(&["FAIL  index", "pdpp index rebuild"]);
    home.run("index rebuild").succeeds();
    home.run("doctor --thorough").succeeds();
    // The last page of the records: nothing needs it to open.
    let database = home.data_dir().join("records.db");
    let length = fs::read(&database).unwrap().len();
    for at in (length - 8_192..length).step_by(64) {
        flip(&database, at);
    }
    let ran = home.run("doctor --thorough").exits(1);
    ran.shows_all(&["FAIL  records", "records.db", "do: restore a backup"]);
}
