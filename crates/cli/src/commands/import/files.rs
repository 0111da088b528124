//! The files of an import: each is looked at once, for what it is and how long it is, and opened again when its turn comes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;

use ingest::{Export, Format, ImportError, Input};
use rest::owner::{FileName, ImportFiles};

use crate::failure::{CommandResult, Failure};

#[derive(Debug, Clone)]
pub(super) struct ImportFile {
    path: PathBuf,
    /// Its size, unknown for a pipe.
    pub(super) length: Option<u64>,
    /// What it holds; unknown for a pipe, of which bytes that were read would be gone.
    format: Option<Format>,
}

impl ImportFile {
    /// Looks at a file. A folder, and a file of unknown format, is refused before a connection is chosen.
    pub(super) fn inspect(path: &Path) -> CommandResult<Self> {
        let mut file = Self {
            path: path.to_owned(),
            length: None,
            format: None,
        };
        if file.is_stdin() {
            return Ok(file);
        }
        let metadata = std::fs::metadata(path).map_err(Failure::file_error(path))?;
        if metadata.is_dir() {
            let message = format!("{}: it is a folder", path.display());
            return Err(Failure::new(message).hint("name the files inside it"));
        }
        if metadata.is_file() {
            let to_failure = |error: ImportError| Failure::new(error.to_string());
            let name = file.name();
            let unreadable = |error: io::Error| {
                Failure::new(format!("{}: it cannot be read: {error}", name.name))
            };
            let content = File::open(path).map_err(unreadable)?;
            let file_name = name.file_name.as_deref().unwrap_or_default();
            let input = Input::from_file(&name.name, file_name, content).map_err(to_failure)?;
            file.format = Some(input.format().map_err(to_failure)?);
            file.length = Some(metadata.len());
        }
        Ok(file)
    }

    fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    pub(super) fn export(&self) -> Option<Export> {
        match self.format {
            Some(Format::Export(export)) => Some(export),
            Some(Format::Jsonl | Format::Csv) | None => None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn name(&self) -> FileName {
        if self.is_stdin() {
            return FileName {
                name: "stdin".to_owned(),
                file_name: None,
                format: None,
            };
        }
        let last = self.path.file_name().unwrap_or_default().to_string_lossy();
        FileName {
            name: self.path.display().to_string(),
            file_name: Some(last.into_owned()),
            format: self.format.map(|format| format.as_str().to_owned()),
        }
    }

    pub(super) fn open(&self) -> CommandResult<Box<dyn Read + Send>> {
        if self.is_stdin() {
            return Ok(Box::new(io::stdin()));
        }
        let file = File::open(&self.path).map_err(|error| {
            let name = self.path.display();
            Failure::new(format!("{name}: it cannot be read: {error}"))
        })?;
        Ok(Box::new(file))
    }
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
        let content = file.open().map_err(|failure| {
            self.interruption.fail(failure);
            stopped()
        })?;
        let reader = StoppableReader {
            name: file.path.display().to_string(),
            content,
            interruption: self.interruption.clone(),
        };
        Ok(Some((file.name(), Box::new(reader))))
    }
}

struct StoppableReader {
    name: String,
    content: Box<dyn Read + Send>,
    interruption: Interruption,
}

impl Read for StoppableReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.interruption.is_stopped() {
            return Err(stopped());
        }
        self.content.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let message = format!("{}: it cannot be read: {error}", self.name);
                self.interruption.fail(Failure::new(message));
            }
        })
    }
}

fn stopped() -> io::Error {
    io::Error::other("it was stopped before its end")
}
