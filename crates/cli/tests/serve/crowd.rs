//! Many connections that say nothing, as somebody holds them who wants to keep others out.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpSocket;

use crate::harness::Home;
use crate::harness::server::{PATIENCE, Server};

/// Lets this process hold so many connections, or as many as it may.
fn may_hold(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let files = limit
        .maximum
        .map_or(wanted + 500, |maximum| maximum.min(wanted + 500));
    let raised = Rlimit {
        current: Some(files.max(limit.current.unwrap_or(files))),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    wanted.min(files.saturating_sub(500))
}

/// A connection from an address of this machine; every other one begins to ask and never ends.
fn idle(from: [u8; 4], to: SocketAddr, nth: u64) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = stream;
    if nth.is_multiple_of(2) {
        stream.write_all(b"GET /healthz HT").unwrap();
    }
    stream
}

/// A server that was started as most are: with 1,024 files, of which it may have more.
fn usual(home: &Home) -> Server {
    let plain = home.command("serve --listen 127.0.0.1:0");
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -S -n 1024; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args())
        .stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    Server::from_command(limited)
}

#[test]
fn requests_are_answered_while_three_thousand_connections_are_idle() {
    // TR-08
    let home = Home::with_mail();
    let server = usual(&home);
    let to: SocketAddr = server.address.parse().unwrap();
    let many = may_hold(3_000);
    let mut crowd = Vec::new();
    for nth in 0..many {
        let from = [127, 0, 1, u8::try_from(nth / 250 + 1).unwrap()];
        crowd.push(idle(from, to, nth));
    }
    for _ in 0..20 {
        assert_eq!(server.ask("GET /healthz", None, "").0, 200);
    }
    drop(crowd);

    // One address holds 256, and for one more the oldest is closed.
    let from = [127, 0, 2, 1];
    let held: Vec<TcpStream> = (0..300).map(|nth| idle(from, to, nth)).collect();
    for (nth, mut closed) in held.iter().take(44).enumerate() {
        let told = closed.read(&mut [0; 64]);
        assert!(!matches!(told, Ok(1..)), "{nth} was told {told:?}");
    }
    let mut newest = held.last().unwrap();
    newest
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut told = String::new();
    newest.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
}
