//! Tables of which nothing is declared: what they are found to be is shown, confirmed, declared and connected.

use std::path::{Path, PathBuf};

use clap::Args;
use contract::id::{ConnectionId, ConnectorKey};
use ingest::Input;
use ingest::table::{
    self, DeclaredSource, Inferred, InferredField, InferredTable, KnownStream, TablePlace, Told,
    ToldType, WrittenDate,
};
use rest::owner::wire::{Connection, Connector, Declared, NewConnection, Sources};

use super::Options;
use super::files::ImportFile;
use super::target::ImportTarget;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;
use crate::owner::{OwnerClient, RequestPath};
use crate::render::columns;

/// Of an example that is shown.
const EXAMPLE_CHARS: usize = 40;
/// Of a row that is shown.
const SAMPLE_CHARS: usize = 2_000;
/// What is said of a table, instead of what would be guessed
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TableOptions {
    /// Of a table of which nothing is declared: the column that identifies rows
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// … what stands between its cells
    #[arg(long, value_name = "SIGN", value_parser = sign)]
    delimiter: Option<char>,
    /// … no row of it names the columns
    #[arg(long)]
    no_header: bool,
    /// … the sign before the fraction of its numbers
    #[arg(long, value_name = "SIGN", value_parser = sign)]
    decimal: Option<char>,
    /// … how its dates are written: dmy, mdy or ymd
    #[arg(long, value_name = "ORDER", value_parser = dates)]
    dates: Option<WrittenDate>,
    /// … what a column holds: text, integer, number, boolean or date; again for more
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = column_type)]
    types: Vec<(String, ToldType)>,
}

impl TableOptions {
    pub(crate) fn told(&self) -> Told {
        Told {
            key: self.key.clone(),
            delimiter: self.delimiter,
            header: self.no_header.then_some(false),
            decimal: self.decimal,
            dates: self.dates,
            types: self.types.clone(),
        }
    }
}

fn sign(text: &str) -> Result<char, String> {
    let mut signs = text.chars();
    match (signs.next(), signs.next()) {
        _ if text == "tab" => Ok('\t'),
        (Some(sign), None) if sign.is_ascii() => Ok(sign),
        _ => Err("it takes one character, or the word tab".to_owned()),
    }
}

fn dates(text: &str) -> Result<WrittenDate, String> {
    WrittenDate::parse(text).ok_or_else(|| "it takes dmy, mdy or ymd".to_owned())
}

fn column_type(text: &str) -> Result<(String, ToldType), String> {
    let told = text.rsplit_once('=');
    let told = told.and_then(|(column, name)| Some((column.to_owned(), ToldType::named(name)?)));
    told.ok_or_else(|| {
        "it takes COLUMN=TYPE with text, integer, number, boolean or date".to_owned()
    })
}

/// Where a table goes.
pub(super) enum TableTarget {
    /// It is none, or a declared source has its columns: the command says where it goes.
    Declared,
    /// A stream that was found, or made for it.
    Found(ImportTarget),
    /// It was a dry run, and what would be declared is shown.
    Shown,
}

/// What is needed to find out what a table is.
pub(super) struct TableFinder<'a> {
    pub(super) options: &'a Options,
    pub(super) sources: &'a Sources,
    pub(super) owner: &'a OwnerClient,
    pub(super) context: &'a Context,
}

