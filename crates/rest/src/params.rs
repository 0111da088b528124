//! Parsing query parameters: `a=1`, `a[]=x`, `a[b]=1`, `a[b][c]=1`, repeated at will.
//!
//! Every parameter is checked against those of its route first; an unknown one is refused with the names of the known
//! ones.

use contract::error::{ErrorCode, ReadError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::table::{Param, Shape};

const MAX_PARAMS: usize = 256;
/// How much of a client's text a message repeats.
const QUOTED_CHARS: usize = 64;
/// Characters that form encoding keeps besides letters and digits.
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'*');

/// The parameters of one request, decoded, in the order sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<Entry>);

/// One parameter: `filter[size][gte]=1` has the name `filter`, the path `size`, `gte`, and the value `1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
    pub(crate) value: String,
}

impl Params {
    pub(crate) fn parse(query: &str) -> Result<Self, ReadError> {
        let pairs = decode_pairs(query, MAX_PARAMS)?.into_iter();
        let entries = pairs.map(|(key, value)| Entry::parse(&key, value));
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// Refuses unknown parameters, and brackets or repetition where one value is expected.
    pub(crate) fn check(&self, known: &[Param]) -> Result<(), ReadError> {
        for entry in &self.0 {
            let Some(param) = known.iter().find(|param| param.name == entry.name) else {
                return Err(unknown(&entry.name, known));
            };
            let fits = match param.shape {
                Shape::One => entry.path.is_empty(),
                Shape::Many => match entry.path.as_slice() {
                    [] => true,
                    [place] => place.bytes().all(|byte| byte.is_ascii_digit()),
                    _ => false,
                },
                // The parser of the parameter reports what is wrong more precisely.
                Shape::Named => true,
            };
            if !fits {
                let message = format!("{} takes no [brackets]", param.name);
                return Err(invalid_param(param.name, message));
            }
        }
        let twice = known.iter().find(|param| {
            matches!(param.shape, Shape::One) && self.values(param.name).nth(1).is_some()
        });
        twice.map_or(Ok(()), |param| {
            Err(invalid_param(
                param.name,
                format!("send {} once", param.name),
            ))
        })
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.entries(name).map(|entry| entry.value.as_str())
    }

    pub(crate) fn entries<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.0.iter().filter(move |entry| entry.name == name)
    }

    /// The value of a parameter, also when it is empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|entry| entry.name == name)
            .map(|entry| entry.value.as_str())
    }

    /// The value of a parameter; an empty one counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// All values of a list, comma-separated or repeated; `None` when the parameter was not sent.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        let mut sent = self.values(name).peekable();
        sent.peek()?;
        let parts = sent.flat_map(|value| value.split(',')).map(str::trim);
        Some(
            parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// The query of the next page: the same parameters without `cursor` and `changes_since`, and with the new cursor.
    pub(crate) fn with_cursor(&self, cursor: &str) -> String {
        let kept = self
            .0
            .iter()
            .filter(|entry| !["cursor", "changes_since"].contains(&entry.name.as_str()));
        let mut pairs: Vec<String> = kept
            .map(|entry| {
                format!(
                    "{}={}",
                    percent_encode(&entry.key()),
                    percent_encode(&entry.value)
                )
            })
            .collect();
        pairs.push(format!("cursor={}", percent_encode(cursor)));
        pairs.join("&")
    }
}

impl Entry {
    fn parse(key: &str, value: String) -> Result<Self, ReadError> {
        let (name, brackets) = match key.find('[') {
            Some(at) if at > 0 => key.split_at(at),
            _ => (key, ""),
        };
        let mut path = Vec::new();
        let mut rest = brackets;
        while !rest.is_empty() {
            let part = rest
                .strip_prefix('[')
                .and_then(|inside| inside.split_once(']'))
                .ok_or_else(|| {
                    invalid_param(
                        name,
                        format!("the brackets of {} do not match", quoted(name)),
                    )
                })?;
            path.push(part.0.to_owned());
            rest = part.1;
        }
        Ok(Self {
            name: name.to_owned(),
            path,
            value,
        })
    }

    fn key(&self) -> String {
        let mut key = self.name.clone();
        for part in &self.path {
            key.extend(["[", part, "]"]);
        }
        key
    }
}

