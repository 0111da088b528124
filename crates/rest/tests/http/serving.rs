//! A real listener: connections are kept, requests under way end, then the server does.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::fixture::World;

async fn read_answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).await.unwrap();
        text.extend_from_slice(piece.get(..read).unwrap());
        let so_far = String::from_utf8_lossy(&text).into_owned();
        if read == 0 || so_far.ends_with('}') {
            return so_far;
        }
    }
}

struct Running {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    server: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start(world: &World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let server = tokio::spawn(rest::serve(listener, world.router.clone(), stopped));
        Self {
            address,
            stop,
            server,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn ends(server: tokio::task::JoinHandle<()>) {
    let ended = tokio::time::timeout(Duration::from_secs(5), server).await;
    ended.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_answers_on_one_connection_until_it_is_told_to_stop() {
    let world = World::new().await;
    let running = Running::start(&world).await;
    let mut stream = running.connect().await;
    let request = format!(
        "GET /v1/search?q=overdraft HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        world.owner
    );
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("search_result"));
    }
    running.stop.send(()).unwrap();
    ends(running.server).await;
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_is_answered_although_the_server_stops() {
    let world = World::new().await;
    let running = Running::start(&world).await;
    let mut stream = running.connect().await;
    let line = "{\"key\":\"late\",\"data\":{\"id\":\"late\",\"secret\":\"s\"}}";
    let head = format!(
        "POST /v1/ingest/messages?connection_id=work HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-length: {}\r\n\r\n",
        world.owner,
        line.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.write_all(line.as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert!(answer.contains("\"records_accepted\":1"), "{answer}");
    ends(running.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_breaks_off_leaves_no_half_of_anything() {
    let world = World::new().await;
    let running = Running::start(&world).await;
    let mut stream = running.connect().await;
    let request = format!(
        "POST /v1/ingest/messages?connection_id=work HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-length: 1000\r\n\r\n{{\"key\":\"half\",\"data\":{{\"id\":\"half\",\"secret\":\"s\"}}}}",
        world.owner
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = world
        .ask("/v1/streams/messages/records/half?connection_id=work")
        .await;
    assert_eq!(answer.failure(), (404, "not_found"));
}

/// What a server says to these bytes until it closes the connection.
async fn said_to(world: &World, bytes: &[u8]) -> String {
    let running = Running::start(world).await;
    let mut stream = running.connect().await;
    stream.write_all(bytes).await.unwrap();
    let mut said = String::new();
    let reading = stream.read_to_string(&mut said);
    let read = tokio::time::timeout(Duration::from_secs(20), reading).await;
    running.server.abort();
    read.unwrap().unwrap();
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_becomes_a_request_is_told_like_every_failure() {
    // Decision 22: every body that is not a success is the structured error.
    let world = World::new().await;
    let long = "a".repeat(70_000);
    let longer = "a".repeat(600_000);
    let many = "x-more: y\r\n".repeat(120);
    for (sent, status) in [
        (
            format!("GET /v1/schema?x={long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            414,
        ),
        (
            format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-long: {longer}\r\n\r\n"),
            431,
        ),
        (
            format!("GET / HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"),
            431,
        ),
        ("this is\r\nnot HTTP\r\n\r\n".to_owned(), 400),
    ] {
        let said = said_to(&world, sent.as_bytes()).await;
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], "invalid_request");
        let id = body["error"]["request_id"].as_str().unwrap();
        for line in [
            &format!("request-id: {id}"),
            &format!("x-request-id: {id}"),
            "content-type: application/json; charset=utf-8",
            "pdpp-version: 2026-04-06",
            "connection: close",
        ] {
            assert!(head.lines().any(|known| known == line), "{line} in {head}");
        }
        assert_eq!(
            head.lines()
                .filter(|line| line.starts_with("date: "))
                .count(),
            1
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_before_one_that_cannot_be_given_is_whole() {
    let world = World::new().await;
    // A record whose text looks like an answer without a body.
    let bare = "HTTP/1.1 414 URI Too Long\r\ncontent-length: 0\r\n\r\n";
    let letter = crate::fixture::letter("bare", "A head", bare, 5);
    world.ingest("home", "messages", &letter).await;
    let target = "/v1/streams/messages/records/bare?connection_id=home";
    let good = format!(
        "GET {target} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        world.owner
    );
    let bad = format!(
        "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "a".repeat(70_000)
    );
    let said = said_to(&world, format!("{good}{good}{bad}").as_bytes()).await;
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 2, "{said}");
    assert_eq!(
        said.matches("URI Too Long\\r\\ncontent-length: 0").count(),
        2,
        "{said}"
    );
    assert_eq!(
        said.matches("HTTP/1.1 414 URI Too Long\r\n").count(),
        1,
        "{said}"
    );
    assert!(said.ends_with('}') && said.contains("65,534"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_for_whoever_runs_the_server() {
    // Decision 12: what others do is not told by counts.
    let world = World::new().await;
    let ask = async |world: &World, headers: &str| asked(world, "GET /metrics", headers).await;
    let told = ask(&world, "host: localhost:7420\r\n").await;
    assert!(told.contains("pdpp_requests_total"), "{told}");
    let told = ask(&world, "host: localhost\r\nx-forwarded-for: 127.0.0.1\r\n").await;
    assert!(told.starts_with("HTTP/1.1 401 "), "{told}");
    assert!(told.contains("www-authenticate: Bearer"), "{told}");
    assert!(told.contains("\"code\":\"authentication_error\""), "{told}");
    assert!(!told.contains("pdpp_requests_total"), "{told}");
    let mut proxied = world;
    let proxy = "127.0.0.1".parse().unwrap();
    let service = proxied.service.clone().with_trusted_proxies(vec![proxy]);
    proxied.router = rest::router(service);
    let told = ask(&proxied, "host: localhost\r\n").await;
    assert!(told.starts_with("HTTP/1.1 401 "), "{told}");
    let owner = format!(
        "host: localhost\r\nauthorization: Bearer {}\r\n",
        proxied.owner
    );
    assert!(ask(&proxied, &owner).await.contains("pdpp_requests_total"));
    let (client, _) = proxied.grant(&["work"], &["messages"], &["id"]);
    let answer = proxied.get(&client, "/metrics").await;
    assert_eq!(answer.failure(), (403, "permission_error"));
}

async fn asked(world: &World, line: &str, headers: &str) -> String {
    let request = format!("{line} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    said_to(world, request.as_bytes()).await
}

// TR-07: a request for another host is refused on every route but those of health.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_sent_to_another_host_is_refused() {
    let world = World::new().await;
    let lines = [
        "GET /v1/streams",
        "GET /v1/openapi.json",
        "POST /mcp",
        "GET /mcp",
        "GET /metrics",
        "GET /sign-in",
        "POST /sign-in",
        "GET /oauth/authorize",
        "POST /oauth/token",
        "POST /oauth/register",
        "POST /oauth/device_authorization",
        "GET /.well-known/oauth-authorization-server",
        "GET /.well-known/oauth-protected-resource",
        "GET /style.css",
        "GET /icon.svg",
        "GET /nowhere",
        "DELETE /v1/streams",
        "GET http://evil.example/v1/streams",
    ];
    for line in lines {
        let told = asked(&world, line, "host: evil.example\r\n").await;
        assert!(told.starts_with("HTTP/1.1 421 "), "{line}: {told}");
        assert!(told.contains("\"code\":\"misdirected_request\""), "{told}");
        assert!(!told.contains("set-cookie"), "{told}");
    }
    for line in ["GET /healthz", "GET /readyz"] {
        let told = asked(&world, line, "host: evil.example\r\n").await;
        assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    }
    for host in [
        "127.0.0.1:1",
        "localhost",
        "[::1]:7420",
        "pdpp.localhost:7420",
    ] {
        let told = asked(&world, "GET /v1/streams", &format!("host: {host}\r\n")).await;
        assert!(told.starts_with("HTTP/1.1 401 "), "{host}: {told}");
    }
}

// TR-07: whatever a request says of its host must be ours; only a trusted proxy is believed about another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_header_stands_in_for_the_host() {
    let mut world = World::new().await;
    for headers in [
        "",
        "host: 127.0.0.1.evil.example\r\n",
        "host: evil.localhost\r\n",
        "host: localhost@evil.example\r\n",
        "host: 127.0.0.1\r\nhost: evil.example\r\n",
        "host: evil.example\r\nx-forwarded-host: 127.0.0.1\r\n",
    ] {
        let told = asked(&world, "GET /v1/streams", headers).await;
        let refused = told.starts_with("HTTP/1.1 421 ") || told.starts_with("HTTP/1.1 400 ");
        assert!(refused, "{headers}: {told}");
    }
    let absolute = asked(&world, "GET http://evil.example/", "host: localhost\r\n").await;
    assert!(absolute.starts_with("HTTP/1.1 421 "), "{absolute}");
    // A trusted proxy says which host it was asked by.
    let proxy = "127.0.0.1".parse().unwrap();
    world.router = rest::router(world.service.clone().with_trusted_proxies(vec![proxy]));
    for (passed, status) in [("127.0.0.1:7420", 401), ("evil.example", 421)] {
        let headers = format!("host: backend:7420\r\nx-forwarded-host: {passed}\r\n");
        let told = asked(&world, "GET /v1/streams", &headers).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{told}");
    }
}
