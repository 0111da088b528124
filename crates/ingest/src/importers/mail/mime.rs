//! The parts of a message: what of it is text, and what came along. Depth and number of parts are bounded, and work is in
//! proportion to the size of the message, whatever it claims about itself.

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{ContentType, Message, MessageParser, MimeHeaders as _};
use memchr::memchr;

use crate::importers::html;

/// Parts within parts; what is deeper is kept whole.
const MAX_DEPTH: usize = 16;
const MAX_PARTS: usize = 1_000;
/// The headers of one part together.
const MAX_HEAD_BYTES: usize = 1024 * 1024;
/// The longest file whose text is taken.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Takes what others write: without padding, or with bits left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Default)]
pub(super) struct Content<'m> {
    pub(super) text: String,
    /// Whether it was written as plain text.
    is_plain: bool,
    pub(super) files: Vec<File<'m>>,
}

pub(super) struct File<'m> {
    pub(super) name: Option<String>,
    pub(super) media_type: String,
    charset: Option<String>,
    pub(super) bytes: Cow<'m, [u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Plain,
    Base64,
    QuotedPrintable,
}

/// A message has more parts than are taken apart.
#[derive(Debug)]
pub(super) struct TooManyParts;

static HEADERS: LazyLock<MessageParser> = LazyLock::new(MessageParser::default);

/// Reads headers. None if there are none, or more than anybody sends.
pub(super) fn headers(head: &[u8]) -> Option<Message<'_>> {
    let is_short = head.len() <= MAX_HEAD_BYTES;
    is_short.then(|| HEADERS.parse_headers(head)).flatten()
}

/// Sender and subject of a message that is forwarded, a line each.
fn about(message: &Message<'_>) -> String {
    let from = message.from().and_then(|from| from.first());
    let from = from.map(|from| match (from.name(), from.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => address.or(name).unwrap_or_default().to_owned(),
    });
    let subject = message.subject().map(str::to_owned);
    let lines = [("From", from), ("Subject", subject)].into_iter();
    let lines = lines.filter_map(|(name, said)| Some(format!("{name}: {}\n", said?)));
    lines.collect()
}

/// Headers and body of a message or a part of one.
pub(super) struct Part<'m> {
    pub(super) head: &'m [u8],
    pub(super) body: &'m [u8],
}

impl<'m> Part<'m> {
    /// Splits at the first blank line.
    pub(super) fn split(bytes: &'m [u8]) -> Self {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let length = line_length(rest);
            let line = rest.get(..length).unwrap_or_default();
            if line.trim_ascii().is_empty() {
                let (head, body) = bytes.split_at(at);
                return Self {
                    head,
                    body: body.get(length..).unwrap_or_default(),
                };
            }
            at += length;
        }
        Self {
            head: bytes,
            body: &[],
        }
    }

    /// The headers as UTF-8, each with the end of its line. A line that is not, was written before that was asked for.
    pub(super) fn readable_head(&self) -> Cow<'m, [u8]> {
        let mut head = self.utf8_head();
        if !head.is_empty() && !head.ends_with(b"\n") {
            head.to_mut().push(b'\n');
        }
        head
    }

    fn utf8_head(&self) -> Cow<'m, [u8]> {
        if std::str::from_utf8(self.head).is_ok() {
            return self.head.into();
        }
        let lines = self.head.split_inclusive(|byte| *byte == b'\n');
        let lines = lines.flat_map(|line| match std::str::from_utf8(line) {
            Ok(_) => line.to_vec(),
            Err(_) => western(line).into_bytes(),
        });
        lines.collect::<Vec<u8>>().into()
    }
}

pub(super) fn content<'m>(
    headers: Option<&Message<'_>>,
    body: &'m [u8],
) -> Result<Content<'m>, TooManyParts> {
    let mut left = MAX_PARTS;
    let kind = headers.map(Kind::from_headers).unwrap_or_default();
    gather(&kind, body, MAX_DEPTH, &mut left)
}

/// What the headers of a part say about its body.
struct Kind {
    main: String,
    sub: String,
    boundary: Option<String>,
    charset: Option<String>,
    name: Option<String>,
    is_attached: bool,
    encoding: Encoding,
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            main: "text".to_owned(),
            sub: "plain".to_owned(),
            boundary: None,
            charset: None,
            name: None,
            is_attached: false,
            encoding: Encoding::Plain,
        }
    }
}

