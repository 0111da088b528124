//! Where an import goes: the connection, and the stream of lines that name none.

use std::str::FromStr;
use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{ConnectorKey, IdError, StreamName};
use ingest::{Input, StreamChoice};
use store::StoreError;
use store::catalog::{Catalog, Connection};

use crate::choice;
use crate::failure::{Failure, Outcome};

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
        let told = |error: IdError| error.to_string();
        Ok(Self {
            connector: ConnectorKey::parse(connector).map_err(told)?,
            stream: StreamName::parse(stream).map_err(told)?,
        })
    }
}

/// Where an import goes.
pub(super) struct Target {
    pub(super) connection: Connection,
    pub(super) declaration: Arc<Declaration>,
    prescribed: Option<StreamName>,
}

impl Target {
    /// Finds the connection that is meant, and checks the stream against it.
    pub(super) fn resolve(
        catalog: &dyn Catalog,
        path: Option<&StreamPath>,
        named: Option<&str>,
    ) -> Outcome<Self> {
        let connection = match (named, path) {
            (Some(named), _) => choice::connection_named(catalog, named)?,
            (None, Some(path)) => connection_of(catalog, &path.connector)?,
            (None, None) => choice::only(catalog.connections(), || {
                Failure::new("there is no connection to import into")
                    .hint("register a source with `pdpp declare FILE`")
                    .hint("add a connection with `pdpp connections add CONNECTOR --name NAME`")
            })?,
        };
        if let Some(path) = path
            && path.connector != connection.connector
        {
            return Err(Failure::new(format!(
                "connection '{}' is one of connector '{}', not of '{}'",
                connection.id, connection.connector, path.connector
            )));
        }
        let prescribed = match path {
            Some(path) => Some(choice::declared_stream(
                catalog,
                &connection,
                path.stream.as_str(),
            )?),
            None => None,
        };
        let declaration = catalog
            .declaration(&connection.connector)
            .ok_or_else(|| StoreError::UnknownConnector(connection.connector.clone()))?;
        Ok(Self {
            connection,
            declaration,
            prescribed,
        })
    }

    /// The stream of an input: prescribed, else called like the file, else the only one declared.
    pub(super) fn stream_for(&self, input: &Input) -> StreamChoice {
        if let Some(stream) = &self.prescribed {
            return StreamChoice::Always(stream.clone());
        }
        let guess = match (
            self.declaration.stream(input.stem()),
            self.declaration.streams.as_slice(),
        ) {
            (Some(stream), _) | (None, [stream]) => Some(stream),
            (None, _) => None,
        };
        match guess {
            Some(stream) => StreamChoice::Unless(stream.name.clone()),
            None => StreamChoice::Named,
        }
    }

    /// Why a file cannot be imported without a stream.
    pub(super) fn no_stream(&self, file: &str) -> Failure {
        let streams = self.declaration.streams.iter();
        let names: Vec<&str> = streams.map(|stream| stream.name.as_str()).collect();
        Failure::new(format!("{file}: nothing tells which stream it belongs to")).hint(format!(
            "pass --as {}/STREAM with one of: {}",
            self.connection.connector,
            names.join(", ")
        ))
    }
}

fn connection_of(catalog: &dyn Catalog, connector: &ConnectorKey) -> Outcome<Connection> {
    if catalog.declaration(connector).is_none() {
        return Err(StoreError::UnknownConnector(connector.clone()).into());
    }
    let mut own = catalog.connections();
    own.retain(|connection| connection.connector == *connector);
    choice::only(own, || {
        Failure::new(format!("connector '{connector}' has no connection yet")).hint(format!(
            "add one with `pdpp connections add {connector} --name NAME`"
        ))
    })
}
