//! Printing, and nothing prints elsewhere: data on stdout, everything else on stderr.

use std::io::{self, BufRead, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::GlobalOptions;
use crate::config;
use crate::failure::{Failure, Outcome};
use crate::pager;
use crate::shown::height;
use crate::style::Style;
use crate::usage;

/// How this run talks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    verbose: bool,
}

impl Output {
    pub(crate) fn new(global: &GlobalOptions) -> Self {
        Self {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose > 0,
        }
    }

    /// Whether the result is wanted as JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether details are wanted.
    pub(crate) fn is_verbose(self) -> bool {
        self.verbose
    }

    /// How data is set apart: in colour where a person looks at it.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn style(self) -> Style {
        let is_terminal = io::stdout().is_terminal();
        let width = screen().map(|(_, columns)| columns);
        Style::new(config::wants_colour(is_terminal)).within(width)
    }

    /// A text for people: through a pager where it is longer than their screen.
    pub(crate) fn text(self, text: &str) -> Outcome {
        let text = text.trim_end();
        if let Some((rows, columns)) = screen()
            && height(text, columns) >= rows
            && let Some(pager) = config::pager()
            && pager::show(&format!("{text}\n"), &pager)
        {
            return Ok(());
        }
        self.data(text)
    }

    /// Writes to stdout through a buffer, which is emptied at the end.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn write(self, write: impl FnOnce(&mut dyn Write) -> Outcome) -> Outcome {
        let mut out = io::BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        write(&mut out)?;
        out.flush().map_err(|error| Failure::of_output(&error))
    }

    /// A line of data.
    pub(crate) fn data(self, line: &str) -> Outcome {
        self.write(|out| writeln!(out, "{line}").map_err(|error| Failure::of_output(&error)))
    }

    /// The result as one line of JSON.
    pub(crate) fn json(self, value: &impl Serialize) -> Outcome {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::new(format!("the result cannot be written: {error}")))?;
        self.data(&text)
    }

    /// Something good to know.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }

    /// Something for those who want to know more.
    pub(crate) fn detail(self, text: &str) {
        if self.verbose {
            tell(text);
        }
    }

    /// Something that must be known.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn problem(self, text: &str) {
        tell(&coloured(text));
    }

    /// A bar over so many bytes, or without an end; invisible unless a person is watching.
    pub(crate) fn bar(self, bytes: Option<u64>) -> ProgressBar {
        let (bar, template) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{bar:30} {bytes}/{total_bytes} {msg} {eta}",
            ),
            None => (ProgressBar::no_length(), "{spinner} {bytes} {msg}"),
        };
        self.shown(bar, template)
    }

    /// Something that turns while we work; invisible unless a person is watching.
    pub(crate) fn spinner(self, message: &'static str) -> ProgressBar {
        let spinner = self.shown(ProgressBar::no_length(), "{spinner} {msg}");
        spinner.set_message(message);
        spinner
    }

    fn shown(self, bar: ProgressBar, template: &str) -> ProgressBar {
        if self.quiet || self.json || !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            return bar;
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Asks a person. Nothing if there is nobody to ask.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn confirm(self, question: &str) -> Option<bool> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return None;
        }
        let mut stderr = io::stderr().lock();
        // A question that cannot be shown is not agreed to.
        if write!(stderr, "{question} [y/N] ")
            .and_then(|()| stderr.flush())
            .is_err()
        {
            return Some(false);
        }
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        let agreed = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        Some(read.is_ok() && agreed)
    }

    /// Asks a person for a secret, which is not shown. Nothing if there is nobody to ask.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn secret(self, question: &str) -> Option<io::Result<String>> {
        let terminal = console::Term::stderr();
        if !(io::stdin().is_terminal() && terminal.is_term()) {
            return None;
        }
        let asked = terminal.write_str(&format!("{question}: "));
        Some(asked.and_then(|()| terminal.read_secure_line()))
    }

    /// Tells why a command failed and gives the exit code for it. Where the result is wanted as JSON, a refusal of the contract
    /// is one too.
    pub(crate) fn report_failure(self, failure: &Failure) -> ExitCode {
        match failure {
            Failure::ClosedPipe => ExitCode::SUCCESS,
            Failure::Reported => ExitCode::FAILURE,
            Failure::Misused => ExitCode::from(2),
            Failure::Told { .. } => {
                tell(&coloured(&failure.to_string()));
                ExitCode::FAILURE
            }
            Failure::Coded { exit, body, .. } => {
                if let Some(body) = body.as_deref().filter(|_| self.json) {
                    // Nobody may be listening; the exit code still tells.
                    let _ = self.data(body);
                }
                tell(&coloured(&failure.to_string()));
                ExitCode::from(*exit)
            }
        }
    }
}

/// Prints help, a version or a usage error, and gives the exit code for it. Where standard output speaks a protocol,
/// everything is told on the other one.
pub(crate) fn answer_usage(answer: &clap::Error, speaks_protocol: bool) -> ExitCode {
    let explains = matches!(
        answer.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    match (explains, speaks_protocol) {
        (false, _) => tell(&coloured(&usage::told(answer, std::env::args_os()))),
        (true, true) => tell(&usage::fitted(&answer.to_string(), None)),
        (true, false) => {
            let is_terminal = if answer.use_stderr() {
                io::stderr().is_terminal()
            } else {
                io::stdout().is_terminal()
            };
            let text = answer.render();
            let text = if config::wants_colour(is_terminal) {
                text.ansi().to_string()
            } else {
                text.to_string()
            };
            let text = usage::fitted(&text, screen().map(|(_, columns)| columns));
            if answer.use_stderr() {
                tell(&text);
            } else {
                // Nobody may be listening; the exit code still tells.
                let _ = writeln!(io::stdout().lock(), "{text}");
            }
        }
    }
    match (answer.use_stderr(), speaks_protocol) {
        (false, _) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(2),
        (true, true) => ExitCode::from(64),
    }
}

/// Tells about a defect of ours in a way a person can pass on.
pub(crate) fn report_panic(info: &PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tell(&format!(
        "error: pdpp has a defect: {what} ({place})\nhint: everything acknowledged is kept; please report this with the command you ran"
    ));
}

/// A text from outside as one may show it: control characters become visible, so that it cannot forge other output.
pub(crate) fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = !is_visible(c);
            let shown = (!escaped).then_some(c);
            shown
                .into_iter()
                .chain(c.escape_unicode().filter(move |_| escaped))
        })
        .collect()
}

/// Whether a character shows as itself: it neither steers the terminal nor reorders or hides text around it.
pub(crate) fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A message with its kind in colour, where a person sees it.
fn coloured(text: &str) -> String {
    Style::new(config::wants_colour(io::stderr().is_terminal())).message(text)
}

/// The rows and columns of the screen that data goes to.
fn screen() -> Option<(usize, usize)> {
    let terminal = console::Term::stdout();
    let (rows, columns) = terminal.size_checked().filter(|_| terminal.is_term())?;
    // A terminal that does not know its size says nothing.
    (rows > 0 && columns > 0).then_some((rows.into(), columns.into()))
}

fn tell(text: &str) {
    // Where stderr is gone there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
