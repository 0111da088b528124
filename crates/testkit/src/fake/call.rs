//! A question as it arrived, and its parameters read strictly.

use percent_encoding::percent_decode_str;

use super::reply::Failure;

/// One request, remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub method: String,
    /// The path as sent, still encoded.
    pub path: String,
    /// The path's segments, decoded one by one.
    pub segments: Vec<String>,
    /// Path and query as sent.
    pub raw_target: String,
    /// The query parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    pub authorization: Option<String>,
    pub host: String,
    pub body: String,
}

impl Call {
    /// Reads a request line and its credential.
    pub fn new(method: &str, target: &str, authorization: Option<&str>) -> Call {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (form_decoded(name), form_decoded(value))
        };
        Call {
            method: method.to_owned(),
            path: path.to_owned(),
            segments: path.split('/').skip(1).map(decoded).collect(),
            raw_target: target.to_owned(),
            query: query
                .split('&')
                .filter(|pair| !pair.is_empty())
                .map(pair)
                .collect(),
            authorization: authorization.map(str::to_owned),
            host: String::new(),
            body: String::new(),
        }
    }

    pub(crate) fn form(&self) -> Call {
        Call::new("POST", &format!("/?{}", self.body), None)
    }

    pub fn values(&self, name: &str) -> Vec<&str> {
        self.query
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).first().copied()
    }

    /// The value of a parameter that may be given once.
    pub(crate) fn once(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.values(name).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(Failure::invalid(name, format!("{name} may be given once"))),
        }
    }

    /// The number in a parameter, within bounds.
    pub(crate) fn number(
        &self,
        name: &str,
        allowed: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<usize>, Failure> {
        let Some(text) = self.once(name)? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => Err(Failure::invalid(
                name,
                format!(
                    "{name} must be an integer from {} to {}",
                    allowed.start(),
                    allowed.end()
                ),
            )),
        }
    }

    /// A list: repeated names, or values joined by commas unless `known` knows the whole value.
    pub(crate) fn list(&self, name: &str, known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut list = Vec::new();
        for value in self.values(name) {
            if known(value) {
                list.push(value.to_owned());
            } else {
                list.extend(value.split(',').map(str::to_owned));
            }
        }
        list
    }

    /// The parameters `name[inner]` and `name[inner][operator]`, as their brackets and value.
    pub(crate) fn bracketed(&self, name: &str) -> Vec<(Vec<&str>, &str)> {
        self.query
            .iter()
            .filter_map(|(found, value)| Some((brackets(found, name)?, value.as_str())))
            .collect()
    }

    /// Refuses parameters that this route does not have. `filter[]` in `allowed` stands for bracketed ones.
    pub(crate) fn only(&self, allowed: &[&str]) -> Result<(), Failure> {
        for (name, _) in &self.query {
            let is_known = allowed.iter().any(|known| match known.strip_suffix("[]") {
                Some(stem) => brackets(name, stem).is_some(),
                None => known == name,
            });
            if !is_known {
                return Err(Failure::invalid(
                    name,
                    format!(
                        "Unsupported query parameter: {name}; allowed: {}",
                        allowed.join(", ")
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// What stands in the brackets after `stem`, one or two pairs of them.
fn brackets<'a>(name: &'a str, stem: &str) -> Option<Vec<&'a str>> {
    let inner = name
        .strip_prefix(stem)?
        .strip_prefix('[')?
        .strip_suffix(']')?;
    let parts: Vec<&str> = inner.split("][").collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(['[', ']']);
    (parts.len() <= 2 && parts.iter().all(is_plain)).then_some(parts)
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn form_decoded(text: &str) -> String {
    decoded(&text.replace('+', " "))
}
