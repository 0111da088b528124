//! Several files of unknown length in one request body.
//!
//! A body is a sequence of frames, each starting with one line of JSON. `{"file":…}` starts a file, `{"bytes":n}` is
//! followed by `n` bytes of it, and `{"stop":true}` says that the sender gave up. So one request carries a whole
//! import, whose files are counted and reported together.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

/// The longest header line; it holds at most a file name.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadFrame {
    File(FileName),
    /// So many bytes of the current file follow.
    Bytes(u64),
    /// The current file cannot be read any further, because of this.
    Broken(String),
    /// The sender gave up; what was imported before is kept.
    Stop(bool),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileName {
    pub name: String,
    /// The last part of its path, which may imply stream and format; `None` for a pipe.
    pub file_name: Option<String>,
    /// Where it stands in its folder or archive, if it does in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// The format, where the sender has recognised it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl UploadFrame {
    pub fn to_line(&self) -> Vec<u8> {
        // Numbers and texts can always be written.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The files of a body, one after another.
pub(super) struct UploadedFiles<R>(Rc<RefCell<FrameDecoder<R>>>);

pub(super) struct FileReader<R>(Rc<RefCell<FrameDecoder<R>>>);

struct FrameDecoder<R> {
    body: BufReader<R>,
    /// Unread bytes of the current frame.
    left: u64,
    next: Option<FileName>,
    /// Whether any file began.
    begun: bool,
    stopped: bool,
}

impl<R: Read> UploadedFiles<R> {
    pub(super) fn new(body: R) -> Self {
        Self(Rc::new(RefCell::new(FrameDecoder {
            body: BufReader::new(body),
            left: 0,
            next: None,
            begun: false,
            stopped: false,
        })))
    }

    /// The next file, `None` at the end. What is left of the previous one is passed over.
    pub(super) fn next(&mut self) -> io::Result<Option<(FileName, FileReader<R>)>> {
        let mut decoder = self.0.borrow_mut();
        decoder.pass_over()?;
        decoder.begun = true;
        let name = decoder.next.take();
        Ok(name.map(|name| (name, FileReader(Rc::clone(&self.0)))))
    }
}

impl<R: Read> FrameDecoder<R> {
    /// Passes over what is left of the current file.
    fn pass_over(&mut self) -> io::Result<()> {
        loop {
            match self.has_bytes() {
                Ok(false) => return Ok(()),
                Ok(true) if !self.begun => return Err(malformed("bytes came before a file")),
                Ok(true) => {
                    let mut rest = self.body.by_ref().take(self.left);
                    if io::copy(&mut rest, &mut io::sink())? < self.left {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.left = 0;
                }
                Err(error) if error.kind() == io::ErrorKind::Other && !self.stopped => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads frame headers until bytes of the current file follow.
    fn has_bytes(&mut self) -> io::Result<bool> {
        while self.left == 0 && self.next.is_none() {
            if self.stopped {
                return Err(stopped());
            }
            let mut line = Vec::new();
            let frame = self.body.by_ref().take(MAX_HEADER_BYTES);
            { frame }.read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(false);
            }
            match serde_json::from_slice(&line).map_err(|_| malformed("a frame is malformed"))? {
                UploadFrame::File(name) => self.next = Some(name),
                UploadFrame::Bytes(bytes) => self.left = bytes,
                UploadFrame::Broken(why) => return Err(io::Error::other(why)),
                UploadFrame::Stop(_) => self.stopped = true,
            }
        }
        Ok(self.left > 0)
    }
}

impl<R: Read> Read for FileReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut decoder = self.0.borrow_mut();
        if buffer.is_empty() || !decoder.has_bytes()? {
            return Ok(0);
        }
        let room = usize::try_from(decoder.left).unwrap_or(usize::MAX);
        let part = buffer.len().min(room);
        let read = decoder
            .body
            .read(buffer.get_mut(..part).unwrap_or_default())?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        decoder.left -= read as u64;
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

    fn file(name: &str) -> UploadFrame {
        UploadFrame::File(FileName {
            name: name.to_owned(),
            file_name: None,
            inside: None,
            format: None,
        })
    }

    fn encode(parts: &[(UploadFrame, &str)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (frame, bytes) in parts {
            body.extend(frame.to_line());
            body.extend(bytes.as_bytes());
        }
        body
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let body = encode(&[
            (file("a"), ""),
            (UploadFrame::Bytes(3), "x\ny"),
            (UploadFrame::Bytes(2), "{}"),
            (file("empty"), ""),
            (file("b"), ""),
            (UploadFrame::Bytes(1), "z"),
        ]);
        let mut files = UploadedFiles::new(body.as_slice());
        let mut seen = Vec::new();
        while let Some((name, mut reader)) = files.next().unwrap() {
            let mut content = String::new();
            reader.read_to_string(&mut content).unwrap();
            seen.push((name.name, content));
        }
        let expected = [("a", "x\ny{}"), ("empty", ""), ("b", "z")];
        assert_eq!(
            seen,
            expected.map(|(name, content)| (name.to_owned(), content.to_owned()))
        );
    }

    #[test]
    fn a_file_that_breaks_does_not_take_the_next_along() {
        let broken = UploadFrame::Broken("it is damaged".to_owned());
        let body = encode(&[
            (file("a"), ""),
            (UploadFrame::Bytes(1), "x"),
            (broken.clone(), ""),
            (UploadFrame::Bytes(1), "y"),
            (file("unread"), ""),
            (UploadFrame::Bytes(2), "no"),
            (broken, ""),
            (file("b"), ""),
            (UploadFrame::Bytes(1), "z"),
        ]);
        let mut files = UploadedFiles::new(body.as_slice());
        let (_, mut content) = files.next().unwrap().unwrap();
        let error = content.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "it is damaged");
        assert_eq!(files.next().unwrap().unwrap().0.name, "unread");
        let (name, mut content) = files.next().unwrap().unwrap();
        let mut text = String::new();
        content.read_to_string(&mut text).unwrap();
        assert_eq!((name.name.as_str(), text.as_str()), ("b", "z"));
    }

    #[test]
    fn what_is_cut_stopped_or_malformed_is_an_error_and_no_end() {
        for (body, words) in [
            (
                encode(&[(file("a"), ""), (UploadFrame::Bytes(9), "xy")]),
                "end of",
            ),
            (
                encode(&[(file("a"), ""), (UploadFrame::Stop(true), "")]),
                "stopped",
            ),
            (encode(&[(file("a"), "nonsense\n")]), "malformed"),
        ] {
            let mut files = UploadedFiles::new(body.as_slice());
            let (_, mut content) = files.next().unwrap().unwrap();
            let error = content.read_to_end(&mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        let bare = encode(&[(UploadFrame::Bytes(1), "x")]);
        assert!(UploadedFiles::new(bare.as_slice()).next().is_err());
    }
}
