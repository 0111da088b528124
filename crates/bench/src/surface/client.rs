//! One kept connection to a server, small requests sent without delay.

use std::net::SocketAddr;

use grants::Secret;
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::process::PATIENCE;
use crate::BenchError;

/// A connection that is kept alive.
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
        // How it ends is seen by whoever asks next.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self {
            sender,
            address,
            authorization: format!("Bearer {}", token.expose()),
        })
    }

    /// Asks and takes the whole answer.
    pub(super) async fn ask(&mut self, target: &str) -> Result<(StatusCode, Vec<u8>), BenchError> {
        let request = Request::get(target)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, &self.authorization)
            .body(String::new())
            .map_err(|error| BenchError::Setup(error.to_string()))?;
        let exchange = async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>((head.status, body.to_vec()))
        };
        match timeout(PATIENCE, exchange).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(refused(target, "nothing for a minute")),
        }
    }

    /// Asks for what must be there.
    pub(super) async fn get(&mut self, target: &str) -> Result<Vec<u8>, BenchError> {
        match self.ask(target).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, body) => {
                let start = body.get(..200).unwrap_or(&body);
                let start = String::from_utf8_lossy(start);
                Err(refused(target, &format!("{status}: {start}")))
            }
        }
    }
}

fn refused(target: &str, answer: &str) -> BenchError {
    BenchError::Refused {
        question: target.to_owned(),
        answer: answer.to_owned(),
    }
}
