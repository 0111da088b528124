//! One person at one terminal: a home folder, a shell in which `pdpp` is the program, and servers that end with it.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::masks::Masks;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pdpp");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mail");

pub(crate) struct Session {
    home: TempDir,
    masks: Masks,
    servers: Vec<Child>,
}

impl Session {
    /// A home with the sample mail and a sentence model in it.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for name in ["declaration.json", "messages.jsonl"] {
            fs::copy(format!("{EXAMPLES}/{name}"), home.path().join(name)).unwrap();
        }
        testkit::tiny_model::write(&home.path().join("tiny")).unwrap();
        Self {
            masks: Masks::new(home.path()),
            home,
            servers: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, line: &str) -> String {
        let mut text = format!("$ {line}\n");
        if let Some(line) = line.strip_suffix(" &") {
            let told = self.start(line);
            text.push_str(&told);
            return text;
        }
        let ran = self.shell(line).stdin(Stdio::null()).output().unwrap();
        let stdout = self.masks.hide(&String::from_utf8(ran.stdout).unwrap());
        assert!(
            !stdout.lines().any(|line| line.starts_with("$ ")),
            "this would not be told from a command: {stdout}"
        );
        text.push_str(&ended(&stdout));
        let stderr = self.masks.hide(&String::from_utf8(ran.stderr).unwrap());
        for line in stderr.lines() {
            writeln!(text, "! {line}").unwrap();
        }
        match ran.status.code() {
            Some(0) => {}
            code => writeln!(text, "[exit {}]", code.unwrap()).unwrap(),
        }
        text
    }

    /// Starts a server, and waits for the last of the lines it starts with.
    fn start(&mut self, line: &str) -> String {
        let mut command = self.shell(&format!("exec {line}"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        self.servers.push(child);
        let mut told = String::new();
        for line in lines.by_ref() {
            let line = line.unwrap();
            writeln!(told, "! {}", self.masks.hide(&line)).unwrap();
            if line.starts_with("Tokens:") {
                break;
            }
        }
        // What it tells later must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        told
    }

    fn shell(&self, line: &str) -> Command {
        let folder = Path::new(PROGRAM).parent().unwrap().display();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = format!("{folder}:{}", path.to_string_lossy());
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.masks.reveal(line)])
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env("TZ", "<+01>-1");
        command
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in &mut self.servers {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The text with its last line ended.
fn ended(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{}\n", text.trim_end_matches('\n')),
    }
}