/// Decodes the pairs of a query or a form, in the order sent; at most `most` of them.
pub(crate) fn decode_pairs(text: &str, most: usize) -> Result<Vec<(String, String)>, ReadError> {
    let mut pairs = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == most {
            let message = format!("the request has more than {most} parameters");
            return Err(invalid_query(message));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((percent_decode(name)?, percent_decode(value)?));
    }
    Ok(pairs)
}

pub(crate) fn invalid_param(param: &str, message: impl Into<String>) -> ReadError {
    invalid_query(message).with_param(quoted(param))
}

fn invalid_query(message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorCode::InvalidRequest, message)
}

fn unknown(name: &str, known: &[Param]) -> ReadError {
    let name = quoted(name);
    let error = invalid_query(format!("Unsupported query parameter: {name}")).with_param(name);
    let names: Vec<&str> = known.iter().map(|param| param.name).collect();
    error.with_hint(match names.as_slice() {
        [] => "this route takes no query parameters".to_owned(),
        _ => format!("this route takes {}", names.join(", ")),
    })
}

fn percent_decode(text: &str) -> Result<String, ReadError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| invalid_query("the query string is not percent-encoded UTF-8"))
}

pub(crate) fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string()
}

/// A client's text for a message: shortened, without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(QUOTED_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIELDS: Param = Param::many("fields", "");
    const LIMIT: Param = Param::one("limit", "");
    const FILTER: Param = Param::named("filter", "");

    fn parsed(query: &str) -> Params {
        Params::parse(query).unwrap()
    }

    #[test]
    fn lists_come_with_commas_brackets_and_repetition() {
        for query in [
            "fields=a,b",
            "fields=a&fields=b",
            "fields[]=a&fields%5B%5D=b",
            "fields[0]=a&fields[1]=b",
            "fields=a,+b,",
        ] {
            assert_eq!(parsed(query).list("fields").unwrap(), ["a", "b"], "{query}");
        }
        assert_eq!(parsed("fields=").list("fields"), Some(Vec::new()));
        assert_eq!(parsed("x=1").list("fields"), None);
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_names_of_the_known() {
        let error = parsed("limit=1&foo=2").check(&[LIMIT, FIELDS]).unwrap_err();
        assert_eq!(error.message, "Unsupported query parameter: foo");
        assert_eq!(error.param.as_deref(), Some("foo"));
        assert_eq!(
            error.hint.as_deref(),
            Some("this route takes limit, fields")
        );
    }

    #[test]
    fn one_value_is_one_value() {
        for query in ["limit[]=1", "limit[a]=1", "limit=1&limit=2"] {
            assert!(parsed(query).check(&[LIMIT]).is_err(), "{query}");
        }
        assert!(parsed("fields[a]=1").check(&[FIELDS]).is_err());
        assert!(parsed("filter[a][gte]=1").check(&[FILTER]).is_ok());
    }

    #[test]
    fn what_cannot_be_decoded_is_refused() {
        for query in ["q=%ff", "filter[a=1", "filter[a]b=1"] {
            assert_eq!(
                Params::parse(query).unwrap_err().code,
                ErrorCode::InvalidRequest,
                "{query}"
            );
        }
    }

    #[test]
    fn the_next_page_keeps_everything_but_where_it_stood() {
        let next = parsed("limit=1&filter[a]=b c&cursor=old&changes_since=x").with_cursor("n=w");
        assert_eq!(next, "limit=1&filter%5Ba%5D=b%20c&cursor=n%3Dw");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_parameter_survives_being_written_and_read(
            pairs in proptest::collection::vec(("[a-z]{1,4}", proptest::option::of("[^\\[\\]]{0,6}"), ".{0,12}"), 0..6),
        ) {
            let entries: Vec<Entry> = pairs.into_iter().map(|(name, part, value)| Entry {
                name: format!("x{name}"),
                path: part.into_iter().collect(),
                value,
            }).collect();
            let written = Params(entries.clone()).with_cursor("end");
            let mut expected = Params(entries);
            expected.0.push(Entry { name: "cursor".to_owned(), path: Vec::new(), value: "end".to_owned() });
            prop_assert_eq!(Params::parse(&written).unwrap(), expected);
        }

        #[test]
        fn no_query_string_is_too_strange_to_answer(query in ".{0,60}") {
            if let Ok(params) = Params::parse(&query) {
                let _ = params.check(&[LIMIT, FILTER]);
            }
        }
    }
}
