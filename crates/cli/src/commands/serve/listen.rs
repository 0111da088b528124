//! Where the server listens: an address of this machine, and which addresses can stand for it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::failure::{Failure, Outcome};
use crate::output::visible;
use crate::reading::Line;

/// The exit code of a setting that can mean nothing.
const USAGE: u8 = 2;

/// Reads an address.
pub(super) fn address(text: &str) -> Outcome<SocketAddr> {
    let port = text.strip_prefix("localhost:").map(str::parse);
    let address = match port {
        Some(port) => port.ok().map(|port| (Ipv4Addr::LOCALHOST, port).into()),
        None => text.parse().ok(),
    };
    address.ok_or_else(|| {
        let message = format!("'{}' is not an address to listen on", visible(text));
        Failure::coded(
            USAGE,
            message,
            "write address and port, such as 127.0.0.1:7420",
        )
    })
}

/// Refuses to be reached by other machines while anybody with a sign-in code would be the owner, for there is no password
/// yet but a command that sets one, or without a name.
pub(super) fn check_exposure(
    address: SocketAddr,
    set_password: Option<&Line>,
    public_url: Option<&str>,
) -> Outcome {
    if address.ip().is_loopback() {
        return Ok(());
    }
    if let Some(set) = set_password {
        let message =
            format!("{address} can be reached from other machines, and the pages have no password");
        return Err(Failure::new(message).hint(format!("set one with: {set}")));
    }
    if address.ip().is_unspecified() && public_url.is_none() {
        let message = format!("{address} is no address that clients could use");
        return Err(Failure::new(message)
            .hint("name the one they use with --public-url, such as https://pdpp.example.org"));
    }
    Ok(())
}

/// Refuses what cannot be the beginning of the addresses in answers.
pub(super) fn check_public_url(url: &str) -> Outcome {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let plain = |c: char| c.is_ascii_graphic() && !"?#@\"<>\\".contains(c);
    let host = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    match host {
        // The whole origin is ours: cookies and well-known documents belong to no part of one.
        Some(host) if !host.is_empty() && !host.contains('/') && host.chars().all(plain) => Ok(()),
        _ => {
            let message = format!("'{}' is not a public address", visible(url));
            Err(Failure::coded(
                USAGE,
                message,
                "write it as https://pdpp.example.org",
            ))
        }
    }
}

/// Takes the address and says which one it is, because port 0 stands for any.
pub(super) fn tcp(address: SocketAddr) -> Outcome<(TcpListener, SocketAddr)> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| {
        let failure = match error.kind() {
            io::ErrorKind::AddrInUse => {
                Failure::new(format!("{address} is in use by another program"))
            }
            _ => Failure::new(format!("cannot listen on {address}: {error}")),
        };
        failure.hint(
            "choose another port with --listen, such as --listen 127.0.0.1:0 for any free one",
        )
    })
}
