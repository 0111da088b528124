//! Where a request came from: the other end of its connection, or what a trusted proxy says of it.

use std::net::IpAddr;

use axum::http::HeaderMap;

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn at(address: IpAddr) -> Self {
        Self(address.to_canonical())
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
}
