//! Where a request came from: the other end of its connection, or what a trusted proxy says of it.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

/// What a proxy adds. One of these says that somebody else sent the request, trusted or not.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn at(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    /// The address at the other end.
    pub(crate) fn address(self) -> IpAddr {
        self.0
    }

    /// The address that sent the request. A proxy adds whom it heard from at the end of `X-Forwarded-For`, so the list
    /// is read from there for as long as proxies are trusted; whatever stands before was written by anybody.
    pub(crate) fn behind(self, proxies: &[IpAddr], headers: &HeaderMap) -> IpAddr {
        let mut address = self.0;
        let lists = headers.get_all("x-forwarded-for");
        let said: Vec<&str> = lists
            .iter()
            .filter_map(|list| list.to_str().ok())
            .flat_map(|list| list.split(','))
            .collect();
        for said in said.into_iter().rev() {
            if !proxies.contains(&address) {
                break;
            }
            let Ok(next) = said.trim().parse::<IpAddr>() else {
                break;
            };
            address = next.to_canonical();
        }
        address
    }

    /// Whether somebody at this machine asked it by a name of its own, with nobody between. A page that a browser was
    /// tricked into trusting asks by another name; what a trusted proxy passes on never counts.
    pub(crate) fn is_here(self, proxies: &[IpAddr], headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map(|host| host.to_str());
        self.0.is_loopback()
            && !proxies.contains(&self.0)
            && !FORWARDED.iter().any(|name| headers.contains_key(*name))
            && matches!(host, Some(Ok(host)) if is_this_machine(host))
    }
}

/// Whether a host, with or without a port, is a name of this machine.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "localhost" | "127.0.0.1" | "::1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(peer: &str, proxies: &[&str], said: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", said.parse().unwrap());
        let proxies: Vec<IpAddr> = proxies.iter().map(|text| text.parse().unwrap()).collect();
        let peer = Peer::at(peer.parse().unwrap());
        peer.behind(&proxies, &headers).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let said = "198.51.100.1, 203.0.113.7";
        assert_eq!(behind("192.0.2.1", &[], said), "192.0.2.1");
        assert_eq!(behind("127.0.0.1", &["127.0.0.1"], said), "203.0.113.7");
        assert_eq!(
            behind("127.0.0.1", &["127.0.0.1", "203.0.113.7"], said),
            "198.51.100.1"
        );
        assert_eq!(behind("127.0.0.1", &["127.0.0.1"], "nonsense"), "127.0.0.1");
        assert_eq!(
            behind("::ffff:127.0.0.1", &["127.0.0.1"], "10.0.0.9"),
            "10.0.0.9"
        );
    }

    #[test]
    fn only_a_direct_question_by_an_own_name_is_from_this_machine() {
        let is_here = |peer: &str, proxies: &[&str], named: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in named {
                headers.insert(*name, value.parse().unwrap());
            }
            let proxies: Vec<IpAddr> = proxies.iter().map(|text| text.parse().unwrap()).collect();
            Peer::at(peer.parse().unwrap()).is_here(&proxies, &headers)
        };
        for host in [
            "localhost",
            "localhost:7420",
            "127.0.0.1:7420",
            "[::1]:7420",
        ] {
            assert!(is_here("127.0.0.1", &[], &[("host", host)]), "{host}");
            assert!(is_here("::1", &["10.0.0.1"], &[("host", host)]), "{host}");
            assert!(
                is_here("::ffff:127.0.0.1", &[], &[("host", host)]),
                "{host}"
            );
            assert!(!is_here("192.0.2.1", &[], &[("host", host)]), "{host}");
            assert!(!is_here("127.0.0.1", &["127.0.0.1"], &[("host", host)]));
            for passed in FORWARDED {
                let named = [("host", host), (passed, "127.0.0.1")];
                assert!(!is_here("127.0.0.1", &[], &named), "{passed}");
            }
        }
        for host in [
            "pages.example",
            "localhost.pages.example",
            "",
            "127.0.0.1.pages.example",
        ] {
            assert!(!is_here("127.0.0.1", &[], &[("host", host)]), "{host}");
        }
        assert!(!is_here("127.0.0.1", &[], &[]));
    }
}
