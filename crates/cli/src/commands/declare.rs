//! `pdpp declare`: registers a source declaration.

use std::path::PathBuf;

use clap::Args;
use contract::declaration::{Declaration, DeclarationErrors};
use serde::Serialize;
use store::catalog::Declared;
use store::{Catalog, Search, StoreError};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::file;

/// Register a source declaration and print its connector key
///
/// A later version of a registered declaration may add streams, fields, views and capabilities; what has data cannot be
/// taken away or changed in type. Give a changed file a new version.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp declare mail.json")]
pub(crate) struct Options {
    /// The declaration, a JSON file ('-' reads stdin)
    file: PathBuf,
}

#[derive(Serialize)]
struct Answer<'a> {
    connector_key: &'a str,
    result: &'static str,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let output = context.output;
    let file = options.file.display().to_string();
    let refusal_of = |mistakes: &DeclarationErrors| {
        for mistake in &mistakes.0 {
            output.problem(&format!("{file}: {mistake}"));
        }
        Failure::Reported
    };
    let text = file::read(&options.file)?;
    let declaration = Declaration::parse(&text).map_err(|mistakes| refusal_of(&mistakes))?;
    let store = context.open("pdpp declare")?;
    let declared = match store.declare(&declaration) {
        Err(StoreError::Declaration(mistakes)) => return Err(refusal_of(&mistakes)),
        other => other?,
    };
    if let Declared::Updated { reindexed: 1.. } = declared {
        let spinner = output.spinner("indexing");
        store.settle_index()?;
        spinner.finish_and_clear();
    }
    let key = declaration.connector_key().as_str();
    let (result, note) = match declared {
        Declared::Added => (
            "added",
            format!("Registered. Next: pdpp connections add {key} --name NAME"),
        ),
        Declared::Unchanged => (
            "unchanged",
            "Registered already, nothing changed.".to_owned(),
        ),
        Declared::Updated { .. } => (
            "updated",
            format!("Updated to version {}.", declaration.declaration_version),
        ),
    };
    if output.is_json() {
        output.json(&Answer {
            connector_key: key,
            result,
        })
    } else {
        output.data(key)?;
        output.note(&note);
        Ok(())
    }
}
