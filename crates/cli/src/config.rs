//! Settings: the command line first, then the environment, then defaults. Nothing else reads the environment.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
use store::BlobPlace;
use store::keeping::{Keep, KeepRules};
use tracing_subscriber::filter::LevelFilter;

use crate::args::GlobalOptions;
use crate::commands::serve::drain_time;
use crate::database::{self, DatabaseOptions};
use crate::failure::Failure;
use crate::keep::keep;
use crate::output::visible;

/// Where the server listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:7420";

/// How long a node drains: proxies usually look every two seconds.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    /// The same as the command line names it, if it does.
    pub(crate) named_data_dir: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn resolve(global: &GlobalOptions) -> Result<Self, Failure> {
        let named = global
            .data_dir
            .clone()
            .or_else(|| std::env::var_os("PDPP_DATA_DIR").map(PathBuf::from));
        let data_dir = match named {
            Some(path) if !path.as_os_str().is_empty() => path,
            _ => default_data_dir()?,
        };
        Ok(Self {
            data_dir,
            named_data_dir: global.data_dir.clone(),
        })
    }

    /// The data directory for a program that starts elsewhere and knows nothing of our environment; none where it would
    /// find it by itself.
    pub(crate) fn data_dir_elsewhere(&self) -> Option<PathBuf> {
        elsewhere(&self.data_dir)
    }

    /// Where people would reach a server of this machine that is started as the environment says.
    #[expect(clippy::unused_self, reason = "it is a setting like the others")]
    pub(crate) fn public_url(&self) -> Result<String, Failure> {
        if let Some(named) = environment("PDPP_PUBLIC_URL")? {
            return Ok(named);
        }
        // Port 0 means any free port, which only the running server knows.
        let listen = environment("PDPP_LISTEN")?.filter(|address| !address.ends_with(":0"));
        Ok(format!("http://{}", listen.as_deref().unwrap_or(LISTEN)))
    }
}

/// What a server is configured with, as it was written.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    pub(crate) listen: String,
    /// The address clients use, where it differs.
    pub(crate) public_url: Option<String>,
    /// The address of the owner's pages, where it was chosen.
    pub(crate) console_url: Option<String>,
    /// Whose word on where a request came from is taken.
    pub(crate) trusted_proxies: Vec<IpAddr>,
    /// What is run for a new client, an approval and a paused grant.
    pub(crate) notify_command: Option<String>,
    /// How many tool calls a grant may make in a minute, where it is not the usual number.
    pub(crate) calls_per_minute: Option<u32>,
    pub(crate) keep: KeepRules,
    /// How long a node that ends still takes requests while it says that it is not ready.
    pub(crate) drain: Option<Duration>,
    pub(crate) log: LevelFilter,
}

impl ServerSettings {
    pub(crate) fn resolve(
        listen: Option<String>,
        public_url: Option<String>,
        console_url: Option<String>,
    ) -> Result<Self, Failure> {
        let setting = |option: Option<String>, name| match option {
            Some(text) => Ok(Some(text)),
            None => environment(name),
        };
        Ok(Self {
            listen: setting(listen, "PDPP_LISTEN")?.unwrap_or_else(|| LISTEN.to_owned()),
            public_url: setting(public_url, "PDPP_PUBLIC_URL")?,
            console_url: setting(console_url, "PDPP_CONSOLE_URL")?,
            trusted_proxies: trusted_proxies()?,
            calls_per_minute: calls_per_minute()?,
            notify_command: environment("PDPP_NOTIFY_COMMAND")?,
            keep: KeepRules {
                log: keep_setting("PDPP_KEEP_LOG")?,
                versions: keep_setting("PDPP_KEEP_VERSIONS")?,
            },
            drain: Some(drain()?),
            log: log_level()?,
        })
    }

    /// The same with another time to drain, if one was given.
    pub(crate) fn draining(mut self, given: Option<Duration>) -> Self {
        self.drain = given.or(self.drain);
        self
    }
}

