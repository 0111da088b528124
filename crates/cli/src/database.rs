//! A database that several nodes share, as it is named on the command line and in the environment, and how it is opened.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::Uri;
use clap::Args;
use contract::id::hex;
use store::{BlobPlace, EmbeddedStore, Nodes as _, PostgresOptions, PostgresStore, TakenOver};

use crate::clock::SystemClock;
use crate::config::DatabaseSettings;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;

/// Whose data it is where no address says it.
const LOCAL_OWNER: &str = "localhost";
pub(crate) const NEW_SECRET: &str = "make one that all nodes share: (umask 077; openssl rand -hex 32 > FILE), and name it with --secret-file";

/// Where the records are, unless they are in the data directory.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DatabaseOptions {
    #[arg(
        long,
        value_name = "URL",
        help = "Serve as one of several nodes whose records are in this PostgreSQL (postgres://…); the data directory then holds only the index [env: PDPP_DATABASE]"
    )]
    pub(crate) database: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "The authority that signed the database's certificate, in PEM form [env: PDPP_DATABASE_CA] [default: those this machine trusts]"
    )]
    pub(crate) database_ca: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PLACE",
        help = "Where all nodes of the database keep blobs: a folder, or s3://BUCKET/PREFIX with AWS_ACCESS_KEY_ID and the like in the environment [env: PDPP_BLOBS]"
    )]
    pub(crate) blobs: Option<String>,
    #[arg(
        long,
        value_name = "NAME",
        help = "The name of this node, which no other of the database has [env: PDPP_NODE]"
    )]
    pub(crate) node: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "The secret that all nodes share: a line of 64 hex digits, and a second one while it is replaced [env: PDPP_SECRET_FILE] [default: one that the first node makes in the folder of blobs]"
    )]
    pub(crate) secret_file: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAME",
        help = "Whose data of the database is served; added if it is not there [env: PDPP_OWNER] [default: the host of the public address]"
    )]
    pub(crate) owner: Option<String>,
}

impl DatabaseOptions {
    /// Whether anything is said that only a node of a database needs.
    pub(crate) fn names_any(&self) -> bool {
        let files = [&self.database_ca, &self.secret_file];
        let names = [&self.blobs, &self.node, &self.owner];
        files.iter().any(|file| file.is_some()) || names.iter().any(|name| name.is_some())
    }
}

/// Opens the database as a node with this data directory.
pub(crate) fn open(
    settings: DatabaseSettings,
    public_url: Option<&str>,
    context: &Context,
) -> CommandResult<PostgresStore> {
    let data_dir = context.settings.data_dir.clone();
    open_in(data_dir, settings, public_url, "pdpp serve")
}

/// Takes a data directory over into the database, which is opened with an index that is thrown away.
pub(crate) fn take_over(
    settings: DatabaseSettings,
    public_url: Option<&str>,
    from: &EmbeddedStore,
    progress: &mut dyn FnMut(u64),
) -> CommandResult<TakenOver> {
    let folder = tempfile::tempdir().map_err(Failure::file_error(&std::env::temp_dir()))?;
    let data_dir = folder.path().join("node");
    let node = settings.node.clone();
    let store = open_in(data_dir, settings, public_url, "pdpp move")?;
    let taken = store.take_over(from, progress);
    // Nobody may wait for a node that was there for this alone.
    let forgotten = store.leave().and_then(|()| store.forget_node(&node));
    let taken = taken?;
    forgotten?;
    Ok(taken)
}

fn open_in(
    data_dir: PathBuf,
    settings: DatabaseSettings,
    public_url: Option<&str>,
    holder: &str,
) -> CommandResult<PostgresStore> {
    let (secret, other_secret) = match (&settings.secret_file, &settings.blobs) {
        (Some(file), _) => secrets(file)?,
        (None, BlobPlace::Folder(folder)) => secrets(&kept_secret(folder)?)?,
        (None, BlobPlace::Bucket(_)) => {
            let message = "a node whose blobs are in a bucket needs --secret-file";
            return Err(Failure::coded(2, message, NEW_SECRET));
        }
    };
    let options = PostgresOptions {
        url: settings.url,
        ca: settings.ca,
        add_owner: settings.owner.is_some(),
        owner: settings.owner.unwrap_or_else(|| owner_at(public_url)),
        data_dir,
        blobs: settings.blobs,
        node: settings.node,
        holder: holder.to_owned(),
        clock: Arc::new(SystemClock),
        secret,
        other_secret,
    };
    Ok(PostgresStore::open(options)?)
}

