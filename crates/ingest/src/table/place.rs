//! Where a table goes: into a declared stream that has its columns, or into a source of its own, called after its file.

use contract::declaration::Declaration;
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use store::catalog::{Connection, NewConnection};
use store::{Result, Store, StoreError};

use super::{Inferred, TableColumns, slug};
use crate::exports::Export;
use crate::input::Format;

/// A declared connector with the fields of its streams.
pub struct DeclaredSource<'a> {
    pub connector: &'a ConnectorKey,
    pub streams: Vec<(&'a StreamName, Vec<&'a str>)>,
}

impl<'a> From<&'a Declaration> for DeclaredSource<'a> {
    fn from(declaration: &'a Declaration) -> Self {
        let streams = declaration.streams.iter().map(|stream| {
            let fields = stream.fields.iter().map(|field| field.name.as_str());
            (&stream.name, fields.collect())
        });
        Self {
            connector: declaration.connector_key(),
            streams: streams.collect(),
        }
    }
}

/// Where the tables of a file belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TablePlace {
    /// Nothing that is declared has their columns.
    New,
    Known(KnownStream),
    /// Several streams have them, or what they share says little: it takes the owner to decide.
    Unclear,
}

/// A stream that has the columns of a table; nothing if the tables of a file find theirs themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownStream {
    pub connector: ConnectorKey,
    pub stream: Option<StreamName>,
    /// Whether it has just these columns.
    is_exact: bool,
}

/// Finds where the tables of a file belong. `title` is what people call it.
pub fn place(
    tables: &[TableColumns],
    (title, format): (&str, Option<Format>),
    declared: &[DeclaredSource<'_>],
) -> TablePlace {
    let known = match tables {
        [table] => streams_with(&table.columns, declared),
        tables => connectors_with(tables, declared),
    };
    // One column that both have, such as an id, says little. So do some of the members of lines, which need not be alike.
    let has_columns = tables.iter().any(|table| table.columns.len() > 1);
    let says_enough =
        |found: &KnownStream| has_columns && (found.is_exact || format != Some(Format::Jsonl));
    match best(&known, title) {
        None if known.is_empty() => TablePlace::New,
        Some(found) if says_enough(found) => TablePlace::Known(found.clone()),
        _ => TablePlace::Unclear,
    }
}

/// The declared streams that have most of the columns. What an importer of ours fills must have all of them: a few names that
/// both have, such as `id` and `name`, do not make a table part of a chat.
fn streams_with(names: &[String], declared: &[DeclaredSource<'_>]) -> Vec<KnownStream> {
    let mut known = Vec::new();
    for source in declared {
        let mut exports = Export::ALL.iter();
        let is_export = exports.any(|export| export.connector_key() == source.connector.as_str());
        let least = if is_export {
            names.len()
        } else {
            names.len() / 2 + 1
        };
        for (stream, fields) in &source.streams {
            let own = columns_in(names, fields);
            if own >= least {
                known.push(KnownStream {
                    connector: source.connector.clone(),
                    stream: Some((*stream).clone()),
                    is_exact: own == names.len() && made_of(fields, names),
                });
            }
        }
    }
    known
}

/// The declared connectors that have streams for most of the tables of a file, called like them.
fn connectors_with(tables: &[TableColumns], declared: &[DeclaredSource<'_>]) -> Vec<KnownStream> {
    let known = declared.iter().filter_map(|source| {
        let has = tables.iter().filter(|table| {
            let mut streams = source.streams.iter();
            let stream = streams.find(|(name, _)| name.as_str() == table.stream);
            stream.is_some_and(|(_, fields)| {
                2 * columns_in(&table.columns, fields) > table.columns.len()
            })
        });
        let has = has.count();
        (2 * has > tables.len()).then(|| KnownStream {
            connector: source.connector.clone(),
            stream: None,
            is_exact: has == tables.len() && source.streams.len() == tables.len(),
        })
    });
    known.collect()
}

fn columns_in(names: &[String], fields: &[&str]) -> usize {
    let own = names.iter().filter(|name| fields.contains(&name.as_str()));
    own.count()
}

/// Whether the fields of a stream are these columns, and at most the one that a hash of the row fills.
fn made_of(fields: &[&str], columns: &[String]) -> bool {
    let others = fields
        .iter()
        .filter(|field| !columns.iter().any(|column| column == *field));
    others.count() <= 1
}

/// The only place for a table; of several, the only one that has just its columns, or that is called like it.
fn best<'k>(known: &'k [KnownStream], title: &str) -> Option<&'k KnownStream> {
    let only = |is_meant: &dyn Fn(&KnownStream) -> bool| {
        let mut meant = known.iter().filter(|one| is_meant(one));
        meant.next().filter(|_| meant.next().is_none())
    };
    let slug = slug(title);
    only(&|_| true)
        .or_else(|| only(&|one| one.is_exact))
        .or_else(|| only(&|one| one.connector.as_str() == slug))
}

/// What people may call what a file holds: its name without endings.
pub fn title(file_name: &str) -> &str {
    let stem = file_name.split_once('.');
    stem.map_or(file_name, |(stem, _)| stem)
}

/// A key for a connector and its connection that neither has yet.
pub fn free_key(title: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let slug = slug(title);
    let numbered = (2..).map(|number| format!("{slug}-{number}"));
    let mut keys = std::iter::once(slug.clone()).chain(numbered);
    keys.find(|key| !is_taken(key)).unwrap_or(slug)
}

impl Inferred {
    /// The stream of all rows, if there is only one.
    pub fn stream(&self) -> Option<StreamName> {
        match self.tables.as_slice() {
            [table] => StreamName::parse(&table.stream).ok(),
            _ => None,
        }
    }

    /// Declares the connector, and adds a connection that is called like it.
    pub fn connect(&self, store: &dyn Store) -> Result<Connection> {
        let declaration = Declaration::parse(&self.declaration).map_err(StoreError::Declaration)?;
        store.declare(&declaration)?;
        let key = declaration.connector_key();
        store.add_connection(NewConnection {
            connector: key.clone(),
            name: declaration.display_name.clone(),
            id: ConnectionId::parse(key.as_str()).ok(),
        })
    }
}
