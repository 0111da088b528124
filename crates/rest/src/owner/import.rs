//! An import over the wire: files in, lines of progress and a report out, both at once and neither ever held whole.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::StatusCode;
use contract::declaration::Declaration;
use contract::id::{ConnectionId, StreamName};
use ingest::importer::Stopped;
use ingest::{
    Acceptor, BatchLimits, CsvImporter, Export, Format, Import, ImportError, ImportReport,
    Importer, Input, JsonlImporter, LineForm, StreamChoice,
};
use store::records::Records;
use store::{Store, StoreError};

use super::parcels::{FileName, Parcel, Parcels};
use super::telling::{Teller, told};
use super::wire::{ImportProgress, Imported, Refusal};
use super::{refused, store_problem};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{Ask, Outcome};
use crate::transfer::{BodyReader, discard, incoming};

/// Where an import goes, and how.
struct Plan {
    /// None in a dry run for a known export that has no connection yet.
    connection: Option<ConnectionId>,
    declaration: Arc<Declaration>,
    /// The stream of all lines, whatever they say.
    stream: Option<StreamName>,
    limits: BatchLimits,
    dry: bool,
    /// Whether records that the owner deleted are brought back.
    revives: bool,
    /// Whether rejections name their file.
    names: bool,
}

pub(super) async fn import(ask: Ask) -> Outcome {
    // A refusal is told like any other outcome: the sender is still sending, and must be able to hear it.
    let plan = Plan::of(&ask).map_err(|problem| Refusal {
        message: problem.error.message.clone(),
        hints: Vec::new(),
    });
    // The owner may type an import; it takes as long and as much as it takes.
    let (pump, reader) = incoming(u64::MAX, Duration::MAX);
    let mut body = ask.body;
    tokio::spawn(async move {
        pump.run(&mut body).await;
        discard(body).await;
    });
    let service = ask.service;
    let mut response = told(move |teller| Ok(run(&service, &plan?, reader, teller)));
    *response.status_mut() = StatusCode::OK;
    Ok(response)
}

impl Plan {
    fn of(ask: &Ask) -> Result<Self, Problem> {
        let text = |name| ask.params.text(name);
        let dry = text("dry_run") == Some("true");
        let (connection, declaration) = match text("export").and_then(Export::parse) {
            Some(export) if dry => (None, Arc::new(bundled(export)?)),
            _ => connected(
                &*ask.service.store,
                text("connection_id").unwrap_or_default(),
            )?,
        };
        let stream = text("stream").map(StreamName::parse).transpose();
        let mut limits = BatchLimits::default();
        if let Some(lines) = text("batch_lines") {
            let lines = lines.parse();
            limits.lines = lines.map_err(|_| refused("batch_lines is a number"))?;
        }
        Ok(Self {
            connection,
            declaration,
            stream: stream.map_err(|error| refused(error.to_string()))?,
            limits,
            dry,
            revives: text("revive") == Some("true"),
            names: text("name_files") == Some("true"),
        })
    }
}

/// A connection and what its connector declares.
fn connected(
    store: &dyn Store,
    id: &str,
) -> Result<(Option<ConnectionId>, Arc<Declaration>), Problem> {
    let connection = ConnectionId::parse(id).map_err(|error| refused(error.to_string()))?;
    let found = store.connection(&connection);
    let found = found.ok_or_else(|| StoreError::UnknownConnection(connection.clone()));
    let found = found.map_err(|error| store_problem(&error))?;
    let declaration = store.declaration(&found.connector);
    let declaration = declaration.ok_or(StoreError::UnknownConnector(found.connector));
    let declaration = declaration.map_err(|error| store_problem(&error))?;
    Ok((Some(connection), declaration))
}

/// What a known export would declare.
fn bundled(export: Export) -> Result<Declaration, Problem> {
    Declaration::parse(export.declaration()).map_err(|mistakes| refused(mistakes.to_string()))
}

