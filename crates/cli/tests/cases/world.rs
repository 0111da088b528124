//! The servers that all cases share: one over the sample life and the generated records, which no case changes, and a small
//! one for cases that write.
//!
//! A static value is never dropped, so a shell keeps each server: when this process is gone, whatever way it went, the
//! shell's input ends, and it stops the server and removes the folder.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::generated;
use crate::harness::Ran;
use crate::harness::agent::Agent;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_pdpp");
/// Nothing takes so long unless it hangs; the sample life is made by a build without optimisation.
const PATIENCE: Duration = Duration::from_mins(3);
const KEEPER: &str = r#"
"$1" serve $3 --listen 127.0.0.1:0 & server=$!
cat >/dev/null
kill "$server"
wait "$server"
rm -rf "$2"
"#;

pub(crate) struct World {
    folder: PathBuf,
    pub(crate) address: String,
    keeper: Mutex<Child>,
    grants: Mutex<HashMap<String, Grant>>,
    agents: Mutex<HashMap<String, Arc<Mutex<Agent>>>>,
}

#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) world: &'static World,
    pub(crate) id: String,
    pub(crate) token: String,
    /// The streams as the answer to the command lists them.
    pub(crate) streams: Value,
}

/// The sample life and the archives; not to be changed.
pub(crate) fn life() -> &'static World {
    static LIFE: LazyLock<World> = LazyLock::new(|| {
        let world = World::start("life", "--demo");
        let declaration = world.file("archive.json", generated::ARCHIVE);
        world.run(&["declare", &declaration]).succeeds();
        for (place, connection) in generated::CONNECTIONS.into_iter().enumerate() {
            let name = connection.strip_prefix("archive-").unwrap();
            world.connect("archive", name, connection);
            let lines = generated::lines(place);
            world.import("archive/entries", connection, &lines);
        }
        world
    });
    &LIFE
}

/// Ledgers that cases write to, a connection each.
pub(crate) fn ledgers() -> &'static World {
    static LEDGERS: LazyLock<World> = LazyLock::new(|| {
        let world = World::start("ledgers", "");
        let declaration = world.file("archive.json", generated::ARCHIVE);
        world.run(&["declare", &declaration]).succeeds();
        world
    });
    &LEDGERS
}

impl World {
    fn start(name: &str, option: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("pdpp-cases-{name}-"))
            .tempdir()
            .unwrap()
            .keep();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", PROGRAM])
            .arg(&folder)
            .arg(option)
            .env("PDPP_DATA_DIR", folder.join("data"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, receive) = mpsc::channel();
        let stderr = BufReader::new(keeper.stderr.take().unwrap());
        std::thread::spawn(move || {
            // What is told later must not stop the server.
            for line in stderr.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let address = loop {
            let line = receive.recv_timeout(PATIENCE).unwrap();
            if let Some(rest) = line.strip_prefix("API: http://") {
                break rest.strip_suffix("/v1").unwrap().to_owned();
            }
        };
        Self {
            folder,
            address,
            keeper: Mutex::new(keeper),
            grants: Mutex::default(),
            agents: Mutex::default(),
        }
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(PROGRAM);
        command.args(args);
        command
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .env("PDPP_DATA_DIR", self.folder.join("data"))
            .env("TZ", "<+02>-2")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        // A path that is printed is run again as it stands.
        Ran::new(
            self.command(args).output().unwrap(),
            std::path::Path::new("\0"),
        )
    }

    /// Runs a command as it was printed, through a shell in which `pdpp` is the program.
    pub(crate) fn run_printed(&self, line: &str) -> Ran {
        let folder = std::path::Path::new(PROGRAM).parent().unwrap();
        let mut shell = self.program("sh");
        shell.args(["-c", &format!("PATH={}:$PATH; {line}", folder.display())]);
        Ran::new(shell.output().unwrap(), std::path::Path::new("\0"))
    }

    pub(crate) fn connect(&self, connector: &str, name: &str, id: &str) {
        self.run(&["connections", "add", connector, "--name", name, "--id", id])
            .succeeds();
    }

    pub(crate) fn import(&self, stream: &str, connection: &str, lines: &str) {
        let mut child = self
            .command(&["import", "-", "--as", stream, "--connection", connection])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        let ran = child.wait_with_output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }

    /// The grant that these options of `pdpp grant create` make; the same options give the same grant.
    pub(crate) fn grant(&'static self, options: &str) -> Grant {
        let mut grants = self.grants.lock().unwrap();
        let found = grants.entry(options.to_owned()).or_insert_with(|| {
            let create = format!("grant create --client cases --json {options}");
            let words: Vec<&str> = create.split(' ').collect();
            let made = self.run(&words).succeeds().json();
            let text = |name: &str| made[name].as_str().map(str::to_owned);
            Grant {
                world: self,
                id: text("grant_id").or(text("grant_package_id")).unwrap(),
                token: text("access_token").unwrap(),
                streams: made["streams"].clone(),
            }
        });
        found.clone()
    }

    /// The agent that reads under a grant, started once.
    pub(crate) fn agent(&self, grant: &Grant, far: bool) -> Arc<Mutex<Agent>> {
        let place = if far {
            self.place_afar(grant).to_vec()
        } else {
            vec!["--grant".to_owned(), grant.id.clone()]
        };
        let mut agents = self.agents.lock().unwrap();
        let found = agents.entry(place.join(" ")).or_insert_with(|| {
            let mut command = self.command(&["mcp"]);
            Arc::new(Mutex::new(Agent::begun(command.args(&place))))
        });
        Arc::clone(found)
    }

    /// The options that read from the server as from another machine, with the token of a grant.
    pub(crate) fn place_afar(&self, grant: &Grant) -> [String; 4] {
        let name = self.address.replace(':', "_");
        let file = format!("cache-{}/clients/{name}.json", grant.id);
        let credential = json!({"credential": {"access_token": grant.token}});
        if !self.folder.join(&file).exists() {
            let path = self.file(&file, &credential.to_string());
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        }
        let root = self.folder.join(format!("cache-{}", grant.id));
        [
            "--provider-url".to_owned(),
            format!("http://{}", self.address),
            "--cache-root".to_owned(),
            root.to_str().unwrap().to_owned(),
        ]
    }

    /// Whether the server still runs.
    pub(crate) fn lives(&self) -> bool {
        self.keeper.lock().unwrap().try_wait().unwrap().is_none()
    }
}

/// Everything that cases read: the whole sample life and both archives.
pub(crate) fn whole() -> Grant {
    let all = [
        "mail-work",
        "mail-private",
        "chat-tidewater",
        "shop-nordwand",
        "shop-kueche",
        "notes",
        "calendar",
        "bank",
        "git-spanwatch",
        "git-kraut",
        "archive-east",
        "archive-west",
    ];
    life().grant(&format!("--connection {}", all.join(" ")))
}

pub(crate) fn only(connection: &str) -> Grant {
    life().grant(&format!("--connection {connection}"))
}

pub(crate) fn archives() -> Grant {
    life().grant(&format!(
        "--connection {}",
        generated::CONNECTIONS.join(" ")
    ))
}

/// More connections of one stream than a refusal lists.
pub(crate) const MANY: u64 = 14;

pub(crate) fn many() -> Grant {
    static ADDED: LazyLock<Vec<String>> = LazyLock::new(|| {
        let ids = (1..=MANY).map(|number| format!("many-{number:02}"));
        ids.inspect(|id| ledgers().connect("archive", id, id))
            .collect()
    });
    ledgers().grant(&format!("--connection {}", ADDED.join(" ")))
}
