//! `pdpp man`: manual pages, from the same description of the commands as their help.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::Cli;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};

/// Print the manual page of pdpp, or write the pages of all commands into a folder
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp man ~/.local/share/man/man1")]
pub(crate) struct Options {
    /// The folder; pages that are there are replaced [default: pdpp's own page goes to stdout]
    dir: Option<PathBuf>,
}

/// A page and the name of its file.
struct Page {
    name: String,
    text: String,
}

impl Page {
    fn render(command: &Command) -> Self {
        let man = Man::new(command.clone()).manual("pdpp");
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = man.render(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        Self {
            name: man.get_filename(),
            text: text.replacen("\n.SH EXTRA\n", "\n.SH NOTES\n", 1),
        }
    }
}

/// The page of the program, and after it those of its commands.
fn pages() -> Vec<Page> {
    fn collect(command: &Command, pages: &mut Vec<Page>) {
        pages.push(Page::render(command));
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            collect(one, pages);
        }
    }
    let mut program = Cli::command();
    program.build();
    let mut pages = Vec::new();
    collect(&program, &mut pages);
    pages
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let pages = pages();
    let Some(dir) = &options.dir else {
        return match pages.first() {
            Some(page) => output.data(page.text.trim_end()),
            None => Ok(()),
        };
    };
    fs::create_dir_all(dir).map_err(Failure::file_error(dir))?;
    for page in &pages {
        let file = dir.join(&page.name);
        fs::write(&file, &page.text).map_err(Failure::file_error(&file))?;
    }
    output.note(&format!(
        "Wrote {} pages into {}.",
        pages.len(),
        dir.display()
    ));
    Ok(())
}
