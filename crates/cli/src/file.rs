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
