//! `pdpp schema`: what may be read, and what each field accepts.

use std::cell::Cell;

use clap::Args;
use contract::schema::{
    CompactSchema, CompactStream, GrantedConnection, SchemaAnswer, StreamMetadata,
};
use contract::upstream::Get;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::output::visible;
use crate::reading::{CommandLine, Reading, Source};
use crate::render::{Lines as _, columns, one_line};
use crate::style::Style;

/// Show what may be read: the streams, or the fields of one
///
/// With --stream: its fields, which of them are searched, and what each accepts in --filter and `pdpp aggregate`.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp schema --stream messages")]
pub(crate) struct Options {
    /// Only this stream, in detail
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Only this connection
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// full: everything about one stream of one connection
    #[arg(long, value_name = "HOW")]
    detail: Option<String>,
    /// compact: a short text per field
    #[arg(long, value_name = "HOW")]
    view: Option<String>,
    #[command(flatten)]
    source: Source,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let line = CommandLine::new("schema")
        .option("stream", options.stream.as_ref())
        .option("connection-id", options.connection_id.as_ref())
        .option("detail", options.detail.as_ref())
        .option("view", options.view.as_ref());
    let question = line.add_params_to(Get::v1(["schema"]))?;
    let reading = Reading::open(&options.source, "pdpp schema", line, context)?;
    let style = context.output.style();
    let in_detail = options.stream.is_some();
    let is_empty = Cell::new(false);
    reading.show(question, |answer: &SchemaAnswer| {
        let (schema, whole) = match answer {
            SchemaAnswer::Compact(schema) => (schema.clone(), Vec::new()),
            SchemaAnswer::Full(schema) => {
                let streams = schema.connectors.iter().flat_map(|one| &one.streams);
                (schema.compact(), streams.collect())
            }
        };
        let rows = rows(&schema);
        is_empty.set(rows.is_empty());
        if in_detail {
            let streams: Vec<String> = rows
                .iter()
                .enumerate()
                .map(|(at, row)| row.detail(whole.get(at).copied(), &reading.line, style))
                .collect();
            return streams.join("\n");
        }
        index(&rows, &reading.line, style)
    })?;
    if is_empty.get() {
        reading.print_first_steps();
    }
    Ok(())
}

/// A stream of one connector.
struct Row<'a> {
    connector: &'a str,
    stream: &'a CompactStream,
    connections: &'a [GrantedConnection],
}

fn rows(schema: &CompactSchema) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for connector in &schema.connectors {
        let key = connector
            .connector_key
            .as_deref()
            .or(connector.connector_id.as_deref());
        for stream in &connector.streams {
            let own = stream.granted_connections.as_deref();
            let shared = connector.granted_connections.as_deref();
            rows.push(Row {
                connector: key.unwrap_or_default(),
                stream,
                connections: own.or(shared).unwrap_or_default(),
            });
        }
    }
    rows
}

/// Every stream on a line.
fn index(rows: &[Row<'_>], line: &CommandLine, style: Style) -> String {
    let Some(first) = rows.first() else {
        return "Nothing may be read here yet.\n".to_owned();
    };
    let heads = ["STREAM", "CONNECTOR", "FIELDS", "CONNECTIONS"].map(str::to_owned);
    let row = |row: &Row<'_>| {
        [
            visible(&row.stream.name),
            visible(row.connector),
            row.stream.field_capabilities.len().to_string(),
            labels(row.connections),
        ]
    };
    let table: Vec<_> = std::iter::once(heads).chain(rows.iter().map(row)).collect();
    let mut text = columns(&table, 0, style);
    text.push_str("\nThe fields of a stream and what they accept:\n");
    let detail = line
        .another("schema")
        .option("stream", Some(&first.stream.name));
    text.push_command("  ", &detail, style);
    text.push_str("Records of all streams by words:\n");
    text.push_command("  ", &line.another("search").argument("WORDS"), style);
    text
}

fn labels(connections: &[GrantedConnection]) -> String {
    let label = |one: &GrantedConnection| match &one.display_name {
        Some(name) => format!("{} ({})", visible(&one.connection_id), one_line(name)),
        None => visible(&one.connection_id),
    };
    let labels: Vec<String> = connections.iter().map(label).collect();
    labels.join(", ")
}