impl TableFinder<'_> {
    pub(super) fn find(&self, files: &[ImportFile]) -> CommandResult<TableTarget> {
        let is_told = self.options.stream.is_some() || self.options.connection.is_some();
        let Some(file) = files
            .iter()
            .find(|file| !file.is_log())
            .filter(|file| !is_told && file.length.is_some())
        else {
            return Ok(TableTarget::Declared);
        };
        let tables = file.tables()?;
        if tables.is_empty() {
            return Ok(TableTarget::Declared);
        }
        let declared: Vec<_> = self.sources.connectors.iter().map(declared).collect();
        match table::place(&tables, (&file.title(), file.format()), &declared) {
            TablePlace::New => self.add(file),
            TablePlace::Known(KnownStream {
                connector, stream, ..
            }) => {
                let stream = stream.as_ref();
                ImportTarget::of_stream(self.sources, &connector, stream, self.context)
                    .map(TableTarget::Found)
            }
            TablePlace::Unclear => Ok(TableTarget::Declared),
        }
    }

    /// Declares the table and adds a connection for it, if the owner agrees.
    fn add(&self, file: &ImportFile) -> CommandResult<TableTarget> {
        let output = self.context.output;
        let title = file.title();
        let told = self.options.table.told();
        let input = file.input()?;
        let inferred = infer(input, file.path(), (&title, &self.free_key(&title)), &told)?;
        show(&inferred, self.context);
        if self.options.dry_run {
            return Ok(TableTarget::Shown);
        }
        if !self.options.yes {
            match output.confirm("Import it like this?") {
                Some(true) => {}
                Some(false) => return Err(Failure::new("nothing was imported").hint(edit_hint())),
                None => {
                    let message =
                        "nothing is declared for this table, and there is no terminal to ask on";
                    let failure = Failure::new(message).hint("--yes imports it as shown above");
                    return Err(failure.hint(edit_hint()));
                }
            }
        }
        let path = RequestPath::new("/owner/declarations");
        let declared: Declared = self.owner.post_text(&path, inferred.declaration.clone())?;
        let connector_key = ConnectorKey::parse(declared.connector_key.as_str())
            .map_err(|error| Failure::new(error.to_string()))?;
        let new = NewConnection {
            connection_id: ConnectionId::parse(connector_key.as_str()).ok(),
            connector_key,
            name: title,
        };
        let connections = RequestPath::new("/owner/connections");
        let connection: Connection = self.owner.post(&connections, &new)?;
        output.note(&format!(
            "Added the connection '{}' for it.",
            connection.connection_id
        ));
        let mut target = ImportTarget::new(connection);
        target.stream = inferred.stream();
        Ok(TableTarget::Found(target))
    }

    /// A key that no connector and no connection has yet.
    fn free_key(&self, title: &str) -> String {
        table::free_key(title, |key| {
            let mut connectors = self.sources.connectors.iter();
            let mut connections = self.sources.connections.iter();
            connectors.any(|one| one.connector_key.as_str() == key)
                || connections.any(|one| one.connection_id.as_str() == key)
        })
    }
}

fn declared(connector: &Connector) -> DeclaredSource<'_> {
    let streams = connector.streams.iter();
    DeclaredSource {
        connector: &connector.connector_key,
        streams: streams
            .map(|stream| {
                (
                    &stream.name,
                    stream.fields.iter().map(String::as_str).collect(),
                )
            })
            .collect(),
    }
}

fn edit_hint() -> &'static str {
    "`pdpp declare --from FILE > d.json` writes the declaration for editing"
}

/// Looks at all rows of a file that stands there.
pub(crate) fn infer(
    input: Input,
    path: &Path,
    title_and_key: (&str, &str),
    told: &Told,
) -> CommandResult<Inferred> {
    let inferred = table::infer(input, log_beside(path), title_and_key, told);
    inferred.map_err(|error| Failure::new(error.to_string()))
}

/// What was written beside a database and is not yet in it.
pub(super) fn log_beside(path: &Path) -> Option<PathBuf> {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    Some(PathBuf::from(log)).filter(|log| log.is_file())
}

/// Shows what a table was found to be.
pub(crate) fn show(inferred: &Inferred, context: &Context) {
    let output = context.output;
    output.note("Nothing is declared for this table. It would become:");
    for table in &inferred.tables {
        if let Some(name) = &table.name {
            let stream = visible(&table.stream);
            output.note(&format!("Stream '{stream}', of {}:", visible(name)));
        }
        show_fields(table, context);
    }
    show_doubts(inferred, context);
}

fn show_fields(table: &InferredTable, context: &Context) {
    let output = context.output;
    let heads = ["FIELD", "TYPE", "ROLE", "EXAMPLE"].map(str::to_owned);
    let row = |field: &InferredField| {
        let example: String = field.example.chars().take(EXAMPLE_CHARS).collect();
        let role = field.role.to_owned();
        [
            visible(&field.name),
            visible(&field.kind),
            role,
            visible(&example),
        ]
    };
    let rows = std::iter::once(heads).chain(table.fields.iter().map(row));
    let rows: Vec<_> = rows.collect();
    output.note(columns(&rows, 2, output.style()).trim_end());
    if let Some(delimiter) = &table.delimiter {
        let sign = match delimiter.as_str() {
            "\t" => "a tab".to_owned(),
            sign => format!("'{}'", visible(sign)),
        };
        output.note(&format!("Between cells stands {sign}."));
    }
}

/// Shows the first rows, and what was a guess.
pub(crate) fn show_doubts(inferred: &Inferred, context: &Context) {
    let output = context.output;
    for table in &inferred.tables {
        match &table.name {
            Some(name) => output.note(&format!("The first rows of {}:", visible(name))),
            None => output.note("The first rows:"),
        }
        for sample in &table.samples {
            let shown: String = sample.chars().take(SAMPLE_CHARS).collect();
            output.note(&format!("  {}", visible(&shown)));
        }
    }
    if !inferred.doubts.is_empty() {
        output.note("Guessed:");
    }
    for doubt in &inferred.doubts {
        output.note(&format!("  {}", visible(doubt)));
    }
}