/// A database that several nodes share, and what a node of it needs.
#[derive(Debug)]
pub(crate) struct DatabaseSettings {
    /// It may hold a password, so it is never printed.
    pub(crate) url: String,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) blobs: BlobPlace,
    pub(crate) node: String,
    /// In the folder of blobs, where none is named.
    pub(crate) secret_file: Option<PathBuf>,
    /// Whose data is served, where it is not the host of the public address.
    pub(crate) owner: Option<String>,
}

impl DatabaseSettings {
    /// The database, if there is one.
    pub(crate) fn resolve(options: DatabaseOptions) -> Result<Option<Self>, Failure> {
        let text = |option: Option<String>, name| match option {
            Some(text) => Ok(Some(text)),
            None => environment(name),
        };
        let path = |option: Option<PathBuf>, name| match option {
            Some(path) => Ok(Some(path)),
            None => environment(name).map(|text| text.map(PathBuf::from)),
        };
        let is_any_named = options.names_any();
        let Some(url) = text(options.database, "PDPP_DATABASE")? else {
            if is_any_named {
                let message = "these options are for a node of a database, and none is named";
                return Err(Failure::coded(2, message, "name it with --database"));
            }
            return Ok(None);
        };
        let missing = |option: &str, hint: &str| {
            Failure::coded(2, format!("a node of a database needs {option}"), hint)
        };
        let node = text(options.node, "PDPP_NODE")?
            .ok_or_else(|| missing("--node", "name it, and keep the name: --node a"))?;
        database::check_node(&node)?;
        let blobs = text(options.blobs, "PDPP_BLOBS")?.ok_or_else(|| {
            let hint = "name a folder that all nodes share, such as --blobs /mnt/pdpp-blobs, or a bucket: --blobs s3://bucket/pdpp";
            missing("--blobs", hint)
        })?;
        Ok(Some(Self {
            url,
            ca: path(options.database_ca, "PDPP_DATABASE_CA")?,
            blobs: BlobPlace::parse(&blobs),
            node,
            secret_file: path(options.secret_file, "PDPP_SECRET_FILE")?,
            owner: text(options.owner, "PDPP_OWNER")?,
        }))
    }
}

/// The address that the environment says clients reach a server at.
pub(crate) fn named_public_url() -> Result<Option<String>, Failure> {
    environment("PDPP_PUBLIC_URL")
}

/// The database that the environment names.
pub(crate) fn named_database() -> Result<Option<String>, Failure> {
    environment("PDPP_DATABASE")
}

/// The authority that signed its certificate, as the environment names it.
pub(crate) fn named_database_ca() -> Result<Option<PathBuf>, Failure> {
    environment("PDPP_DATABASE_CA").map(|text| text.map(PathBuf::from))
}

pub(crate) fn owner_password() -> Result<Option<String>, Failure> {
    environment("PDPP_OWNER_PASSWORD")
}

fn keep_setting(name: &'static str) -> Result<Keep, Failure> {
    let Some(text) = environment(name)? else {
        return Ok(Keep::All);
    };
    keep(&text).map_err(|hint| {
        let message = format!("{name} '{}' is not how much is kept", visible(&text));
        Failure::new(message).hint(hint)
    })
}

fn drain() -> Result<Duration, Failure> {
    let Some(text) = environment("PDPP_DRAIN")? else {
        return Ok(DRAIN);
    };
    drain_time(&text).map_err(|hint| {
        Failure::new(format!("PDPP_DRAIN '{}' is not a time", visible(&text))).hint(hint)
    })
}

fn calls_per_minute() -> Result<Option<u32>, Failure> {
    let Some(text) = environment("PDPP_CALLS_PER_MINUTE")? else {
        return Ok(None);
    };
    if let Ok(calls @ 1..) = text.parse() {
        return Ok(Some(calls));
    }
    let message = format!(
        "PDPP_CALLS_PER_MINUTE '{}' is not a number of calls",
        visible(&text)
    );
    Err(Failure::new(message).hint("write a whole number from 1 to 4294967295"))
}

fn trusted_proxies() -> Result<Vec<IpAddr>, Failure> {
    let text = environment("PDPP_TRUSTED_PROXIES")?.unwrap_or_default();
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let address = |name: &str| {
        name.parse::<IpAddr>()
            .map(|address| address.to_canonical())
            .map_err(|_| {
                let message = format!(
                    "PDPP_TRUSTED_PROXIES: '{}' is not an address",
                    visible(name)
                );
                Failure::new(message).hint("write IP addresses with commas between them")
            })
    };
    names.map(address).collect()
}

