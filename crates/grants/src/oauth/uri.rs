//! The web addresses of clients, parsed strictly: an address that two programs could parse differently is refused.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The longest address taken from a client.
const MAX_BYTES: usize = 2_048;
/// The schemes of agents whose scheme is no domain name.
const AGENTS: [&str; 3] = ["cursor", "vscode", "vscode-insiders"];
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An `http` or `https` address in its parts, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WebAddress<'a> {
    secure: bool,
    host: &'a str,
    port: Option<&'a str>,
    /// Path and query.
    rest: &'a str,
}

impl<'a> WebAddress<'a> {
    /// Reads an address without user, fragment or dot segments, in printable ASCII.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if is_odd(text) {
            return None;
        }
        let (secure, after) = match text.strip_prefix("https://") {
            Some(after) => (true, after),
            None => (false, text.strip_prefix("http://")?),
        };
        let end = after.find(['/', '?']).unwrap_or(after.len());
        let (authority, rest) = after.split_at_checked(end)?;
        let (host, port) = split_port(authority)?;
        let path = rest.split('?').next().unwrap_or_default();
        let dotted = |segment: &str| {
            let plain = segment.to_ascii_lowercase().replace("%2e", ".");
            plain == "." || plain == ".."
        };
        if path.split('/').any(dotted) {
            return None;
        }
        Some(Self {
            secure,
            host,
            port,
            rest,
        })
    }

    /// Whether it is `https`.
    pub(crate) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether it is `http` on this very machine.
    pub(crate) fn is_loopback(&self) -> bool {
        !self.secure && ["127.0.0.1", "[::1]", "localhost"].contains(&self.host)
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        match self.port {
            Some(port) => format!("{scheme}://{}:{port}", self.host),
            None => format!("{scheme}://{}", self.host),
        }
    }

    /// Whether there is a path below the root.
    pub(crate) fn has_path(&self) -> bool {
        self.rest
            .split('?')
            .next()
            .is_some_and(|path| path.len() > 1)
    }

    pub(crate) fn has_query(&self) -> bool {
        self.rest.contains('?')
    }
}

/// Whether a text is too long for an address, or holds characters that parsers treat differently.
fn is_odd(text: &str) -> bool {
    let odd = |byte: u8| !byte.is_ascii_graphic() || b"\\<>\"`{}|^#@".contains(&byte);
    text.len() > MAX_BYTES || text.bytes().any(odd)
}

/// Whether an address has a private-use scheme, opened by a program on the owner's machine (RFC 8252, section 7.1): a
/// reversed domain name, or the scheme of an agent we know. Any other scheme may have a meaning of its own to the system.
pub(crate) fn is_private_use(text: &str) -> bool {
    let Some((scheme, path)) = text.split_once(":/") else {
        return false;
    };
    let label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_lowercase())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let owned = AGENTS.contains(&scheme) || (scheme.contains('.') && scheme.split('.').all(label));
    owned && !path.trim_start_matches('/').is_empty() && !is_odd(text)
}

/// A lower-case host name or literal, and a port if there is one.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(literal) => {
            let close = literal.find(']')?.checked_add(2)?;
            let (host, after) = authority.split_at_checked(close)?;
            match after {
                "" => (host, None),
                _ => (host, Some(after.strip_prefix(':')?)),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let literal = host.starts_with('[');
    let named =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    let numbered = |byte: u8| byte.is_ascii_hexdigit() || b"[]:.".contains(&byte);
    let good_host = !host.is_empty()
        && host
            .bytes()
            .all(|byte| if literal { numbered(byte) } else { named(byte) });
    let good_port = port.is_none_or(|port| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    (good_host && good_port).then_some((host, port))
}

/// Whether codes may be sent to an address: `https`, or for a native application `http` on its machine or a scheme of
/// its own.
pub(crate) fn may_receive_codes(text: &str) -> bool {
    is_private_use(text)
        || WebAddress::parse(text)
            .is_some_and(|address| address.is_secure() || address.is_loopback())
}

/// Whether the address asked for is a registered one: the same text, or the same on loopback but for the port, which a
/// native application cannot know in advance (RFC 8252).
pub(crate) fn redirect_matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return may_receive_codes(asked);
    }
    let (Some(registered), Some(asked)) = (WebAddress::parse(registered), WebAddress::parse(asked))
    else {
        return false;
    };
    registered.is_loopback()
        && asked.is_loopback()
        && registered.host == asked.host
        && root(registered.rest) == root(asked.rest)
}

