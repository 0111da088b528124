//! The address of a resource server as people write it, normalized.

use std::fmt;
use std::net::IpAddr;

use contract::error::{ErrorCode, ReadError};
use reqwest::Url;

/// How much of an invalid address a message repeats.
const SHOWN: usize = 100;

/// The base address of a resource server: scheme, host, port and perhaps a path, without a trailing slash.
///
/// An address without scheme is `https`, except where the host is this machine itself (`localhost`, `127.0.0.1`,
/// `[::1]`): nobody has a certificate for those, and nothing leaves the machine, so they are `http`.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderUrl {
    url: Url,
    text: String,
}

impl ProviderUrl {
    /// Parses an address. User names, queries and fragments are dropped.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        let text = text.trim();
        if text.is_empty() {
            let message = "no server was named";
            return Err(ReadError::new(ErrorCode::NoProviderUrl, message)
                .with_hint("give the server's address, for example https://data.example.org"));
        }
        let written = match text.split_once("://") {
            Some(_) => text.to_owned(),
            None => format!("https://{text}"),
        };
        let mut url = Url::parse(&written).map_err(|reason| refusal(text, &reason.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(refusal(text, "only http and https are spoken"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refusal(text, "it names no host"));
        }
        if !text.contains("://") && is_loopback(&url) {
            // Parsed again, because the default port differs.
            url = Url::parse(&format!("http://{text}"))
                .map_err(|reason| refusal(text, &reason.to_string()))?;
        }
        Ok(Self::from_url(url))
    }

    fn from_url(mut url: Url) -> Self {
        // These fail only for addresses without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let text = url.as_str().trim_end_matches('/').to_owned();
        Self { url, text }
    }

    /// The address, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The path prefix of the server; usually empty, never with a trailing slash.
    pub(crate) fn path(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    pub fn host_file_name(&self) -> String {
        let mut name = self.url.host_str().unwrap_or_default().to_owned();
        if let Some(port) = self.url.port() {
            name = format!("{name}:{port}");
        }
        let safe = |c: char| {
            let kept = c.is_ascii_alphanumeric() || c == '.' || c == '-';
            if kept { c } else { '_' }
        };
        name.chars().map(safe).chain(".json".chars()).collect()
    }

    /// Whether a token would be sent in clear to another machine. Worth a warning.
    pub fn exposes_token(&self) -> bool {
        self.url.scheme() == "http" && !is_loopback(&self.url)
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }
}

/// Whether the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    // Only this name: others below `.localhost` may be resolved elsewhere.
    let named = host.trim_end_matches('.') == "localhost";
    named
        || bare
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

fn refusal(text: &str, reason: &str) -> ReadError {
    // The part before an @ may be a password.
    let shown = text.rsplit('@').next().unwrap_or_default();
    let shown: String = shown
        .chars()
        .take_while(|c| !['?', '#'].contains(c))
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    let message = format!("'{shown}' is not a server address: {reason}");
    ReadError::new(ErrorCode::InvalidProviderUrl, message)
        .with_hint("give an http or https URL, for example https://data.example.org")
}

impl fmt::Display for ProviderUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for ProviderUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProviderUrl({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As written, as understood, and the name of its file.
    const SPELLINGS: &str = "
        data.example.org                  https://data.example.org      data.example.org.json
        https://data.example.org/         https://data.example.org      data.example.org.json
        HTTPS://Data.Example.ORG:443      https://data.example.org      data.example.org.json
        https://h.example:8443/a/b//      https://h.example:8443/a/b    h.example_8443.json
        https://me:pw@h.example/?q=1#top  https://h.example             h.example.json
        http://h.example                  http://h.example              h.example.json
        h.example/pdpp/                   https://h.example/pdpp        h.example.json
        h.example:8080                    https://h.example:8080        h.example_8080.json
        127.0.0.1:8080                    http://127.0.0.1:8080         127.0.0.1_8080.json
        http://127.0.0.1:8080             http://127.0.0.1:8080         127.0.0.1_8080.json
        https://localhost                 https://localhost             localhost.json
        localhost:80                      http://localhost              localhost.json
        localhost:443                     http://localhost:443          localhost_443.json
        [::1]:7420                        http://[::1]:7420             ___1__7420.json
        https://b\u{fc}cher.example          https://xn--bcher-kva.example xn--bcher-kva.example.json
    ";

    #[test]
    fn spellings_of_one_server_become_one_address() {
        for line in SPELLINGS.lines().filter(|line| !line.trim().is_empty()) {
            let [written, expected, file] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let url = ProviderUrl::parse(&format!(" {written} ")).unwrap();
            assert_eq!(url.as_str(), expected, "{written}");
            assert_eq!(url.host_file_name(), file, "{written}");
            assert_eq!(ProviderUrl::parse(url.as_str()).unwrap(), url, "{written}");
        }
    }

    #[test]
    fn an_unusable_address_is_refused_with_an_example() {
        // UP-07
        for written in [
            "ftp://h.example",
            "file:///etc/passwd",
            "https://",
            "http://:80",
            "a b",
            "h:99999",
            "https://[::1",
        ] {
            let error = ProviderUrl::parse(written).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidProviderUrl, "{written}");
            assert_eq!(error.code.exit_code(), 2);
            assert!(error.hint.unwrap().contains("https://"), "{written}");
        }
        for written in ["", "  "] {
            let error = ProviderUrl::parse(written).unwrap_err();
            assert_eq!(error.code, ErrorCode::NoProviderUrl);
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        let error = ProviderUrl::parse("ftp://me:pw123@h.example/?key=abc").unwrap_err();
        let shown = format!("{error:?}");
        assert!(
            !shown.contains("pw123") && !shown.contains("abc"),
            "{shown}"
        );
    }

    #[test]
    fn only_plain_http_to_another_machine_exposes_a_token() {
        for (written, exposes) in [
            ("http://h.example", true),
            ("http://192.168.1.4:7420", true),
            ("h.example", false),
            ("localhost:7420", false),
            ("http://app.localhost", true),
            ("http://127.9.9.9", false),
            ("http://[::1]:1", false),
        ] {
            let url = ProviderUrl::parse(written).unwrap();
            assert_eq!(url.exposes_token(), exposes, "{written}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_is_stable(text in "\\PC{0,40}") {
            if let Ok(url) = ProviderUrl::parse(&text) {
                prop_assert_eq!(&ProviderUrl::parse(url.as_str()).unwrap(), &url);
                let name = url.host_file_name();
                prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)));
                prop_assert!(!name.starts_with(".json"));
            }
        }
    }
}
