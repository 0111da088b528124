//! Addresses of pages: a path and the parameters that choose what it shows.

use std::fmt;

use contract::error::ReadError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::params::{Params, decode_pairs, percent_encode};

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The most parameters of a page.
const MAX_PAIRS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    path: String,
    pairs: Vec<(String, String)>,
}

impl Address {
    pub(super) fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            pairs: Vec::new(),
        }
    }

    /// The page of a record.
    pub(super) fn record(connection: &str, stream: &str, key: &str) -> Self {
        Self::of_parts("/records", &[connection, stream, key])
    }

    /// A path of our own, and parts of somebody else's below it.
    pub(super) fn of_parts(path: &str, parts: &[&str]) -> Self {
        let mut whole = path.to_owned();
        for part in parts {
            whole.push('/');
            // A dot alone would be taken for a step in the path.
            let is_step = *part == "." || *part == "..";
            let plain = utf8_percent_encode(part, SEGMENT).to_string();
            whole.push_str(&if is_step {
                plain.replace('.', "%2E")
            } else {
                plain
            });
        }
        Self::new(whole)
    }

    /// Reads an address that a browser sent. Parameters that cannot be decoded are left out, and so are empty ones: a form
    /// sends every field it has.
    pub(super) fn parse(target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut pairs = decode_pairs(query, MAX_PAIRS).unwrap_or_default();
        pairs.retain(|(_, value)| !value.is_empty());
        Self {
            path: path.to_owned(),
            pairs,
        }
    }

    /// The parameters as `/v1` reads them.
    pub(super) fn params(&self) -> Result<Params, ReadError> {
        let text = self.to_string();
        Params::parse(text.split_once('?').map_or("", |(_, query)| query))
    }

    /// With this parameter in addition; an empty one is left out.
    #[must_use]
    pub(super) fn with(mut self, name: impl Into<String>, value: &str) -> Self {
        if !value.is_empty() {
            self.pairs.push((name.into(), value.to_owned()));
        }
        self
    }

    /// With this parameter instead of those of the same name.
    #[must_use]
    pub(super) fn set(self, name: &str, value: &str) -> Self {
        self.without(&[name]).with(name, value)
    }

    /// Without these parameters, and without those that lose their meaning when others change: the place in a list.
    #[must_use]
    pub(super) fn without(mut self, names: &[&str]) -> Self {
        self.pairs
            .retain(|(known, _)| known != "cursor" && !names.contains(&known.as_str()));
        self
    }

    /// Without conditions on fields.
    #[must_use]
    pub(super) fn without_filters(mut self) -> Self {
        self.pairs
            .retain(|(known, _)| !known.starts_with("filter["));
        self
    }

    /// At another place in the same list.
    #[must_use]
    pub(super) fn at(self, cursor: &str) -> Self {
        self.without(&[]).with("cursor", cursor)
    }

    #[must_use]
    pub(super) fn on(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        for (at, (name, value)) in self.pairs.iter().enumerate() {
            let sign = if at == 0 { '?' } else { '&' };
            write!(
                f,
                "{sign}{}={}",
                percent_encode(name),
                percent_encode(value)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_others_stay_parts() {
        let address = Address::record("work", "messages", "a/b?c#d e");
        assert_eq!(
            address.to_string(),
            "/records/work/messages/a%2Fb%3Fc%23d%20e"
        );
        let step = Address::record("work", "messages", "..");
        assert_eq!(step.to_string(), "/records/work/messages/%2E%2E");
    }

    #[test]
    fn a_change_of_the_question_begins_at_its_first_page() {
        let here = Address::parse("/search?q=a+b&cursor=xyz&as=grt_1&order=newest");
        assert_eq!(
            here.clone().set("order", "oldest").to_string(),
            "/search?q=a%20b&as=grt_1&order=oldest"
        );
        assert_eq!(
            here.clone().without(&["as"]).to_string(),
            "/search?q=a%20b&order=newest"
        );
        assert_eq!(
            here.at("next").to_string(),
            "/search?q=a%20b&as=grt_1&order=newest&cursor=next"
        );
    }
}