/// An address without a path means its root.
fn root(rest: &str) -> Cow<'_, str> {
    if rest.starts_with('/') {
        Cow::Borrowed(rest)
    } else {
        Cow::Owned(format!("/{rest}"))
    }
}

/// The address with parameters added to its query.
pub(crate) fn with_parameters(address: &str, parameters: &[(&str, &str)]) -> String {
    let mut text = address.to_owned();
    for (name, value) in parameters {
        text.push(if text.contains('?') { '&' } else { '?' });
        text.push_str(name);
        text.push('=');
        text.extend(utf8_percent_encode(value, UNRESERVED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_programs_could_read_differently_is_no_address() {
        for text in [
            "https://app.example",
            "https://app.example:8443/cb?x=1",
            "http://127.0.0.1:5000/cb",
            "http://[::1]/cb",
            "http://localhost",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app:/cb",
            "org.example.my-app://cb?x=1",
        ] {
            assert!(may_receive_codes(text), "{text}");
        }
        for text in [
            "",
            "https://",
            "https:///cb",
            "http://app.example/cb",
            "http://127.0.0.1.example/cb",
            "http://localhost.example/cb",
            "https://user@app.example/cb",
            "https://app.example/cb#part",
            "https://app.example\\@evil.example/",
            "https://app.example/a/../b",
            "https://app.example/a/%2E%2e/b",
            "https://app.example:0/cb",
            "https://app.example:99999/cb",
            "https://app.example:/cb",
            "https://App.example/cb",
            "https://app.example/c b",
            "https://äpp.example/cb",
            "custom://app/cb",
            "javascript:alert(1)",
            "javascript://cb/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "cursor:",
            "cursor://",
            "cursor://a@b/cb",
            "cursor://anysphere.cursor-mcp/cb#part",
            "Cursor://anysphere.cursor-mcp/cb",
            "com..app:/cb",
            ".app:/cb",
            "127.0.0.1:/cb",
            "com.example.app:cb",
            "http://[::1/cb",
            "http://[::1]x/cb",
        ] {
            assert!(!may_receive_codes(text), "{text}");
        }
    }

    #[test]
    fn only_on_loopback_the_port_does_not_matter() {
        for (registered, asked) in [
            ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:5000/cb"),
            ("http://[::1]/cb?a=1", "http://[::1]:9/cb?a=1"),
            ("http://localhost", "http://localhost:9/"),
            ("https://app.example/cb", "https://app.example/cb"),
            ("com.example.app:/cb", "com.example.app:/cb"),
        ] {
            assert!(redirect_matches(registered, asked), "{registered} {asked}");
        }
        for (registered, asked) in [
            ("http://127.0.0.1/cb", "http://127.0.0.1:5000/other"),
            ("http://127.0.0.1/cb", "http://localhost/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1/cb?x=1"),
            ("https://app.example/cb", "https://app.example:8443/cb"),
            ("https://app.example/cb", "https://app.example/cb/"),
            ("https://localhost/cb", "https://localhost:5000/cb"),
            ("http://app.example/cb", "http://app.example/cb"),
            ("com.example.app:/cb", "com.example.app:/cb?x=1"),
            ("com.example.app:/cb", "com.example.other:/cb"),
        ] {
            assert!(!redirect_matches(registered, asked), "{registered} {asked}");
        }
    }

    #[test]
    fn added_parameters_cannot_break_out_of_their_value() {
        assert_eq!(
            with_parameters("https://a.example/?b=1", &[("state", "x&y=z #é")]),
            "https://a.example/?b=1&state=x%26y%3Dz%20%23%C3%A9"
        );
    }
}
