//! Where the database is, and how a connection to it is encrypted.
//!
//! A connection to another machine is always encrypted and its certificate always verified, with the host's name. Only on this
//! machine may it be plain.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Result, StoreError};

/// How long a server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// A server that confirms nothing for this long is considered lost.
const LOST_AFTER: Duration = Duration::from_secs(6);
/// One that says nothing is asked after a while, then again and again, so that idle connections are found out as soon.
const SILENT: Duration = Duration::from_secs(5);
const ASKED_EVERY: Duration = Duration::from_secs(2);
const ASKED: u32 = 3;

pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// The servers and the database, for people: without user, password and options.
    pub(super) place: String,
}

impl Address {
    pub(super) fn parse(url: &str, ca: Option<&Path>) -> Result<Self> {
        if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
            return Err(refused(
                "--database",
                "it does not begin with postgres:// or postgresql://",
            ));
        }
        // We verify more than these ask for, and the driver does not know them.
        let url = url
            .replace("sslmode=verify-full", "sslmode=require")
            .replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            refused("--database", &cause.unwrap_or_else(|| error.to_string()))
        })?;
        let place = place(&config);
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(refused("--database", "it names no host"));
        }
        let mode = match (is_on_this_machine(&config), config.get_ssl_mode()) {
            (true, SslMode::Disable) => SslMode::Disable,
            (true, SslMode::Prefer) if ca.is_none() => SslMode::Disable,
            (false, SslMode::Disable) => {
                return Err(refused(
                    &place,
                    "sslmode=disable would send everything readable over the network; take it out, and name the server's authority with --database-ca",
                ));
            }
            _ => SslMode::Require,
        };
        config.ssl_mode(mode);
        config.connect_timeout(CONNECT_WITHIN);
        config.tcp_user_timeout(LOST_AFTER);
        config.keepalives_idle(SILENT);
        config.keepalives_interval(ASKED_EVERY);
        config.keepalives_retries(ASKED);
        if config.get_application_name().is_none() {
            config.application_name("pdpp");
        }
        let tls = tls(ca, &place)?;
        Ok(Self { config, tls, place })
    }
}

/// An address or a file that cannot be used as it was given.
fn refused(place: &str, detail: &str) -> StoreError {
    StoreError::DatabaseRefused {
        place: place.to_owned(),
        detail: detail.to_owned(),
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let named = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<String> = if config.get_hosts().is_empty() {
        addresses.collect()
    } else {
        named.collect()
    };
    let hosts: Vec<String> = hosts
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied();
            match port {
                Some(port) if port != 5432 => format!("{host}:{port}"),
                _ => host.clone(),
            }
        })
        .collect();
    let database = config
        .get_dbname()
        .or(config.get_user())
        .unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

fn is_on_this_machine(config: &Config) -> bool {
    let is_loopback = |name: &str| {
        name == "localhost"
            || name
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
    };
    let hosts = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_loopback(name),
        Host::Unix(_) => true,
    });
    // Where addresses are given, these are connected to and names are only verified.
    let addresses = config.get_hostaddrs();
    addresses.iter().all(IpAddr::is_loopback) && (hosts || !addresses.is_empty())
}

fn tls(ca: Option<&Path>, place: &str) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unusable = |error: rustls::Error| refused(place, &error.to_string());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let config = match ca {
        Some(path) => builder.with_root_certificates(roots(path)?),
        None => builder.with_platform_verifier().map_err(unusable)?,
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let bytes = std::fs::read(path).map_err(StoreError::at(path))?;
    let unusable = |detail: &str| StoreError::DatabaseRefused {
        place: PathBuf::from(path).display().to_string(),
        detail: detail.to_owned(),
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| unusable(&error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| unusable(&error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("it holds no certificate in PEM form"));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> std::result::Result<SslMode, String> {
        Address::parse(url, None)
            .map(|address| address.config.get_ssl_mode())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_a_server_on_this_machine_is_reached_without_encryption() {
        for host in [
            "127.0.0.1",
            "localhost:7000",
            "[::1]",
            "127.0.0.1,localhost",
        ] {
            let url = format!("postgres://me@{host}/pdpp");
            assert_eq!(mode(&url), Ok(SslMode::Disable), "{host}");
            let url = format!("{url}?sslmode=verify-full");
            assert_eq!(mode(&url), Ok(SslMode::Require), "{host}");
        }
        for host in ["db.example", "10.0.0.7", "localhost,db.example"] {
            let url = format!("postgres://me@{host}/pdpp");
            assert_eq!(mode(&url), Ok(SslMode::Require), "{host}");
            let refused = mode(&format!("{url}?sslmode=disable")).unwrap_err();
            assert!(refused.contains("--database-ca"), "{refused}");
        }
    }

    #[test]
    fn a_place_names_servers_and_database_and_never_the_password() {
        let url = "postgres://me:se%63ret@pg1,pg2:6543/records?target_session_attrs=read-write";
        let place = Address::parse(url, None).unwrap().place;
        assert_eq!(place, "postgres://pg1,pg2:6543/records");
        for url in [
            "postgres://me:secret@host:port/x",
            "postgres://me:secret@host/x?sslmode=maybe",
            "postgres://me:secret@/x",
            "host=secret",
        ] {
            let refused = mode(url).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
