//! One content line taken apart, in any of the dialects that are about: the calendars of RFC 5545 and their predecessor,
//! contacts in the versions 2.1, 3.0 and 4.0.

use mail_parser::decoders::charsets::map::charset_decoder;

use crate::rejection::{Rejection, RejectionCode, quoted};

/// A property: its name in capitals, its parameters, and its value, decoded but still with its escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    /// What ties properties of one contact together: `item1` in `item1.TEL`.
    pub(crate) group: Option<String>,
    pub(crate) name: String,
    parameters: Vec<(String, String)>,
    pub(crate) value: String,
}

/// Whether the line says of itself that its value is quoted printable.
pub(super) fn is_quoted_printable(line: &[u8]) -> bool {
    let head = line.split(|byte| *byte == b':').next().unwrap_or_default();
    head.split(|byte| matches!(byte, b';' | b'='))
        .any(|word| word.eq_ignore_ascii_case(b"QUOTED-PRINTABLE"))
}

/// The name of the property a line holds, as written, without looking at the rest.
pub(super) fn name_of(line: &[u8]) -> Option<&str> {
    let end = line.iter().position(|byte| matches!(byte, b';' | b':'))?;
    let name = std::str::from_utf8(line.get(..end)?).ok()?.trim();
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

impl Property {
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Rejection> {
        let Some((name, colon)) = name_of(line).zip(colon(line)) else {
            let shown = quoted(&String::from_utf8_lossy(line));
            let message = format!("{shown} is not of the form NAME:VALUE");
            return Err(Rejection::new(RejectionCode::MalformedExport, message));
        };
        let (head, value) = line.split_at_checked(colon).unwrap_or_default();
        let value = value.get(1..).unwrap_or_default();
        let not_utf8 = || {
            let message = format!("the value of {name} is not UTF-8");
            Rejection::new(RejectionCode::InvalidUtf8, message)
        };
        let head = std::str::from_utf8(head).map_err(|_| not_utf8())?;
        let mut words = unquoted_split(head, ';');
        let first = words.next().unwrap_or_default().trim();
        let parameters: Vec<_> = words.map(parameter).collect();
        let mut property = Self {
            group: first
                .rsplit_once('.')
                .map(|(group, _)| group.to_ascii_lowercase()),
            name: name.to_ascii_uppercase(),
            parameters,
            value: String::new(),
        };
        property.value = property.decode(value).ok_or_else(not_utf8)?;
        Ok(property)
    }

    fn decode(&self, value: &[u8]) -> Option<String> {
        let is_quoted = self
            .parameter("ENCODING")
            .is_some_and(|encoding| encoding.eq_ignore_ascii_case("QUOTED-PRINTABLE"));
        let bytes = if is_quoted {
            unquote_printable(value)
        } else {
            value.to_vec()
        };
        match String::from_utf8(bytes) {
            Ok(text) => Some(text.replace("\r\n", "\n")),
            // Only the oldest dialect has other character sets, and names them.
            Err(error) => {
                let charset = self.parameter("CHARSET")?;
                charset_decoder(charset.as_bytes()).map(|decode| decode(error.as_bytes()))
            }
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of `TYPE`, in small letters: `TYPE=HOME,VOICE`, `TYPE=home;TYPE=voice` and `HOME;VOICE` are the same.
    pub(crate) fn types(&self) -> impl Iterator<Item = String> {
        self.parameters
            .iter()
            .filter(|(name, _)| name == "TYPE")
            .flat_map(|(_, value)| value.split(','))
            .map(|word| word.trim().to_ascii_lowercase())
            .filter(|word| !word.is_empty())
    }

    /// Everything the property says, for a fingerprint. Groups are numbered anew by each export and left out.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let parameters = self
            .parameters
            .iter()
            .flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        std::iter::once(self.name.as_str())
            .chain(parameters)
            .chain(std::iter::once(self.value.as_str()))
    }

    /// How much memory the property takes, about.
    pub(super) fn weight(&self) -> usize {
        128 + self.words().map(|word| word.len() + 24).sum::<usize>()
    }

    pub(crate) fn text(&self, escapes: Escapes) -> String {
        escapes.undo(&self.value)
    }

    /// The value as several texts, `;` or `,` between them.
    pub(crate) fn texts(&self, separator: char, escapes: Escapes) -> Vec<String> {
        let texts = split(&self.value, separator).into_iter();
        texts.map(|text| escapes.undo(text)).collect()
    }

    /// The value as several lists of texts: `;` between the lists, `,` between the texts of one. Version 2.1 of contact
    /// files has no lists there.
    pub(crate) fn lists(&self, escapes: Escapes) -> Vec<Vec<String>> {
        let lists = split(&self.value, ';').into_iter();
        lists
            .map(|list| match escapes {
                Escapes::All => split(list, ',').into_iter(),
                Escapes::Separators => vec![list].into_iter(),
            })
            .map(|texts| texts.map(|text| escapes.undo(text)).collect())
            .collect()
    }
}

/// Which sequences with `\` stand for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Line ends, separators and the `\` itself.
    All,
    /// Separators only, as in version 2.1 of contact files.
    Separators,
}

impl Escapes {
    fn undo(self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != '\\' {
                plain.push(character);
                continue;
            }
            match (self, characters.next()) {
                (_, Some(separator @ (',' | ';' | ':'))) => plain.push(separator),
                (Self::All, Some('n' | 'N')) => plain.push('\n'),
                (Self::All, Some('\\')) | (_, None) => plain.push('\\'),
                (_, Some(other)) => plain.extend(['\\', other]),
            }
        }
        plain
    }
}

