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
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Output, Stdio};
use std::sync::Arc;

use contract::time::Instant;
use serde_json::{Value, json};
use store::{EmbeddedStore, OpenOptions};
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_pdpp");

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

pub fn signal(id: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &id.to_string()]).status();
    assert!(sent.unwrap().success());
}

pub fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

/// Sets the rights of a file or folder.
pub fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The user that root becomes where rights are to hold.
pub const NOBODY: u32 = 65534;

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let found = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    let mut found: Vec<PathBuf> = found.collect();
    found.sort();
    found
}

/// The files below a folder that hold the bytes of a word.
pub fn holding(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = files(folder);
    found.retain(|path| {
        // Files of the index and the socket come and go.
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(word.len()).any(|at| at == word.as_bytes())
    });
    found
}

pub struct Import {
    pub child: Child,
    pub input: Option<ChildStdin>,
    told: BufReader<ChildStderr>,
}

impl Import {
    /// Waits until it ends by itself; gives the exit code and what it still told.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let mut told = String::new();
        self.told.read_to_string(&mut told).unwrap();
        (code, told)
    }

    /// Ends its input, and waits.
    pub fn finished(mut self) -> (Option<i32>, String) {
        self.input = None;
        self.ended()
    }
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
            .bare_command("serve --listen 127.0.0.1:0")
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

    pub fn is_served(&self) -> bool {
        self.server.borrow().is_some()
    }

    /// Ends the server, if there is one: for steps that need the directory themselves.
    pub fn end_server(&self) {
        if let Some(mut child) = self.server.borrow_mut().take() {
            signal(child.id(), "TERM");
            assert!(child.wait().unwrap().success());
        }
    }

    /// A home where the mail source is declared and has the connection `mail-work`.
    pub fn with_mail() -> Self {
        let home = Self::new();
        let file = home.file("mail.json", MAIL);
        home.run(format!("declare {file}")).succeeds();
        home.run("connections add mail --name Work").succeeds();
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

    /// Writes a file and gives its name, as commands take it here.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        format!("~/{name}")
    }

    /// The program on this home's data, not started yet. The line holds its words: `~/` is this home's folder, and what
    /// stands in single quotes is one word.
    pub fn command(&self, line: impl AsRef<str>) -> Command {
        if module_path!().starts_with("with_server") {
            self.be_served();
        }
        self.bare_command(line.as_ref())
    }

    fn bare_command(&self, line: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("PDPP_DATA_DIR", self.data_dir())
            // Away from UTC, so that a time that is not shown as people here read it stands out.
            .env("TZ", "<+02>-2")
            .stdin(Stdio::null());
        for (nth, part) in line.split('\'').enumerate() {
            let words = match nth % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            };
            command.args(words.iter().map(|word| match word.strip_prefix("~/") {
                Some(name) => self.path(name),
                None => PathBuf::from(word),
            }));
        }
        command
    }

    pub fn run(&self, line: impl AsRef<str>) -> Ran {
        self.ran(&mut self.command(line))
    }

    pub fn ran(&self, command: &mut Command) -> Ran {
        Ran::new(command.output().unwrap(), self.folder())
    }

    pub fn run_with(&self, line: impl AsRef<str>, input: &[u8]) -> Ran {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::new(child.wait_with_output().unwrap(), self.folder())
    }

    /// Runs a command as it was printed, through a shell in which `pdpp` is the program.
    pub fn typed(&self, line: &str) -> Ran {
        // Started by the harness, so that a server runs where one is to run.
        let ours = self.command("");
        let line = line.trim().replace('~', self.folder().to_str().unwrap());
        let programs = Path::new(PROGRAM).parent().unwrap().display();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("PATH={programs}:$PATH; {line}")]);
        shell.current_dir(self.folder());
        shell.envs(
            ours.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        self.ran(&mut shell)
    }

    pub fn import_messages(&self, lines: &str) -> Ran {
        self.run_with("import - --as mail/messages --json", lines.as_bytes())
    }

    /// Issues a grant to the client `agent`, with these options; gives its id and its token.
    pub fn grant(&self, options: &str) -> (String, String) {
        let create = "grant create --client agent --json";
        let made = self.run(format!("{create} {options}")).succeeds();
        (made.text("grant_id"), made.text("access_token"))
    }

    /// Keeps a credential for a server, as `pdpp connect --cache-root ~/cache` does.
    pub fn keep_credential(&self, address: &str, credential: &Value) {
        let clients = self.path("cache/clients");
        fs::create_dir_all(&clients).unwrap();
        let file = clients.join(format!("{}.json", address.replace(':', "_")));
        fs::write(file, json!({ "credential": credential }).to_string()).unwrap();
    }

    /// An import that has acknowledged one line, with the word `typewriter`, and waits for the next.
    pub fn import_under_way(&self) -> Import {
        let mut child = self
            .command("import - --as mail/messages -v --batch-lines 1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take();
        let typed = b"{\"id\":\"typed\",\"subject\":\"typewriter\"}\n";
        input.as_mut().unwrap().write_all(typed).unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        assert_eq!(line, "acknowledged 1\n");
        Import { child, input, told }
    }

    /// A copy of the program that the rights of files hold for, with these words; the data directory is an argument.
    pub fn without_privileges(&self, line: &str) -> Command {
        allow(self.folder(), 0o755);
        let program = self.path("pdpp");
        if !program.exists() {
            // By a process of its own: one that another test starts meanwhile would inherit the file as open to be written, and
            // nobody can run it then.
            let copied = Command::new("cp").arg(PROGRAM).arg(&program).status();
            assert!(copied.unwrap().success());
            allow(&program, 0o755);
        }
        let mut command = Command::new(program);
        command.args(line.split(' ')).arg("--data-dir");
        // Nothing is closed to root, so root steps down.
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The store itself, opened beside no server.
    pub fn open_store(&self) -> EmbeddedStore {
        let options = OpenOptions::new("a test", Arc::new(Instant(0)));
        EmbeddedStore::open(&self.data_dir(), options).unwrap()
    }

    pub fn messages(&self) -> String {
        self.run("export messages").succeeds().stdout
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

    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    pub fn succeeds(self) -> Self {
        self.exits(0)
    }

    /// Checks that it ended with this code and nothing on standard output.
    pub fn exits_quietly(self, code: i32) -> Self {
        assert_eq!(self.stdout, "", "{self:?}");
        self.exits(code)
    }

    /// Checks that it was refused, with exactly these words.
    pub fn refused(self, stderr: &str) -> Self {
        assert_eq!(self.stderr, format!("{stderr}\n"), "{self:?}");
        self.exits(1)
    }

    /// Checks that it was refused, and that these words were among those told.
    pub fn refused_saying(self, words: &[&str]) -> Self {
        self.says_all(words);
        self.exits(1)
    }

    /// Checks that these words were told on the error output.
    pub fn says(&self, words: impl AsRef<str>) {
        let words = words.as_ref();
        assert!(self.stderr.contains(words), "{words} is not in {self:?}");
    }

    /// Checks that each of these was told on the error output.
    pub fn says_all(&self, words: &[&str]) {
        for words in words {
            self.says(words);
        }
    }

    /// Checks that these words stand on standard output.
    pub fn shows(&self, words: impl AsRef<str>) {
        let words = words.as_ref();
        assert!(self.stdout.contains(words), "{words} is not in {self:?}");
    }

    /// Checks that each of these stands on standard output.
    pub fn shows_all(&self, words: &[&str]) {
        for words in words {
            self.shows(words);
        }
    }

    pub fn hides(&self, words: impl AsRef<str>) {
        let words = words.as_ref();
        let told = [&self.stdout, &self.stderr];
        assert!(
            !told.iter().any(|text| text.contains(words)),
            "{words} is in {self:?}"
        );
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    pub fn text(&self, member: &str) -> String {
        self.json()[member].as_str().unwrap().to_owned()
    }
}
