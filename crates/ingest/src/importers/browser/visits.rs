//! Visits as records, and those that Google Takeout and Safari hand out.

use contract::time::Instant;
use serde_json::{Value, json};

use crate::importers::json_members::text;
use crate::importers::pieces::{Converter, Made, malformed, parse_json};
use crate::readable_key::short_hash;
use crate::rejection::Rejection;

/// A visit, as any browser tells it.
pub(super) struct Visit<'v> {
    pub(super) url: &'v str,
    pub(super) title: Option<&'v str>,
    /// Microseconds since 1970.
    pub(super) micros: i64,
    pub(super) kind: Option<&'v str>,
    pub(super) browser: &'static str,
}

impl Visit<'_> {
    /// Its record. The key is made of when, where and by which browser: it is the same in every copy of the history.
    pub(super) fn record(&self) -> Value {
        let mut record = json!({
            "id": format!("{}-{}", self.micros, short_hash(&format!("{}\n{}", self.browser, self.url))),
            "url": self.url,
            "site": site(self.url),
            "visited_at": moment(self.micros),
            "browser": self.browser,
        });
        if let Some(members) = record.as_object_mut() {
            let told = [("title", self.title), ("kind", self.kind)];
            for (name, value) in told {
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    members.insert(name.to_owned(), value.into());
                }
            }
        }
        record
    }
}

/// The host of an address, without what most of them begin with.
pub(super) fn site(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next()?;
    let host = host.strip_prefix("www.").unwrap_or(host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// Microseconds since 1970 as a time; nothing where none was set.
pub(super) fn moment(micros: i64) -> Option<String> {
    const LAST: i64 = 250_000_000_000_000_000;
    (1..LAST)
        .contains(&micros)
        .then(|| Instant(micros).to_rfc3339_millis())
}

/// Visits as Google Takeout and Safari hand them out, and what the browser is called.
pub(super) struct Exported(pub(super) &'static str);

impl Converter for Exported {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        let url = text(&value, "url").ok_or_else(|| malformed("the visit has no address"))?;
        let micros = value.get("time_usec").and_then(Value::as_i64);
        let told = ["page_transition_qualifier", "page_transition"];
        let kind = told.iter().find_map(|name| text(&value, name));
        let kind = kind.map(str::to_ascii_lowercase);
        let visit = Visit {
            url,
            title: text(&value, "title"),
            micros: micros
                .ok_or_else(|| malformed("the visit has no time").in_field("time_usec"))?,
            kind: kind.as_deref(),
            browser: self.0,
        };
        made.add("visits", visit.record());
        Ok(())
    }
}
