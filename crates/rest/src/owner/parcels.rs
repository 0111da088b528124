//! Several files in one body, each of any length, without knowing the length beforehand.
//!
//! A body is a sequence of headings, each one line of JSON. `{"file":…}` begins a file, `{"bytes":n}` is followed by `n`
//! bytes of it, and `{"stop":true}` says that the sender gave up. So one request carries a whole import, and the lines of
//! all its files are counted, previewed and reported together.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

/// The longest heading; it holds at most the name of a file.
const MAX_HEADING_BYTES: u64 = 64 * 1024;

/// What comes next in a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heading {
    /// A file begins.
    File(FileName),
    /// So many bytes of the file.
    Bytes(u64),
    /// The sender gave up; what came before stands.
    Stop(bool),
}

/// How a file is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileName {
    /// In messages: as the owner named it.
    pub name: String,
    /// The last part of its path, which may tell its stream and format; none for a pipe.
    pub file_name: Option<String>,
}

impl Heading {
    /// The heading as it travels.
    pub fn to_line(&self) -> Vec<u8> {
        // Numbers and texts can always be written.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The files of a body, one after the other.
pub(super) struct Parcels<R>(Rc<RefCell<Unpacking<R>>>);

/// The bytes of one file.
pub(super) struct Parcel<R>(Rc<RefCell<Unpacking<R>>>);

struct Unpacking<R> {
    body: BufReader<R>,
    /// Bytes of the current heading that were not read yet.
    left: u64,
    next: Option<FileName>,
    stopped: bool,
}

impl<R: Read> Parcels<R> {
    pub(super) fn new(body: R) -> Self {
        Self(Rc::new(RefCell::new(Unpacking {
            body: BufReader::new(body),
            left: 0,
            next: None,
            stopped: false,
        })))
    }

    /// The next file, or nothing at the end. The one before must be read to its end.
    pub(super) fn next(&mut self) -> io::Result<Option<(FileName, Parcel<R>)>> {
        let mut unpacking = self.0.borrow_mut();
        if unpacking.next.is_none() && unpacking.more()? {
            return Err(malformed("bytes came before a file"));
        }
        let name = unpacking.next.take();
        Ok(name.map(|name| (name, Parcel(Rc::clone(&self.0)))))
    }
}

impl<R: Read> Unpacking<R> {
    /// Whether bytes of the current file follow.
    fn more(&mut self) -> io::Result<bool> {
        while self.left == 0 && self.next.is_none() {
            if self.stopped {
                return Err(stopped());
            }
            let mut line = Vec::new();
            let heading = self.body.by_ref().take(MAX_HEADING_BYTES);
            { heading }.read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(false);
            }
            match serde_json::from_slice(&line).map_err(|_| malformed("a heading is not one"))? {
                Heading::File(name) => self.next = Some(name),
                Heading::Bytes(bytes) => self.left = bytes,
                Heading::Stop(_) => self.stopped = true,
            }
        }
        Ok(self.left > 0)
    }
}

impl<R: Read> Read for Parcel<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut unpacking = self.0.borrow_mut();
        if buffer.is_empty() || !unpacking.more()? {
            return Ok(0);
        }
        let room = usize::try_from(unpacking.left).unwrap_or(usize::MAX);
        let part = buffer.len().min(room);
        let read = unpacking
            .body
            .read(buffer.get_mut(..part).unwrap_or_default())?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        unpacking.left -= read as u64;
        Ok(read)
    }
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The sender gave up.
fn stopped() -> io::Error {
    io::Error::other("it was stopped before its end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Heading {
        Heading::File(FileName {
            name: name.to_owned(),
            file_name: None,
        })
    }

    fn body(parts: &[(Heading, &str)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (heading, bytes) in parts {
            body.extend(heading.to_line());
            body.extend(bytes.as_bytes());
        }
        body
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let body = body(&[
            (file("a"), ""),
            (Heading::Bytes(3), "x\ny"),
            (Heading::Bytes(2), "{}"),
            (file("empty"), ""),
            (file("b"), ""),
            (Heading::Bytes(1), "z"),
        ]);
        let mut parcels = Parcels::new(body.as_slice());
        let mut seen = Vec::new();
        while let Some((name, mut parcel)) = parcels.next().unwrap() {
            let mut content = String::new();
            parcel.read_to_string(&mut content).unwrap();
            seen.push((name.name, content));
        }
        let expected = [("a", "x\ny{}"), ("empty", ""), ("b", "z")];
        assert_eq!(
            seen,
            expected.map(|(name, content)| (name.to_owned(), content.to_owned()))
        );
    }

    #[test]
    fn what_is_cut_stopped_or_malformed_is_an_error_and_no_end() {
        for (body, words) in [
            (
                body(&[(file("a"), ""), (Heading::Bytes(9), "xy")]),
                "end of",
            ),
            (
                body(&[(file("a"), ""), (Heading::Stop(true), "")]),
                "stopped",
            ),
            (body(&[(file("a"), "nonsense\n")]), "heading"),
        ] {
            let mut parcels = Parcels::new(body.as_slice());
            let (_, mut parcel) = parcels.next().unwrap().unwrap();
            let error = parcel.read_to_end(&mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        let bare = body(&[(Heading::Bytes(1), "x")]);
        assert!(Parcels::new(bare.as_slice()).next().is_err());
    }
}
