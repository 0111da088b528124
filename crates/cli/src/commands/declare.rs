//! `pdpp declare`: registers a source declaration.

use std::path::PathBuf;

use clap::Args;
use contract::declaration::Declaration;
use rest::owner::wire::Declared;

use crate::commands::import::open_input;
use crate::commands::import::table::{self, TableOptions};
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::file;
use crate::owner::{OwnerError, RequestPath};
use crate::spelling::join_names;

/// Register a source declaration and print its connector key
///
/// `pdpp help declarations` shows a whole one and explains it.
///
/// A later version of a registered declaration may add streams, fields, views and capabilities; what has data cannot be
/// taken away or changed in type. Give a changed file a new version.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp declare mail.json")]
pub(crate) struct Options {
    /// The declaration, a JSON file ('-' reads stdin)
    #[arg(required_unless_present = "from")]
    file: Option<PathBuf>,
    /// Print a declaration for this table instead: CSV, TSV, a workbook (xlsx), a SQLite database, a JSON array or JSON lines
    #[arg(long, value_name = "TABLE", conflicts_with = "file")]
    from: Option<PathBuf>,
    #[command(flatten)]
    table: TableOptions,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let Some(path) = &options.file else {
        return print_for_table(options, context);
    };
    let file = path.display().to_string();
    let refusal_of = |mistakes: &mut dyn Iterator<Item = String>| {
        for mistake in mistakes {
            output.problem(&format!("{file}: {mistake}"));
        }
        Failure::REPORTED
    };
    let text = file::read(path)?;
    let declaration = Declaration::parse(&text)
        .map_err(|mistakes| refusal_of(&mut mistakes.0.iter().map(ToString::to_string)))?;
    let owner = context.owner("pdpp declare")?;
    let spinner = output.spinner("indexing");
    let declared = owner.post_text::<Declared>(&RequestPath::new("/owner/declarations"), text);
    spinner.finish_and_clear();
    let declared = match declared {
        Err(OwnerError::Refused(refused)) if !refused.mistakes.is_empty() => {
            return Err(refusal_of(&mut refused.mistakes.into_iter()));
        }
        other => other?,
    };
    let key = declared.connector_key.as_str();
    let note = match declared.result.as_str() {
        "added" => {
            let add = context.command("connections add").argument(key);
            format!("Registered. Next: {}", add.option("name", Some("NAME")))
        }
        "unchanged" => "Registered already, nothing changed.".to_owned(),
        "returned" => format!(
            "Back at version {}, which was registered before.",
            declaration.declaration_version
        ),
        _ => format!("Updated to version {}.", declaration.declaration_version),
    };
    if output.is_json() {
        output.json(&declared)
    } else {
        output.data(key)?;
        output.note(&note);
        if !declared.damaged.is_empty() {
            let damaged: Vec<&str> = declared.damaged.iter().map(String::as_str).collect();
            output.note(&format!(
                "Left out because damaged on the disk: {}. Importing again mends that; {} lists all damage.",
                join_names(&damaged),
                context.command("doctor").flag("thorough")
            ));
        }
        Ok(())
    }
}

/// Prints what a table would be declared like; what was a guess is said beside it.
fn print_for_table(options: &Options, context: &Context) -> CommandResult {
    let Some(path) = &options.from else {
        return Ok(());
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let title = ingest::table::title(&name);
    let told = options.table.told();
    let slug = ingest::table::slug(title);
    let inferred = table::infer(open_input(path)?, path, (title, &slug), &told)?;
    context.output.data(&inferred.declaration)?;
    table::show_doubts(&inferred, context);
    Ok(())
}
