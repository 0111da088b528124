//! Runs the owner's command for each event, one after another, with the event as JSON on its standard input.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Event, Notify};

/// Events that may wait; more are dropped, and that is logged.
const WAITING: usize = 64;
/// How long a command may take.
const PATIENCE: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_millis(50);

/// What runs the command.
pub fn notify_by_command(command: String) -> io::Result<Notify> {
    let (sender, events) = sync_channel::<String>(WAITING);
    thread::Builder::new()
        .name("notify".to_owned())
        .spawn(move || run_all(&command, &events))?;
    Ok(Arc::new(move |event: &Event| {
        match serde_json::to_string(event) {
            Ok(text) => {
                if sender.try_send(text).is_err() {
                    tracing::warn!("an event was dropped: the command for events is too slow");
                }
            }
            Err(error) => tracing::error!(%error, "an event was dropped: it cannot be written"),
        }
    }))
}

fn run_all(command: &str, events: &Receiver<String>) {
    for event in events {
        if let Err(error) = run(command, &event) {
            tracing::warn!(%error, "the command for events failed");
        }
    }
}

fn run(command: &str, event: &str) -> io::Result<()> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input has still been told.
        let _ = writeln!(input, "{event}");
    }
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "it took longer than a minute",
            ));
        }
        thread::sleep(STEP);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // GM-26: the owner's command gets each event.
    #[test]
    fn a_command_gets_the_events() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events");
        let notify = notify_by_command(format!("cat >> '{}'", file.display())).unwrap();
        notify(&Event::Approved);
        notify(&Event::Approved);
        let began = Instant::now();
        let line = "{\"event\":\"approved\"}\n";
        while std::fs::read_to_string(&file).unwrap_or_default() != line.repeat(2) {
            assert!(began.elapsed() < PATIENCE);
            thread::sleep(STEP);
        }
    }
}
