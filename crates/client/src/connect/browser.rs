//! The authorization code flow with PKCE and a redirect to this machine (RFC 8252): a listener on 127.0.0.1, at a
//! random port, until the owner has decided.
//!
//! Other requests are answered 404 and the wait goes on: only our redirect knows the state.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::error::{ErrorCode, ReadError};
use reqwest::Url;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::flows::DETAILS;
use super::{Flow, Prompt};
use crate::failure;
use crate::secret::Secret;
use crate::token::{self, Granted, TokenResponse};

const PATH: &str = "/callback";
const WAIT_LIMIT: Duration = Duration::from_mins(10);
/// Time and size limits of one request.
const VISIT_TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_BYTES: usize = 16 * 1024;
/// Concurrent connections: browsers open some that they never use.
const MAX_VISITORS: usize = 16;

pub(super) struct Browser {
    listener: TcpListener,
    redirect_uri: String,
    state: String,
    verifier: Secret,
}

/// Opens the listener, registers its address, and makes the link.
pub(super) async fn begin(
    flow: &mut Flow,
    details: Option<&str>,
) -> Result<(Browser, Prompt), ReadError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    let bound = listener.and_then(|listener| Ok((port(&listener)?, listener)));
    let (port, listener) = bound.map_err(|error| {
        let message = format!("no port of this machine could be opened for the browser: {error}");
        ReadError::new(ErrorCode::NotConnected, message)
            .with_hint("name what is asked for, with --source and --stream: then a code will do")
    })?;
    let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
    let more = json!({
        "redirect_uris": [redirect_uri],
        "response_types": ["code"],
        "application_type": "native",
    });
    // Always a new registration: a client registered for the device flow has no redirect address, and a browser cannot
    // report that the server has forgotten a client.
    let grant_types: [&[&str]; 2] = [
        &["authorization_code", "refresh_token"],
        &["authorization_code"],
    ];
    flow.register(&grant_types, &more).await?;
    let (state, verifier) = (random()?, random()?);
    let browser = Browser {
        verifier: Secret::new(verifier).ok_or_else(ReadError::internal)?,
        listener,
        redirect_uri,
        state,
    };
    let prompt = Prompt {
        link: browser.link(flow, details)?.to_string(),
        user_code: None,
        expires_in: WAIT_LIMIT,
    };
    Ok((browser, prompt))
}

impl Browser {
    fn link(&self, flow: &Flow, details: Option<&str>) -> Result<Url, ReadError> {
        let issuer = flow.server.issuer.as_str();
        let Some(mut link) = flow.server.authorization.clone() else {
            let reason = "it offers no authorization code";
            return Err(failure::not_the_contract(issuer, reason));
        };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()));
        link.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &flow.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", &self.state)
            .append_pair("resource", &flow.resource);
        if let Some(details) = details {
            link.query_pairs_mut().append_pair(DETAILS, details);
        }
        Ok(link)
    }

    /// Waits for the redirect, then exchanges its code.
    pub(super) async fn wait(
        self,
        flow: &Flow,
        patience: Duration,
    ) -> Result<Box<Granted>, ReadError> {
        let callback = tokio::time::timeout(patience, self.wait_for_callback(flow)).await;
        let code = match callback {
            Ok(Callback::Code(code)) => code,
            Ok(Callback::Refused(code)) if code == "access_denied" => {
                return Err(flow.ended("the owner did not approve"));
            }
            Ok(Callback::Refused(code)) => {
                return Err(token::refused(flow.server.issuer.as_str(), &code));
            }
            Ok(Callback::WrongServer) => {
                return Err(flow.ended("the browser came back from another authorization server"));
            }
            Err(_) => return Err(flow.ended("nobody came back from the browser")),
        };
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("client_id", &flow.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", self.verifier.expose()),
            ("resource", &flow.resource),
        ];
        match token::request_token(&flow.transport, &flow.server.token, &fields).await? {
            TokenResponse::Granted(granted) => Ok(granted),
            TokenResponse::Refused(code) => Err(token::refused(flow.server.issuer.as_str(), &code)),
        }
    }

    /// The first request that is our redirect.
    async fn wait_for_callback(&self, flow: &Flow) -> Callback {
        let (found, mut finding) = mpsc::channel(1);
        let mut visits = JoinSet::new();
        let expected = Expected {
            state: self.state.clone(),
            issuer: flow.server.issuer.as_str().to_owned(),
            sends_issuer: flow.server.sends_issuer(),
        };
        loop {
            tokio::select! {
                Some(callback) = finding.recv() => return callback,
                Some(_) = visits.join_next(), if visits.len() >= MAX_VISITORS => {}
                Ok((stream, _)) = self.listener.accept(), if visits.len() < MAX_VISITORS => {
                    let (expected, found) = (expected.clone(), found.clone());
                    visits.spawn(async move {
                        let visited = tokio::time::timeout(VISIT_TIMEOUT, handle_visitor(stream, &expected)).await;
                        if let Ok(Some(callback)) = visited {
                            // Another redirect came first.
                            let _ = found.send(callback).await;
                        }
                    });
                }
            }
        }
    }
}

#[derive(Clone)]
struct Expected {
    state: String,
    issuer: String,
    /// Whether the server names itself in the redirect (RFC 9207).
    sends_issuer: bool,
}

enum Callback {
    Code(Secret),
    /// With this OAuth error code.
    Refused(String),
    WrongServer,
}

impl Expected {
    /// Parses a request target; `None` if it is not our redirect.
    fn read(&self, target: &str) -> Option<Callback> {
        let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
        let only = |name: &str| {
            let mut found = url.query_pairs().filter(|(key, _)| key == name);
            let first = found.next().map(|(_, value)| value.into_owned());
            first.filter(|_| found.next().is_none())
        };
        if url.path() != PATH || only("state").as_deref() != Some(self.state.as_str()) {
            return None;
        }
        let issuer = only("iss");
        let is_same = |iss: String| iss.trim_end_matches('/') == self.issuer;
        if !issuer.map_or(!self.sends_issuer, is_same) {
            return Some(Callback::WrongServer);
        }
        if let Some(error) = only("error") {
            let code =
                token::sanitize_code(&error).unwrap_or_else(|| "an unreadable error".to_owned());
            return Some(Callback::Refused(code));
        }
        only("code").and_then(Secret::new).map(Callback::Code)
    }
}

/// Serves one connection and tells the person in front of the browser the result.
async fn handle_visitor(mut stream: TcpStream, expected: &Expected) -> Option<Callback> {
    let head = head(&mut stream).await?;
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let target = words.next().filter(|method| *method == "GET");
    let callback = target
        .and(words.next())
        .and_then(|target| expected.read(target));
    let (status, text) = match &callback {
        Some(Callback::Code(_)) => (
            "200 OK",
            "Approved. Go on in the terminal; this page can be closed.",
        ),
        Some(Callback::Refused(_)) => ("200 OK", "Not approved. This page can be closed."),
        Some(Callback::WrongServer) => (
            "400 Bad Request",
            "This comes from another server than was asked.",
        ),
        None => ("404 Not Found", "There is nothing here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         content-length: {}\r\n\r\n{text}",
        text.len()
    );
    // The result counts whether the page is shown or not.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    callback
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || bytes.len() > HEAD_BYTES {
            return None;
        }
        bytes.extend_from_slice(buffer.get(..read)?);
    }
    String::from_utf8(bytes).ok()
}

/// 256 random bits in 43 characters.
fn random() -> Result<String, ReadError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| ReadError::internal())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
