//! Renders answers for a terminal. A cut is marked where it happens, with the command that shows the rest; record text can
//! neither steer the terminal nor forge lines.

mod excerpt;
mod json;
mod record;
mod value;
mod wrap;

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use contract::page::{Meta, Page, ReportedCount};
use contract::wire::Nullable;
use indicatif::HumanCount;

pub(crate) use self::excerpt::{Marked, excerpt, window_text};
pub(crate) use self::record::{
    RecordView, explain_missing_handle, handle_of, has_more_related, list_command, record,
};
pub(crate) use self::value::{one_line, short_value};
pub(crate) use self::wrap::{height, wrap_hanging};
use self::wrap::{padded, width};
use crate::reading::CommandLine;
use crate::style::Style;

/// How many characters of a text a list shows, and a record shown by itself.
pub(crate) const LISTED_CHARS: usize = 160;
pub(crate) const WHOLE_CHARS: usize = 4_000;

pub(crate) trait Lines {
    fn push_line(&mut self, text: fmt::Arguments<'_>);
    fn push_command(&mut self, indent: &str, line: &CommandLine, style: Style);
}

impl Lines for String {
    fn push_line(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self, "{text}");
    }

    fn push_command(&mut self, indent: &str, line: &CommandLine, style: Style) {
        self.push_str(&indented_command(indent, line, style));
    }
}

/// Where a page ends and how to go on.
pub(crate) struct PageEnd<'a> {
    /// What the page holds, such as `record`.
    pub(crate) what: &'static str,
    pub(crate) shown: usize,
    pub(crate) has_more: bool,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) connections: Vec<Option<&'a str>>,
    pub(crate) meta: Option<&'a Meta>,
}

impl<'a> PageEnd<'a> {
    pub(crate) fn of<T>(
        page: &'a Page<T>,
        what: &'static str,
        connection: fn(&T) -> Option<&str>,
    ) -> Self {
        Self {
            what,
            shown: page.data.len(),
            has_more: page.has_more(),
            cursor: page.next_cursor(),
            connections: page.data.iter().map(connection).collect(),
            meta: page.meta.as_ref(),
        }
    }

    pub(crate) fn lines(&self, line: &CommandLine, style: Style) -> String {
        let (shown, what) = (self.shown, self.what);
        let plural = if shown == 1 { "" } else { "s" };
        let all = self.meta.and_then(counted);
        let all = all.map(|(all, about)| format!(" of {about}{}", HumanCount(all)));
        let all = all.unwrap_or_default();
        let shown = format!("{shown} {what}{plural}{all}");
        match (self.has_more, self.cursor) {
            (true, Some(cursor)) => {
                let next = indented_command("  ", &line.next_page(cursor), style);
                format!("{shown}; more follow:\n{next}")
            }
            (true, None) if line.values("connection-id").next().is_some() => {
                format!("{shown}; more follow, but the server gives no cursor: raise --limit\n")
            }
            (true, None) => format!(
                "{shown}; more follow, but the server gives no cursor over several connections. {}",
                self.each_connection(line, style)
            ),
            (false, _) => format!("{shown}.\n"),
        }
    }

    /// The commands that page through each connection that was seen, by itself.
    fn each_connection(&self, line: &CommandLine, style: Style) -> String {
        let known: BTreeSet<&str> = self.connections.iter().copied().flatten().collect();
        if known.is_empty() {
            let schema = line.another("schema");
            return format!("Repeat it with --connection-id; `{schema}` lists the connections\n");
        }
        let mut text = "One by one:\n".to_owned();
        for connection in known {
            let one = line.without("cursor").with("connection-id", connection);
            text.push_command("  ", &one, style);
        }
        text
    }
}

/// How many there are in all, if that was asked, and how sure it is.
fn counted(meta: &Meta) -> Option<(u64, &'static str)> {
    match &meta.count {
        Nullable::Value(ReportedCount::Number(all)) => Some((*all, "")),
        Nullable::Value(ReportedCount::Kind(count)) => {
            let about = if count.kind == "estimated" {
                "about "
            } else {
                ""
            };
            Some((count.value?, about))
        }
        _ => None,
    }
}

/// What a thing is called, and beside it, or below where the screen is too narrow, what else there is to say.
pub(crate) fn heading(name: &str, beside: &[String], style: Style) -> String {
    let beside = beside.join("  ");
    let whole = width(name) + 2 + width(&beside);
    let title = wrap_hanging(&style.title(name), 0, 2, style);
    if beside.is_empty() {
        return format!("{title}\n");
    }
    let narrow = style.width().is_some_and(|columns| columns < whole);
    let between = if narrow { "\n  " } else { "  " };
    format!("{title}{between}{}\n", style.dim(&beside))
}

pub(crate) fn indented_command(indent: &str, line: &CommandLine, style: Style) -> String {
    format!("{indent}{}\n", style.command(&line.to_string()))
}

/// Columns: every one but the last as wide as its widest cell, and the last as wide as the screen allows.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]], indent: usize, style: Style) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (place, (cell, widest)) in row.iter().zip(widths).enumerate() {
            if place + 1 < N {
                line.push_str(&padded(cell, widest));
                line.push_str("  ");
            } else {
                let at = width(&line);
                line.push_str(&wrap_hanging(cell, at, at, style));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // TR-29: the command that pages is named, also where another server reads several connections at once.
    #[test]
    fn a_page_without_a_cursor_names_the_commands_that_page() {
        let end = |connections| PageEnd {
            what: "record",
            shown: 3,
            has_more: true,
            cursor: None,
            connections,
            meta: None,
        };
        let line = CommandLine::new("query")
            .argument("messages")
            .option("cursor", Some("c"));
        let told =
            |line: &CommandLine, connections| end(connections).lines(line, Style::new(false));
        assert_eq!(
            told(&line, vec![Some("home"), Some("work"), None, Some("home")]),
            "3 records; more follow, but the server gives no cursor over several connections. One by one:\n  \
             pdpp query messages --connection-id home\n  pdpp query messages --connection-id work\n"
        );
        let unknown = told(&line, vec![None]);
        assert!(unknown.contains("`pdpp schema` lists"), "{unknown}");
        let one = line.option("connection-id", Some("home"));
        assert!(told(&one, vec![Some("home")]).ends_with("raise --limit\n"));
    }
}
