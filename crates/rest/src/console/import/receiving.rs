//! Taking the files of an upload as they come.

use std::io;
use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::time::Instant;
use grants::sign_in::Session;

use super::multipart::Multipart;
use super::staged::Staged;
use crate::body_stream::BodyError;
use crate::problem::Problem;
use crate::service::Service;

const MAX_FILES: usize = 20_000;
const MAX_FIELD_BYTES: usize = 4_096;

pub(super) fn root(service: &Service) -> Result<Arc<Path>, Problem> {
    let message = "this server takes no files in the browser; use `pdpp import`";
    let root = service.uploads.clone();
    root.ok_or_else(|| Problem::new(ErrorCode::InvalidRequest, message))
}

pub(super) fn bad_upload(message: &str) -> Problem {
    let hint = "nothing was imported; choose the file again at /import";
    Problem::from(ReadError::new(ErrorCode::InvalidRequest, message).with_hint(hint))
}

/// Keeps the files of a form. Its token comes first, so that nothing is kept for another site.
pub(super) fn receive(
    root: &Path,
    form: &mut Multipart<impl io::Read>,
    session: &Session,
    (foreign, now): (Problem, Instant),
) -> Result<Staged, Problem> {
    let first = form.next_part().map_err(|error| broken(&error))?;
    let is_token = first.is_some_and(|part| part.name == "csrf" && part.file_name.is_none());
    let token = form.text(MAX_FIELD_BYTES).map_err(|error| broken(&error))?;
    if !is_token || !session.checks_csrf(&token) {
        return Err(foreign);
    }
    let staged = Staged::begin(root, now).map_err(|error| broken(&error))?;
    let received = keep(&staged, form);
    match received {
        Ok(0) => {
            staged.discard();
            Err(bad_upload("no file was chosen"))
        }
        Ok(_) => Ok(staged),
        Err(error) => {
            staged.discard();
            Err(broken(&error))
        }
    }
}

fn keep(staged: &Staged, form: &mut Multipart<impl io::Read>) -> io::Result<usize> {
    let mut files = 0;
    while let Some(part) = form.next_part()? {
        // A browser sends an empty part where no file was chosen.
        let Some(name) = part.file_name.filter(|name| !name.is_empty()) else {
            continue;
        };
        if files == MAX_FILES {
            let message =
                format!("there are more than {MAX_FILES} files; put them into an archive");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut file = staged.create(files, &name)?;
        form.copy_part(&mut file)?;
        files += 1;
    }
    Ok(files)
}

/// Why an upload did not come to its end.
fn broken(error: &io::Error) -> Problem {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<BodyError>());
    match cause {
        Some(BodyError::TooLarge) => bad_upload(
            "the files are larger than 4 GiB; `pdpp import` at the terminal has no limit",
        )
        .with_status(StatusCode::PAYLOAD_TOO_LARGE),
        Some(cause) => bad_upload(&cause.to_string()).with_status(StatusCode::REQUEST_TIMEOUT),
        None if error.kind() == io::ErrorKind::InvalidData => bad_upload(&error.to_string()),
        None => Problem::internal("an upload could not be kept", error),
    }
}
