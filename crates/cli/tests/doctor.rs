//! `pdpp doctor` before what is broken: each check fails once, and says what to do about it.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use harness::{Home, files};
use serde_json::{Value, json};

/// What is wrong with a server.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    Nothing,
    SaysItIsAnother,
    SaysNothing,
    HasNoMetadata,
    IssuerIsAnother,
    HasNoDeviceFlow,
    HasNoSignIn,
    TellsNobodyWhere,
    LetsStrangersRead,
    ClockIsLate,
    RefusesTheCredential,
}

/// Each fault: the check that finds it, what it says, and what is to be done.
const FAULTS: &[(Broken, &str, &str, &str)] = &[
    (
        Broken::SaysItIsAnother,
        "metadata",
        "the server says it is https://elsewhere.example, and clients believe that",
        "use https://elsewhere.example, or start the server with --public-url URL",
    ),
    (
        Broken::SaysNothing,
        "metadata",
        "the server does not say what it is",
        "check that the address is that of a PDPP server, and what stands before it",
    ),
    (
        Broken::HasNoMetadata,
        "metadata",
        "/.well-known/oauth-protected-resource answers with status 404",
        "check that the address is that of a PDPP server, and what stands before it",
    ),
    (
        Broken::IssuerIsAnother,
        "sign-in",
        "the authorization server at URL calls itself something else",
        "start the server with --public-url URL",
    ),
    (
        Broken::HasNoDeviceFlow,
        "sign-in",
        "URL offers no device flow and no authorization code",
        "update the server; until then its owner has to give you a token another way",
    ),
    (
        Broken::HasNoSignIn,
        "sign-in",
        "URL publishes nothing about signing in (status 404)",
        "update the server; until then grants are issued at its terminal with `pdpp grant create`",
    ),
    (
        Broken::TellsNobodyWhere,
        "challenge",
        "strangers are refused, but not told where to sign in",
        "let the proxy pass the header WWW-Authenticate on",
    ),
    (
        Broken::LetsStrangersRead,
        "challenge",
        "strangers may read: no token is asked for",
        "stop whatever adds a token on the way, at once",
    ),
    (
        Broken::ClockIsLate,
        "clock",
        "the server's clock and this one are N seconds apart",
        "set both by NTP; credentials end too early or too late otherwise",
    ),
    (
        Broken::RefusesTheCredential,
        "read",
        "the stored credential is refused: not any more",
        "pdpp connect URL --cache-root ~/cache",
    ),
];

/// A server with that fault. It ends with the test program.
fn server(broken: Broken) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that went away is not this test's.
            let _ = answer(stream.unwrap(), &own, broken);
        }
    });
    url
}

fn answer(mut stream: TcpStream, url: &str, broken: Broken) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let head: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let known = head.iter().any(|line| line.contains("sesame-open"));
    let (status, mut headers, body) = reply(first.split(' ').nth(1)?, known, url, broken);
    if broken == Broken::ClockIsLate {
        headers.push_str("date: Thu, 01 Jan 2015 00:00:00 GMT\r\n");
    }
    let body = body.to_string();
    let size = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {size}\r\n\r\n{body}"
    )
    .ok()
}

fn reply(path: &str, known: bool, url: &str, broken: Broken) -> (u16, String, Value) {
    let plain = |status, body| (status, String::new(), body);
    let schema =
        json!({"object": "schema", "detail": "compact", "stream_count": 1, "connectors": []});
    let refused = json!({"error": {"code": "authentication_error", "message": "not any more"}});
    let device = (broken != Broken::HasNoDeviceFlow).then(|| format!("{url}/device"));
    match (path, broken) {
        ("/.well-known/oauth-protected-resource", Broken::HasNoMetadata)
        | ("/.well-known/oauth-authorization-server", Broken::HasNoSignIn) => plain(404, json!({})),
        ("/.well-known/oauth-protected-resource", Broken::SaysNothing) => plain(200, json!({})),
        ("/.well-known/oauth-protected-resource", Broken::SaysItIsAnother) => plain(
            200,
            json!({"resource": "https://elsewhere.example", "authorization_servers": [url]}),
        ),
        ("/.well-known/oauth-protected-resource", _) => plain(
            200,
            json!({"resource": url, "authorization_servers": [url]}),
        ),
        ("/.well-known/oauth-authorization-server", Broken::IssuerIsAnother) => {
            plain(200, json!({"issuer": "https://elsewhere.example"}))
        }
        ("/.well-known/oauth-authorization-server", _) => plain(
            200,
            json!({"issuer": url, "device_authorization_endpoint": device}),
        ),
        (_, Broken::LetsStrangersRead) => plain(200, schema),
        (_, Broken::TellsNobodyWhere) if !known => plain(401, refused),
        _ if known && broken != Broken::RefusesTheCredential => plain(200, schema),
        _ => {
            let challenge = format!("www-authenticate: Bearer resource_metadata=\"{url}/x\"\r\n");
            (401, challenge, refused)
        }
    }
}

/// The findings about a server for which there is a credential.
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
    let (code, all) = findings(&home, &server(Broken::Nothing));
    assert_eq!(code, Some(0), "{all:?}");
    for (broken, check, message, remedy) in FAULTS {
        let url = server(*broken);
        let (code, all) = findings(&home, &url);
        let ill: Vec<&Value> = all.iter().filter(|one| one["ok"] == false).collect();
        assert_eq!((code, ill.len()), (Some(1), 1), "{check}: {all:?}");
        let text = |name: &str| {
            let text = ill[0][name].as_str().unwrap().replace(&url, "URL");
            match text.split_once("this one are ") {
                Some((before, _)) => format!("{before}this one are N seconds apart"),
                None => text,
            }
        };
        assert_eq!(
            (
                text("check").as_str(),
                text("message").as_str(),
                text("remedy").as_str()
            ),
            (*check, *message, *remedy)
        );
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
    home.import_messages(&harness::lines(200, message))
        .succeeds();
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