/// Splits where the separator stands without a `\` before it.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut after_backslash = false;
    text.split(|character| {
        let is_escaped = after_backslash;
        after_backslash = character == '\\' && !is_escaped;
        character == separator && !is_escaped
    })
    .collect()
}

/// Where the value begins: at the first colon outside of quotes, or, where a quote never ends, at the first of all.
fn colon(line: &[u8]) -> Option<usize> {
    let mut in_quotes = false;
    let outside = line.iter().position(|byte| {
        in_quotes ^= *byte == b'"';
        *byte == b':' && !in_quotes
    });
    outside.or_else(|| line.iter().position(|byte| *byte == b':'))
}

fn unquoted_split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut in_quotes = false;
    text.split(move |character| {
        in_quotes ^= character == '"';
        character == separator && !in_quotes
    })
}

/// Reads one parameter. The oldest dialect leaves out the name where the value tells it.
fn parameter(word: &str) -> (String, String) {
    let encodings = ["QUOTED-PRINTABLE", "BASE64", "7BIT", "8BIT"];
    let (name, value) = word.split_once('=').unwrap_or_else(|| {
        let is_encoding = encodings
            .iter()
            .any(|one| word.trim().eq_ignore_ascii_case(one));
        (if is_encoding { "ENCODING" } else { "TYPE" }, word)
    });
    (
        name.trim().to_ascii_uppercase(),
        uncaret(&value.trim().replace('"', "")),
    )
}

/// Parameters cannot hold quotes and line ends; RFC 6868 writes them with a caret.
fn uncaret(value: &str) -> String {
    if !value.contains('^') {
        return value.to_owned();
    }
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('^', Some('n')) => plain.push('\n'),
            ('^', Some('\'')) => plain.push('"'),
            ('^', Some('^')) => plain.push('^'),
            _ => {
                plain.push(character);
                continue;
            }
        }
        characters.next();
    }
    plain
}

