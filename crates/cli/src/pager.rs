//! A pager for texts that are longer than the screen.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tokio::signal::unix::{SignalKind, signal};

use crate::config::Pager;

/// Shows a text through a pager. Whether it did: what it did not show must be printed.
pub(crate) fn show(text: &str, pager: &Pager) -> bool {
    run(text, pager).unwrap_or(false)
}

fn run(text: &str, pager: &Pager) -> std::io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let _entered = runtime.enter();
    // An interrupt at the terminal is the pager's, which stays; so must we, or the shell takes the screen from it.
    let _interrupts = signal(SignalKind::interrupt())?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(&pager.command);
    command.envs(pager.told.iter().copied());
    command.stdin(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever has seen enough leaves before the end.
        let _ = stdin.write_all(text.as_bytes());
    }
    let status = child.wait()?;
    // Without a code it was a person who ended it.
    Ok(status.code().is_none_or(|code| code == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, command: &str) -> bool {
        let pager = Pager {
            command: command.into(),
            told: Vec::new(),
        };
        super::show(text, &pager)
    }

    #[test]
    fn what_a_pager_does_not_show_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen");
        assert!(show("a\nb\n", &format!("cat > '{}'", file.display())));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\nb\n");
        for broken in ["no-such-pager-here 2>/dev/null", "exit 3"] {
            assert!(!show(&"line\n".repeat(100_000), broken), "{broken}");
        }
        // Left early, which is well.
        assert!(show(&"line\n".repeat(100_000), "head -n 1 > /dev/null"));
    }
}
