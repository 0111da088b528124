//! How much is kept of what grows by itself, as people write it: a time, a number, or all.

use std::time::Duration;

use clap::Args;
use store::keeping::{Keep, KeepRules};

use crate::moment::span;

/// What is kept of the disclosure log, and of what records were.
#[derive(Debug, Clone, Args)]
pub(crate) struct KeepOptions {
    /// Entries of the disclosure log to keep: a time (90d), a number, or all [default: all]
    #[arg(long, value_name = "TIME|NUMBER", value_parser = keep)]
    keep_log: Option<Keep>,
    /// Replaced versions to keep of each record: a time since it was replaced (90d), a number, or all [default: all]
    #[arg(long, value_name = "TIME|NUMBER", value_parser = keep)]
    keep_versions: Option<Keep>,
}

impl KeepOptions {
    /// The rules, where these say nothing by the others.
    pub(crate) fn rules(&self, otherwise: KeepRules) -> KeepRules {
        KeepRules {
            log: self.keep_log.unwrap_or(otherwise.log),
            versions: self.keep_versions.unwrap_or(otherwise.versions),
        }
    }
}

/// Reads one rule.
pub(crate) fn keep(text: &str) -> Result<Keep, String> {
    if text == "all" {
        return Ok(Keep::All);
    }
    if let Ok(number) = text.parse() {
        return Ok(Keep::Newest(number));
    }
    let micros = |span: Duration| i64::try_from(span.as_micros()).ok();
    span(text)
        .and_then(micros)
        .map(Keep::For)
        .ok_or_else(|| "write a time such as 12h or 90d, a number such as 1000, or all".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_time_a_number_or_all() {
        assert_eq!(keep("all"), Ok(Keep::All));
        assert_eq!(keep("1000"), Ok(Keep::Newest(1_000)));
        assert_eq!(keep("2d"), Ok(Keep::For(172_800_000_000)));
        for wrong in ["", "d", "-1", "1w", "1.5h", "99999999999999999999d"] {
            assert!(keep(wrong).is_err(), "{wrong}");
        }
    }
}
