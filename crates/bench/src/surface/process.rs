//! The program under measurement, as processes of its own: each is ended, by its id, with the value that stands for it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::directory::GrantedDirectory;
use crate::BenchError;
use crate::measure::memory;

/// Nothing here takes so long unless it hangs.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// More calls than any server answers in a minute.
const UNLIMITED: &str = "10000000";

/// The program with its arguments, without the settings in the environment of the bench.
pub(super) fn command(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PDPP_") {
            command.env_remove(name);
        }
    }
    command.args(args).kill_on_drop(true);
    command
}

/// A running process, by the name it has in messages.
pub(super) struct Running {
    pub(super) child: Child,
    name: &'static str,
}

impl Running {
    pub(super) fn start(mut command: Command, name: &'static str) -> Result<Self, BenchError> {
        let child = command.spawn().map_err(|error| BenchError::Process {
            command: name.to_owned(),
            what: format!("did not start: {error}"),
        })?;
        Ok(Self { child, name })
    }

    /// A kind of its memory in bytes, where the system tells.
    pub(super) fn memory(&self, kind: &str) -> Option<u64> {
        memory(&self.child.id()?.to_string(), kind)
    }

    pub(super) fn failure(&self, what: impl Into<String>) -> BenchError {
        BenchError::Process {
            command: self.name.to_owned(),
            what: what.into(),
        }
    }

    pub(super) async fn line<R: AsyncRead + Unpin>(
        &self,
        from: &mut BufReader<R>,
    ) -> Result<String, BenchError> {
        let mut line = String::new();
        match timeout(PATIENCE, from.read_line(&mut line)).await {
            Ok(Ok(0)) => Err(self.failure("ended early")),
            Ok(Ok(_)) => Ok(line),
            Ok(Err(error)) => Err(self.failure(format!("could not be read: {error}"))),
            Err(_) => Err(self.failure("did not answer in time")),
        }
    }

    /// Ends it and waits until it has.
    pub(super) async fn end(mut self) -> Result<(), BenchError> {
        let killed = self.child.kill().await;
        killed.map_err(|error| self.failure(format!("could not be ended: {error}")))
    }
}

/// `pdpp serve` over a directory, on any free port.
pub(super) struct Server {
    pub(super) process: Running,
    pub(super) address: SocketAddr,
}

impl Server {
    pub(super) async fn start(
        program: &Path,
        directory: &GrantedDirectory,
    ) -> Result<Self, BenchError> {
        let mut command = command(program, &["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(&directory.folder);
        Self::from_command(command).await
    }

    pub(super) async fn from_command(mut command: Command) -> Result<Self, BenchError> {
        // What a server does under load is measured, not how it fends it off.
        command.env("PDPP_CALLS_PER_MINUTE", UNLIMITED);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Running::start(command, "pdpp serve")?;
        let stderr = process.child.stderr.take();
        let mut stderr_lines = BufReader::new(stderr.ok_or_else(|| process.failure("is silent"))?);
        let line = process.line(&mut stderr_lines).await?;
        let address = line.trim().strip_prefix("API: http://");
        let address = address.and_then(|rest| rest.strip_suffix("/v1")?.parse().ok());
        let address = address.ok_or_else(|| process.failure(format!("said: {}", line.trim())))?;
        // A server whose log is not read would block when the pipe is full.
        tokio::spawn(async move {
            let mut line = String::new();
            while let Ok(1..) = stderr_lines.read_line(&mut line).await {
                line.clear();
            }
        });
        Ok(Self { process, address })
    }
}