/// A `=` that begins no sequence stands for itself: there is nothing better it could mean.
fn unquote_printable(value: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *byte == b'=');
        let decoded = digits.and_then(|[high, low]| hexadecimal(*high).zip(hexadecimal(*low)));
        plain.push(decoded.map_or(*byte, |(high, low)| high << 4 | low));
        let read = if decoded.is_some() { 2 } else { 0 };
        rest = after.get(read..).unwrap_or_default();
    }
    plain
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Property {
        Property::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn names_parameters_and_values_come_apart() {
        let property = parse(
            "item1.attendee;CN=\"Weber; Anna: \";X-note=a^nb^'c^'^^d^;PARTSTAT=ACCEPTED:mailto:a@example.com",
        );
        assert_eq!(property.group.as_deref(), Some("item1"));
        assert_eq!(property.name, "ATTENDEE");
        assert_eq!(property.parameter("CN"), Some("Weber; Anna: "));
        assert_eq!(property.parameter("X-NOTE"), Some("a\nb\"c\"^d^"));
        assert_eq!(property.value, "mailto:a@example.com");
        assert_eq!(parse("X;CN=\"open:1").value, "1");
    }

    #[test]
    fn types_are_the_same_in_all_spellings() {
        for line in [
            "TEL;HOME;VOICE:1",
            "TEL;TYPE=HOME,VOICE:1",
            "TEL;type=home;type=voice:1",
            "TEL;TYPE=\"home,voice\":1",
        ] {
            assert_eq!(parse(line).types().collect::<Vec<_>>(), ["home", "voice"]);
        }
    }

    #[test]
    fn escapes_are_undone_after_the_text_was_split() {
        let property = parse(r"ADR:a\;b;c\\;d\, e\nf;\x;;g\");
        assert_eq!(
            property.texts(';', Escapes::All),
            ["a;b", "c\\", "d, e\nf", "\\x", "", "g\\"]
        );
        let property = parse(r"N:Weber;Anna;Maria, Luise\,;;");
        assert_eq!(property.lists(Escapes::All)[2], ["Maria", " Luise,"]);
        assert_eq!(property.lists(Escapes::Separators)[2], ["Maria, Luise,"]);
        assert_eq!(
            parse(r"NOTE:C:\new\;x").text(Escapes::Separators),
            r"C:\new;x"
        );
    }

    #[test]
    fn quoted_printable_and_old_character_sets_become_text() {
        let property = parse("N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=BCrgen=0D=0A1=+1 =4");
        assert_eq!(property.value, "Jürgen\n1=+1 =4");
        let property = parse("N;CHARSET=Windows-1252;QUOTED-PRINTABLE:J=FCrgen =80");
        assert_eq!(property.value, "Jürgen €");
        let property = Property::parse(b"N;CHARSET=SHIFT_JIS:\x8ER\x93c").unwrap();
        assert_eq!(property.value, "山田");
        let error = Property::parse(b"N:J\xFCrgen").unwrap_err();
        assert_eq!(error.code, RejectionCode::InvalidUtf8);
        assert_eq!(error.message, "the value of N is not UTF-8");
    }

    #[test]
    fn what_is_no_property_is_refused_with_its_text() {
        for line in ["no colon", ":x", "a b:c", "", "ü:1"] {
            let error = Property::parse(line.as_bytes()).unwrap_err();
            assert_eq!(error.code, RejectionCode::MalformedExport, "{line}");
        }
        let error = Property::parse(b"a\x1bb").unwrap_err();
        assert_eq!(error.message, r"'a\u{1b}b' is not of the form NAME:VALUE");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd_for_any_character_set(
            charset in proptest::sample::select(vec!["utf-7", "utf-16", "utf-16le", "iso-2022-jp", "gb18030", "big5", "koi8-r", "-", ""]),
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
        ) {
            let line = [b"FN;CHARSET=", charset.as_bytes(), b":", &bytes].concat();
            let read = Property::parse(&line).map(|property| property.name);
            proptest::prop_assert!(read.is_ok_and(|name| name == "FN") || std::str::from_utf8(&bytes).is_err());
        }
    }
}
