//! Opening the store of a node while its address answers already: who looks after nodes must not take one that starts for dead.

use std::future::pending;
use std::net::TcpListener;

use tokio::runtime::Builder;

use super::or_cannot_start;
use crate::failure::CommandResult;

/// Opens something, and answers meanwhile, where it listens already, that this process lives and is to be asked again.
pub(super) fn answering<T>(
    tcp: Option<&TcpListener>,
    open: impl FnOnce() -> CommandResult<T>,
) -> CommandResult<T> {
    let Some(tcp) = tcp else { return open() };
    let threads = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = or_cannot_start(threads)?;
    let listener = or_cannot_start(tcp.try_clone())?;
    let listener = {
        let _context = runtime.enter();
        or_cannot_start(tokio::net::TcpListener::from_std(listener))?
    };
    runtime.spawn(rest::serve(listener, rest::starting_router(), pending()));
    let opened = open();
    runtime.shutdown_background();
    opened
}
