//! Fetches documents whose URLs strangers choose, without reaching internal networks.
//!
//! Only `https`, only public addresses, and the connection goes to the address that was checked: the name is resolved
//! once. No redirects, proxies or credentials; tight limits of time and size. Until a public server has answered,
//! every failure has the same message and takes the same time, so that the caller learns nothing about the server's
//! network.

mod public;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use reqwest::{Client, Response, Url, redirect};
use tokio::time::Instant;

use crate::transport::{USER_AGENT, tls};

use self::public::is_public;

/// The time limit, including name resolution.
const TOTAL: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 5 * 1024;
/// The most addresses of a name.
const MAX_ADDRESSES: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub body: Vec<u8>,
    pub max_age: Option<Duration>,
}

/// Why there is no document; may be shown to anybody.
pub type Refusal = String;

/// The message for everything that no public server answered.
const NOT_FETCHED: &str =
    "it could not be fetched within 5 seconds from a server on the public internet";

#[derive(Debug, PartialEq, Eq)]
enum FetchError {
    /// No public server answered. The reason is kept back: it would reveal internal names and addresses.
    Unreachable,
    /// A reason that reveals nothing about networks.
    Refused(Refusal),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentFetcher {
    /// Connects to loopback without TLS, because tests have no public server.
    #[cfg(test)]
    loopback_in_clear: bool,
}

impl DocumentFetcher {
    pub async fn fetch(&self, address: &str) -> Result<Document, Refusal> {
        let end = Instant::now() + TOTAL;
        match tokio::time::timeout_at(end, self.fetch_within(address)).await {
            Ok(Ok(document)) => Ok(document),
            Ok(Err(FetchError::Refused(refusal))) => Err(refusal),
            Ok(Err(FetchError::Unreachable)) | Err(_) => {
                // The time until failure would reveal the reason.
                tokio::time::sleep_until(end).await;
                Err(NOT_FETCHED.to_owned())
            }
        }
    }

    async fn fetch_within(&self, address: &str) -> Result<Document, FetchError> {
        let url = Url::parse(address).map_err(|_| refused("it is not at a web address"))?;
        let scheme = self.scheme();
        let plain =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if url.scheme() != scheme || !plain {
            return Err(FetchError::Refused(format!(
                "its address must be plain {scheme}"
            )));
        }
        let (host, port) = match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => (host.to_owned(), port),
            _ => return Err(refused("its address has no host")),
        };
        let addresses = self.resolve(&host, port).await?;
        fetch_from(url, &host, &addresses).await
    }

    /// Resolves a host; all its addresses must be allowed.
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => tokio::net::lookup_host((bare, port))
                .await
                .map_err(|_| FetchError::Unreachable)?
                .collect(),
        };
        self.check_addresses(addresses)
    }

    /// All addresses must be allowed: one internal address among public ones would be a way inside.
    fn check_addresses(self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, FetchError> {
        let usable = (1..=MAX_ADDRESSES).contains(&addresses.len());
        if usable
            && addresses
                .iter()
                .all(|address| self.is_allowed(address.ip()))
        {
            Ok(addresses)
        } else {
            Err(FetchError::Unreachable)
        }
    }
}

#[cfg(not(test))]
impl DocumentFetcher {
    #[expect(clippy::unused_self, reason = "the fetcher of the tests differs")]
    fn scheme(self) -> &'static str {
        "https"
    }

    #[expect(clippy::unused_self, reason = "the fetcher of the tests differs")]
    fn is_allowed(self, address: IpAddr) -> bool {
        is_public(address)
    }
}

#[cfg(test)]
impl DocumentFetcher {
    fn on_loopback() -> Self {
        Self {
            loopback_in_clear: true,
        }
    }

    fn scheme(self) -> &'static str {
        if self.loopback_in_clear {
            "http"
        } else {
            "https"
        }
    }

    fn is_allowed(self, address: IpAddr) -> bool {
        if self.loopback_in_clear {
            address.is_loopback()
        } else {
            is_public(address)
        }
    }
}

fn refused(refusal: &str) -> FetchError {
    FetchError::Refused(refusal.to_owned())
}

/// Fetches from these addresses and no other: the name is not resolved again, whatever it may mean by now.
async fn fetch_from(
    url: Url,
    host: &str,
    addresses: &[SocketAddr],
) -> Result<Document, FetchError> {
    let tls = tls(true).map_err(|_| refused("no encryption can be set up"))?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .http1_only()
        .resolve_to_addrs(host, addresses)
        .build()
        .map_err(|_| refused("no connection can be set up"))?;
    let answer = client
        .get(url)
        .header(ACCEPT, "application/json")
        .send()
        .await;
    read(answer.map_err(|_| FetchError::Unreachable)?)
        .await
        .map_err(FetchError::Refused)
}

async fn read(mut response: Response) -> Result<Document, Refusal> {
    let status = response.status().as_u16();
    if status != 200 {
        return Err(format!("its server answered {status} and not 200"));
    }
    let text = |name| {
        let value = response.headers().get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let kind = text(CONTENT_TYPE).split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    if kind != "application/json" && !(kind.starts_with("application/") && kind.ends_with("+json"))
    {
        return Err("it is not JSON".to_owned());
    }
    let max_age = max_age(text(CACHE_CONTROL));
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) if body.len() + bytes.len() > MAX_BYTES => {
                return Err("it is larger than 5 KiB".to_owned());
            }
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Ok(None) => return Ok(Document { body, max_age }),
            Err(_) => return Err("its server broke off".to_owned()),
        }
    }
}

