//! A message per line, or a list of messages. Answers to a list are held back until the last is there, and go out as one.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};

use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::message;
use crate::server;

/// Room for the usual answer, so that its buffer seldom grows.
const ANSWER: usize = 64 * 1024;
/// No message is longer.
const LONGEST: usize = 16 * 1024 * 1024;
/// Editors of some systems begin a text with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(crate) struct Lines<R, W> {
    input: BufReader<R>,
    /// What was read of a line. The reader may be stopped anywhere, and goes on here.
    line: Vec<u8>,
    /// Whether the rest of a line that is too long is being passed over.
    skipping: bool,
    /// The messages of a list that were not handed on yet.
    waiting: VecDeque<RxJsonRpcMessage<RoleServer>>,
    batches: Batches,
    /// An answer of ours that is being written.
    telling: Option<JoinHandle<io::Result<()>>>,
    /// None once it was closed.
    output: Output<W>,
}

type Output<W> = Arc<Mutex<Option<W>>>;
type Batches = Arc<std::sync::Mutex<Vec<Batch>>>;

/// A list of messages and its answers so far.
#[derive(Default)]
struct Batch {
    awaited: Vec<RequestId>,
    said: Vec<Vec<u8>>,
}

/// What one message of a line comes to.
enum Incoming {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    Refused(String),
    /// A notification that is not known needs no answer.
    Nothing,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            skipping: false,
            waiting: VecDeque::new(),
            batches: Batches::default(),
            telling: None,
            output: Arc::new(Mutex::new(Some(output))),
        }
    }

    /// Reads on until a line is whole; none when the input has ended. What ends without an end of line is no message.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let available = self.input.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.skipping {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if self.line.len() > LONGEST {
                self.line.clear();
                self.skipping = true;
            }
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.skipping) {
                self.tell(message::too_long(LONGEST).into_bytes());
                return Some(Vec::new());
            }
            return Some(std::mem::take(&mut self.line));
        }
    }

    fn take(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.is_empty() {
            return;
        }
        match message::batch(line) {
            None => match read_incoming(line) {
                Incoming::Message(message) => self.waiting.push_back(*message),
                Incoming::Refused(error) => self.tell(error.into_bytes()),
                Incoming::Nothing => {}
            },
            Some(Err(error)) => self.tell(error.into_bytes()),
            Some(Ok(entries)) => self.take_batch(&entries),
        }
    }

    fn take_batch(&mut self, entries: &[&[u8]]) {
        let mut batch = Batch::default();
        for entry in entries {
            let beside = || message::not_alone(entry).map(Incoming::Refused);
            let heard = (entries.len() > 1).then(beside).flatten();
            match heard.unwrap_or_else(|| read_incoming(entry)) {
                Incoming::Nothing => {}
                Incoming::Refused(error) => batch.said.push(error.into_bytes()),
                Incoming::Message(message) => {
                    if let JsonRpcMessage::Request(request) = &*message {
                        let id = request.id.clone();
                        if batch.awaited.contains(&id) || awaits(&self.batches, &id) {
                            batch.said.push(message::id_taken(id).into_bytes());
                            continue;
                        }
                        batch.awaited.push(id);
                    }
                    self.waiting.push_back(*message);
                }
            }
        }
        if !batch.awaited.is_empty() {
            held(&self.batches).push(batch);
        } else if !batch.said.is_empty() {
            self.tell(list(&batch.said));
        }
    }

    /// Writes an answer of ours, in a task that goes on when the reader is stopped.
    fn tell(&mut self, mut line: Vec<u8>) {
        let output = Arc::clone(&self.output);
        self.telling = Some(tokio::spawn(async move {
            line.push(b'\n');
            write(&output, &line).await
        }));
    }

    /// A request that its sender gave up has no answer, and no list waits for one.
    fn forget(&mut self, id: &RequestId) {
        if let Some(said) = settle(&self.batches, id, None) {
            self.tell(list(&said));
        }
    }
}

