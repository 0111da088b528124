//! The host of an address, as browsers tell hosts apart: what a request was sent to, and whom a cookie belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host name in lower case, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name, without a dot at its end.
    Name(String),
    /// An address. `::ffff:127.0.0.1` is not `127.0.0.1`: to a browser these are two hosts.
    Address(IpAddr),
}

impl Host {
    /// Reads `host` or `host:port`. What browsers would read as an address in an unusual form is no host here.
    pub fn parse(authority: &str) -> Option<Self> {
        if let Some(rest) = authority.strip_prefix('[') {
            let (literal, port) = rest.split_once(']')?;
            let address: Ipv6Addr = literal.parse().ok()?;
            return is_port(port).then_some(Self::Address(address.into()));
        }
        let end = authority.find(':').unwrap_or(authority.len());
        let (name, port) = authority.split_at_checked(end)?;
        if !is_port(port) {
            return None;
        }
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let named = !name.is_empty() && name.bytes().all(plain) && !ends_in_a_number(&name);
        named.then_some(Self::Name(name))
    }

    /// The host of an `http` or `https` address.
    pub fn from_url(url: &str) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        Self::parse(rest.split(['/', '?', '#']).next()?)
    }

    /// Whether it is a loopback address, or the one name that always is.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    /// Whether it is this host or a name below it.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(name), Self::Name(above)) => name
                .strip_suffix(above.as_str())
                .is_some_and(|below| below.is_empty() || below.ends_with('.')),
            _ => self == other,
        }
    }
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 5,
        None => text.is_empty(),
    }
}

/// Whether browsers take a name for an IPv4 address: its last part is a number, decimal or hexadecimal.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    match last.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_apart_as_browsers_do() {
        let same = |left, right| Host::parse(left).unwrap() == Host::parse(right).unwrap();
        assert!(same("PDPP.example.org", "pdpp.example.org.:443"));
        assert!(same("[0:0:0:0:0:0:0:1]:9", "[::1]"));
        assert!(!same("127.0.0.1", "[::ffff:127.0.0.1]"));
        assert!(!same("localhost", "127.0.0.1"));
        for odd in [
            "",
            ":80",
            ".",
            "a b",
            "a:b",
            "a:123456",
            "[::1",
            "[::1]x",
            "::1",
            "2130706433",
            "0x7f.1",
            "127.1",
            "1.2.3.256",
            "user@host",
            "häst",
        ] {
            assert_eq!(Host::parse(odd), None, "{odd}");
        }
        assert_eq!(Host::from_url("http://[::1]:80/a"), Host::parse("[::1]"));
        assert_eq!(
            Host::from_url("https://a.example?x"),
            Host::parse("a.example")
        );
    }

    #[test]
    fn a_name_is_within_itself_and_what_stands_above() {
        let within = |one, other| {
            Host::parse(one)
                .unwrap()
                .is_within(&Host::parse(other).unwrap())
        };
        assert!(within("pdpp.localhost:1", "pdpp.localhost"));
        assert!(within("a.b.pdpp.localhost", "pdpp.localhost"));
        assert!(!within("localhost", "pdpp.localhost"));
        assert!(!within("xpdpp.localhost", "pdpp.localhost"));
        assert!(!within("127.0.0.1", "127.0.0.2"));
    }

    #[test]
    fn loopback_is_an_address_or_one_name() {
        for here in [
            "localhost",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(Host::parse(here).unwrap().is_loopback(), "{here}");
        }
        for there in ["localhost.example", "192.0.2.1", "[::2]", "pdpp.localhost"] {
            assert!(!Host::parse(there).unwrap().is_loopback(), "{there}");
        }
    }
}
