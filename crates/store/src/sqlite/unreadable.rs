//! Telling a disk that cannot be read from a file that was changed: the engine calls both damage, and keeps to itself what the
//! system said. Whoever reads the file as it did learns which it was.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a file is read, at most: somebody waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// For how long what was found holds, so that a damaged database is not read through for every question.
const REMEMBERED: Duration = Duration::from_mins(1);
const CHUNK: usize = 1024 * 1024;

/// What was found last: the file, when, and the error of the system.
type Found = (PathBuf, Instant, Option<i32>);

static LAST: Mutex<Option<Found>> = Mutex::new(None);

/// The error that reading a database or its log gives, if it gives one.
pub(super) fn cause(path: &Path) -> Option<io::Error> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = last
        .as_ref()
        .filter(|(of, at, _)| of == path && at.elapsed() < REMEMBERED);
    let error = if let Some((_, _, error)) = known {
        *error
    } else {
        let log = PathBuf::from(format!("{}-wal", path.display()));
        let error = first_error(path).or_else(|| first_error(&log));
        *last = Some((path.to_owned(), Instant::now(), error));
        error
    };
    error.map(io::Error::from_raw_os_error)
}

fn first_error(path: &Path) -> Option<i32> {
    let began = Instant::now();
    let mut file = File::open(path).ok()?;
    let mut chunk = vec![0; CHUNK];
    while began.elapsed() < PATIENCE {
        match file.read(&mut chunk) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return error.raw_os_error(),
        }
    }
    None
}