fn owner_at(public_url: Option<&str>) -> String {
    let address: Option<Uri> = public_url.and_then(|url| url.parse().ok());
    let host = address.as_ref().and_then(Uri::host);
    host.unwrap_or(LOCAL_OWNER).to_ascii_lowercase()
}

/// The file of the secret in the folder that all nodes share; the first of them makes it.
fn kept_secret(blobs: &Path) -> CommandResult<PathBuf> {
    let file = blobs.join("secret");
    if file.exists() {
        return Ok(file);
    }
    fs::create_dir_all(blobs).map_err(Failure::file_error(blobs))?;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(format!("there is no randomness: {error}")))?;
    // Readable by this user alone, and there whole or not at all.
    let made = tempfile::NamedTempFile::new_in(blobs).and_then(|mut made| {
        writeln!(made, "{}", hex(bytes))?;
        made.as_file().sync_all()?;
        Ok(made)
    });
    match made
        .map_err(Failure::file_error(&file))?
        .persist_noclobber(&file)
    {
        // Another node was faster: its secret is the one.
        Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => Ok(file),
        kept => kept
            .map(|_| file.clone())
            .map_err(|refused| Failure::file_error(&file)(refused.error)),
    }
}

/// The secret that seals, and the other one whose seals are good too.
fn secrets(file: &Path) -> CommandResult<([u8; 32], Option<[u8; 32]>)> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::file_error(file)(error).hint(NEW_SECRET))?;
    let unfit = |what: &str| {
        Failure::new(format!("{} is not a secret: {what}", file.display())).hint(NEW_SECRET)
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let read = |line: &str| secret(line).ok_or_else(|| unfit("a line is not 64 hex digits"));
    match lines.as_slice() {
        [one] => Ok((read(one)?, None)),
        [one, other] => Ok((read(one)?, Some(read(other)?))),
        [] => Err(unfit("it is empty")),
        _ => Err(unfit("it has more than two lines")),
    }
}

fn secret(line: &str) -> Option<[u8; 32]> {
    let is_hex = line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = is_hex.then_some(line)?;
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A name is shown in lists and messages, so it is short and plain.
pub(crate) fn check_node(name: &str) -> CommandResult {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!("'{}' is not a name for a node", visible(name));
    Err(Failure::coded(
        2,
        message,
        "name it with --node: up to 64 letters, digits, '-', '_' and '.'",
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_owner_is_the_host_of_the_public_address() {
        assert_eq!(owner_at(None), "localhost");
        assert_eq!(
            owner_at(Some("https://Me.example.org:8443/")),
            "me.example.org"
        );
        assert_eq!(owner_at(Some("http://[::1]:7420")), "[::1]");
    }

    #[test]
    fn a_secret_is_a_line_of_hex_digits_and_there_may_be_two() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let (one, other) = ("0f".repeat(32), "A0".repeat(32));
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            secrets(&file).ok()
        };
        assert_eq!(read(&format!("{one}\n")), Some(([15; 32], None)));
        let both = read(&format!("{other}\n\n{one}"));
        assert_eq!(both, Some(([160; 32], Some([15; 32]))));
        for wrong in [
            "",
            "\n",
            "0f",
            &"é".repeat(32),
            &format!("{one}\n{one}\n{one}"),
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(secrets(&folder.path().join("none")).is_err());
        let blobs = folder.path().join("blobs");
        let first = secrets(&kept_secret(&blobs).unwrap()).unwrap();
        assert_eq!(secrets(&kept_secret(&blobs).unwrap()).unwrap(), first);
        let mode = fs::metadata(blobs.join("secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
