//! Known exports: which of them the files are, and the connections they go to, which are added if there are none.

use contract::declaration::Declaration;
use ingest::survey::{connection_name, of_account};
use ingest::{Export, Format};
use rest::owner::wire::{ConnectExport, Connection, Sources};

use super::Options;
use super::files::ImportFile;
use super::target::{ImportTarget, WriteTarget};
use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::{OwnerClient, RequestPath};

/// Files of one kind, which go into one connection together.
pub(super) struct Group {
    /// None if they are no known export: then they say themselves what they hold.
    pub(super) export: Option<Export>,
    pub(super) files: Vec<ImportFile>,
}

impl Group {
    /// Whether the files are what a tap prints.
    pub(super) fn is_tap(&self) -> bool {
        self.files
            .iter()
            .all(|file| file.format() == Some(Format::Singer))
    }
}

/// Sorts files by what they are. Within a kind, those that others refer to come first. What is no export and was named goes where
/// the command says, so nothing else may stand beside it. Where it says nothing, each table finds its own place.
pub(super) fn grouped(files: Vec<ImportFile>, is_told: bool) -> CommandResult<Vec<Group>> {
    let known = files.iter().find(|file| file.export().is_some());
    let is_other = |file: &&ImportFile| file.export().is_none() && !file.is_member();
    let other = files.iter().find(is_other);
    if let (Some(known), Some(other)) = (known, other) {
        let message = format!(
            "{} is {} and {} is no export that is recognised",
            known.name().name,
            known.export().map(Export::title).unwrap_or_default(),
            other.name().name
        );
        return Err(Failure::new(message).hint("import each kind with a command of its own"));
    }
    let mut groups: Vec<Group> = Vec::new();
    for file in files {
        let export = file.export();
        let is_alone = !is_told && file.is_table();
        let same = |group: &&mut Group| {
            group.export == export
                && (!is_alone || group.files.iter().any(|one| one.is_with(&file)))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.files.push(file),
            None => groups.push(Group {
                export,
                files: vec![file],
            }),
        }
    }
    for group in &mut groups {
        group.files.sort_by_key(|file| file.rank);
    }
    Ok(groups)
}

/// What is needed to find the connection of an export.
pub(super) struct ExportTarget<'a> {
    pub(super) export: Export,
    /// The account that it is of, where its files name it.
    pub(super) account: Option<&'a str>,
    pub(super) options: &'a Options,
    pub(super) sources: &'a Sources,
    pub(super) owner: &'a OwnerClient,
    pub(super) context: &'a Context,
}

impl ExportTarget<'_> {
    /// Finds the connection, or adds it, with the connector if need be. A dry run adds nothing.
    pub(super) fn resolve(&self) -> CommandResult<ImportTarget> {
        let (export, options) = (self.export, self.options);
        if options.stream.is_some() {
            let message = format!(
                "the input is {}, which knows its streams itself",
                export.title()
            );
            return Err(Failure::new(message).hint("leave out --as"));
        }
        let bundled = export
            .bundled()
            .map_err(|mistakes| Failure::new(mistakes.to_string()))?;
        if !options.dry_run {
            self.connect(None)?;
        }
        let existing = self.existing(&bundled)?;
        if let Some(connection) = existing {
            return Ok(ImportTarget::new(connection));
        }
        let output = self.context.output;
        let name = connection_name(&bundled.display_name, self.account);
        if options.dry_run {
            output.note(&format!(
                "Recognised {}. It would go into a new connection '{name}'.",
                export.title()
            ));
            return Ok(ImportTarget {
                destination: WriteTarget::WouldBeAdded { export, name },
                stream: None,
            });
        }
        let Some(connection) = self.connect(Some(name))? else {
            return Err(Failure::new(format!(
                "no connection was added for {}",
                export.title()
            )));
        };
        output.note(&format!(
            "Recognised {}. Added the connection '{}' for it.",
            export.title(),
            connection.connection_id
        ));
        Ok(ImportTarget::new(connection))
    }

    /// The connection that is named, or that of the account, or the only one of the connector.
    fn existing(&self, bundled: &Declaration) -> CommandResult<Option<Connection>> {
        let key = bundled.connector_key();
        if let Some(named) = &self.options.connection {
            let connection = choice::connection_named(self.sources, named, self.context)?;
            if connection.connector_key != *key {
                return Err(Failure::new(format!(
                    "connection '{}' is one of connector '{}'; {} goes into one of '{key}'",
                    connection.connection_id,
                    connection.connector_key,
                    self.export.title()
                ))
                .hint("leave out --connection to have one made"));
            }
            return Ok(Some(connection));
        }
        let mut own = self.sources.connections.clone();
        own.retain(|one| one.connector_key == *key);
        let account = (bundled.display_name.as_str(), self.account);
        let own = of_account(own, |one| &one.display_name, account);
        if own.is_empty() {
            return Ok(None);
        }
        choice::choose_one(own, || Failure::REPORTED).map(Some)
    }

    /// Declares the connector where that is needed, and adds a connection of that name if there is one.
    fn connect(&self, name: Option<String>) -> CommandResult<Option<Connection>> {
        let target = RequestPath::new("/owner/exports").segment(self.export.as_str());
        Ok(self.owner.post(&target, &ConnectExport { name })?)
    }
}
