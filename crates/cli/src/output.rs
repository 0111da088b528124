//! Printing, and nothing prints elsewhere: data on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::error::ErrorKind;
use contract::steering::is_steering;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::Serialize;

use crate::args::GlobalOptions;
use crate::config;
use crate::failure::{CommandResult, Failure};
use crate::pager;
use crate::render::height;
use crate::stop::Stop;
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
        let width = screen_size().map(|(_, columns)| columns);
        Style::new(config::wants_colour(is_terminal)).within(width)
    }

    /// A text for people: through a pager where it is longer than their screen.
    pub(crate) fn text(self, text: &str) -> CommandResult {
        let text = sanitize(text.trim_end(), self.style().is_coloured());
        if let Some((rows, columns)) = screen_size()
            && height(&text, columns) >= rows
            && let Some(pager) = config::pager()
            && pager::show(&format!("{text}\n"), &pager)
        {
            return Ok(());
        }
        self.raw_line(&text)
    }

    /// Writes to stdout through a buffer, which is emptied at the end.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn write(
        self,
        write: impl FnOnce(&mut dyn Write) -> CommandResult,
    ) -> CommandResult {
        let mut out = io::BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        write(&mut out)?;
        out.flush().map_err(|error| Failure::writing_output(&error))
    }

    /// A line of data, or a text. It cannot steer the terminal, whatever it repeats.
    pub(crate) fn data(self, line: &str) -> CommandResult {
        self.raw_line(&sanitize(line, self.style().is_coloured()))
    }

    /// A line of data as it stands, for programs.
    pub(crate) fn raw_line(self, line: &str) -> CommandResult {
        self.write(|out| writeln!(out, "{line}").map_err(|error| Failure::writing_output(&error)))
    }

    /// The result as one line of JSON.
    pub(crate) fn json(self, value: &impl Serialize) -> CommandResult {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::new(format!("the result cannot be written: {error}")))?;
        self.raw_line(&text)
    }

    /// The result as JSON, else in words.
    pub(crate) fn report(
        self,
        value: &impl Serialize,
        words: impl FnOnce() -> String,
    ) -> CommandResult {
        if self.json {
            return self.json(value);
        }
        self.note(&words());
        Ok(())
    }

    /// Something good to know.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            print_error_line(&sanitize(text, false));
        }
    }

    /// Whether a person sees what is printed now.
    pub(crate) fn is_interactive(self) -> bool {
        !self.quiet && (io::stderr().is_terminal() || io::stdout().is_terminal())
    }

    /// Something that only people may see: it goes to a terminal, and never where it would be kept.
    pub(crate) fn terminal_only(self, text: &str) {
        if io::stderr().is_terminal() {
            self.note(text);
        } else if self.is_interactive() {
            // A closed stdout leaves nowhere to print to.
            let _ = writeln!(io::stdout().lock(), "{}", sanitize(text, false));
        }
    }

    /// Something for those who want to know more.
    pub(crate) fn detail(self, text: &str) {
        if self.verbose {
            print_error_line(&sanitize(text, false));
        }
    }

    /// Something that must be known.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn problem(self, text: &str) {
        print_error_line(&coloured(text));
    }

    /// A bar over so many bytes, or without an end; invisible unless a person is watching.
    pub(crate) fn bar(self, bytes: Option<u64>) -> ProgressBar {
        let (bar, template) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {msg}, {eta} left",
            ),
            None => (ProgressBar::no_length(), "{spinner} {bytes} {msg}"),
        };
        self.draw(bar, template)
    }

    /// Something that turns while we work; invisible unless a person is watching.
    pub(crate) fn spinner(self, message: &'static str) -> ProgressBar {
        let spinner = self.draw(ProgressBar::no_length(), "{spinner} {msg}");
        spinner.set_message(message);
        spinner
    }

    fn draw(self, bar: ProgressBar, template: &str) -> ProgressBar {
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

    /// Asks a person; `None` without a terminal.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn confirm(self, question: &str) -> Option<bool> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return None;
        }
        let mut stderr = io::stderr().lock();
        // A question that cannot be shown is not agreed to.
        if write!(stderr, "{} [y/N] ", sanitize(question, false))
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

    /// Asks a person for a secret, which is not echoed; `None` without a terminal.
    #[expect(clippy::unused_self, reason = "all printing goes through an output")]
    pub(crate) fn secret(self, question: &str) -> Option<io::Result<String>> {
        let terminal = console::Term::stderr();
        if !(io::stdin().is_terminal() && terminal.is_term()) {
            return None;
        }
        let echoing = match restore_echo_on_signal() {
            Ok(()) => terminal.write_str(&format!("{question}: ")),
            Err(error) => Err(error),
        };
        Some(echoing.and_then(|()| terminal.read_secure_line()))
    }

    /// Tells why a command failed and gives the exit code for it. Where the result is wanted as JSON, a refusal of the contract
    /// is one too.
    pub(crate) fn report_failure(self, failure: &Failure) -> ExitCode {
        match failure {
            Failure::ClosedPipe => ExitCode::SUCCESS,
            Failure::Reported(exit) => ExitCode::from(*exit),
            Failure::Message { exit, body, .. } => {
                if let Some(body) = body.as_deref().filter(|_| self.json) {
                    // A closed stdout is no error here; the exit code still tells.
                    let _ = self.raw_line(body);
                }
                print_error_line(&coloured(&failure.to_string()));
                ExitCode::from(*exit)
            }
        }
    }
}

