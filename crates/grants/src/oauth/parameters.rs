//! The parameters of a request, each given once.

use super::error::OAuthError;

const MAX_BYTES: usize = 65_536;

/// Parameters of a query or a form, in any order.
#[derive(Clone, Default)]
pub struct Parameters(Vec<(String, String)>);

impl std::fmt::Debug for Parameters {
    /// Names only: values may be codes and tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Parameters {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        let pair = |(name, value): (N, V)| (name.into(), value.into());
        Self(pairs.into_iter().map(pair).collect())
    }
}

impl Parameters {
    /// A parameter that may be absent. An empty one counts as absent, a second one is a mistake.
    pub fn optional(&self, name: &str) -> Result<Option<&str>, OAuthError> {
        let mut values = self.0.iter().filter(|(known, _)| known == name);
        let Some((_, value)) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(OAuthError::invalid_request(format!(
                "{name} is given more than once"
            )));
        }
        if value.len() > MAX_BYTES {
            return Err(OAuthError::invalid_request(format!(
                "{name} is longer than 64 KiB"
            )));
        }
        Ok(Some(value.as_str()).filter(|value| !value.is_empty()))
    }

    pub fn required(&self, name: &str) -> Result<&str, OAuthError> {
        self.optional(name)?
            .ok_or_else(|| OAuthError::invalid_request(format!("{name} is required and missing")))
    }
}
