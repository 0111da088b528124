//! A server of its own for one test, and how to ask it over the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Home;

/// Nothing here takes so long unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that is ended with its test.
pub struct Server {
    pub child: Child,
    stderr: BufReader<ChildStderr>,
    pub address: String,
}

impl Server {
    pub fn start(home: &Home) -> Self {
        Self::from_command(home.command(&["serve", "--listen", "127.0.0.1:0"]))
    }

    pub fn from_command(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, receive) = mpsc::channel();
        spawn(move || {
            let mut line = String::new();
            stderr.read_line(&mut line).unwrap();
            // Nobody listens to a server that took too long.
            let _ = send.send((line, stderr));
        });
        let first = receive.recv_timeout(PATIENCE);
        if first.is_err() {
            child.kill().unwrap();
        }
        let (line, stderr) = first.unwrap();
        let address = line
            .strip_prefix("API: http://")
            .and_then(|rest| rest.strip_suffix("/v1\n"));
        let server = Self {
            child,
            stderr,
            address: address.unwrap_or_default().to_owned(),
        };
        assert_ne!(server.address, "", "{line}");
        server
    }

    /// Asks over TCP; gives status and body.
    pub fn ask(&self, request: &str, token: Option<&str>, body: &str) -> (u16, Value) {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(stream, request, token, body)
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end; gives the exit code and what was still told.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not end");
            sleep(Duration::from_millis(10));
        };
        let mut told = String::new();
        self.stderr.read_to_string(&mut told).unwrap();
        (status.code(), told)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn exchange(
    mut stream: impl Read + Write,
    request: &str,
    token: Option<&str>,
    body: &str,
) -> (u16, Value) {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    // Some refusals of the transport are plain words.
    let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
    (status, body)
}
