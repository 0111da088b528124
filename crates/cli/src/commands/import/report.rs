//! What an import did, for people and as JSON.

use std::fmt::Write as _;

use indicatif::HumanCount;
use ingest::{Export, ImportReport};
use serde::Serialize;

use super::survey::SurveyReport;
use super::target::ImportTarget;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, visible};

/// How many rejections a person is shown.
const SHOWN_REJECTIONS: usize = 20;

/// What all groups of files did.
#[derive(Default)]
pub(super) struct Total {
    report: ImportReport,
    imports: Vec<GroupReport>,
    /// What ended an import early.
    failure: Option<Failure>,
    failed: bool,
}

#[derive(Serialize)]
struct GroupReport {
    export: Option<&'static str>,
    connection: String,
    report: ImportReport,
}

#[derive(Serialize)]
struct JsonReport {
    #[serde(flatten)]
    report: ImportReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    imports: Option<Vec<GroupReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<SurveyReport>,
}

/// What one group of files did.
pub(super) struct GroupDone {
    pub(super) export: Option<Export>,
    /// What people call the connection it went to.
    pub(super) connection: String,
    pub(super) report: ImportReport,
    /// What ended it early.
    pub(super) failure: Option<Failure>,
}

impl Total {
    pub(super) fn add(&mut self, done: GroupDone) {
        self.report.add(done.report.clone());
        self.imports.push(GroupReport {
            export: done.export.map(Export::as_str),
            connection: done.connection,
            report: done.report,
        });
        self.failure = self.failure.take().or(done.failure);
    }

    /// Tells about a group that could not be imported.
    pub(super) fn fail(&mut self, failure: &Failure, output: Output) {
        output.report_failure(failure);
        self.failed = true;
    }

    pub(super) fn print_json(
        &mut self,
        is_alone: bool,
        files: Option<SurveyReport>,
        output: Output,
    ) -> CommandResult {
        output.json(&JsonReport {
            report: self.report.clone(),
            imports: (!is_alone).then(|| std::mem::take(&mut self.imports)),
            files,
        })
    }

    /// Whether everything was taken that should have been. `is_damaged` says that a file could not be read.
    pub(super) fn outcome(self, is_damaged: bool) -> CommandResult {
        let report = &self.report;
        match self.failure {
            Some(failure) => Err(failure),
            None if self.failed || is_damaged => Err(Failure::REPORTED),
            None if report.rejected > 0 || !report.broken.is_empty() => Err(Failure::REPORTED),
            None => Ok(()),
        }
    }
}

/// What was taken, kind by kind: `200 messages, 50 attachments, 50 files`.
fn kinds(report: &ImportReport) -> String {
    let mut kinds: Vec<String> = report
        .records
        .iter()
        .map(|(stream, records)| of_kind(*records, &stream.replace(['_', '-'], " ")))
        .collect();
    if report.blobs > 0 {
        kinds.push(of_kind(report.blobs, "files"));
    }
    if kinds.is_empty() {
        return "no records".to_owned();
    }
    visible(&kinds.join(", "))
}

/// So many of what a plural names. Tables may be called anything.
fn of_kind(count: u64, plural: &str) -> String {
    if !plural.ends_with('s') && plural != "people" {
        return format!("{} of {plural}", of_kind(count, "rows"));
    }
    let singular = match plural.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if plural == "people" => "person".to_owned(),
        None => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    let name = if count == 1 { &singular } else { plural };
    format!("{} {name}", HumanCount(count))
}

/// What became of records beside those that were read.
fn print_asides(report: &ImportReport, dry: bool, output: Output) {
    let occurrences = &report.occurrences;
    if !occurrences.is_empty() {
        output.note(&format!(
            "Occurrences of recurring events: {} added, {} updated, {} removed, {} unchanged.",
            HumanCount(occurrences.added),
            HumanCount(occurrences.updated),
            HumanCount(occurrences.removed),
            HumanCount(occurrences.unchanged)
        ));
    }
    if report.pruned > 0 {
        let what = if dry { "Would be deleted" } else { "Deleted" };
        output.note(&format!(
            "{what} because the import does not have them: {}.",
            HumanCount(report.pruned)
        ));
    }
    if report.kept_newer > 0 {
        output.note(&format!(
            "Left as they are because what is here is newer: {}; --prune makes all as the import has it.",
            HumanCount(report.kept_newer)
        ));
    }
    if report.kept_deleted > 0 {
        output.note(&format!(
            "Left out because you deleted them here: {}; --revive brings them back.",
            HumanCount(report.kept_deleted)
        ));
    }
    for note in &report.notes {
        output.note(&format!("Note: {}.", visible(note)));
    }
}

pub(super) fn print(report: &ImportReport, dry: bool, target: &ImportTarget, output: Output) {
    let place = visible(target.destination.name());
    let heading = if dry {
        format!("Dry run for '{place}', nothing was written")
    } else {
        format!("Imported into '{place}'")
    };
    output.note(&format!(
        "{heading}: {}: {} added, {} updated, {} unchanged, {} rejected.",
        kinds(report),
        HumanCount(report.added),
        HumanCount(report.updated),
        HumanCount(report.unchanged),
        HumanCount(report.rejected)
    ));
    print_asides(report, dry, output);
    let shown = report.rejections.iter().take(SHOWN_REJECTIONS);
    for rejection in shown.clone() {
        let mut line = String::from("  ");
        if let Some(file) = &rejection.file {
            // Writing to a String cannot fail.
            let _ = write!(line, "{} ", visible(file));
        }
        let code = rejection.code.as_str();
        let _ = write!(
            line,
            "line {}: {code}: {}",
            rejection.line,
            visible(&rejection.message)
        );
        output.problem(&line);
    }
    let more = report.rejected - shown.len() as u64;
    if more > 0 {
        output.problem(&format!(
            "  and {} more; --json lists the first 1,000",
            HumanCount(more)
        ));
    }
    for broken in &report.broken {
        // The message begins with the file.
        output.problem(&format!("  passed over: {}", visible(&broken.message)));
    }
}
