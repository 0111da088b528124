//! `pdpp migrate`: brings a database that several nodes share to the format of this release.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::config::{named_database, named_database_ca};
use crate::context::Context;
use crate::failure::{CommandResult, Failure};

/// Bring a database that several nodes share to the format of this release
///
/// A node that starts does so by itself, and nodes of an earlier release go on beside it. With --finish these are locked out, which is refused while one of them is registered.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp migrate --finish --database 'postgres://pdpp@db.example.org/pdpp'"
)]
pub(crate) struct Options {
    #[arg(
        long,
        value_name = "URL",
        help = "The database (postgres://…); an address with a password belongs into the environment [env: PDPP_DATABASE]"
    )]
    database: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "The authority that signed the database's certificate, in PEM form [env: PDPP_DATABASE_CA] [default: those this machine trusts]"
    )]
    database_ca: Option<PathBuf>,
    #[arg(long, help = "Let no earlier release use the database any more")]
    finish: bool,
}

#[derive(Serialize)]
struct Answer {
    /// The format that the database has.
    format: i64,
    /// The oldest format that a node must know to use it.
    oldest: i64,
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    let database = match options.database {
        Some(database) => Some(database),
        None => named_database()?,
    };
    let Some(database) = database else {
        let hint =
            "name it with --database, or with PDPP_DATABASE where the address has a password";
        return Err(Failure::coded(2, "the database is not named", hint));
    };
    let ca = match options.database_ca {
        Some(ca) => Some(ca),
        None => named_database_ca()?,
    };
    let migrated = store::migrate(&database, ca.as_deref(), options.finish)?;
    let output = &context.output;
    if output.is_json() {
        return output.json(&Answer {
            format: migrated.format,
            oldest: migrated.oldest,
        });
    }
    output.note(&format!(
        "The database has format {}. Releases that know format {} can use it.",
        migrated.format, migrated.oldest
    ));
    Ok(())
}
