//! The files of an import: each is looked at once, for what it is and how long it is, and opened again when its turn comes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;

use ingest::container::{self, Limits, Member};
use ingest::survey::{self, MEDIA_LEFT};
use ingest::table::{self, TableColumns};
use ingest::{Export, FileContents, Format, ImportError, Input};
use rest::owner::{FileName, ImportFiles};

use super::survey::{Survey, TABLES_LEFT};
use super::table::log_beside;
use crate::failure::{CommandResult, Failure};

#[derive(Clone)]
pub(super) struct ImportFile {
    path: PathBuf,
    /// Where it stands, if in a folder or an archive.
    member: Option<Member>,
    /// Its size, unknown for a pipe.
    pub(super) length: Option<u64>,
    /// What it holds; unknown for a pipe, of which bytes that were read would be gone.
    format: Option<Format>,
    /// Its place among the files of the same export.
    pub(super) rank: u8,
}

impl ImportFile {
    /// Looks at a path: at a file, or at everything in a folder or an archive. A file of unknown format is refused before a
    /// connection is chosen; what a container holds beside known files is noted in the survey.
    pub(super) fn inspect(
        path: &Path,
        takes_lines: bool,
        survey: &mut Survey,
    ) -> CommandResult<Vec<Self>> {
        let mut file = Self {
            path: path.to_owned(),
            member: None,
            length: None,
            format: None,
            rank: 0,
        };
        if file.is_stdin() {
            return Ok(vec![file]);
        }
        let metadata = std::fs::metadata(path).map_err(Failure::file_error(path))?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Ok(vec![file]);
        }
        let shown = path.display().to_string();
        let unreadable =
            |error: io::Error| Failure::new(format!("{shown}: it cannot be read: {error}"));
        if let Some(contents) = container::walk(path, Limits::default()).map_err(unreadable)? {
            survey.skipped.extend(contents.skipped);
            survey.is_needed = true;
            let members = contents.members.into_iter();
            let files = members.filter_map(|member| Self::from_member(member, takes_lines, survey));
            return Ok(files.collect());
        }
        let input = open_input(path)?;
        survey.accounts.note(&input);
        file.format = Some(input.format().map_err(|error| to_failure(&error))?);
        file.length = Some(metadata.len());
        let beside = file.beside();
        Ok(beside.into_iter().chain([file]).collect())
    }

    /// What a program that runs wrote beside its database and did not yet put into it. It is read before the database.
    fn beside(&self) -> Option<Self> {
        let path = log_beside(&self.path)?;
        let length = std::fs::metadata(&path).ok()?.len();
        let format = open_input(&path).ok()?.format().ok()?;
        (Some(format) == self.format).then_some(Self {
            path,
            member: None,
            length: Some(length),
            format: Some(format),
            rank: 0,
        })
    }

    /// A member that is known. Lines and tables are taken where it was said what they hold; other tables are kept apart.
    fn from_member(member: Member, takes_lines: bool, survey: &mut Survey) -> Option<Self> {
        let path = PathBuf::from(member.path());
        let opened = member.open().ok();
        let input =
            opened.map(|content| Input::from_file(member.path(), &last_part(&path), content));
        let Some(Ok(input)) = input else {
            survey.broken(member.path());
            return None;
        };
        survey.accounts.note(&input);
        let is_photo = matches!(
            input.contents(),
            FileContents::Format { format: Format::Export(export), .. } if *export == Export::PHOTOS
        );
        if survey::is_media(member.path()) && !is_photo {
            survey.leave(member.path(), MEDIA_LEFT);
            return None;
        }
        match input.contents() {
            FileContents::Format { format, rank } => {
                let format = *format;
                let file = Self {
                    path,
                    length: Some(member.size()),
                    member: Some(member),
                    format: Some(format),
                    rank: *rank,
                };
                if takes_lines || matches!(format, Format::Export(_)) {
                    return Some(file);
                }
                file.set_apart(format, survey);
                None
            }
            FileContents::Left(why) => {
                survey.leave(member.path(), why);
                None
            }
            FileContents::Unknown(_) => {
                survey.unknown(member.path());
                None
            }
        }
    }

    /// Keeps a table of a folder or an archive apart, until it is known whether it is taken.
    fn set_apart(self, format: Format, survey: &mut Survey) {
        let shown = self.path.display().to_string();
        let is_json = shown.to_ascii_lowercase().ends_with(".json");
        match format {
            Format::Singer => survey.leave(&shown, TABLES_LEFT),
            // Settings and the like are JSON too.
            Format::Jsonl if is_json => survey.unknown(&shown),
            _ => survey.tables.push(self),
        }
    }

    /// The tables that it holds. What is wrong with a text is told by the import, line by line.
    pub(super) fn tables(&self) -> CommandResult<Vec<TableColumns>> {
        let log = self.log_beside();
        let tables = table::tables(self.input()?, &self.title(), log);
        match (tables, self.format) {
            (Err(error), Some(Format::Workbook | Format::Database)) => Err(to_failure(&error)),
            (tables, _) => Ok(tables.unwrap_or_default()),
        }
    }

    /// Whether it is a table with a header only.
    pub(super) fn has_no_rows(&self) -> bool {
        let input = self.input().ok();
        input.is_some_and(|input| table::has_no_rows(input).unwrap_or_default())
    }

    /// Whether it holds tables, and not lines, which may say themselves where they belong.
    pub(super) fn is_table(&self) -> bool {
        use Format::{Csv, Database, Json, Workbook};
        matches!(self.format, Some(Csv | Database | Json | Workbook))
    }

    /// Whether one of them is a database, and the other what was written beside it.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        let (one, two) = (self.path.to_string_lossy(), other.path.to_string_lossy());
        one.strip_suffix("-wal") == Some(&two) || two.strip_suffix("-wal") == Some(&one)
    }

    /// Whether it was named, has no content, and is no known export by its name.
    pub(super) fn is_empty(&self) -> bool {
        self.length == Some(0) && self.member.is_none() && self.export().is_none()
    }

    pub(super) fn refused_as_empty(&self) -> Failure {
        Failure::new(format!("{}: it is empty", self.name().name))
    }

    /// Whether it is what was written beside a database.
    pub(super) fn is_log(&self) -> bool {
        let is_log = self.path.to_string_lossy().ends_with("-wal");
        is_log && self.format == Some(Format::Database)
    }

    /// What was written beside it, where it stands in no archive.
    fn log_beside(&self) -> Option<PathBuf> {
        log_beside(&self.path).filter(|_| self.format == Some(Format::Database))
    }

    /// Opens it to look at what it is.
    pub(super) fn input(&self) -> CommandResult<Input> {
        let shown = self.path.display().to_string();
        let content = self.open().map_err(|error| self.unreadable(&error))?;
        let input = Input::from_file(&shown, &last_part(&self.path), content);
        input.map_err(|error| to_failure(&error))
    }

    fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    pub(super) fn format(&self) -> Option<Format> {
        self.format
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What people may call what it holds: its name without endings.
    pub(super) fn title(&self) -> String {
        table::title(&last_part(&self.path)).to_owned()
    }

    /// Whether it stands in a folder or an archive, where one that is broken does not stop the others.
    pub(super) fn is_member(&self) -> bool {
        self.member.is_some()
    }

    pub(super) fn is_packed(&self) -> bool {
        self.member.as_ref().is_some_and(Member::is_packed)
    }

    pub(super) fn export(&self) -> Option<Export> {
        match self.format {
            Some(Format::Export(export)) => Some(export),
            _ => None,
        }
    }

    pub(super) fn name(&self) -> FileName {
        if self.is_stdin() {
            return FileName {
                name: "stdin".to_owned(),
                file_name: None,
                inside: None,
                format: None,
            };
        }
        FileName {
            name: self.path.display().to_string(),
            file_name: Some(last_part(&self.path)),
            inside: self
                .member
                .as_ref()
                .map(|member| member.inside().to_owned()),
            format: self.format.map(|format| format.as_str().to_owned()),
        }
    }

    pub(super) fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        match &self.member {
            Some(member) => member.open(),
            None if self.is_stdin() => Ok(Box::new(io::stdin())),
            None => Ok(Box::new(File::open(&self.path)?)),
        }
    }

    pub(super) fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::new(format!("{}: it cannot be read: {error}", self.name().name))
    }
}

