//! Where the server listens: an address of this machine, and a socket that only the owner can open.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::output::visible;

/// Reads an address, which must be one that only this machine reaches.
pub(super) fn address(text: &str) -> Outcome<SocketAddr> {
    let port = text.strip_prefix("localhost:").map(str::parse);
    let address = match port {
        Some(port) => port.ok().map(|port| (Ipv4Addr::LOCALHOST, port).into()),
        None => text.parse().ok(),
    };
    let address: SocketAddr = address.ok_or_else(|| {
        let message = format!("'{}' is not an address to listen on", visible(text));
        Failure::new(message).hint("write address and port, such as 127.0.0.1:7420")
    })?;
    if !address.ip().is_loopback() {
        let message = format!(
            "{address} can be reached from other machines; that needs a console password, which this version does not have"
        );
        return Err(Failure::new(message).hint("listen on this machine, such as 127.0.0.1:7420"));
    }
    Ok(address)
}

/// Refuses what cannot be the beginning of the addresses in answers.
pub(super) fn check_public_url(url: &str) -> Outcome {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let plain = |c: char| c.is_ascii_graphic() && !"?#@\"<>\\".contains(c);
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(plain) => {
            Ok(())
        }
        _ => {
            let message = format!("'{}' is not a public address", visible(url));
            Err(Failure::new(message).hint("write it as https://pdpp.example.org"))
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

/// The file of the owner's socket, which lives as long as this value.
pub(super) struct OwnerSocket(PathBuf);

impl OwnerSocket {
    /// Makes the socket, in place of one that a killed server left behind: whoever holds the data directory may do so.
    pub(super) fn bind(path: &Path) -> Outcome<(UnixListener, Self)> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::at(path)(error));
            }
            _ => {}
        }
        let listener = bind_private(path).map_err(|error| {
            let too_long = error.kind() == io::ErrorKind::InvalidInput;
            let failure = Failure::at(path)(error);
            if too_long {
                failure.hint("name a folder with a shorter path with --data-dir")
            } else {
                failure
            }
        })?;
        Ok((listener, Self(path.to_owned())))
    }
}

/// A socket gets its permissions only after it can be connected to, so it is made in a private folder and then moved.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // With these names the path is no longer than that of the socket, and the system allows little.
    let private = tempfile::Builder::new().prefix(".o").tempdir_in(folder)?;
    let first = private.path().join("s");
    let listener = UnixListener::bind(&first)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&first, Permissions::from_mode(0o600))?;
    fs::rename(&first, path)?;
    Ok(listener)
}

impl Drop for OwnerSocket {
    fn drop(&mut self) {
        // The next server replaces what cannot be removed now.
        let _ = fs::remove_file(&self.0);
    }
}