impl Row<'_> {
    /// A stream with its fields.
    fn detail(&self, whole: Option<&StreamMetadata>, line: &CommandLine, style: Style) -> String {
        let stream = self.stream;
        let name = style.title(&visible(&stream.name));
        let mut text = format!("{name}  {}\n", style.dim(&visible(self.connector)));
        let list = |names: &[String]| visible(&names.join(", "));
        let facts = [
            (
                "about",
                whole
                    .and_then(|whole| whole.description.as_deref())
                    .map(one_line),
            ),
            ("connections", Some(labels(self.connections))),
            ("key", stream.primary_key.as_deref().map(list)),
            ("sort", stream.cursor_field.as_deref().map(visible)),
            ("views", whole.and_then(views)),
            ("expand", relations(stream)),
        ];
        let facts: Vec<[String; 2]> = facts
            .into_iter()
            .filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.is_empty())?)))
            .map(|(name, fact)| [name.to_owned(), fact])
            .collect();
        text.push_str(&columns(&facts, 2, style));
        let heads = ["FIELD", "TYPE", "ROLE", "SEARCH", "FILTER", "AGGREGATE"].map(str::to_owned);
        let fields = stream.field_capabilities.iter();
        let fields = fields.map(|(name, flags)| field(name, flags));
        let table: Vec<_> = std::iter::once(heads).chain(fields).collect();
        text.push('\n');
        text.push_str(&columns(&table, 2, style));
        text.push_str("\nIts records:\n");
        let connection = self.connections.first();
        let query = line
            .another("query")
            .argument(&stream.name)
            .option("connection-id", connection.map(|one| &one.connection_id));
        text.push_command("  ", &query, style);
        text
    }
}

fn views(stream: &StreamMetadata) -> Option<String> {
    let views = stream.views.as_ref()?;
    let views: Vec<&str> = views.iter().map(|view| view.id.as_str()).collect();
    Some(visible(&views.join(", ")))
}

fn relations(stream: &CompactStream) -> Option<String> {
    let all = stream.expand_capabilities.as_ref()?;
    let names: Vec<&str> = all
        .iter()
        .filter(|one| one.usable != Some(false))
        .map(|one| one.name.as_str())
        .collect();
    Some(visible(&names.join(", ")))
}

/// The flags of a field in columns.
fn field(name: &str, flags: &str) -> [String; 6] {
    let mut columns = [const { String::new() }; 6];
    columns[0] = visible(name);
    let mut add = |column: usize, text: &str| {
        let cell: &mut String = &mut columns[column];
        if !cell.is_empty() {
            cell.push(' ');
        }
        cell.push_str(&visible(text));
    };
    for flag in flags.split(',') {
        match flag.split_once('=') {
            Some(("t", kind)) => add(1, kind),
            Some(("role", role)) => add(2, role),
            Some(("r", operators)) if !operators.contains(':') => {
                for operator in operators.split('|') {
                    add(4, sign(operator));
                }
            }
            Some(("a", aggregates)) => add(5, &aggregates.replace('|', " ")),
            None if flag == "lex" => add(3, "words"),
            None if flag == "sem" => add(3, "meaning"),
            None if flag == "eq" => add(4, "="),
            None if flag == "r" => add(4, ">= > <= <"),
            _ => {}
        }
    }
    columns
}

fn sign(operator: &str) -> &str {
    match operator {
        "gte" => ">=",
        "gt" => ">",
        "lte" => "<=",
        "lt" => "<",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_columns() {
        let flags = "t=string|null,role=title,eq,r=gte|lt,lex,sem,a=max|min";
        assert_eq!(
            field("at", flags),
            [
                "at",
                "string|null",
                "title",
                "words meaning",
                "= >= <",
                "max min"
            ]
        );
        let refused = "g=false,eq=unusable:field_not_granted,r=unusable:x";
        assert_eq!(field("a", refused), ["a", "", "", "", "", ""]);
    }
}
