//! Where the server listens: an address of this machine, and which addresses can stand for it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use grants::sign_in::Console;

use crate::config::ServerSettings;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;

/// The exit code of a setting that can mean nothing.
const USAGE: u8 = 2;
const OTHER_PORT: &str =
    "choose another port with --listen, such as --listen 127.0.0.1:0 for any free one";

pub(super) fn address(text: &str) -> CommandResult<SocketAddr> {
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
/// yet but a way to set one.
pub(super) fn check_exposure(address: SocketAddr, set_password: Option<&str>) -> CommandResult {
    match set_password {
        Some(set) if !address.ip().is_loopback() => {
            let message = format!(
                "{address} can be reached from other machines, and the pages have no password"
            );
            Err(Failure::new(message).hint(format!("set one with: {set}")))
        }
        _ => Ok(()),
    }
}

/// An address that clients can use: where it listens, or if that is everywhere, the address of this machine by which it
/// would reach others. Asking for that sends nothing.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let way = |from: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        (!own.is_unspecified()).then_some(own)
    };
    // Addresses that stand for no machine: only the way to them is of interest.
    let (v4, v6) = (
        Ipv4Addr::new(192, 0, 2, 1),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    );
    let own = way(Ipv4Addr::UNSPECIFIED.into(), v4.into());
    let own = match address.ip() {
        IpAddr::V4(_) => own,
        IpAddr::V6(_) => own.or_else(|| way(Ipv6Addr::UNSPECIFIED.into(), v6.into())),
    };
    (own.unwrap_or(Ipv4Addr::LOCALHOST.into()), address.port()).into()
}

/// The address of the owner's pages that was chosen, if any. The public address must be one too.
pub(super) fn chosen_console(settings: &ServerSettings) -> CommandResult<Option<Console>> {
    if let Some(url) = &settings.public_url {
        check_public_url(url)?;
    }
    settings.console_url.as_deref().map(console).transpose()
}

fn console(url: &str) -> CommandResult<Console> {
    check_public_url(url)?;
    Console::chosen(url).ok_or_else(|| {
        let message = format!(
            "the pages cannot be at {}: applications wait for their answers at that host, and would be sent your session",
            visible(url)
        );
        let hint = "leave --console-url out for http://pdpp.localhost, or name a host that is theirs alone, such as http://[::ffff:127.0.0.1]:7420";
        Failure::coded(USAGE, message, hint)
    })
}

/// The same port at the other loopback address. Browsers look for `pdpp.localhost` at both, so nobody else may answer at
/// the other one. A machine that has no such address needs none.
fn bind_other_loopback(address: SocketAddr) -> CommandResult<Option<TcpListener>> {
    let other: IpAddr = match address.ip() {
        IpAddr::V4(own) if own == Ipv4Addr::LOCALHOST || own.is_unspecified() => {
            Ipv6Addr::LOCALHOST.into()
        }
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
        _ => return Ok(None),
    };
    let other = SocketAddr::new(other, address.port());
    let bound = TcpListener::bind(other).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    match bound {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(in_use(other)),
        Err(_) => Ok(None),
    }
}

fn in_use(address: SocketAddr) -> Failure {
    Failure::new(format!("{address} is in use by another program")).hint(OTHER_PORT)
}

/// Refuses what cannot be the beginning of the addresses in answers.
pub(super) fn check_public_url(url: &str) -> CommandResult {
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

/// Takes the address and the same port of the other loopback address, and says which one it is: port 0 stands for any,
/// so one that is free at one of them only is passed over.
pub(super) fn bind(
    address: SocketAddr,
) -> CommandResult<(TcpListener, Option<TcpListener>, SocketAddr)> {
    bind_beside(address, bind_other_loopback)
}

fn bind_beside(
    address: SocketAddr,
    mut bind_other: impl FnMut(SocketAddr) -> CommandResult<Option<TcpListener>>,
) -> CommandResult<(TcpListener, Option<TcpListener>, SocketAddr)> {
    for _ in 0..8 {
        let (first, bound) = bind_one(address)?;
        match bind_other(bound) {
            Ok(second) => return Ok((first, second, bound)),
            Err(_) if address.port() == 0 => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(in_use(address))
}

fn bind_one(address: SocketAddr) -> CommandResult<(TcpListener, SocketAddr)> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => in_use(address),
        _ => Failure::new(format!("cannot listen on {address}: {error}")).hint(OTHER_PORT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // TR-01: nobody else may answer at the other loopback address, so a port that is free at one only is passed over.
    #[test]
    fn a_port_that_somebody_has_at_the_other_loopback_address_is_not_taken() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut tried = Vec::new();
        let (_, _, bound) = bind_beside(any, |port| {
            tried.push(port);
            if tried.len() < 3 {
                return Err(in_use(port));
            }
            Ok(None)
        })
        .unwrap();
        assert_eq!((tried.len(), tried.last()), (3, Some(&bound)));

        let mut count = 0;
        let told = bind_beside(any, |port| {
            count += 1;
            Err(in_use(port))
        });
        assert!(told.is_err());
        assert_eq!(count, 8);

        // A port that was named is never exchanged for another.
        let free = bind_one(any).unwrap().1;
        let told = bind_beside(free, |port| Err(in_use(port))).unwrap_err();
        let told = told.to_string();
        assert!(
            told.contains(&format!("{free} is in use by another program")),
            "{told}"
        );
        assert!(told.contains("choose another port with --listen"), "{told}");
    }
}
