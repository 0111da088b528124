//! A server of its own for one test, and how to ask it over the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Home;

/// Nothing here takes so long unless it hangs.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A server that is ended with its test.
pub struct Server {
    pub child: Child,
    /// Reads what is told after the address, to its end.
    listening: Option<JoinHandle<String>>,
    /// What was told before the address.
    pub loading: String,
    pub address: String,
}

impl Server {
    pub fn start(home: &Home) -> Self {
        Self::from_command(home.command("serve --listen 127.0.0.1:0"))
    }

    pub fn from_command(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, receive) = mpsc::channel();
        let listening = spawn(move || {
            let (mut loading, mut line) = (String::new(), String::new());
            while stderr.read_line(&mut line).unwrap() > 0 && !line.starts_with("API: ") {
                loading.push_str(&line);
                line.clear();
            }
            // Nobody listens to a server that took too long.
            let _ = send.send((loading, line));
            let mut told = String::new();
            stderr.read_to_string(&mut told).unwrap();
            told
        });
        let first = receive.recv_timeout(PATIENCE);
        if first.is_err() {
            child.kill().unwrap();
        }
        let (loading, line) = first.unwrap();
        let address = line
            .strip_prefix("API: http://")
            .and_then(|rest| rest.strip_suffix("/v1\n"));
        let server = Self {
            child,
            listening: Some(listening),
            address: address.unwrap_or_default().to_owned(),
            loading,
        };
        assert_ne!(server.address, "", "{}", server.loading);
        server
    }

    pub fn ask(&self, request: &str, token: Option<&str>, body: &str) -> (u16, Value) {
        exchange(connect(&self.address), request, token, body)
    }

    /// Starts one, with more in its environment.
    pub fn with_env(home: &Home, line: &str, env: &[(&str, &str)]) -> Self {
        let mut command = home.command(line);
        command.envs(env.iter().copied());
        Self::from_command(command)
    }

    pub fn signal(&self, name: &str) {
        super::signal(self.child.id(), name);
    }

    /// Ends it as a signal does; gives what it still told.
    pub fn stop(self) -> String {
        self.signal("TERM");
        let (code, told) = self.ended();
        assert_eq!(code, Some(0), "{told}");
        told
    }

    /// A request of the owner that does not end, and keeps the server from ending.
    pub fn endless_request(&self, owner_token: &str) -> TcpStream {
        let mut stream = connect(&self.address);
        let token = owner_token.trim();
        write!(
            stream,
            "POST /v1/ingest/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n{{"
        )
        .unwrap();
        stream
    }

    /// Asks over TCP, as it stands; gives the whole answer.
    pub fn raw(&self, request: &str) -> String {
        let (head, body) = raw_exchange(connect(&self.address), request);
        format!("{head}\r\n\r\n{body}")
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
        let told = self.listening.take().unwrap().join().unwrap();
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

/// Asks at an address, as it stands; gives the head of the answer and its body.
pub fn raw_exchange(mut stream: impl Read + Write, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

pub fn status_in(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A connection that does not wait for ever.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub fn exchange(
    stream: impl Read + Write,
    request: &str,
    token: Option<&str>,
    body: &str,
) -> (u16, Value) {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let length = body.len();
    let (head, body) = raw_exchange(
        stream,
        &format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}Content-Length: {length}\r\n\r\n{body}"
        ),
    );
    // Some refusals of the transport are plain words.
    let body = serde_json::from_str(&body).unwrap_or_else(|_| Value::from(body));
    (status_in(&head), body)
}