fn max_age(text: &str) -> Option<Duration> {
    let seconds = text.split(',').find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then_some(value)
    })?;
    seconds
        .trim_matches('"')
        .parse()
        .ok()
        .map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A server that answers one request with this text; its address.
    async fn answering(answer: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        format!("http://{address}/client.json")
    }

    fn ok(kind: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncache-control: public, max-age=120\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    #[tokio::test]
    async fn a_small_json_document_is_read() {
        let fetcher = DocumentFetcher::on_loopback();
        let address = answering(ok("application/json; charset=utf-8", "{}")).await;
        let document = fetcher.fetch(&address).await.unwrap();
        assert_eq!(document.body, b"{}");
        assert_eq!(document.max_age, Some(Duration::from_mins(2)));
    }

    #[tokio::test]
    async fn what_is_large_elsewhere_or_not_json_is_refused() {
        let fetcher = DocumentFetcher::on_loopback();
        let large = ok("application/json", &"x".repeat(6_000));
        let moved =
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        for (answer, reason) in [
            (large, "larger than 5 KiB"),
            (ok("text/html", "{}"), "not JSON"),
            (moved.to_owned(), "302"),
        ] {
            let address = answering(answer).await;
            let refusal = fetcher.fetch(&address).await.unwrap_err();
            assert!(refusal.contains(reason), "{refusal}");
        }
    }

    #[tokio::test]
    async fn a_name_that_means_another_address_by_now_is_not_asked_again() {
        let address = answering(ok("application/json", "{}")).await;
        let listening = address
            .trim_start_matches("http://")
            .trim_end_matches("/client.json")
            .parse()
            .unwrap();
        // No resolver knows the name, so whoever looked it up a second time would fail here.
        let url = Url::parse("http://rebinding.invalid/client.json").unwrap();
        let document = fetch_from(url, "rebinding.invalid", &[listening]).await;
        assert_eq!(document.unwrap().body, b"{}");
    }

    #[test]
    fn one_inner_address_among_outer_ones_is_refused() {
        let fetcher = DocumentFetcher::default();
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 443);
        let outer = vec![at("1.1.1.1"), at("2606:4700::1111")];
        assert_eq!(fetcher.check_addresses(outer.clone()), Ok(outer.clone()));
        for inner in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "::ffff:192.168.0.1",
            "fd00:ec2::254",
            "2002:7f00:1::",
        ] {
            let mut addresses = outer.clone();
            addresses.push(at(inner));
            assert!(fetcher.check_addresses(addresses).is_err(), "{inner}");
        }
        assert!(fetcher.check_addresses(Vec::new()).is_err());
        assert!(fetcher.check_addresses(vec![at("1.1.1.1"); 9]).is_err());
    }

    #[tokio::test]
    async fn nothing_inside_is_reached() {
        let fetcher = DocumentFetcher::default();
        for address in [
            "https://127.0.0.1/c",
            "https://localhost/c",
            "https://10.0.0.1/c",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/c",
            "https://[::ffff:10.0.0.1]/c",
            "https://[64:ff9b::a00:1]/c",
            "https://0x7f000001/c",
            "https://2130706433/c",
            "https://0177.0.0.1/c",
            "https://127.1/c",
            "https://0/c",
            "https://[::]/c",
            "https://[fe80::1]/c",
            "https://[fd00:ec2::254]/c",
            "https://[2002:7f00:1::]/c",
            "https://127.0.0.1.:8443/c",
        ] {
            let failed = fetcher.fetch_within(address).await.unwrap_err();
            assert_eq!(failed, FetchError::Unreachable, "{address}");
        }
        for address in [
            "http://example.com/c",
            "https://u:p@example.com/c",
            "file:///etc/passwd",
            "x",
        ] {
            let refusal = fetcher.fetch(address).await.unwrap_err();
            assert!(refusal.contains("address"), "{address}: {refusal}");
        }
    }

    #[tokio::test]
    async fn names_and_addresses_inside_cannot_be_told_apart() {
        // TR-09: an inner address, an inner name, a name that is none and a server that is not there.
        let (inside, here) = (DocumentFetcher::default(), DocumentFetcher::on_loopback());
        let fetches = [
            (inside, "https://10.0.0.1/c"),
            (inside, "https://localhost/c"),
            (inside, "https://nobody.invalid/c"),
            (here, "http://127.0.0.1:1/c"),
        ]
        .map(|(fetcher, address)| {
            tokio::spawn(async move {
                let early = TOTAL.saturating_sub(Duration::from_millis(500));
                let fetch = fetcher.fetch(address);
                tokio::pin!(fetch);
                let told = tokio::time::timeout(early, &mut fetch).await;
                assert!(told.is_err(), "{address} is told before the others");
                fetch.await.unwrap_err()
            })
        });
        for fetch in fetches {
            assert_eq!(fetch.await.unwrap(), NOT_FETCHED);
        }
    }
}
