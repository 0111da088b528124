//! Sends the files to a running server: opened in this process, with the rights of its user, and sent in bounded chunks.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use rest::owner::{FileName, UploadFrame};
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};

use super::is_stdin;
use crate::failure::{CommandResult, Failure};

/// Bytes of a file sent at once.
const PART_BYTES: usize = 256 * 1024;
/// The room for the heading before them. It is filled up with spaces, which mean nothing there.
const HEADING_BYTES: usize = 32;
/// Chunks that may wait to be sent.
const WAITING: usize = 4;

/// Files being sent.
pub(super) struct Upload {
    /// Gone once all was sent.
    parts: WeakSender<Bytes>,
    failure: Arc<Mutex<Option<Failure>>>,
}

impl Upload {
    /// Starts to send. The thread is left to itself, for it may be waiting for somebody to type.
    pub(super) fn start(paths: Vec<PathBuf>) -> (Self, Body) {
        let (sender, receiver) = channel(WAITING);
        let upload = Self {
            parts: sender.downgrade(),
            failure: Arc::default(),
        };
        let failure = Arc::clone(&upload.failure);
        std::thread::spawn(move || {
            if let Err(failed) = send_all(&paths, &sender) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
                // If the receiver is gone, nobody has to be told.
                let _ = sender.blocking_send(UploadFrame::Stop(true).to_line().into());
            }
        });
        (upload, Body::from_stream(UploadBody(receiver)))
    }

    /// Says that no more will come, as soon as there is room for the word.
    pub(super) fn stop(&self) {
        if let Some(parts) = self.parts.upgrade() {
            tokio::spawn(async move { parts.send(UploadFrame::Stop(true).to_line().into()).await });
        }
    }

    /// Why not everything was sent, if that was the reason.
    pub(super) fn failure(&self) -> Option<Failure> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

/// What was sent as a body.
struct UploadBody(Receiver<Bytes>);

impl Stream for UploadBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|part| part.map(Ok))
    }
}

fn send_all(paths: &[PathBuf], parts: &Sender<Bytes>) -> CommandResult {
    for path in paths {
        let (name, file) = open(path)?;
        let shown = name.name.clone();
        if parts
            .blocking_send(UploadFrame::File(name).to_line().into())
            .is_err()
        {
            return Ok(());
        }
        send(file, parts)
            .map_err(|error| Failure::new(format!("{shown}: it cannot be read: {error}")))?;
    }
    Ok(())
}

fn send(mut file: Box<dyn Read>, parts: &Sender<Bytes>) -> io::Result<()> {
    loop {
        let mut part = vec![b' '; HEADING_BYTES + PART_BYTES];
        let (heading, content) = part.split_at_mut(HEADING_BYTES);
        let read = match file.read(content) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let line = UploadFrame::Bytes(read as u64).to_line();
        if let Some((end, text)) = heading.split_last_mut() {
            let line = line.trim_ascii_end();
            text.iter_mut().zip(line).for_each(|(at, byte)| *at = *byte);
            *end = b'\n';
        }
        part.truncate(HEADING_BYTES + read);
        if parts.blocking_send(part.into()).is_err() {
            // Whoever took the files has heard enough of them.
            return Ok(());
        }
    }
}

fn open(path: &Path) -> CommandResult<(FileName, Box<dyn Read>)> {
    if is_stdin(path) {
        let name = FileName {
            name: "stdin".to_owned(),
            file_name: None,
        };
        return Ok((name, Box::new(io::stdin())));
    }
    let name = path.display().to_string();
    let failed = |error: io::Error| Failure::new(format!("{name}: it cannot be read: {error}"));
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        let message = format!("{name}: it is a folder; name the files inside it");
        return Err(Failure::new(message));
    }
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    let name = FileName {
        name,
        file_name: Some(last.into_owned()),
    };
    Ok((name, Box::new(file)))
}
