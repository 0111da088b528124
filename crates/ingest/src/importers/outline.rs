//! Taking a large JSON document apart without holding it: members and elements are handed out one at a time, and a
//! value is either taken, up to a limit, or passed over. Only the outline is checked here; a value that was taken is
//! parsed by the caller. Missing commas are accepted: they decide nothing.

use std::borrow::Cow;
use std::io::{self, BufRead};

use contract::json;

use crate::error::InputError;
use crate::lines::BYTE_ORDER_MARK;

/// Names of members are short; a longer one is none of those that are looked for.
const NAME_BYTES: usize = 256;
/// What the buffer shrinks back to after a large value.
const KEPT_BYTES: usize = 1024 * 1024;

/// A document, read from its beginning to its end.
pub(crate) struct Outline<R> {
    reader: R,
    line_ends: u64,
    value: Vec<u8>,
}

/// How far a value has been read.
#[derive(Default)]
struct Progress {
    depth: usize,
    in_text: bool,
    escaped: bool,
    begun: bool,
}

/// What a byte means for the value it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It belongs to the value, and more does.
    Inside,
    /// It is the last byte of the value.
    Last,
    /// The value ended before it.
    After,
}

impl<R: BufRead> Outline<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            line_ends: 0,
            value: Vec::new(),
        }
    }

    pub(crate) fn line(&self) -> u64 {
        self.line_ends + 1
    }

    pub(crate) fn taken(&self) -> &[u8] {
        &self.value
    }

    /// The first byte of what comes next, which is not consumed. Nothing at the end of the document.
    pub(crate) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.reader.fill_buf()?;
            let Some(&byte) = chunk.first() else {
                return Ok(None);
            };
            match byte {
                b'\n' => self.line_ends += 1,
                b' ' | b'\t' | b'\r' | b',' => {}
                // Only ever at the beginning; elsewhere no value begins with these bytes either.
                byte if BYTE_ORDER_MARK.contains(&byte) => {}
                byte => return Ok(Some(byte)),
            }
            self.reader.consume(1);
        }
    }

    /// Steps into an object or an array, if one begins here.
    pub(crate) fn enter(&mut self, bracket: u8) -> io::Result<bool> {
        let begins = self.peek()? == Some(bracket);
        if begins {
            self.reader.consume(1);
        }
        Ok(begins)
    }

    /// Inside an object: the name of the next member, whose value comes next. Nothing where the object ends.
    pub(crate) fn member(&mut self) -> Result<Option<String>, InputError> {
        match self.peek()? {
            Some(b'}') => {
                self.reader.consume(1);
                return Ok(None);
            }
            Some(b'"') => {}
            Some(_) => return Err(self.broken("a member of an object should begin here")),
            None => return Err(self.ended()),
        }
        // A name that is too long or no text is none that anybody looks for.
        let fits = self.take(NAME_BYTES)?;
        let name = std::str::from_utf8(&self.value).ok().filter(|_| fits);
        let name = name
            .and_then(json::decode_string)
            .unwrap_or_default()
            .into_owned();
        if !self.enter(b':')? {
            return Err(self.broken("a member of an object has no value"));
        }
        Ok(Some(name))
    }

    /// Inside an array: whether another element comes next. The end of the array is consumed.
    pub(crate) fn element(&mut self) -> Result<bool, InputError> {
        match self.peek()? {
            Some(b']') => {
                self.reader.consume(1);
                Ok(false)
            }
            Some(b'}' | b':') => Err(self.broken("an element of a list should begin here")),
            Some(_) => Ok(true),
            None => Err(self.ended()),
        }
    }

    /// Takes the value that comes next, see [`Outline::taken`]; or passes over it and says no if it has more bytes than
    /// that.
    pub(crate) fn take(&mut self, limit: usize) -> Result<bool, InputError> {
        self.value.clear();
        self.value.shrink_to(KEPT_BYTES);
        self.read(Some(limit))
    }

    /// Passes over the value that comes next.
    pub(crate) fn skip(&mut self) -> Result<(), InputError> {
        self.read(None).map(|_| ())
    }

    fn read(&mut self, limit: Option<usize>) -> Result<bool, InputError> {
        match self.peek()? {
            None => return Err(self.ended()),
            Some(b'}' | b']' | b':') => return Err(self.broken("a value should begin here")),
            Some(_) => {}
        }
        let mut progress = Progress::default();
        let mut fits = limit.is_some();
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                // A number or a word may stand at the very end.
                let is_whole = progress.begun && progress.depth == 0 && !progress.in_text;
                return is_whole.then_some(fits).ok_or_else(|| self.ended());
            }
            let (mut used, mut step) = (0, Step::Inside);
            for &byte in chunk {
                let escape = progress.escaped;
                step = progress.step(byte);
                if step == Step::After {
                    break;
                }
                used += 1;
                self.line_ends += u64::from(byte == b'\n');
                if fits {
                    // Telegram writes control characters as \x1F, which JSON does not know.
                    match byte {
                        b'x' if escape => self.value.extend(b"u00"),
                        byte => self.value.push(byte),
                    }
                    fits = limit.is_some_and(|limit| self.value.len() <= limit);
                }
                if step == Step::Last {
                    break;
                }
            }
            self.reader.consume(used);
            if step != Step::Inside {
                return Ok(fits);
            }
        }
    }

    pub(crate) fn broken(&self, message: &'static str) -> InputError {
        InputError::Broken {
            line: self.line(),
            message,
        }
    }

    pub(crate) fn ended(&self) -> InputError {
        self.broken("the file ends too early")
    }
}