fn run(service: &Service, plan: &Plan, body: BodyReader, teller: &Teller) -> Imported {
    let store = &*service.store;
    let records: &dyn Records = store;
    let mut import = match &plan.connection {
        Some(connection) if !plan.dry => {
            Import::new(store, connection, plan.limits).with_blobs(store)
        }
        existing => {
            let existing = existing.as_ref().map(|connection| (records, connection));
            Import::dry(existing, &plan.declaration, plan.limits)
        }
    };
    import = import.reviving(plan.revives);
    let stopped = import_all(service, plan, &mut import, (body, teller)).err();
    let report = import.into_report();
    let mut lagging = None;
    if !plan.dry && stopped.is_none() && report.read > report.rejected {
        teller.progress(ImportProgress {
            read: report.read,
            bytes: 0,
            indexing: true,
        });
        // The records are safe whatever happens here.
        lagging = store.settle_index().err().map(|error| error.to_string());
    }
    Imported {
        report,
        stopped,
        lagging,
    }
}

fn import_all(
    service: &Service,
    plan: &Plan,
    import: &mut Import<'_>,
    (body, teller): (BodyReader, &Teller),
) -> Result<(), Refusal> {
    let mut parcels = Parcels::new(body);
    let mut before = 0;
    let broken =
        |error: std::io::Error| refusal(format!("the files did not arrive whole: {error}"));
    while let Some(file) = parcels.next().map_err(broken)? {
        before += import_one(service, plan, import, (file, before, teller))?;
    }
    Ok(())
}

/// Imports one file and says how many bytes it had.
fn import_one(
    service: &Service,
    plan: &Plan,
    import: &mut Import<'_>,
    ((file, parcel), before, teller): ((FileName, Parcel<BodyReader>), u64, &Teller),
) -> Result<u64, Refusal> {
    let name = file.name.as_str();
    let input = match &file.file_name {
        Some(file_name) => Input::from_file(name, file_name, parcel),
        None => Input::from_reader(name, parcel),
    };
    let input = input.map_err(|error| import_refusal(&error))?;
    let format = input.format().map_err(|error| import_refusal(&error))?;
    let choice = StreamChoice::of_input(plan.stream.as_ref(), input.stem(), &plan.declaration);
    match format {
        Format::Csv if choice.stream().is_none() => return Err(no_stream(name, &plan.declaration)),
        Format::Export(export)
            if plan.declaration.connector_key().as_str() != export.connector_key() =>
        {
            return Err(other_connector(name, export, &plan.declaration));
        }
        _ => {}
    }
    let clock = &*service.reading.clock;
    let acceptor = Acceptor::new(&plan.declaration, choice, LineForm::EnvelopeOrBare, clock);
    let consumed = input.consumed();
    let mut importer: Box<dyn Importer> = match format {
        Format::Jsonl => Box::new(JsonlImporter::new(input.into_reader(), &acceptor)),
        Format::Csv => Box::new(CsvImporter::new(input.into_reader(), &acceptor)),
        Format::Export(export) => export.importer(input, &acceptor),
    };
    let mut acknowledged = |report: &ImportReport| {
        teller.progress(ImportProgress {
            read: report.read,
            bytes: before + consumed.load(Ordering::Relaxed),
            indexing: false,
        });
    };
    let named = plan.names.then_some(name);
    let ran = import.run(importer.as_mut(), named, &mut acknowledged);
    ran.map_err(|stopped: Stopped| import_refusal(&stopped.named(name)))?;
    Ok(consumed.load(Ordering::Relaxed))
}

fn import_refusal(error: &ImportError) -> Refusal {
    match error {
        ImportError::Store(error) => Refusal::from(error),
        other => refusal(other.to_string()),
    }
}

fn refusal(message: String) -> Refusal {
    Refusal {
        message,
        hints: Vec::new(),
    }
}

/// Why a file cannot be imported without a stream.
fn no_stream(file: &str, declaration: &Declaration) -> Refusal {
    let streams = declaration.streams.iter();
    let names: Vec<&str> = streams.map(|stream| stream.name.as_str()).collect();
    let mut refusal = refusal(format!("{file}: nothing tells which stream it belongs to"));
    refusal.hints.push(format!(
        "pass --as {}/STREAM with one of: {}",
        declaration.connector_key(),
        names.join(", ")
    ));
    refusal
}

/// Why a known export cannot go into a connection of another kind.
fn other_connector(file: &str, export: Export, declaration: &Declaration) -> Refusal {
    let mut refusal = refusal(format!(
        "{file}: it is {}, which goes into a connection of '{}', not of '{}'",
        export.title(),
        export.connector_key(),
        declaration.connector_key()
    ));
    // Files are recognised before they are sent; what still comes here came through a pipe.
    let hint = "write it to a file and import that: then it is recognised, and its connection found or added";
    refusal.hints.push(hint.to_owned());
    refusal
}
