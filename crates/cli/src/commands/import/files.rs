//! The files of an import: each is looked at once, for what it is and how long it is, and opened again when its turn comes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;

use ingest::container::{self, Limits, Member};
use ingest::{Export, FileContents, Format, ImportError, Input};
use rest::owner::{FileName, ImportFiles};

use super::survey::Survey;
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
        survey.note_account(&input);
        file.format = Some(input.format().map_err(|error| to_failure(&error))?);
        file.length = Some(metadata.len());
        let beside = file.beside();
        Ok(beside.into_iter().chain([file]).collect())
    }

    /// What a browser that runs wrote beside its database and did not yet put into it. It is read before the database.
    fn beside(&self) -> Option<Self> {
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        let path = PathBuf::from(path);
        let length = std::fs::metadata(&path).ok()?.len();
        let format = open_input(&path).ok()?.format().ok()?;
        self.export()?;
        (Some(format) == self.format).then_some(Self {
            path,
            member: None,
            length: Some(length),
            format: Some(format),
            rank: 0,
        })
    }

    /// A member that is known. Lines and tables are taken where it was said what they hold.
    fn from_member(member: Member, takes_lines: bool, survey: &mut Survey) -> Option<Self> {
        let path = PathBuf::from(member.path());
        if Survey::is_media(member.path()) {
            survey.leave(member.path(), "pictures, sounds and films");
            return None;
        }
        let opened = member.open().ok();
        let input =
            opened.map(|content| Input::from_file(member.path(), &last_part(&path), content));
        let Some(Ok(input)) = input else {
            survey.broken(member.path());
            return None;
        };
        survey.note_account(&input);
        match input.contents() {
            FileContents::Format {
                format: Format::Jsonl | Format::Json | Format::Csv | Format::Singer,
                ..
            } if !takes_lines => {
                if member.path().to_ascii_lowercase().ends_with(".json") {
                    survey.unknown(member.path());
                } else {
                    survey.leave(
                        member.path(),
                        "tables and JSON lines, which are imported by themselves",
                    );
                }
                None
            }
            FileContents::Format { format, rank } => Some(Self {
                path,
                length: Some(member.size()),
                member: Some(member),
                format: Some(*format),
                rank: *rank,
            }),
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
        let name = last_part(&self.path);
        name.split_once('.')
            .map_or(name.as_str(), |(stem, _)| stem)
            .to_owned()
    }

    /// Whether it stands in a folder or an archive, where one that is broken does not stop the others.
    pub(super) fn is_member(&self) -> bool {
        self.member.is_some()
    }

    pub(super) fn export(&self) -> Option<Export> {
        match self.format {
            Some(Format::Export(export)) => Some(export),
            Some(Format::Jsonl | Format::Json | Format::Csv | Format::Singer) | None => None,
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
pub(super) fn open_input(path: &Path) -> CommandResult<Input> {
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
