//! `pdpp move`: a data directory moves into a database that several nodes share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;
use store::directory::{COLLECT, DATABASE};
use store::{EmbeddedStore, OpenOptions, TakenOver};

use crate::clock::SystemClock;
use crate::config::{DatabaseSettings, named_database, named_public_url};
use crate::context::Context;
use crate::database::{self, DatabaseOptions};
use crate::failure::{CommandResult, Failure};
use crate::output::{counted, visible};

/// The exit code of a command line that asks for what cannot be.
const USAGE: u8 = 2;
/// The name under which the database is opened meanwhile.
const NODE: &str = "move";
/// Damage and missing blobs that are told one by one.
const MAX_LISTED: usize = 10;

/// Move a data directory into a PostgreSQL that several nodes share
///
/// Everything goes along: records with their history, grants, tokens, sessions, the disclosure log, blobs, and the key that sealed cursors. It happens in one transaction, which is counted before it holds, so it is there whole or not at all; the directory stays as it is. The owner in the database must be empty: move before the first node starts. `pdpp restore --to` brings a backup into a database.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp move --from ~/.local/share/pdpp --to 'postgres://pdpp@db.example.org/pdpp' --blobs /mnt/pdpp-blobs --secret-file secret --owner me.example.org"
)]
pub(crate) struct Options {
    #[arg(
        long,
        value_name = "DIR",
        help = "The data directory to move; no server may run on it [default: that of --data-dir]"
    )]
    from: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

/// The database that a data directory goes into.
#[derive(Debug, Args)]
pub(super) struct Target {
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        default_missing_value = "",
        help = "The database (postgres://…); an address with a password belongs into the environment, PDPP_DATABASE, and --to stands alone then"
    )]
    pub(super) to: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "The authority that signed the database's certificate, in PEM form [env: PDPP_DATABASE_CA] [default: those this machine trusts]"
    )]
    database_ca: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PLACE",
        help = "Where all nodes of the database keep blobs: a folder, or s3://BUCKET/PREFIX [env: PDPP_BLOBS]"
    )]
    blobs: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "The secret that all nodes share [env: PDPP_SECRET_FILE] [default: the one in the folder of blobs]"
    )]
    secret_file: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAME",
        help = "Whose data it is in the database; added if it is not there [env: PDPP_OWNER] [default: the host of PDPP_PUBLIC_URL]"
    )]
    owner: Option<String>,
}

impl Target {
    /// Whether something is said that only a database needs.
    pub(super) fn is_named(&self) -> bool {
        let files = [&self.database_ca, &self.secret_file];
        let names = [&self.to, &self.blobs, &self.owner];
        files.iter().any(|file| file.is_some()) || names.iter().any(|name| name.is_some())
    }

    /// What is said here, and for the rest the environment.
    pub(super) fn settings(&self) -> CommandResult<DatabaseSettings> {
        let to = match self.to.as_ref().filter(|to| !to.is_empty()) {
            Some(to) => Some(to.clone()),
            None => named_database()?,
        };
        let unnamed = || {
            let hint = "name it with --to, or with PDPP_DATABASE where the address has a password";
            Failure::coded(USAGE, "the database is not named", hint)
        };
        let settings = DatabaseSettings::resolve(DatabaseOptions {
            database: Some(to.ok_or_else(unnamed)?),
            database_ca: self.database_ca.clone(),
            blobs: self.blobs.clone(),
            node: Some(NODE.to_owned()),
            secret_file: self.secret_file.clone(),
            owner: self.owner.clone(),
        })?;
        settings.ok_or_else(unnamed)
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    from: &'a Path,
    /// Rows by table, as they were counted in the database.
    rows: serde_json::Map<String, serde_json::Value>,
    blobs: u64,
    disclosures: u64,
    missing_blobs: Vec<String>,
    damaged: &'a [String],
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    let from = options
        .from
        .unwrap_or_else(|| context.settings.data_dir.clone());
    if !from.join(DATABASE).is_file() {
        let message = format!("{} is not a data directory", from.display());
        let hint = "name with --from the folder that --data-dir named so far";
        return Err(Failure::coded(USAGE, message, hint));
    }
    let taken = bring(&from, options.target.settings()?, context)?;
    tell(&from, &taken, context)?;
    if taken.damaged.is_empty() && taken.missing_blobs.is_empty() {
        Ok(())
    } else {
        Err(Failure::REPORTED)
    }
}

/// Brings a data directory into a database.
pub(super) fn bring(
    from: &Path,
    settings: DatabaseSettings,
    context: &Context,
) -> CommandResult<TakenOver> {
    let store = EmbeddedStore::open(from, OpenOptions::new("pdpp move", Arc::new(SystemClock)))?;
    let spinner = context.output.spinner("moving");
    let mut progress =
        |rows: u64| spinner.set_message(format!("moving, {} rows sent", HumanCount(rows)));
    let public_url = named_public_url()?;
    let taken = database::take_over(settings, public_url.as_deref(), &store, &mut progress);
    spinner.finish_and_clear();
    taken
}

fn tell(from: &Path, taken: &TakenOver, context: &Context) -> CommandResult {
    let output = context.output;
    let missing = taken.missing_blobs.iter().map(ToString::to_string);
    let missing: Vec<String> = missing.collect();
    if output.is_json() {
        let rows = taken.rows.iter();
        return output.json(&Answer {
            from,
            rows: rows
                .map(|(table, rows)| ((*table).to_owned(), (*rows).into()))
                .collect(),
            blobs: taken.blobs,
            disclosures: taken.chain.entries,
            missing_blobs: missing,
            damaged: &taken.damaged,
        });
    }
    let rows = |table: &str| {
        let found = taken.rows.iter().find(|(name, _)| *name == table);
        found.map_or(0, |(_, rows)| *rows)
    };
    output.note(&format!(
        "Moved {} with {}, {}, {} and {} of the disclosure log. Nothing in {} was changed; do not serve from it again.",
        counted(rows("records"), "record", "records"),
        counted(rows("versions"), "earlier version", "earlier versions"),
        counted(taken.blobs, "blob", "blobs"),
        counted(rows("grants"), "grant", "grants"),
        counted(taken.chain.entries, "entry", "entries"),
        from.display()
    ));
    if from.join(COLLECT).is_dir() {
        output.note(&format!(
            "What is collected again and again stays with one machine: copy {} into the data directory of one node.",
            from.join(COLLECT).display()
        ));
    }
    if let Some(broken) = &taken.chain.broken {
        output.note(&format!(
            "The disclosure log was broken at entry {} and still is: {}",
            broken.sequence, broken.reason
        ));
    }
    for damage in taken.damaged.iter().take(MAX_LISTED) {
        output.note(&format!("Damaged, there as here: {}", visible(damage)));
    }
    for id in missing.iter().take(MAX_LISTED) {
        output.note(&format!("Missing, there as here: the bytes of {id}"));
    }
    Ok(())
}
