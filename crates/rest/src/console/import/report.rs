//! What an import did, or would do, as a page shows it.

use ingest::{ImportReport, Sample};
use serde_json::value::RawValue;

use crate::console::format::{Member, format_count, format_number, label, members};
use crate::console::moment::Moment;
use crate::history::ImportRecord;
use crate::owner::wire::{Imported, Refusal};
use crate::service::Service;

/// How many lines of what was refused or left are shown.
pub(super) const SHOWN: usize = 20;
/// The longest value of a sample, in characters.
const VALUE_CHARS: usize = 160;

pub(in crate::console) struct ReportRow {
    pub(in crate::console) title: String,
    pub(in crate::console) at: Option<Moment>,
    /// The files it came from.
    pub(in crate::console) files: String,
    pub(in crate::console) figures: Vec<(&'static str, String)>,
    pub(super) samples: Vec<SampleRow>,
    pub(super) problems: Vec<String>,
    pub(super) more_problems: usize,
    /// What stopped it; empty where it came to its end.
    pub(in crate::console) stopped: String,
    /// The page of the connection; empty where there is none yet.
    pub(in crate::console) address: String,
}

pub(super) struct SampleRow {
    pub(super) stream: String,
    pub(super) members: Vec<Member>,
}

impl ReportRow {
    /// What became of the files of one kind.
    pub(super) fn new(title: &str, imported: &Imported, connection: &str) -> Self {
        let report = &imported.report;
        Self {
            samples: imported.samples.iter().filter_map(sample_row).collect(),
            ..Self::of_report(title, report, imported.stopped.as_ref(), connection)
        }
    }

    /// Files of one kind that were not looked at.
    pub(super) fn refused(title: &str, refusal: &Refusal) -> Self {
        Self {
            figures: Vec::new(),
            ..Self::of_report(title, &ImportReport::default(), Some(refusal), "")
        }
    }

    /// An import that was kept.
    pub(in crate::console) fn from_record(service: &Service, record: &ImportRecord) -> Self {
        let connection = service.store.connection(&record.connection);
        let connection = connection.map_or_else(String::new, |one| label(&one.display_name));
        let title = match connection.as_str() {
            "" => label(&record.kind),
            name => name.to_owned(),
        };
        let mut files = label(&record.files.join(", "));
        if record.more_files > 0 {
            files = format!("{files} and {} more", record.more_files);
        }
        Self {
            at: Moment::new(record.at),
            files,
            ..Self::of_report(
                &title,
                &record.report,
                record.stopped.as_ref(),
                record.connection.as_str(),
            )
        }
    }

    fn of_report(
        title: &str,
        report: &ImportReport,
        stopped: Option<&Refusal>,
        connection: &str,
    ) -> Self {
        let problems = problems(report);
        Self {
            title: format!("{title}: {}", format_count(report.read, "record")),
            at: None,
            files: String::new(),
            figures: figures(report),
            samples: Vec::new(),
            more_problems: problems.len().saturating_sub(SHOWN),
            problems: problems.into_iter().take(SHOWN).collect(),
            stopped: stopped.map(told).unwrap_or_default(),
            address: match connection {
                "" => "/browse".to_owned(),
                connection => format!("/connections/{connection}"),
            },
        }
    }
}

fn figures(report: &ImportReport) -> Vec<(&'static str, String)> {
    let figures = [
        ("new", report.added),
        ("changed", report.updated),
        ("here already", report.unchanged),
        ("newer here, and left so", report.kept_newer),
        ("deleted by you before, and left so", report.kept_deleted),
        ("refused", report.rejected),
        ("occurrences of recurring events", report.occurrences.added),
    ];
    let figures = figures.into_iter();
    let told = figures.filter(|(what, count)| *count > 0 || *what == "new");
    told.map(|(what, count)| (what, format_number(count)))
        .collect()
}

/// A sample without what it does not say.
fn sample_row(sample: &Sample) -> Option<SampleRow> {
    let body = RawValue::from_string(sample.body.clone()).ok()?;
    let mut members = members(Some(&*body), VALUE_CHARS).ok()?;
    members.retain(|member| !matches!(member.value.as_str(), "" | "null" | "[]" | "{}"));
    Some(SampleRow {
        stream: label(sample.stream.as_str()),
        members,
    })
}

pub(super) fn told(refused: &Refusal) -> String {
    let hints = refused.hints.join("; ");
    label(&match hints.as_str() {
        "" => refused.message.clone(),
        hints => format!("{}; {hints}", refused.message),
    })
}

/// What was refused or could not be read, and what had to be assumed, one line each.
fn problems(report: &ImportReport) -> Vec<String> {
    let refused = report.rejections.iter().map(|one| {
        let file = one
            .file
            .as_deref()
            .map(|file| format!("{file}, "))
            .unwrap_or_default();
        format!("{file}line {}: {}", one.line, one.message)
    });
    let broken = report
        .broken
        .iter()
        .map(|one| format!("{}: {}", one.file, one.message));
    let all = broken.chain(refused).chain(report.notes.iter().cloned());
    all.map(|line| label(&line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::import::target::refusal;

    #[test]
    fn a_refusal_says_what_to_do() {
        let mut refused = refusal("it is nothing");
        assert_eq!(told(&refused), "it is nothing");
        refused.hints.push("try <x>".to_owned());
        assert_eq!(told(&refused), "it is nothing; try <x>");
    }

    #[test]
    fn a_sample_leaves_out_what_is_empty() {
        let sample = Sample {
            stream: contract::id::StreamName::parse("notes").unwrap(),
            body: r#"{"id":"a","title":null,"tags":[],"n":1.50}"#.to_owned(),
        };
        let row = sample_row(&sample).unwrap();
        let names: Vec<&str> = row.members.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["id", "n"]);
    }
}
