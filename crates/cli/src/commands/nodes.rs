//! `pdpp nodes`: the processes that share the records of a database.

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use store::nodes::{Node, NodeState};

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::moment;
use crate::output::visible;
use crate::owner::RequestPath;
use crate::render::columns;

/// List the nodes that share the records, and forget one that is gone
///
/// A node is a `pdpp serve --database`. What was erased counts as gone when it is gone from the disk of every node, so one that was lost
/// has to be forgotten.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp nodes")]
pub(crate) struct Options {
    #[command(subcommand)]
    change: Option<Change>,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Count on a node no longer; should it come back, it is a new one
    #[command(after_help = "Example: pdpp nodes forget b")]
    Forget {
        /// The name it was started with
        name: String,
    },
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let owner = context.owner("pdpp nodes")?;
    let path = RequestPath::new("/owner/nodes");
    let Some(Change::Forget { name }) = &options.change else {
        let nodes: Vec<Node> = owner.get(&path)?;
        if output.is_json() {
            return output.json(&nodes);
        }
        if nodes.is_empty() {
            return Err(Failure::new(
                "these records are in a data directory, which one process has alone",
            )
            .hint("`pdpp serve --help` says how several share a database"));
        }
        return output.text(&columns(&table(&nodes), 0, output.style()));
    };
    let nodes: Vec<Node> = owner.delete(&path.segment(name))?;
    output.report(&nodes, || format!("Forgot '{}'.", visible(name)))
}

fn table(nodes: &[Node]) -> Vec<[String; 5]> {
    let mut table = vec![["NAME", "STATE", "BEHIND", "RELEASE", "SEEN"].map(str::to_owned)];
    table.extend(nodes.iter().map(|node| {
        let state = match node.state {
            NodeState::Running if node.is_this => "this one",
            NodeState::Running => "running",
            NodeState::Stopped => "stopped",
            NodeState::Away => "away",
        };
        let erased = if node.holds_erased {
            ", may hold what was erased"
        } else {
            ""
        };
        [
            visible(&node.name),
            format!("{state}{erased}"),
            HumanCount(node.behind).to_string(),
            visible(&node.build),
            moment::to_local_seconds(&node.seen_at.to_string()),
        ]
    }));
    table
}
