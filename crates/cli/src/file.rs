//! Reading a document whole, from a file or from stdin.

use std::io::{self, Read};
use std::path::Path;

use crate::failure::{Failure, Outcome};

/// The text of a file; `-` is stdin.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    let read = if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(Failure::at(path))
}

/// The folder a file is to be made in; it must be there.
pub(crate) fn folder_of(file: &Path) -> Outcome<&Path> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        return Ok(folder);
    }
    let message = format!("there is no folder {} to write into", folder.display());
    Err(Failure::new(message).hint("make it first, or name another"))
}
