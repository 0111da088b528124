//! What folders and archives hold beside the files that are imported: known and left, unknown, or not to be read.

use std::collections::BTreeMap;

use indicatif::HumanCount;
use ingest::container::{SkipReason, Skipped};
use ingest::survey::{self, Accounts, Found};
use serde::Serialize;

use super::files::ImportFile;
use crate::failure::Failure;
use crate::output::{Output, counted, visible};

/// How many names are shown of each kind.
const SHOWN: usize = 5;
/// How many names are kept.
const KEPT: usize = 100;

/// Why tables are left.
pub(super) const TABLES_LEFT: &str =
    "tables and JSON lines, which are imported with --yes or by themselves";

#[derive(Default)]
pub(super) struct Survey {
    /// Whether any folder or archive was looked at.
    pub(super) is_needed: bool,
    pub(super) skipped: Vec<Skipped>,
    /// Tables that are no part of an export.
    pub(super) tables: Vec<ImportFile>,
    pub(super) accounts: Accounts,
    left: BTreeMap<&'static str, Named>,
    unknown: Named,
}

/// How many files, and the first of them.
#[derive(Debug, Clone, Default, Serialize)]
struct Named {
    count: u64,
    files: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct SurveyReport {
    taken: u64,
    left: Vec<Left>,
    unknown: Named,
    skipped: Vec<Left>,
}

#[derive(Serialize)]
struct Left {
    why: String,
    #[serde(flatten)]
    named: Named,
}

impl Named {
    fn add(&mut self, path: &str) {
        self.count += 1;
        if self.files.len() < KEPT {
            self.files.push(path.to_owned());
        }
    }
}

impl Survey {
    /// Takes the files, but for those that belong to what stands beside them.
    pub(super) fn without_companions(
        &mut self,
        files: &[ImportFile],
        takes_pictures: bool,
    ) -> Vec<ImportFile> {
        let paths: Vec<_> = files
            .iter()
            .map(|file| file.path().to_string_lossy())
            .collect();
        let found = files.iter().zip(&paths).map(|(file, path)| Found {
            path,
            export: file.export(),
            is_inside: file.is_member(),
            is_packed: file.is_packed(),
        });
        let found: Vec<Found<'_>> = found.collect();
        let left = survey::left_beside(&found, takes_pictures);
        for (why, path) in left.iter().zip(&paths) {
            if let Some(why) = why {
                self.leave(path, why);
            }
        }
        let taken = files.iter().zip(&left).filter(|(_, why)| why.is_none());
        taken.map(|(file, _)| file.clone()).collect()
    }

    /// Takes the tables, or leaves them. Those without rows are nothing that is known.
    pub(super) fn tables(&mut self, takes_them: bool) -> Vec<ImportFile> {
        let mut taken = Vec::new();
        for table in std::mem::take(&mut self.tables) {
            let path = table.path().display().to_string();
            if !takes_them {
                // A list of anything may be JSON.
                if path.to_ascii_lowercase().ends_with(".json") {
                    self.unknown(&path);
                } else {
                    self.leave(&path, TABLES_LEFT);
                }
                continue;
            }
            match table.tables() {
                _ if table.is_log() => taken.push(table),
                Ok(tables) if tables.is_empty() => self.unknown(&path),
                Ok(_) if table.is_member() && table.has_no_rows() => {
                    self.leave(&path, "tables without rows");
                }
                Ok(_) => taken.push(table),
                Err(_) => self.broken(&path),
            }
        }
        taken
    }

    pub(super) fn leave(&mut self, path: &str, why: &'static str) {
        self.left.entry(why).or_default().add(path);
    }

    pub(super) fn unknown(&mut self, path: &str) {
        self.unknown.add(path);
    }

    pub(super) fn broken(&mut self, path: &str) {
        self.skipped.push(Skipped {
            path: path.to_owned(),
            why: SkipReason::Broken,
        });
    }

    /// Whether a file was not read that should have been.
    pub(super) fn has_damage(&self) -> bool {
        let harmless = [SkipReason::Hidden, SkipReason::Link];
        self.skipped
            .iter()
            .any(|skipped| !harmless.contains(&skipped.why))
    }

    /// Why nothing is imported, where no file is taken.
    pub(super) fn nothing_taken(&self) -> Failure {
        let is_known = !self.left.is_empty() && self.unknown.count == 0;
        let why = if is_known {
            "what is in it is known and becomes no records, so nothing was imported"
        } else {
            "nothing in it is known, so nothing was imported"
        };
        Failure::new(why)
            .hint("`pdpp import --list` says which exports are known, and how to get them")
    }

    pub(super) fn report(&self, taken: usize) -> SurveyReport {
        let mut skipped: BTreeMap<String, Named> = BTreeMap::new();
        let mut left = self.left.clone();
        for one in &self.skipped {
            if one.why == SkipReason::Hidden {
                let hidden = "names that begin with a dot, or belong to the system";
                left.entry(hidden).or_default().add(&one.path);
                continue;
            }
            skipped
                .entry(one.why.to_string())
                .or_default()
                .add(&one.path);
        }
        let listed = |(why, named): (String, Named)| Left { why, named };
        let left = left.into_iter();
        SurveyReport {
            taken: taken as u64,
            left: left
                .map(|(why, named)| listed((why.to_owned(), named)))
                .collect(),
            unknown: self.unknown.clone(),
            skipped: skipped.into_iter().map(listed).collect(),
        }
    }
}

impl SurveyReport {
    pub(super) fn print(&self, output: Output) {
        let of_left: u64 = self.left.iter().map(|left| left.named.count).sum();
        output.note(&format!(
            "Files: {} taken, {} known and left, {} unknown.",
            HumanCount(self.taken),
            HumanCount(of_left),
            HumanCount(self.unknown.count)
        ));
        for left in &self.left {
            let files = counted(left.named.count, "file", "files");
            output.note(&format!("  left: {files}: {}", left.why));
        }
        for line in self.unknown.lines() {
            output.note(&format!("  unknown: {line}"));
        }
        for skipped in &self.skipped {
            for line in skipped.named.lines() {
                output.problem(&format!("  not read: {line}: {}", skipped.why));
            }
        }
    }
}

impl Named {
    /// The first files, and how many more.
    fn lines(&self) -> Vec<String> {
        let shown = self.files.iter().take(SHOWN);
        let mut lines: Vec<String> = shown.map(|file| visible(file)).collect();
        let more = self.count - lines.len() as u64;
        if more > 0 {
            lines.push(format!("{} more", HumanCount(more)));
        }
        lines
    }
}
