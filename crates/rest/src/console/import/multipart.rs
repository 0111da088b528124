//! Forms with files (RFC 7578), read part by part, so that no file is ever held whole.

use std::io::{self, Read, Write};

use axum::http::{HeaderMap, header};

/// The longest head of a part.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

pub(super) struct Multipart<R> {
    reader: R,
    /// What was read and not yet given.
    buffer: Vec<u8>,
    /// What ends a part.
    delimiter: Vec<u8>,
    is_over: bool,
}

/// What a part says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PartHead {
    pub(super) name: String,
    /// As the browser names it; `None` for a plain field.
    pub(super) file_name: Option<String>,
}

/// The boundary that a request announces.
pub(super) fn boundary(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let parameters = kind.strip_prefix("multipart/form-data")?;
    let mut parameters = parameters.split(';').map(str::trim);
    let boundary = parameters.find_map(|one| one.strip_prefix("boundary="))?;
    let boundary = boundary.trim_matches('"');
    (1..=70)
        .contains(&boundary.len())
        .then(|| boundary.to_owned())
}

impl<R: Read> Multipart<R> {
    pub(super) fn new(reader: R, boundary: &str) -> Self {
        Self {
            reader,
            // The first boundary may stand at the very beginning.
            buffer: b"\r\n".to_vec(),
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            is_over: false,
        }
    }

    /// The next part; what is left of the one before is passed over.
    pub(super) fn next_part(&mut self) -> io::Result<Option<PartHead>> {
        if self.is_over {
            return Ok(None);
        }
        self.copy_part(&mut io::sink())?;
        self.buffer.drain(..self.delimiter.len());
        self.fill(2)?;
        if self.buffer.starts_with(b"--") {
            self.is_over = true;
            return Ok(None);
        }
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end).collect();
                // Two of the four stay: an empty part is followed by its delimiter at once.
                self.buffer.drain(..2);
                let head = PartHead::parse(&String::from_utf8_lossy(&head));
                self.skip_line_end()?;
                return Ok(Some(head));
            }
            if self.buffer.len() > MAX_HEAD_BYTES {
                return Err(broken("the head of a part is too long"));
            }
            let wanted = self.buffer.len() + 1;
            self.fill(wanted)?;
        }
    }

    /// Keeps the line end of the head only where a delimiter follows it.
    fn skip_line_end(&mut self) -> io::Result<()> {
        let wanted = self.delimiter.len();
        self.fill_up_to(wanted)?;
        if !self.buffer.starts_with(&self.delimiter) {
            self.buffer.drain(..2);
        }
        Ok(())
    }

    /// Copies the rest of the part; how long it was.
    pub(super) fn copy_part(&mut self, out: &mut dyn Write) -> io::Result<u64> {
        let mut copied = 0;
        loop {
            if let Some(end) = find(&self.buffer, &self.delimiter) {
                out.write_all(self.buffer.get(..end).unwrap_or_default())?;
                self.buffer.drain(..end);
                return Ok(copied + end as u64);
            }
            // The delimiter may have begun in what is here.
            let sure = self.buffer.len().saturating_sub(self.delimiter.len());
            out.write_all(self.buffer.get(..sure).unwrap_or_default())?;
            self.buffer.drain(..sure);
            copied += sure as u64;
            let wanted = self.buffer.len() + 1;
            self.fill(wanted)?;
        }
    }

    /// A plain field, at most so long.
    pub(super) fn text(&mut self, most: usize) -> io::Result<String> {
        let mut text = Bounded {
            bytes: Vec::new(),
            most,
        };
        self.copy_part(&mut text)?;
        String::from_utf8(text.bytes).map_err(|_| broken("a field is not UTF-8"))
    }

    /// Reads until so many bytes are here.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        self.fill_up_to(wanted)?;
        if self.buffer.len() < wanted {
            return Err(broken("the form did not arrive whole"));
        }
        Ok(())
    }

    fn fill_up_to(&mut self, wanted: usize) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.buffer.len() < wanted {
            let read = self.reader.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            self.buffer
                .extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
        Ok(())
    }
}

struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(broken("a field is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

impl PartHead {
    fn parse(head: &str) -> Self {
        let mut lines = head.split("\r\n");
        let is_disposition = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case("content-disposition")
        };
        let disposition = lines.find(is_disposition).unwrap_or_default();
        Self {
            name: parameter(disposition, "name").unwrap_or_default(),
            file_name: parameter(disposition, "filename"),
        }
    }
}

/// A quoted parameter, as browsers write it: a quote in it is `%22`.
fn parameter(line: &str, name: &str) -> Option<String> {
    let begin = format!("; {name}=\"");
    let (_, rest) = line.split_once(&begin)?;
    let (value, _) = rest.split_once('"')?;
    Some(value.replace("%22", "\"").replace("%0D%0A", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes a few at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len()).min(self.0.len());
            buffer[..most].copy_from_slice(&self.0[..most]);
            self.0 = &self.0[most..];
            Ok(most)
        }
    }

    const FORM: &str = "--XX\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\nabc\r\n--XX\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a %22b%22.mbox\"\r\nContent-Type: x/y\r\n\r\nFrom me\r\n--XY\r\n\r\n--X\r\n--XX\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"empty\"\r\n\r\n\r\n--XX--\r\n";

    #[test]
    fn parts_are_cut_where_their_boundary_stands_however_they_arrive() {
        for step in [1, 2, 3, 7, 64, 10_000] {
            let mut form = Multipart::new(Slow(FORM.as_bytes(), step), "XX");
            let csrf = form.next_part().unwrap().unwrap();
            assert_eq!((csrf.name.as_str(), csrf.file_name), ("csrf", None));
            assert_eq!(form.text(10).unwrap(), "abc");
            let file = form.next_part().unwrap().unwrap();
            assert_eq!(file.file_name.as_deref(), Some("a \"b\".mbox"));
            let mut content = Vec::new();
            form.copy_part(&mut content).unwrap();
            assert_eq!(content, b"From me\r\n--XY\r\n\r\n--X", "{step}");
            let empty = form.next_part().unwrap().unwrap();
            assert_eq!(empty.file_name.as_deref(), Some("empty"));
            assert_eq!(form.copy_part(&mut io::sink()).unwrap(), 0);
            assert_eq!(form.next_part().unwrap(), None);
            assert_eq!(form.next_part().unwrap(), None);
        }
    }

    #[test]
    fn what_is_broken_off_or_too_long_is_an_error() {
        for end in 0..FORM.len() - 6 {
            let mut form = Multipart::new(&FORM.as_bytes()[..end], "XX");
            let read = loop {
                match form.next_part() {
                    Ok(Some(_)) => {}
                    other => break other,
                }
            };
            assert!(read.is_err(), "{end}");
        }
        let mut form = Multipart::new(FORM.as_bytes(), "XX");
        form.next_part().unwrap();
        assert!(form.text(2).is_err());
    }

    #[test]
    fn a_boundary_is_announced() {
        let said = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
            boundary(&headers)
        };
        assert_eq!(
            said("multipart/form-data; boundary=----a1").as_deref(),
            Some("----a1")
        );
        assert_eq!(
            said("multipart/form-data; boundary=\"b 2\"").as_deref(),
            Some("b 2")
        );
        assert_eq!(said("multipart/form-data"), None);
        assert_eq!(said("application/x-www-form-urlencoded"), None);
    }
}
