//! Runs the built program on a data directory of its own.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test program uses a part of it"
)]

pub mod agent;
pub mod server;

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A source with two streams, one of them append-only.
pub const MAIL: &str = include_str!("mail.json");

/// A home for one test: a data directory that does not exist yet, and room for files.
///
/// In the program `with_server` a server runs over the directory from the first command on, so that the same tests show
/// that no command behaves otherwise then.
pub struct Home {
    server: RefCell<Option<Child>>,
    folder: TempDir,
}

/// So many lines in one text.
pub fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

/// What a finished command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        Self {
            server: RefCell::new(None),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts a server, unless one runs already.
    fn be_served(&self) {
        let mut server = self.server.borrow_mut();
        if server.is_some() {
            return;
        }
        let mut child = self
            .bare_command(&["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("API: http://"), "{line}");
        // What it tells later must not stop it.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        *server = Some(child);
    }

    /// Whether a server runs.
    pub fn is_served(&self) -> bool {
        self.server.borrow().is_some()
    }

    /// Ends the server, if there is one: for steps that need the directory themselves.
    pub fn end_server(&self) {
        if let Some(mut child) = self.server.borrow_mut().take() {
            let id = child.id().to_string();
            let told = Command::new("kill").args(["-s", "TERM", &id]).status();
            assert!(told.unwrap().success());
            assert!(child.wait().unwrap().success());
        }
    }

    /// A home where the mail source is declared and has the connection `mail-work`.
    pub fn with_mail() -> Self {
        let home = Self::new();
        let file = home.file("mail.json", MAIL);
        home.run(&["declare", &file]).succeeds();
        home.run(&["connections", "add", "mail", "--name", "Work"])
            .succeeds();
        home
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The program on this home's data, not started yet.
    pub fn command(&self, args: &[&str]) -> Command {
        if module_path!().starts_with("with_server") {
            self.be_served();
        }
        self.bare_command(args)
    }

    fn bare_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pdpp"));
        command
            .env("PDPP_DATA_DIR", self.data_dir())
            // Away from UTC, so that a time that is not shown as people here read it stands out.
            .env("TZ", "<+02>-2")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::new(self.command(args).output().unwrap(), self.folder.path())
    }

    /// Runs the program with something to read.
    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::new(child.wait_with_output().unwrap(), self.folder.path())
    }

    /// Imports messages given as lines.
    pub fn import_messages(&self, lines: &str) -> Ran {
        self.run_with(
            &["import", "-", "--as", "mail/messages", "--json"],
            lines.as_bytes(),
        )
    }

    /// The exported messages.
    pub fn messages(&self) -> String {
        self.run(&["export", "messages"]).succeeds().stdout
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(mut child) = self.server.borrow_mut().take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Ran {
    /// Takes the outcome; the home's own folder reads `~`.
    pub fn new(output: Output, folder: &Path) -> Self {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(folder.to_str().unwrap(), "~")
        };
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Checks that it ended well.
    pub fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Checks that it was refused, with exactly these words.
    pub fn refused(self, stderr: &str) -> Self {
        assert_eq!(self.stderr, format!("{stderr}\n"), "{self:?}");
        assert_eq!(self.code, Some(1), "{self:?}");
        self
    }

    /// Checks that it was refused, and that these words were among those told.
    pub fn refused_saying(self, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word} is not in {self:?}");
        }
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
