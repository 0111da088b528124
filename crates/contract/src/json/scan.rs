//! The validating scanner: one pass over the text, no copy of anything but escaped member names.
//! Every record of an import goes through here, so strings are searched eight bytes at a time.

use std::{borrow::Cow, ops::Range};

use super::{JsonError, JsonErrorCode};
use crate::segment;

/// How many objects and arrays may stand inside one another.
pub const MAX_DEPTH: usize = 100;

/// What may stand between tokens.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Up to this many members are compared pair by pair, which beats sorting.
const FEW_MEMBERS: usize = 16;

/// A member that was read: its name, where its opening quote stands, and where its value stands.
pub(super) struct Seen<'t> {
    pub(super) name: Cow<'t, str>,
    pub(super) offset: usize,
    pub(super) value: Range<usize>,
}

/// The inside of a string token, and whether it is written with escapes.
pub(super) struct StringToken {
    content: Range<usize>,
    escaped: bool,
}

/// Reads JSON tokens and values from a text.
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// Members of every object that is open, outermost first.
    open: Vec<Seen<'t>>,
}

type Scan<T> = Result<T, JsonError>;

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
        }
    }

    /// The members of the one object that is the whole text.
    pub(super) fn record(mut self) -> Scan<Vec<Seen<'t>>> {
        self.skip_white_space();
        match self.peek() {
            Some(b'{') => {
                self.open.reserve(FEW_MEMBERS);
                self.object(1)?;
            }
            Some(_) => {
                self.value(1)?;
                return Err(
                    self.fault(JsonErrorCode::NotAnObject, "the value is not a JSON object")
                );
            }
            None => return Err(self.malformed("the text holds no JSON value")),
        }
        self.end()?;
        Ok(self.open)
    }

    /// Passes if only white space is left.
    pub(super) fn end(&mut self) -> Scan<()> {
        self.skip_white_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("something follows the JSON value")),
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over the byte that `peek` showed.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    pub(super) fn malformed(&self, message: &str) -> JsonError {
        self.fault(JsonErrorCode::Malformed, message)
    }

    pub(super) fn takes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes the byte, or fails saying what is missing.
    pub(super) fn expect(&mut self, byte: u8, missing: &str) -> Scan<()> {
        if self.takes(byte) {
            Ok(())
        } else {
            Err(self.malformed(missing))
        }
    }

    /// Refuses to open one more object or array than allowed.
    pub(super) fn check_depth(&self, depth: usize) -> Scan<()> {
        if depth > MAX_DEPTH {
            let message = format!("the value is nested deeper than {MAX_DEPTH} levels");
            return Err(self.fault(JsonErrorCode::TooDeep, &message));
        }
        Ok(())
    }

    /// A scalar that is not a string, as written.
    pub(super) fn bare_scalar(&mut self) -> Scan<&'t str> {
        let start = self.at;
        match self.peek() {
            Some(b'n') => self.word("null")?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => return Err(self.malformed("expected a JSON value")),
            None => return Err(self.malformed("the text ends where a JSON value should stand")),
        }
        let scalar = self.text.get(start..self.at);
        scalar.ok_or_else(|| self.malformed("expected a JSON value"))
    }

    pub(super) fn string(&mut self) -> Scan<Cow<'t, str>> {
        let token = self.string_token()?;
        Ok(self.decoded(&token))
    }

    /// Checks a value; `depth` is the depth it would have as an object or array.
    fn value(&mut self, depth: usize) -> Scan<()> {
        match self.peek() {
            Some(b'"') => self.string_token().map(|_| ()),
            Some(b'{') => {
                let outer = self.open.len();
                self.object(depth)?;
                self.open.truncate(outer);
                Ok(())
            }
            Some(b'[') => self.array(depth),
            _ => self.bare_scalar().map(|_| ()),
        }
    }

    fn array(&mut self, depth: usize) -> Scan<()> {
        self.check_depth(depth)?;
        self.skip();
        self.skip_white_space();
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            self.skip_white_space();
            self.value(depth + 1)?;
            self.skip_white_space();
            if self.takes(b']') {
                return Ok(());
            }
            self.expect(b',', "expected ',' or ']' in the array")?;
        }
    }

    /// Checks an object and leaves its members at the end of `open`.
    fn object(&mut self, depth: usize) -> Scan<()> {
        self.check_depth(depth)?;
        self.skip();
        self.skip_white_space();
        if self.takes(b'}') {
            return Ok(());
        }
        let first = self.open.len();
        loop {
            self.skip_white_space();
            self.member(depth)?;
            self.skip_white_space();
            if self.takes(b'}') {
                return self.check_names(first);
            }
            self.expect(b',', "expected ',' or '}' in the object")?;
        }
    }

    fn member(&mut self, depth: usize) -> Scan<()> {
        let offset = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.malformed("expected a member name in double quotes"));
        }
        let name = self.string()?;
        self.skip_white_space();
        self.expect(b':', "expected ':' after the member name")?;
        self.skip_white_space();
        let start = self.at;
        self.value(depth + 1)?;
        self.open.push(Seen {
            name,
            offset,
            value: start..self.at,
        });
        Ok(())
    }

    /// Refuses equal names among the members of the innermost object, which begin at `first`.
    fn check_names(&self, first: usize) -> Scan<()> {
        let members = self.open.get(first..).unwrap_or_default();
        let repeated = if members.len() <= FEW_MEMBERS {
            members
                .iter()
                .enumerate()
                .find(|(index, member)| {
                    members
                        .iter()
                        .take(*index)
                        .any(|earlier| earlier.name == member.name)
                })
                .map(|(_, member)| member)
        } else {
            let mut sorted: Vec<&Seen<'_>> = members.iter().collect();
            sorted.sort_unstable_by(|a, b| a.name.cmp(&b.name).then(a.offset.cmp(&b.offset)));
            let again = |pair: &[&Seen<'t>]| match pair {
                [earlier, later] if earlier.name == later.name => Some(later.offset),
                _ => None,
            };
            let offset = sorted.windows(2).filter_map(again).min();
            offset.and_then(|offset| members.iter().find(|member| member.offset == offset))
        };
        match repeated {
            None => Ok(()),
            Some(member) => Err(JsonError {
                offset: member.offset,
                message: format!(
                    "the member {} appears twice in one object",
                    segment::quoted(&member.name)
                ),
                code: JsonErrorCode::DuplicateMember,
            }),
        }
    }

    fn string_token(&mut self) -> Scan<StringToken> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut escaped = false;
        self.at = start;
        loop {
            self.at = plain_run(bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(StringToken {
                        content: start..self.at - 1,
                        escaped,
                    });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => {
                    return Err(self.malformed("a control character stands unescaped in a string"));
                }
                None => return Err(self.malformed("the text ends inside a string")),
            }
        }
    }

    /// Checks the escape that starts here, with both halves of a surrogate pair.
    fn escape(&mut self) -> Scan<()> {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let taken = match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(2),
            Some(b'u') => unicode_escape(rest).map(|(_, length)| length),
            _ => None,
        };
        match taken {
            Some(length) => {
                self.at += length;
                Ok(())
            }
            None => Err(self.malformed("an escape in a string is not valid Unicode JSON")),
        }
    }

    fn decoded(&self, token: &StringToken) -> Cow<'t, str> {
        let content = self.text.get(token.content.clone()).unwrap_or_default();
        if token.escaped {
            Cow::Owned(unescaped(content))
        } else {
            Cow::Borrowed(content)
        }
    }

    fn word(&mut self, word: &str) -> Scan<()> {
        let found = self
            .text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word.as_bytes()));
        if !found {
            return Err(self.malformed("expected a JSON value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Scan<()> {
        self.takes(b'-');
        if !self.takes(b'0') {
            self.digits()?;
        }
        if self.takes(b'.') {
            self.digits()?;
        }
        if self.takes(b'e') || self.takes(b'E') {
            let _ = self.takes(b'+') || self.takes(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if start == self.at {
            return Err(self.malformed("a digit is missing in a number"));
        }
        Ok(())
    }

    fn fault(&self, code: JsonErrorCode, message: &str) -> JsonError {
        JsonError {
            offset: self.at,
            message: message.to_owned(),
            code,
        }
    }
}

/// The decoded text of a JSON string, or nothing if the text is not one.
pub fn decode_string(raw: &str) -> Option<Cow<'_, str>> {
    let mut scanner = Scanner::new(raw);
    scanner.skip_white_space();
    if scanner.peek() != Some(b'"') {
        return None;
    }
    let text = scanner.string().ok()?;
    scanner.end().ok()?;
    Some(text)
}

/// Whether the whole text is one JSON number.
pub fn is_number(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.number().is_ok() && scanner.peek().is_none()
}

/// The first place at or after `at` that ends a run of plain string content: a quote, a backslash or a control byte.
fn plain_run(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    // In each mask the lowest marked byte is right; a borrow can only mark bytes above one that is.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(SPACES) & !word & HIGH;
        let found = zeros(word ^ QUOTES) | zeros(word ^ BACKSLASHES) | control;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
    at + rest.iter().take_while(|byte| plain(byte)).count()
}

/// The character of the `\u` escape that begins `bytes`, and how many bytes it takes: six, or twelve for a pair.
fn unicode_escape(bytes: &[u8]) -> Option<(char, usize)> {
    let unit = |from: usize| -> Option<u32> {
        if bytes.get(from..from + 2)? != b"\\u" {
            return None;
        }
        bytes
            .get(from + 2..from + 6)?
            .iter()
            .try_fold(0, |unit, byte| {
                char::from(*byte)
                    .to_digit(16)
                    .map(|digit| unit * 16 + digit)
            })
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 6));
    }
    let high = first.checked_sub(0xD800).filter(|high| *high < 0x400)?;
    let low = unit(6)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x1_0000 + (high << 10) + low)?, 12))
}

/// Decodes string content whose escapes have been checked.
fn unescaped(content: &str) -> String {
    let mut decoded = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        decoded.push_str(plain);
        let (c, length) = match escape.as_bytes().get(1) {
            Some(b'u') => {
                unicode_escape(escape.as_bytes()).unwrap_or((char::REPLACEMENT_CHARACTER, 6))
            }
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(other) => (char::from(*other), 2),
            None => break,
        };
        decoded.push(c);
        rest = escape.get(length..).unwrap_or_default();
    }
    decoded.push_str(rest);
    decoded
}
