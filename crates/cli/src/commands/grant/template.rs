//! `pdpp grant template`: selections that are kept by name, for one grant after another.

use clap::{Args, Subcommand};
use grants::{OfferedTemplate, Template};
use rest::owner::wire::NewTemplate;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::output::visible;
use crate::owner::RequestPath;
use crate::render::columns;

/// Keep what a grant gives as a template, list and remove templates
///
/// A template names its connections. One that is added later is no part of it until it is saved anew.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp grant template save 'work only' --from grt_5f0c2a9be1d37846\n\n`pdpp grant create --template NAME` grants what a template selects."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Keep what a grant or package gives under a name
    #[command(
        after_help = "Example: pdpp grant template save 'work only' --from grt_5f0c2a9be1d37846"
    )]
    Save {
        /// What to call it; a template of that name is replaced
        name: String,
        /// The id of a grant or a package
        #[arg(long, value_name = "ID")]
        from: String,
    },
    /// List the templates
    #[command(after_help = "Example: pdpp grant template list")]
    List,
    /// Forget a template; grants made from it stay
    #[command(after_help = "Example: pdpp grant template remove 'work only'")]
    Remove {
        /// The name of the template
        name: String,
    },
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let path = RequestPath::new("/owner/templates");
    match &options.task {
        Task::Save { name, from } => {
            let owner = context.owner("pdpp grant template save")?;
            let new = NewTemplate {
                name: name.clone(),
                from: from.clone(),
            };
            let saved: Template = owner.post(&path, &new)?;
            if output.is_json() {
                return output.json(&saved);
            }
            output.note(&format!("Saved the template {}.", visible(&saved.name)));
        }
        Task::List => {
            let owner = context.owner("pdpp grant template list")?;
            let offered: Vec<OfferedTemplate> = owner.get(&path)?;
            if output.is_json() {
                return output.json(&offered);
            }
            if offered.is_empty() {
                output.note("There is no template.");
                return Ok(());
            }
            let lines: Vec<[String; 2]> = offered.iter().map(line).collect();
            output.data(columns(&lines, 0, output.style()).trim_end())?;
        }
        Task::Remove { name } => {
            let owner = context.owner("pdpp grant template remove")?;
            let removed: Template = owner.delete(&path.param("name", name))?;
            if output.is_json() {
                return output.json(&removed);
            }
            output.note(&format!("Removed the template {}.", visible(&removed.name)));
        }
    }
    Ok(())
}

/// The name of a template, and what it selects.
fn line(offered: &OfferedTemplate) -> [String; 2] {
    let streams = offered.template.streams.iter();
    let streams = streams.map(|one| format!("{} {}", one.connection_id, visible(&one.stream)));
    let mut selects = streams.collect::<Vec<_>>().join(", ");
    if !offered.added_since.is_empty() {
        let added = offered.added_since.iter().map(ToString::to_string);
        let added: Vec<String> = added.collect();
        selects = format!("{selects}; not {}, added since", added.join(", "));
    }
    [visible(&offered.template.name), selects]
}
