//! Where an import goes: the connection, and the stream of lines that name none.

use std::str::FromStr;

use contract::id::{ConnectorKey, IdError, StreamName};
use ingest::Export;
use rest::owner::wire::{Connection, Sources};

use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::first_steps;

/// `CONNECTOR/STREAM`, as `--as` takes it.
#[derive(Debug, Clone)]
pub(super) struct StreamPath {
    connector: ConnectorKey,
    stream: StreamName,
}

impl FromStr for StreamPath {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (connector, stream) = text
            .split_once('/')
            .ok_or("it takes the form CONNECTOR/STREAM, for example mail/messages")?;
        let to_text = |error: IdError| error.to_string();
        Ok(Self {
            connector: ConnectorKey::parse(connector).map_err(to_text)?,
            stream: StreamName::parse(stream).map_err(to_text)?,
        })
    }
}

pub(super) enum WriteTarget {
    Connection(Connection),
    /// A dry run for which a connection of that name would be added.
    WouldBeAdded {
        export: Export,
        name: String,
    },
}

impl WriteTarget {
    /// What people call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Connection(connection) => &connection.display_name,
            Self::WouldBeAdded { name, .. } => name,
        }
    }
}

pub(super) struct ImportTarget {
    pub(super) destination: WriteTarget,
    pub(super) stream: Option<StreamName>,
}

impl ImportTarget {
    /// A connection that was found, whose streams the input knows.
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            destination: WriteTarget::Connection(connection),
            stream: None,
        }
    }

    /// The only connection of a connector, and one of its streams, or all of them.
    pub(super) fn of_stream(
        sources: &Sources,
        connector: &ConnectorKey,
        stream: Option<&StreamName>,
        context: &Context,
    ) -> CommandResult<Self> {
        let mut target = Self::new(connection_of(sources, connector, context)?);
        target.stream = stream.cloned();
        Ok(target)
    }

    /// Finds the connection that is meant, and checks the stream against it.
    pub(super) fn resolve(
        sources: &Sources,
        path: Option<&StreamPath>,
        named: Option<&str>,
        context: &Context,
    ) -> CommandResult<Self> {
        let connection = match (named, path) {
            (Some(named), _) => choice::connection_named(sources, named, context)?,
            (None, Some(path)) => connection_of(sources, &path.connector, context)?,
            (None, None) => choice::choose_one(sources.connections.clone(), || {
                let failure = Failure::new("there is no connection to import into");
                failure.hints(first_steps::next_steps(sources, context))
            })?,
        };
        if let Some(path) = path
            && path.connector != connection.connector_key
        {
            return Err(Failure::new(format!(
                "connection '{}' is one of connector '{}', not of '{}'",
                connection.connection_id, connection.connector_key, path.connector
            )));
        }
        let stream = match path {
            Some(path) => Some(choice::declared_stream(
                sources,
                &connection,
                path.stream.as_str(),
            )?),
            None => None,
        };
        Ok(Self {
            destination: WriteTarget::Connection(connection),
            stream,
        })
    }
}

fn connection_of(
    sources: &Sources,
    connector: &ConnectorKey,
    context: &Context,
) -> CommandResult<Connection> {
    let mut declared = sources.connectors.iter();
    if !declared.any(|one| one.connector_key == *connector) {
        return Err(choice::unknown_connector(sources, connector, context));
    }
    let mut own = sources.connections.clone();
    own.retain(|connection| connection.connector_key == *connector);
    choice::choose_one(own, || {
        let add = context
            .command("connections add")
            .argument(connector.as_str());
        let add = add.option("name", Some("NAME"));
        Failure::new(format!("connector '{connector}' has no connection yet"))
            .hint(format!("add one with `{add}`"))
    })
}
