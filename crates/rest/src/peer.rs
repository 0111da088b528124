//! The client's address: the other end of the connection, or what a trusted proxy reports.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use contract::Host;

use crate::hosts::names_this_machine;

/// Headers that proxies add. Any of them means that the request was forwarded, whether the proxy is trusted or not.
const FORWARDING_HEADERS: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    address: IpAddr,
    /// The address of this machine that the client connected to.
    reached: Option<IpAddr>,
}

impl Peer {
    pub(crate) fn new(address: IpAddr) -> Self {
        Self {
            address: address.to_canonical(),
            reached: None,
        }
    }

    pub(crate) fn connected_to(mut self, own: Option<IpAddr>) -> Self {
        self.reached = own.map(|own| own.to_canonical());
        self
    }

    /// Whether a host is the address the client connected to.
    pub(crate) fn is_reached_address(self, host: &Host) -> bool {
        matches!(host, Host::Address(address) if Some(address.to_canonical()) == self.reached)
    }

    pub(crate) fn is_one_of(self, proxies: &[IpAddr]) -> bool {
        proxies.contains(&self.address)
    }

    pub(crate) fn address(self) -> IpAddr {
        self.address
    }

    /// The address of the client. A proxy appends the address it heard from to `X-Forwarded-For`, so the list is read
    /// from its end for as long as proxies are trusted; anything before that may be forged.
    pub(crate) fn client_address(self, proxies: &[IpAddr], headers: &HeaderMap) -> IpAddr {
        let mut address = self.address;
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

    /// Whether the request comes from this machine, directly and under a local name. A page that uses DNS rebinding
    /// names another host; a request through a trusted proxy never counts.
    pub(crate) fn is_local(self, proxies: &[IpAddr], headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map(|host| host.to_str());
        self.address.is_loopback()
            && !self.is_one_of(proxies)
            && !FORWARDING_HEADERS
                .iter()
                .any(|name| headers.contains_key(*name))
            && matches!(host, Some(Ok(host)) if names_this_machine(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(peer: &str, proxies: &[&str], said: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", said.parse().unwrap());
        let proxies: Vec<IpAddr> = proxies.iter().map(|text| text.parse().unwrap()).collect();
        let peer = Peer::new(peer.parse().unwrap());
        peer.client_address(&proxies, &headers).to_string()
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
        let is_local = |peer: &str, proxies: &[&str], named: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in named {
                headers.insert(*name, value.parse().unwrap());
            }
            let proxies: Vec<IpAddr> = proxies.iter().map(|text| text.parse().unwrap()).collect();
            Peer::new(peer.parse().unwrap()).is_local(&proxies, &headers)
        };
        for host in [
            "localhost",
            "localhost:7420",
            "127.0.0.1:7420",
            "[::1]:7420",
            "pdpp.localhost:7420",
        ] {
            assert!(is_local("127.0.0.1", &[], &[("host", host)]), "{host}");
            assert!(is_local("::1", &["10.0.0.1"], &[("host", host)]), "{host}");
            assert!(
                is_local("::ffff:127.0.0.1", &[], &[("host", host)]),
                "{host}"
            );
            assert!(!is_local("192.0.2.1", &[], &[("host", host)]), "{host}");
            assert!(!is_local("127.0.0.1", &["127.0.0.1"], &[("host", host)]));
            for passed in FORWARDING_HEADERS {
                let named = [("host", host), (passed, "127.0.0.1")];
                assert!(!is_local("127.0.0.1", &[], &named), "{passed}");
            }
        }
        for host in [
            "pages.example",
            "localhost.pages.example",
            "",
            "127.0.0.1.pages.example",
        ] {
            assert!(!is_local("127.0.0.1", &[], &[("host", host)]), "{host}");
        }
        assert!(!is_local("127.0.0.1", &[], &[]));
    }

    // TR-07: an address of this machine is the one the connection reached.
    #[test]
    fn only_the_address_that_was_reached_is_a_host() {
        let own = "192.0.2.1".parse().ok();
        let peer = Peer::new("192.0.2.9".parse().unwrap()).connected_to(own);
        let reached = |host| peer.is_reached_address(&Host::parse(host).unwrap());
        assert!(reached("192.0.2.1:7420"));
        assert!(!reached("192.0.2.2:7420") && !reached("evil.example"));
        assert!(
            !Peer::new("192.0.2.9".parse().unwrap())
                .is_reached_address(&Host::parse("192.0.2.1").unwrap())
        );
    }
}
