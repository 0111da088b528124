//! A command line as a value: the request is made from it, and so is every command that continues it. What is printed can
//! be run unchanged.

use std::fmt;
use std::fmt::Write as _;

use client::ProviderUrl;
use contract::handle::RecordHandle;
use contract::upstream::Get;

use super::filter;
use crate::failure::CommandResult;
use crate::output::is_visible;

/// A command with its arguments and options, and the location it reads from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    command: &'static str,
    arguments: Vec<String>,
    options: Vec<(&'static str, String)>,
    flags: Vec<&'static str>,
    location: Vec<(&'static str, String)>,
}

impl CommandLine {
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            command,
            arguments: Vec::new(),
            options: Vec::new(),
            flags: Vec::new(),
            location: Vec::new(),
        }
    }

    pub(crate) fn argument(mut self, text: impl Into<String>) -> Self {
        self.arguments.push(text.into());
        self
    }

    pub(crate) fn option(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.options
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(crate) fn option_text(name: &str, value: &str) -> String {
        let between = if value.starts_with('-') { '=' } else { ' ' };
        format!("--{name}{between}{}", quoted(value))
    }

    pub(crate) fn options(mut self, name: &'static str, values: &[String]) -> Self {
        self.options
            .extend(values.iter().map(|value| (name, value.clone())));
        self
    }

    pub(crate) fn with_json(self) -> Self {
        self.flag("json")
    }

    pub(crate) fn flag(mut self, name: &'static str) -> Self {
        self.flags.push(name);
        self
    }

    /// Sets the options that say where the command reads.
    pub(crate) fn with_location(mut self, location: Vec<(&'static str, String)>) -> Self {
        self.location = location;
        self
    }

    /// The same command with another value of one option.
    pub(crate) fn with(&self, name: &'static str, value: impl ToString) -> Self {
        self.without(name).option(name, Some(value))
    }

    pub(crate) fn without(&self, name: &str) -> Self {
        let mut line = self.clone();
        line.options.retain(|(known, _)| *known != name);
        line
    }

    /// The next page of what this command shows. A cursor carries the bookmark it began from.
    pub(crate) fn next_page(&self, cursor: &str) -> Self {
        self.without("changes-since").with("cursor", cursor)
    }

    pub(crate) fn another(&self, command: &'static str) -> Self {
        Self::new(command).with_location(self.location.clone())
    }

    /// A command about one record at the same location.
    pub(crate) fn for_record(&self, command: &'static str, record: &RecordHandle) -> Self {
        let beside = record.connection().filter(|_| !record.embeds_connection());
        self.another(command)
            .argument(record.to_string())
            .option("connection-id", beside)
    }

    /// The command that gets a credential for a server.
    pub(super) fn connect_command(&self, provider: &ProviderUrl) -> Self {
        let mut line = Self::new("connect").argument(provider.as_str());
        let kept = self
            .location
            .iter()
            .filter(|(name, _)| *name == "cache-root");
        line.location = kept.cloned().collect();
        line
    }

    pub(super) fn grant(&self) -> Option<&str> {
        let mut location = self.location.iter();
        let named = location.find(|(name, _)| *name == "grant");
        named.map(|(_, grant)| grant.as_str())
    }

    pub(super) fn command(&self) -> &'static str {
        self.command
    }

    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.options.iter();
        all.filter(move |(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Adds the options to a request, each under its REST name.
    pub(crate) fn add_params_to(&self, mut question: Get) -> CommandResult<Get> {
        for (name, value) in &self.options {
            match *name {
                "filter" => {
                    let (name, value) = filter::param(value)?;
                    question.push(name, value);
                }
                "expand-limit" => {
                    let (name, value) = filter::expand_limit(value)?;
                    question.push(name, value);
                }
                // It names the route.
                "mode" => {}
                // A record's own id has said it already.
                "connection-id"
                    if question
                        .params()
                        .iter()
                        .any(|(name, _)| name == "connection_id") => {}
                name => question.push(name.replace('-', "_"), value),
            }
        }
        Ok(question)
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pdpp {}", self.command)?;
        // After `--` nothing is taken for an option.
        let guarded = self.arguments.iter().any(|text| text.starts_with('-'));
        if !guarded {
            for argument in &self.arguments {
                write!(f, " {}", quoted(argument))?;
            }
        }
        for (name, value) in self.options.iter().chain(&self.location) {
            write!(f, " {}", Self::option_text(name, value))?;
        }
        for flag in &self.flags {
            write!(f, " --{flag}")?;
        }
        if guarded {
            f.write_str(" --")?;
            for argument in &self.arguments {
                write!(f, " {}", quoted(argument))?;
            }
        }
        Ok(())
    }
}

/// A word as a shell takes it. What would not show on a terminal is written by its number.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().all(is_visible) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut octal = String::new();
    for c in word.chars() {
        if is_visible(c) && !matches!(c, '\\' | '\'') {
            octal.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a String cannot fail.
            let _ = write!(octal, "\\0{byte:03o}");
        }
    }
    format!("\"$(printf %b '{octal}')\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_parameters_under_their_rest_names() {
        let line = CommandLine::new("query")
            .argument("messages")
            .option("connection-id", Some("mail-work"))
            .option("limit", Some(5))
            .options("filter", &["size>=10".to_owned(), "read=true".to_owned()])
            .options("expand-limit", &["files=3".to_owned()])
            .option("cursor", None::<&str>);
        let question = line.add_params_to(Get::v1(["streams", "messages", "records"]));
        assert_eq!(
            question.unwrap().target(),
            "/v1/streams/messages/records?connection_id=mail-work&limit=5&filter[size][gte]=10&filter[read]=true&expand_limit[files]=3"
        );
    }

    #[test]
    fn a_continuation_keeps_everything_but_where_it_was() {
        let line = CommandLine::new("query")
            .argument("messages")
            .option("changes-since", Some("beginning"))
            .option("limit", Some(2))
            .with_location(vec![("grant", "grt_1".to_owned())]);
        assert_eq!(
            line.next_page("-ab").to_string(),
            "pdpp query messages --limit 2 --cursor=-ab --grant grt_1"
        );
        let record = RecordHandle::new(Some("a:b"), "notes", "n/1").unwrap();
        let text = line.for_record("fetch", &record).to_string();
        assert!(text.starts_with("pdpp fetch pdpp://record/"), "{text}");
        assert!(
            text.ends_with(" --connection-id a:b --grant grt_1"),
            "{text}"
        );
    }

    #[test]
    fn what_is_printed_is_what_a_shell_passes_on() {
        for word in [
            "plain",
            "",
            "two words",
            "it's",
            "$HOME `id` \"x\" \\ * ; & | ~ # !",
            "\u{e9}t\u{e9} \u{6771}\u{4eac}",
            "esc \u{1b}[31m and \\ and ' and \u{202e}rtl",
            "line\nline\tend",
        ] {
            let script = format!("printf %s {}", quoted(word));
            let ran = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), word, "{script}");
            assert!(script.chars().all(is_visible), "{script}");
        }
    }

    #[test]
    fn words_that_look_like_options_stay_arguments() {
        let line = CommandLine::new("search")
            .argument("-draft")
            .option("limit", Some(1));
        assert_eq!(line.to_string(), "pdpp search --limit 1 -- -draft");
    }
}