impl Kind {
    fn from_headers(headers: &Message<'_>) -> Self {
        let part = headers.root_part();
        let encoding = part.content_transfer_encoding().unwrap_or_default().trim();
        let encoding = if encoding.eq_ignore_ascii_case("base64") {
            Encoding::Base64
        } else if encoding.eq_ignore_ascii_case("quoted-printable") {
            Encoding::QuotedPrintable
        } else {
            Encoding::Plain
        };
        let disposition = part.content_disposition();
        let kind = Self {
            name: part.attachment_name().map(str::to_owned),
            is_attached: disposition.is_some_and(ContentType::is_attachment),
            encoding,
            ..Self::default()
        };
        let Some(content_type) = part.content_type() else {
            return kind;
        };
        let attribute = |name| content_type.attribute(name).map(str::to_owned);
        Self {
            main: content_type.ctype().to_ascii_lowercase(),
            sub: content_type
                .subtype()
                .unwrap_or_default()
                .to_ascii_lowercase(),
            boundary: attribute("boundary").filter(|boundary| !boundary.is_empty()),
            charset: attribute("charset"),
            ..kind
        }
    }

    fn is(&self, main: &str, sub: &str) -> bool {
        self.main == main && self.sub == sub
    }

    /// Whether it is there to be read with the message. A part with a name is a file; a whole message is none.
    fn is_text(&self, is_whole: bool) -> bool {
        (self.is("text", "plain") || self.is("text", "html"))
            && !self.is_attached
            && (is_whole || self.name.is_none())
    }
}

fn gather<'m>(
    kind: &Kind,
    body: &'m [u8],
    depth: usize,
    left: &mut usize,
) -> Result<Content<'m>, TooManyParts> {
    *left = left.checked_sub(1).ok_or(TooManyParts)?;
    if kind.main == "multipart"
        && let Some(boundary) = kind.boundary.as_deref()
        && depth > 0
    {
        let parts = split_at_boundary(body, boundary.as_bytes());
        if !parts.is_empty() {
            let mut all = Vec::new();
            for bytes in parts {
                let part = Part::split(bytes);
                let head = part.readable_head();
                let headers = headers(&head);
                let mut inner = headers.as_ref().map(Kind::from_headers).unwrap_or_default();
                if kind.sub == "digest"
                    && headers
                        .as_ref()
                        .is_none_or(|one| one.content_type().is_none())
                {
                    (inner.main, inner.sub) = ("message".to_owned(), "rfc822".to_owned());
                }
                all.push(gather(&inner, part.body, depth - 1, left)?);
            }
            return Ok(Content::from_parts(all, kind.sub == "alternative"));
        }
    }
    if kind.is_text(depth == MAX_DEPTH) || (kind.main == "multipart" && depth > 0) {
        return Ok(Content::from_text(kind, body));
    }
    let media_type = if kind.sub.is_empty() {
        "application/octet-stream".to_owned()
    } else {
        format!("{}/{}", kind.main, kind.sub)
    };
    Ok(Content {
        files: vec![File {
            name: kind.name.clone(),
            media_type,
            charset: kind.charset.clone(),
            bytes: decode(kind.encoding, body),
        }],
        ..Content::default()
    })
}

impl Content<'_> {
    fn from_text(kind: &Kind, body: &[u8]) -> Self {
        let text = decode_charset(&decode(kind.encoding, body), kind.charset.as_deref());
        let is_plain = kind.sub != "html";
        Self {
            text: readable(&text, !is_plain),
            is_plain,
            files: Vec::new(),
        }
    }

    /// What parts hold together; of alternatives the one that is plain text, else the last, which is the richest.
    fn from_parts(parts: Vec<Self>, are_alternatives: bool) -> Self {
        let mut whole = Self::default();
        for part in parts {
            whole.files.extend(part.files);
            if part.text.trim().is_empty() {
                continue;
            }
            if whole.text.is_empty() || (are_alternatives && !whole.is_plain) {
                (whole.text, whole.is_plain) = (part.text, part.is_plain);
            } else if !are_alternatives {
                let gap = if whole.text.ends_with('\n') {
                    "\n"
                } else {
                    "\n\n"
                };
                whole.text.push_str(gap);
                whole.text.push_str(&part.text);
                whole.is_plain &= part.is_plain;
            }
        }
        whole
    }
}

