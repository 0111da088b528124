//! Sends the files to a running server: opened in this process, with the rights of its user, and sent in bounded chunks.

use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use rest::owner::UploadFrame;
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};

use super::files::{ImportFile, Interruption};
use crate::failure::CommandResult;

/// Bytes of a file sent at once.
const PART_BYTES: usize = 256 * 1024;
/// The room for the heading before them. It is filled up with spaces, which mean nothing there.
const HEADING_BYTES: usize = 32;
const WAITING: usize = 4;

pub(super) struct Upload {
    /// Gone once all was sent.
    chunks: WeakSender<Bytes>,
}

impl Upload {
    /// Starts to send. The thread is left to itself: it may be blocked on a terminal or a pipe.
    pub(super) fn start(files: Vec<ImportFile>, interruption: Interruption) -> (Self, Body) {
        let (sender, receiver) = channel(WAITING);
        let upload = Self {
            chunks: sender.downgrade(),
        };
        std::thread::spawn(move || {
            if let Err(failure) = send_all(&files, &sender) {
                interruption.fail(failure);
                // If the receiver is gone, nobody has to be told.
                let _ = sender.blocking_send(UploadFrame::Stop(true).to_line().into());
            }
        });
        (upload, Body::from_stream(UploadBody(receiver)))
    }

    /// Sends the frame that ends the upload, as soon as there is room for it.
    pub(super) fn stop(&self) {
        if let Some(chunks) = self.chunks.upgrade() {
            tokio::spawn(
                async move { chunks.send(UploadFrame::Stop(true).to_line().into()).await },
            );
        }
    }
}

struct UploadBody(Receiver<Bytes>);

impl Stream for UploadBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|part| part.map(Ok))
    }
}

fn send_all(files: &[ImportFile], parts: &Sender<Bytes>) -> CommandResult {
    for file in files {
        let name = UploadFrame::File(file.name());
        if parts.blocking_send(name.to_line().into()).is_err() {
            return Ok(());
        }
        match file.open().and_then(|content| send(content, parts)) {
            Err(error) if file.is_member() => {
                let broken = UploadFrame::Broken(error.to_string());
                // If the receiver is gone, the next file finds out.
                let _ = parts.blocking_send(broken.to_line().into());
            }
            sent => sent.map_err(|error| file.unreadable(&error))?,
        }
    }
    Ok(())
}

fn send(mut file: impl Read, parts: &Sender<Bytes>) -> io::Result<()> {
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