/// Opens a file to look at what it is.
pub(crate) fn open_input(path: &Path) -> CommandResult<Input> {
    let shown = path.display().to_string();
    let content = File::open(path)
        .map_err(|error| Failure::new(format!("{shown}: it cannot be read: {error}")))?;
    let input = Input::from_file(&shown, &last_part(path), content);
    input.map_err(|error| to_failure(&error))
}

fn to_failure(error: &ImportError) -> Failure {
    Failure::new(error.to_string())
}

fn last_part(path: &Path) -> String {
    let last = path.file_name().unwrap_or_default();
    last.to_string_lossy().into_owned()
}

/// What ends an import early: a signal, or a file that could not be read any more.
#[derive(Clone, Default)]
pub(super) struct Interruption {
    is_stopped: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<Failure>>>,
}

impl Interruption {
    /// Ends the import at its next read.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Ends the import because of a failure.
    pub(super) fn fail(&self, failure: Failure) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        self.stop();
    }

    /// Ends the import because a file cannot be read, unless others can still be.
    fn fail_by(&self, file: &ImportFile, error: &io::Error) {
        if !file.is_member() {
            self.fail(file.unreadable(error));
        }
    }

    /// Why not everything was read, if that was the reason.
    pub(super) fn failure(&self) -> Option<Failure> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

pub(super) struct LocalFiles {
    files: IntoIter<ImportFile>,
    interruption: Interruption,
}

impl LocalFiles {
    pub(super) fn new(files: Vec<ImportFile>, interruption: Interruption) -> Self {
        Self {
            files: files.into_iter(),
            interruption,
        }
    }
}

impl ImportFiles for LocalFiles {
    fn next_file(&mut self) -> io::Result<Option<(FileName, Box<dyn Read>)>> {
        let Some(file) = self.files.next() else {
            return Ok(None);
        };
        let name = file.name();
        let reader = StoppableReader {
            content: file
                .open()
                .inspect_err(|error| self.interruption.fail_by(&file, error)),
            interruption: self.interruption.clone(),
            file,
        };
        Ok(Some((name, Box::new(reader))))
    }
}

struct StoppableReader {
    file: ImportFile,
    content: io::Result<Box<dyn Read + Send>>,
    interruption: Interruption,
}

impl Read for StoppableReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.interruption.is_stopped() {
            return Err(stopped());
        }
        match &mut self.content {
            Ok(content) => content.read(buffer).inspect_err(|error| {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.interruption.fail_by(&self.file, error);
                }
            }),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }
}

fn stopped() -> io::Error {
    io::Error::other("it was stopped before its end")
}
