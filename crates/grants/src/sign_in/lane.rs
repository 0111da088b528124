//! Which clients a limit counts together.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// One address, or one browser in which the owner has signed in.
///
/// A known browser is counted by itself, so that others at its address cannot use up its limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lane {
    Address(IpAddr),
    /// The known browser of this name.
    Browser(String),
}

impl Lane {
    /// The lane of an address. One IPv6 customer holds a whole /64, so that counts as one address; an IPv4 address in IPv6 is
    /// that IPv4 address.
    pub fn from_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        })
    }
}

impl Lane {
    /// The key under which a registry counts it. Addresses of visitors are not kept as they are.
    pub fn key(&self) -> String {
        let (kind, name) = match self {
            Self::Address(address) => ("address", address.to_string()),
            Self::Browser(name) => ("browser", name.clone()),
        };
        format!("{kind}:{}", URL_SAFE_NO_PAD.encode(Sha256::digest(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_address() {
        // TR-05
        let lane = |text: &str| Lane::from_address(text.parse().unwrap());
        assert_eq!(lane("2001:db8::1"), lane("2001:db8::ffff:1"));
        assert_ne!(lane("2001:db8::1"), lane("2001:db8:0:1::1"));
        assert_eq!(lane("::ffff:203.0.113.9"), lane("203.0.113.9"));
        assert_ne!(lane("203.0.113.9"), lane("203.0.113.8"));
    }
}