/// Prints help, a version or a usage error, and gives the exit code for it. Where standard output speaks a protocol,
/// everything is told on the other one.
pub(crate) fn report_usage(answer: &clap::Error, speaks_protocol: bool) -> ExitCode {
    let explains = matches!(
        answer.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    match (explains, speaks_protocol) {
        (false, _) => print_error_line(&coloured(&usage::error_text(answer, std::env::args_os()))),
        (true, _) if answer.kind() == ErrorKind::DisplayVersion => print_version(speaks_protocol),
        (true, true) => print_error_line(&usage::fitted(&answer.to_string(), None)),
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
            let text = usage::fitted(&text, screen_size().map(|(_, columns)| columns));
            if answer.use_stderr() {
                print_error_line(&text);
            } else {
                // A closed stdout is no error here; the exit code still tells.
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

/// Which program this is, whichever command was asked.
fn print_version(speaks_protocol: bool) {
    let version = concat!("pdpp ", env!("CARGO_PKG_VERSION"));
    if speaks_protocol {
        print_error_line(version);
    } else {
        // A closed stdout is no error here; the exit code still tells.
        let _ = writeln!(io::stdout().lock(), "{version}");
    }
}

/// Tells about a defect of ours in a way a person can pass on.
pub(crate) fn report_panic(info: &PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    print_error_line(&format!(
        "error: pdpp has a defect: {what} ({place})\nhint: everything acknowledged is kept; please report this with the command you ran"
    ));
}

/// How many of something: `1 record`, `12,000 records`.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", HumanCount(count))
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

/// A text of ours as it is printed: lines, tabs and, where it is used, our colour stay. Everything else that would steer
/// the terminal came from outside and becomes visible.
fn sanitize(text: &str, coloured: bool) -> Cow<'_, str> {
    let stays = |c: char| is_visible(c) || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match colour(rest) {
            Some(length) if coloured => length,
            _ => c.len_utf8(),
        };
        let (first, after) = rest.split_at(length);
        if length > c.len_utf8() || stays(c) {
            shown.push_str(first);
        } else {
            shown.extend(c.escape_unicode());
        }
        rest = after;
    }
    Cow::Owned(shown)
}

/// How long the switch of colour is that a text begins with.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    codes.get(end..)?.starts_with('m').then_some(2 + end + 1)
}

/// Whether a character shows as itself: it neither steers the terminal nor reorders or hides text around it.
pub(crate) fn is_visible(c: char) -> bool {
    !is_steering(c)
}

/// Restores the echo of the terminal when a signal ends the process while a secret is typed.
fn restore_echo_on_signal() -> io::Result<()> {
    static WATCHED: Mutex<bool> = Mutex::new(false);
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if *watched {
        return Ok(());
    }
    let before = tcgetattr(io::stdin())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    let mut stop = Stop::new()?;
    drop(entered);
    // It runs until the process ends: from now on only this thread handles the signals.
    std::thread::spawn(move || {
        let exit = runtime.block_on(stop.signalled());
        // Where the terminal is gone there is nothing to leave behind.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
        print_error_line("");
        #[expect(
            clippy::exit,
            reason = "the other thread waits for a line that nobody will type"
        )]
        std::process::exit(exit.into());
    });
    *watched = true;
    Ok(())
}

/// A message with its kind in colour, where a person sees it.
fn coloured(text: &str) -> String {
    let text = sanitize(text, false);
    Style::new(config::wants_colour(io::stderr().is_terminal())).message(&text)
}

/// The rows and columns of the screen that data goes to.
fn screen_size() -> Option<(usize, usize)> {
    let terminal = console::Term::stdout();
    let (rows, columns) = terminal.size_checked().filter(|_| terminal.is_term())?;
    // A terminal that does not know its size says nothing.
    (rows > 0 && columns > 0).then_some((rows.into(), columns.into()))
}

fn print_error_line(text: &str) {
    // A closed stderr leaves nowhere to print to.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colour_reaches_a_terminal() {
        // decision 42: text from outside is data
        let text = "a\u{1b}[1;31mb\u{1b}[0m\n\tc \u{1b}]0;pwn\u{7}\u{1b}[2J \u{202e}d\r";
        let rest = "\n\tc \\u{1b}]0;pwn\\u{7}\\u{1b}[2J \\u{202e}d\\u{d}";
        assert_eq!(
            sanitize(text, true),
            format!("a\u{1b}[1;31mb\u{1b}[0m{rest}")
        );
        assert_eq!(
            sanitize(text, false),
            format!("a\\u{{1b}}[1;31mb\\u{{1b}}[0m{rest}")
        );
        assert_eq!(sanitize("\u{1b}[1", true), "\\u{1b}[1");
        // TR-09: an instruction in characters that show nothing, as a model would read it.
        assert_eq!(
            sanitize("ok\u{e0001}\u{e0061}\u{e007f}\u{e0100}", true),
            "ok\\u{e0001}\\u{e0061}\\u{e007f}\\u{e0100}"
        );
        assert_eq!(sanitize("\u{e9} \u{6771}", false), "\u{e9} \u{6771}");
    }
}
