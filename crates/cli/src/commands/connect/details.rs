//! What a server is asked for, from the command line: the authorization details of RFC 9396.

use std::path::PathBuf;

use clap::Args;
use grants::{Selection, SelectionError};
use serde_json::{Map, Value, json};

use crate::failure::{CommandResult, Failure};
use crate::file;
use crate::output::{Output, visible};
use crate::reading::CommandLine;

/// What these details are.
const TYPE: &str = "https://pdpp.dev/data-access";
/// What an agent reads for.
const PURPOSE: &str = "https://pdpp.dev/purpose/agent_context";

/// What is asked for. Nothing leaves the choice to the owner.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to ask for")]
pub(super) struct RequestedAccess {
    /// A source, by the id its declaration has (may be repeated)
    #[arg(long, value_name = "ID")]
    source: Vec<String>,
    /// Only this stream of the source (may be repeated)
    #[arg(long, value_name = "NAME", requires = "source")]
    stream: Vec<String>,
    /// Only this connection of the source (may be repeated)
    #[arg(long, value_name = "ID", requires = "source", alias = "connection-id")]
    connection: Vec<String>,
    /// Only these fields, of exactly one stream
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "stream")]
    fields: Vec<String>,
    /// Only records from then on: RFC 3339 or a date
    #[arg(long, value_name = "T", requires = "source")]
    since: Option<String>,
    /// Only records before then: RFC 3339 or a date
    #[arg(long, value_name = "T", requires = "source")]
    until: Option<String>,
    /// Only records that meet this condition, as in `pdpp grant create` (may be repeated)
    #[arg(long = "where", value_name = "FIELD=VALUE", requires = "stream")]
    only: Vec<String>,
    /// No record that meets this condition, whatever else allows it (may be repeated)
    #[arg(long, value_name = "FIELD=VALUE", requires = "stream")]
    except: Vec<String>,
    /// Only a part of a field, as in `pdpp grant create` (may be repeated)
    #[arg(long, value_name = "FIELD=HOW", requires = "stream")]
    redact: Vec<String>,
    /// Anything richer: RFC 9396 authorization details, a JSON file ('-' reads stdin)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["source", "stream", "connection", "fields", "since", "until", "only", "except", "redact"]
    )]
    details: Option<PathBuf>,
}

impl RequestedAccess {
    /// The details to send, free of mistakes that can be told without the server's catalog.
    pub(super) fn details(&self, output: Output) -> CommandResult<Option<Value>> {
        let (text, file) = match &self.details {
            Some(path) => (file::read(path)?, Some(path)),
            None if self.source.is_empty() => return Ok(None),
            None => (self.entries(output)?.to_string(), None),
        };
        Selection::from_details(&text).map_err(|mistakes| refused(mistakes, file, output))?;
        let details: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("the details are not JSON: {error}")))?;
        Ok(Some(match details {
            Value::Object(_) => json!([details]),
            many => many,
        }))
    }

    /// The command that asks for the same.
    pub(super) fn add_to(&self, line: CommandLine) -> CommandLine {
        let fields = (!self.fields.is_empty()).then(|| self.fields.join(","));
        line.options("source", &self.source)
            .options("stream", &self.stream)
            .options("connection", &self.connection)
            .option("fields", fields)
            .option("since", self.since.as_ref())
            .option("until", self.until.as_ref())
            .options("where", &self.only)
            .options("except", &self.except)
            .options("redact", &self.redact)
            .option("details", self.details.as_ref().map(|path| path.display()))
    }

    /// One entry for each source.
    fn entries(&self, output: Output) -> CommandResult<Value> {
        let several = [&self.stream, &self.connection];
        if self.source.len() > 1 && several.iter().any(|names| !names.is_empty()) {
            let message = "--stream and --connection are of one source, and several are named";
            return Err(misused(
                message,
                "name one --source, or write --details FILE",
            ));
        }
        if !self.fields.is_empty() && self.stream.len() != 1 {
            let message = "--fields needs exactly one --stream";
            return Err(misused(
                message,
                "name one --stream, or write --details FILE",
            ));
        }
        if let Some(id) = self.source.iter().find(|id| !id.contains(':')) {
            let message = format!("'{}' is no id of a source", visible(id));
            let hint = "an id is an address, such as https://registry.example.org/connectors/mail; it is `source.id` of the declaration the server has";
            return Err(misused(&message, hint));
        }
        let streams = self.streams(output)?;
        let entry = |id: &String| {
            let detail = json!({
                "type": TYPE,
                "source": {"id": id},
                "purpose_code": PURPOSE,
                "access_mode": "continuous",
                "streams": streams,
            });
            detail
        };
        Ok(self.source.iter().map(entry).collect())
    }

    fn streams(&self, output: Output) -> CommandResult<Vec<Value>> {
        let mut terms = Map::new();
        for (member, flag, texts) in [
            ("where", "--where", &self.only),
            ("except", "--except", &self.except),
        ] {
            if !texts.is_empty() {
                let rules = grants::rules_for_details(flag, texts)
                    .map_err(|mistakes| refused(mistakes, None, output))?;
                terms.insert(member.to_owned(), json!(rules));
            }
        }
        if !self.redact.is_empty() {
            let redact = self.redact.iter();
            let redact = redact.map(|text| text.rsplit_once('=').unwrap_or((text.as_str(), "")));
            let redact: Map<String, Value> = redact
                .map(|(field, how)| (field.to_owned(), how.into()))
                .collect();
            terms.insert("redact".to_owned(), redact.into());
        }
        if !self.connection.is_empty() {
            terms.insert("instance_ids".to_owned(), json!(self.connection));
        }
        if !self.fields.is_empty() {
            terms.insert("fields".to_owned(), json!(self.fields));
        }
        let bounds = [("since", &self.since), ("until", &self.until)];
        let bounds = bounds
            .iter()
            .filter_map(|(name, at)| Some((*name, at.as_ref()?)));
        let range: Map<String, Value> = bounds
            .map(|(name, at)| (name.to_owned(), json!(at)))
            .collect();
        if !range.is_empty() {
            terms.insert("time_range".to_owned(), range.into());
        }
        let stream = |name: &str| {
            let mut stream = terms.clone();
            stream.insert("name".to_owned(), name.into());
            Value::Object(stream)
        };
        if self.stream.is_empty() {
            return Ok(vec![stream("*")]);
        }
        Ok(self.stream.iter().map(|name| stream(name)).collect())
    }
}

/// Prints the mistakes of what is asked for, in a file or on the command line.
fn refused(mistakes: SelectionError, file: Option<&PathBuf>, output: Output) -> Failure {
    for mistake in mistakes.0 {
        let mistake = visible(&mistake.to_string());
        output.problem(&match file {
            Some(file) => format!("{}: {mistake}", file.display()),
            None => format!("error: {mistake}"),
        });
    }
    match file {
        Some(_) => Failure::REPORTED,
        None => Failure::MISUSED,
    }
}

fn misused(message: &str, hint: &str) -> Failure {
    Failure::coded(2, message, hint)
}
