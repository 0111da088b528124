//! One kept connection to a server, small requests sent without delay.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;

use grants::Secret;
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::process::PATIENCE;
use crate::BenchError;

/// Where the end of a result says whether it is an error; what hosts alone may see stands behind it.
const END: usize = 512;

/// Whether the result of a tool says that it is none of an error. Only its end is looked at: a client's reading is not the
/// server's time.
pub(super) fn is_success(result: &[u8]) -> bool {
    let end = &result[result.len().saturating_sub(END)..];
    let marker = br#""isError":false"#;
    end.windows(marker.len()).any(|window| window == marker)
}

#[derive(Debug, Clone)]
pub(super) enum Question {
    Get(String),
    Message(String),
    /// A page, as a browser that is signed in asks for it.
    Page {
        target: String,
        cookie: String,
    },
}

pub(super) type Answer = (StatusCode, Vec<u8>);

impl Question {
    pub(super) fn call(tool: &str, args: &Value) -> Self {
        let params = json!({"name": tool, "arguments": args});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        Self::Message(message.to_string())
    }

    pub(super) fn refusal(&self, (status, body): &Answer) -> Option<String> {
        let is_answer = match self {
            Self::Get(_) | Self::Page { .. } => true,
            Self::Message(_) => is_success(body),
        };
        if is_answer && *status == StatusCode::OK {
            return None;
        }
        let start = body.get(..200).unwrap_or(body);
        Some(format!("{status}: {}", String::from_utf8_lossy(start)))
    }

    fn request(&self, host: String, authorization: &str) -> Result<Request<String>, BenchError> {
        let request = match self {
            Self::Get(target) => Request::get(target),
            Self::Page { target, cookie } => Request::get(target)
                .header(ACCEPT, "text/html")
                .header(COOKIE, cookie),
            Self::Message(_) => Request::post("/mcp")
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json, text/event-stream")
                .header("mcp-protocol-version", "2025-06-18"),
        };
        let body = match self {
            Self::Get(_) | Self::Page { .. } => String::new(),
            Self::Message(message) => message.clone(),
        };
        let host = match self {
            // The pages have a name of their own on loopback, and no use for a token.
            Self::Page { .. } => host.replace("127.0.0.1", "pdpp.localhost"),
            Self::Get(_) | Self::Message(_) => host,
        };
        let request = request
            .header(HOST, host)
            .header(AUTHORIZATION, authorization);
        let request = request.body(body);
        request.map_err(|error| BenchError::Setup(error.to_string()))
    }
}

impl Display for Question {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(text) | Self::Message(text) | Self::Page { target: text, .. } => {
                f.write_str(text)
            }
        }
    }
}

pub(super) struct Client {
    sender: SendRequest<String>,
    address: SocketAddr,
    authorization: String,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr, token: &Secret) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its end shows in the next request.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self {
            sender,
            address,
            authorization: format!("Bearer {}", token.expose()),
        })
    }

    /// Asks and takes the whole answer.
    pub(super) async fn ask(&mut self, question: &Question) -> Result<Answer, BenchError> {
        let request = question.request(self.address.to_string(), &self.authorization)?;
        let exchange = async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>((head.status, body.to_vec()))
        };
        match timeout(PATIENCE, exchange).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(refused(question, "nothing for a minute")),
        }
    }

    pub(super) async fn must(&mut self, question: &Question) -> Result<Vec<u8>, BenchError> {
        let answer = self.ask(question).await?;
        match question.refusal(&answer) {
            None => Ok(answer.1),
            Some(refusal) => Err(refused(question, &refusal)),
        }
    }

    pub(super) async fn get(&mut self, target: &str) -> Result<Vec<u8>, BenchError> {
        self.must(&Question::Get(target.to_owned())).await
    }
}

fn refused(question: &Question, answer: &str) -> BenchError {
    BenchError::Refused {
        question: question.to_string(),
        answer: answer.to_owned(),
    }
}
