//! Where the owner's pages are, and which hosts must therefore never be sent a code.

use contract::Host;

/// The pages' own host name on loopback. Browsers find it on this machine by themselves.
const OWN_NAME: &str = "pdpp.localhost";

/// The origin of the owner's pages. Browsers send a cookie to every port of its host, so the host is the pages' alone: no
/// application may have its answers sent there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Console {
    origin: String,
    host: Option<Host>,
    apart: bool,
}

impl Console {
    /// The console of a server at this address: the same address, or on loopback a host name of its own, because
    /// applications wait for their codes on other ports of the loopback host.
    pub fn for_public_url(public_url: &str) -> Self {
        let public_url = public_url.trim_end_matches('/');
        let host = Host::from_url(public_url);
        let on_loopback = host.as_ref().is_some_and(Host::is_loopback);
        match public_url.strip_prefix("http://") {
            Some(authority) if on_loopback => {
                let after_host = authority.rsplit(']').next().unwrap_or_default();
                let port = after_host.split_once(':').map_or("", |(_, port)| port);
                let colon = if port.is_empty() { "" } else { ":" };
                Self::at(&format!("http://{OWN_NAME}{colon}{port}"), true)
            }
            _ => Self::at(public_url, host.as_ref().is_some_and(Self::is_own_name)),
        }
    }

    /// A console at an address chosen for it alone. `None` where applications wait at that host.
    pub fn chosen(url: &str) -> Option<Self> {
        let host = Host::from_url(url)?;
        let shared = ["127.0.0.1", "[::1]", "localhost"].map(Host::parse);
        (!shared.contains(&Some(host))).then(|| Self::at(url.trim_end_matches('/'), true))
    }

    fn at(origin: &str, apart: bool) -> Self {
        Self {
            origin: origin.to_owned(),
            host: Host::from_url(origin),
            apart,
        }
    }

    /// Whether a host is the name that pages have on loopback.
    pub fn is_own_name(host: &Host) -> bool {
        matches!(host, Host::Name(name) if name == OWN_NAME)
    }

    /// Scheme, host and port, without a slash at the end.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether an origin, as browsers write it, is that of the pages.
    pub fn is_origin(&self, origin: &str) -> bool {
        let place = |origin: &str| {
            let (scheme, authority) = origin.split_once("://")?;
            let after_host = authority.rsplit(']').next().unwrap_or_default();
            let usual = if scheme == "https" { 443 } else { 80 };
            let port = match after_host.split_once(':') {
                Some((_, port)) if !port.is_empty() => port.parse::<u16>().ok()?,
                _ => usual,
            };
            Some((scheme.to_owned(), Host::parse(authority)?, port))
        };
        let pages = place(&self.origin);
        pages.is_some() && pages == place(origin)
    }

    pub fn is_at(&self, host: &Host) -> bool {
        self.host.as_ref() == Some(host)
    }

    /// Whether the pages have a host of their own, where nothing else is.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Whether a redirect URI could receive the owner's session: its host is that of the pages or below it, where it could
    /// set their cookies, or its host cannot be parsed.
    pub fn would_tell(&self, redirect_uri: &str) -> bool {
        if !redirect_uri.starts_with("http://") && !redirect_uri.starts_with("https://") {
            return false;
        }
        let Some(host) = Host::from_url(redirect_uri) else {
            return true;
        };
        host.is_within(&Host::Name(OWN_NAME.to_owned())) || self.is_at(&host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_loopback_the_pages_have_a_name_of_their_own() {
        for (public, console) in [
            ("http://127.0.0.1:7420", "http://pdpp.localhost:7420"),
            ("http://localhost", "http://pdpp.localhost"),
            ("http://[::1]:80/", "http://pdpp.localhost:80"),
            ("http://192.0.2.7:7420", "http://192.0.2.7:7420"),
            ("https://pdpp.example/", "https://pdpp.example"),
        ] {
            assert_eq!(
                Console::for_public_url(public).origin(),
                console,
                "{public}"
            );
        }
        assert!(Console::for_public_url("http://127.0.0.1:7420").is_apart());
        assert!(Console::for_public_url("http://pdpp.localhost:7420").is_apart());
        assert!(!Console::for_public_url("https://pdpp.example").is_apart());
    }

    #[test]
    fn where_applications_wait_the_pages_cannot_be() {
        for url in [
            "http://127.0.0.1:7420",
            "http://localhost",
            "http://[::1]:1",
        ] {
            assert_eq!(Console::chosen(url), None, "{url}");
        }
        let mapped = Console::chosen("http://[::ffff:127.0.0.1]:7420").unwrap();
        assert!(mapped.is_origin("http://[::ffff:7f00:1]:7420"));
        assert!(!mapped.is_origin("http://[::ffff:7f00:1]:7421"));
        let far = Console::for_public_url("https://PDPP.example:443/");
        assert!(far.is_origin("https://pdpp.example"));
        assert!(!far.is_origin("http://pdpp.example") && !far.is_origin("null"));
        assert!(mapped.would_tell("https://[::ffff:7f00:1]/cb"));
    }

    // TR-01: no application has its answers sent to the host of the pages.
    #[test]
    fn no_code_is_sent_to_the_host_of_the_pages() {
        let (near, far) = (
            Console::for_public_url("http://127.0.0.1:7420"),
            Console::for_public_url("https://pdpp.example"),
        );
        for uri in [
            "https://pdpp.localhost/cb",
            "http://pdpp.localhost:9/cb",
            "https://pdpp.localhost.:9/cb",
            "https://a.pdpp.localhost/cb",
            "https://0x7f.1/cb",
        ] {
            assert!(near.would_tell(uri) && far.would_tell(uri), "{uri}");
        }
        let other_port = "https://pdpp.example:8443/cb";
        assert!(far.would_tell(other_port) && !near.would_tell(other_port));
        for uri in [
            "http://127.0.0.1:9/cb",
            "http://[::1]/cb",
            "http://localhost/cb",
            "https://app.example/cb",
            "https://app.pdpp.example/cb",
            "com.example.app:/cb",
        ] {
            assert!(!far.would_tell(uri) && !near.would_tell(uri), "{uri}");
        }
    }
}