/// The members of an object that a file begins with, or of the first in a list, as far as they are there; and the text of one of
/// them.
pub(crate) fn first_members(head: &[u8], wanted: &str) -> (Vec<String>, Option<String>) {
    let (mut members, mut text) = (Vec::new(), None);
    let mut outline = Outline::new(head);
    let _ = outline.enter(b'[');
    if !outline.enter(b'{').unwrap_or_default() {
        return (members, text);
    }
    while let Ok(Some(name)) = outline.member() {
        let is_wanted = name == wanted;
        members.push(name);
        let read = if is_wanted {
            outline.take(NAME_BYTES).map(|_| ())
        } else {
            outline.skip()
        };
        if read.is_err() {
            break;
        }
        if is_wanted {
            let taken = std::str::from_utf8(outline.taken()).ok();
            text = taken.and_then(json::decode_string).map(Cow::into_owned);
        }
    }
    (members, text)
}

impl Progress {
    fn step(&mut self, byte: u8) -> Step {
        self.begun = true;
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_text = false;
                    return self.closed();
                }
                _ => {}
            }
            return Step::Inside;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                return self.closed();
            }
            b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                return Step::After;
            }
            _ => {}
        }
        Step::Inside
    }

    fn closed(&self) -> Step {
        match self.depth {
            0 => Step::Last,
            _ => Step::Inside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> Outline<io::BufReader<&[u8]>> {
        // Three bytes at a time, so that everything is cut everywhere.
        Outline::new(io::BufReader::with_capacity(3, text.as_bytes()))
    }

    fn taken<'o>(outline: &'o Outline<io::BufReader<&[u8]>>) -> &'o str {
        std::str::from_utf8(outline.taken()).unwrap()
    }

    #[test]
    fn members_and_elements_come_one_at_a_time_with_their_lines() {
        let mut read =
            outline("\u{feff}{\n \"a\\u0062\": 12,\n\"c\": [\"]\\\"\", {\"d\":[]}\n, x]}\n");
        assert!(read.enter(b'{').unwrap());
        assert_eq!(read.member().unwrap().as_deref(), Some("ab"));
        assert_eq!(read.line(), 2);
        assert!(read.take(10).unwrap());
        assert_eq!(taken(&read), "12");
        assert_eq!(read.member().unwrap().as_deref(), Some("c"));
        assert!(!read.enter(b'{').unwrap());
        assert!(read.enter(b'[').unwrap());
        assert!(read.element().unwrap());
        assert!(read.take(10).unwrap());
        assert_eq!(taken(&read), r#""]\"""#);
        assert!(read.element().unwrap());
        assert!(read.take(10).unwrap());
        assert_eq!(taken(&read), r#"{"d":[]}"#);
        assert!(read.element().unwrap());
        assert_eq!(read.line(), 4);
        read.skip().unwrap();
        assert!(!read.element().unwrap());
        assert_eq!(read.member().unwrap(), None);
        assert_eq!(read.peek().unwrap(), None);
    }

    #[test]
    fn a_value_beyond_the_limit_is_passed_over() {
        let mut read = outline("[\"12345\",\"123456\",7]");
        assert!(read.enter(b'[').unwrap());
        assert!(read.take(7).unwrap());
        assert!(!read.take(7).unwrap());
        assert!(read.take(7).unwrap());
        assert_eq!(taken(&read), "7");
    }

    #[test]
    fn control_characters_as_telegram_writes_them_become_json() {
        let mut read = outline(r#""a\x1Fb\\x1F""#);
        assert!(read.take(100).unwrap());
        assert_eq!(taken(&read), r#""a\u001Fb\\x1F""#);
    }

    #[test]
    fn what_is_no_outline_is_an_error_with_its_line() {
        for text in [
            "{\n",
            "{\n\"a\"",
            "{\n\"a\" 1}",
            "{\n1:2}",
            "{\n\"a\":}",
            "{\n\"a\":[1}",
        ] {
            let mut read = outline(text);
            assert!(read.enter(b'{').unwrap());
            let end = (|| -> Result<(), InputError> {
                while read.member()?.is_some() {
                    read.skip()?;
                }
                Ok(())
            })();
            assert!(
                matches!(end, Err(InputError::Broken { line: 2, .. })),
                "{text}: {end:?}"
            );
        }
    }
}