/// What a command that asks a server, near or far, is configured with.
#[derive(Debug)]
pub(crate) struct RemoteSettings {
    /// The server to ask; the local data if there is none.
    pub(crate) provider_url: Option<String>,
    pub(crate) cache_root: PathBuf,
    /// The same as the command line names it, if it does.
    pub(crate) named_cache_root: Option<PathBuf>,
    /// Another place where they may be, read only.
    pub(crate) fallback_root: Option<PathBuf>,
}

impl RemoteSettings {
    pub(crate) fn resolve(
        provider_url: Option<String>,
        cache_root: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let provider_url = match provider_url {
            Some(url) => Some(url),
            None => environment("PDPP_PROVIDER_URL")?,
        };
        let named = match cache_root.clone() {
            Some(root) => Some(root),
            None => environment("PDPP_CACHE_ROOT")?.map(PathBuf::from),
        };
        let fallback_root = named.is_none().then(|| PathBuf::from(".pdpp"));
        let root = match named {
            Some(root) => root,
            None => default_data_dir()?,
        };
        Ok(Self {
            provider_url,
            cache_root: root,
            named_cache_root: cache_root,
            fallback_root,
        })
    }

    /// Where credentials are kept, for a program that starts elsewhere; none where it would look there by itself.
    pub(crate) fn cache_root_elsewhere(&self) -> Option<PathBuf> {
        elsewhere(&self.cache_root)
    }
}

/// Whether to write in colour to a terminal, or to something else.
pub(crate) fn wants_colour(is_terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    forced || (is_terminal && set("TERM").is_none_or(|kind| kind != "dumb"))
}

/// What shows texts that are longer than the screen.
#[derive(Debug)]
pub(crate) struct Pager {
    /// As a shell takes it.
    pub(crate) command: OsString,
    /// What customary ones are told unless the user tells them something.
    pub(crate) told: Vec<(&'static str, &'static str)>,
}

pub(crate) fn pager() -> Option<Pager> {
    let named = std::env::var_os("PAGER");
    let command = named.or_else(|| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&folders);
        let has_less = folders.any(|folder| folder.join("less").is_file());
        has_less.then(|| OsString::from("less -FRX"))
    });
    let command = command.filter(|command| !command.is_empty() && command != "cat");
    let mut told = vec![("LESS", "FRX"), ("LV", "-c")];
    told.retain(|(name, _)| std::env::var_os(name).is_none());
    command.map(|command| Pager { command, told })
}

pub(crate) fn mcp_server_name() -> Result<Option<String>, Failure> {
    environment("PDPP_MCP_SERVER_NAME")
}

/// Which owner credential the environment offers to a program that must not have one.
pub(crate) fn owner_credential() -> Option<&'static str> {
    ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"]
        .into_iter()
        .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn log_level() -> Result<LevelFilter, Failure> {
    let Some(text) = environment("PDPP_LOG")? else {
        return Ok(LevelFilter::WARN);
    };
    text.parse().map_err(|_| {
        let message = format!("PDPP_LOG '{}' is not a level", visible(&text));
        Failure::new(message).hint("use off, error, warn, info, debug or trace")
    })
}

/// A variable of the environment; an empty one counts as none.
fn environment(name: &str) -> Result<Option<String>, Failure> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    let refusal = |_| Failure::new(format!("{name} is not valid UTF-8")).hint("set it anew");
    value
        .map(|value| value.into_string().map_err(refusal))
        .transpose()
}

/// The whole path of a folder, unless it is the one that every program takes.
fn elsewhere(folder: &Path) -> Option<PathBuf> {
    let usual = default_data_dir().ok();
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    (usual.as_ref() != Some(&whole)).then_some(whole)
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    choose_native_strategy()
        .map(|folders| folders.data_dir().join("pdpp"))
        .map_err(|_| {
            Failure::new("this user has no home folder to keep data in")
                .hint("name a folder with --data-dir or PDPP_DATA_DIR")
        })
}