impl File<'_> {
    /// What is there to be read in it, if it is a text or a message.
    pub(super) fn text(&self) -> Option<String> {
        if self.bytes.len() > MAX_TEXT_BYTES {
            return None;
        }
        let text = if self.media_type == "message/rfc822" {
            let part = Part::split(&self.bytes);
            let head = part.readable_head();
            let headers = headers(&head);
            let words = content(headers.as_ref(), part.body).ok()?.text;
            // Who wrote what is what people look for.
            let about = headers.map(|headers| about(&headers)).unwrap_or_default();
            if about.is_empty() {
                words
            } else {
                format!("{about}\n{words}")
            }
        } else if self.media_type.starts_with("text/") {
            let text = decode_charset(&self.bytes, self.charset.as_deref());
            readable(&text, self.media_type == "text/html")
        } else {
            return None;
        };
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

/// Text with the line ends of texts; of HTML, what it says.
fn readable(text: &str, is_html: bool) -> String {
    let text = text.replace("\r\n", "\n");
    if is_html { html::to_text(&text) } else { text }
}

/// The parts between the lines that separate them.
fn split_at_boundary<'m>(body: &'m [u8], boundary: &[u8]) -> Vec<&'m [u8]> {
    let mut parts = Vec::new();
    let mut begun = None;
    let mut at = 0;
    while let Some(rest) = body.get(at..).filter(|rest| !rest.is_empty()) {
        let line = rest.get(..line_length(rest)).unwrap_or_default();
        let after = line
            .strip_prefix(b"--")
            .and_then(|line| line.strip_prefix(boundary));
        let after = after.map(<[u8]>::trim_ascii_end);
        let is_end = after == Some(b"--");
        if is_end || after == Some(b"") {
            if let Some(begun) = begun {
                parts.push(without_line_end(body.get(begun..at).unwrap_or_default()));
            }
            begun = Some(at + line.len());
            if is_end {
                return parts;
            }
        }
        at += line.len();
    }
    // The end is missing; what came is kept.
    parts.extend(
        begun
            .and_then(|begun| body.get(begun..))
            .filter(|rest| !rest.is_empty()),
    );
    parts
}

fn line_length(bytes: &[u8]) -> usize {
    let end = memchr(b'\n', bytes);
    end.map_or(bytes.len(), |end| end + 1)
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn decode(encoding: Encoding, raw: &[u8]) -> Cow<'_, [u8]> {
    match encoding {
        Encoding::Plain => raw.into(),
        Encoding::QuotedPrintable => unquote(raw).into(),
        Encoding::Base64 => {
            // Lines of digits, mostly. Only where there is anything else is every byte looked at.
            let bytes = BASE64.decode(joined_lines(raw));
            let bytes = bytes.or_else(|_| BASE64.decode(digits(raw)));
            bytes.map_or(raw.into(), Cow::Owned)
        }
    }
}

fn joined_lines(raw: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(line_length(rest));
        joined.extend_from_slice(line.trim_ascii());
        rest = after;
    }
    joined
}

/// The digits of base 64, as many as make whole bytes.
fn digits(raw: &[u8]) -> Vec<u8> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut digits: Vec<u8> = raw.iter().copied().filter(is_digit).collect();
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    digits
}

/// Reads quoted-printable text. A sign of equality that means nothing is one.
fn unquote(raw: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'=' {
            bytes.push(*first);
            continue;
        }
        if let [high, low, after @ ..] = tail
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            bytes.push(high << 4 | low);
            rest = after;
            continue;
        }
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
        let spaces = tail.iter().take_while(is_space).count();
        match tail.get(spaces..) {
            // The line goes on.
            Some([b'\n', after @ ..]) => rest = after,
            Some([]) => rest = &[],
            _ => bytes.push(b'='),
        }
    }
    bytes
}

fn decode_charset(bytes: &[u8], charset: Option<&str>) -> String {
    let named = charset.and_then(|name| charset_decoder(name.trim().as_bytes()));
    match (named, std::str::from_utf8(bytes)) {
        (Some(decode), _) => decode(bytes),
        (None, Ok(text)) => text.to_owned(),
        (None, Err(_)) => western(bytes),
    }
}

/// What most programs wrote when they did not say what they write.
fn western(bytes: &[u8]) -> String {
    match charset_decoder(b"windows-1252") {
        Some(decode) => decode(bytes),
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}