/// What a message is. `initialize` is told here what it lacks: before it nothing else would.
fn read_incoming(sent: &[u8]) -> Incoming {
    let Ok(message) = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(sent) else {
        return if message::is_notification(sent) {
            Incoming::Nothing
        } else {
            Incoming::Refused(message::no_message(sent))
        };
    };
    if let JsonRpcMessage::Request(request) = &message
        && let ClientRequest::CustomRequest(custom) = &request.request
        && custom.method == "initialize"
    {
        let error = server::unreadable(&custom.method, custom.extensions.get());
        let id = Some(request.id.clone());
        let error = TxJsonRpcMessage::<RoleServer>::error(error, id);
        let refusal = serde_json::to_string(&error);
        return Incoming::Refused(refusal.unwrap_or_else(|_| message::no_message(sent)));
    }
    Incoming::Message(Box::new(message))
}

fn held(batches: &Batches) -> std::sync::MutexGuard<'_, Vec<Batch>> {
    batches.lock().unwrap_or_else(PoisonError::into_inner)
}

fn awaits(batches: &Batches, id: &RequestId) -> bool {
    held(batches).iter().any(|batch| batch.awaited.contains(id))
}

/// Notes the answer to a message of a list, or that there is none, and gives all answers of the list if that was the
/// last.
fn settle(batches: &Batches, id: &RequestId, answer: Option<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let mut batches = held(batches);
    let place = batches
        .iter()
        .position(|batch| batch.awaited.contains(id))?;
    let batch = &mut batches[place];
    batch.awaited.retain(|awaited| awaited != id);
    batch.said.extend(answer);
    if !batch.awaited.is_empty() {
        return None;
    }
    let said = batches.swap_remove(place).said;
    (!said.is_empty()).then_some(said)
}

fn list(said: &[Vec<u8>]) -> Vec<u8> {
    let mut line = vec![b'['];
    line.extend(said.join(&b','));
    line.push(b']');
    line
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    /// An answer, which may be long, is written as one buffer, at once, and taken apart only when the other side has it.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        let batches = Arc::clone(&self.batches);
        async move {
            let mut line = Vec::with_capacity(ANSWER);
            serde_json::to_writer(&mut line, &message)?;
            let id = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if let Some(id) = id.filter(|id| awaits(&batches, id)) {
                let Some(said) = settle(&batches, id, Some(line)) else {
                    return Ok(());
                };
                line = list(&said);
            }
            line.push(b'\n');
            write(&output, &line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(telling) = &mut self.telling {
                let told = telling.await;
                self.telling = None;
                told.ok()?.ok()?;
            }
            if let Some(message) = self.waiting.pop_front() {
                if let JsonRpcMessage::Notification(notification) = &message
                    && let ClientNotification::CancelledNotification(cancelled) =
                        &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(&id.clone());
                }
                return Some(message);
            }
            let line = self.next_line().await?;
            self.take(&line);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<Option<W>>, line: &[u8]) -> io::Result<()> {
    match output.lock().await.as_mut() {
        Some(output) => {
            output.write_all(line).await?;
            output.flush().await
        }
        None => Err(io::ErrorKind::NotConnected.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_does_not_wait_for_what_was_given_up() {
        let (one, two) = (RequestId::Number(1), RequestId::Number(2));
        let batches = Batches::default();
        let batch = |awaited: &[&RequestId]| Batch {
            awaited: awaited.iter().map(|id| (*id).clone()).collect(),
            said: Vec::new(),
        };
        held(&batches).push(batch(&[&one, &two]));
        assert_eq!(settle(&batches, &two, Some(b"{}".to_vec())), None);
        assert_eq!(settle(&batches, &one, None), Some(vec![b"{}".to_vec()]));
        assert!(!awaits(&batches, &one) && !awaits(&batches, &two));
        // Nothing is written for a list of which nothing is left.
        held(&batches).push(batch(&[&one]));
        assert_eq!(settle(&batches, &one, None), None);
        assert!(held(&batches).is_empty());
    }
}
