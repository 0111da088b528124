//! A grant in words. Every surface that shows a grant takes its words from here, so that none leaves out a limit.
//!
//! Names come from declarations, records and applications: each surface passes the function that makes them harmless there.

use contract::grant::{AccessMode, Grant, GrantedStream, TimeConstraint};
use contract::id::{ConnectionId, FieldName};
use contract::time::Instant;
use serde_json::Value;

use crate::issue::IssuedStream;
use crate::listing::Overview;
use crate::selection::Draft;

/// Makes a text harmless where it is shown. It must not shorten it.
pub type Harmless = fn(&str) -> String;

/// How grants are written on one surface.
#[derive(Debug, Clone, Copy)]
pub struct Wording {
    /// How many streams, and how many names in each list of fields or records; the rest is counted.
    most: usize,
    harmless: Harmless,
}

impl Wording {
    pub fn whole(harmless: Harmless) -> Self {
        Self {
            most: usize::MAX,
            harmless,
        }
    }

    /// The beginning of each list.
    pub fn brief(most: usize, harmless: Harmless) -> Self {
        Self { most, harmless }
    }

    /// What a grant or package gives, a line for each connection and stream, then the terms that are not usual.
    pub fn overview(&self, overview: &Overview) -> Vec<String> {
        let mut lines = self.rows(&overview.streams);
        for grant in &overview.grants {
            for line in self.terms(&Terms::from_grant(grant)) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// What one grant gives, in the same lines.
    pub fn grant(&self, grant: &Grant) -> Vec<String> {
        let mut lines = self.rows(&crate::issue::streams_of(grant));
        lines.extend(self.terms(&Terms::from_grant(grant)));
        lines
    }

    pub fn title(&self, grant: &Grant) -> String {
        let terms = grant.document();
        format!(
            "{} for {}",
            (self.harmless)(&terms.source.id),
            (self.harmless)(&terms.purpose_code)
        )
    }

    /// What a draft says besides its streams.
    pub fn draft(&self, draft: &Draft) -> Vec<String> {
        self.terms(&Terms {
            access_mode: draft.access_mode,
            purpose_description: draft.purpose_description.as_deref(),
            retention: draft.retention.as_ref(),
        })
    }

    pub fn row(&self, connection: &ConnectionId, stream: &GrantedStream) -> String {
        let fields = stream.fields.iter().map(FieldName::as_str);
        let limits = [
            Some(self.names("field", fields)),
            stream.time_constraint.as_ref().map(|time| self.span(time)),
            stream.resources.as_deref().map(|keys| self.records(keys)),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        let name = (self.harmless)(stream.name.as_str());
        format!("{connection} {name}: {}", limits.join("; "))
    }

    pub fn span(&self, time: &TimeConstraint) -> String {
        let bound = |word: &str, at: &Option<String>| match at {
            Some(at) => format!(" {word} {}", self.moment(at)),
            None => String::new(),
        };
        format!(
            "only {}{}{}",
            (self.harmless)(time.field.as_str()),
            bound("from", &time.since),
            bound("before", &time.until)
        )
    }

    pub fn records(&self, keys: &[String]) -> String {
        let names = self.names("record", keys.iter().map(String::as_str));
        match keys {
            [_] => format!("only the record {names}"),
            _ => format!("only the {} records {names}", keys.len()),
        }
    }

    fn rows(&self, rows: &[IssuedStream]) -> Vec<String> {
        let shown = rows.iter().take(self.most);
        let mut lines: Vec<String> = shown
            .map(|row| self.row(&row.connection_id, &row.granted()))
            .collect();
        lines.extend(more(rows.len().saturating_sub(self.most), "stream"));
        lines
    }

    fn terms(&self, terms: &Terms<'_>) -> Vec<String> {
        let once = (terms.access_mode == AccessMode::SingleUse)
            .then(|| "for one use: one token, which is not renewed".to_owned());
        let said = terms
            .purpose_description
            .map(|said| format!("the purpose it gave: {}", (self.harmless)(said)));
        let kept = terms
            .retention
            .map(|kept| format!("what it promised about keeping data: {}", self.json(kept)));
        [once, said, kept].into_iter().flatten().collect()
    }

    fn json(&self, value: &Value) -> String {
        (self.harmless)(&value.to_string())
    }

    fn names<'a>(&self, one: &str, names: impl ExactSizeIterator<Item = &'a str>) -> String {
        let left_out = names.len().saturating_sub(self.most);
        let shown: Vec<String> = names.take(self.most).map(|name| self.name(name)).collect();
        match more(left_out, one) {
            None => shown.join(", "),
            Some(more) => format!("{} {more}", shown.join(", ")),
        }
    }

    /// A name in a list; in quotes where it could be taken for several, or for the end of the list.
    fn name(&self, name: &str) -> String {
        if name.is_empty() || name.contains([',', ';', '"']) {
            return (self.harmless)(&Value::from(name).to_string());
        }
        (self.harmless)(name)
    }

    /// A moment to its last digit, so that the words state the limit that is enforced.
    fn moment(&self, text: &str) -> String {
        let Some(instant) = Instant::parse(text) else {
            return (self.harmless)(text);
        };
        if instant.0.rem_euclid(1_000) != 0 {
            return (self.harmless)(text);
        }
        let exact = instant.to_rfc3339_millis();
        let exact = exact.strip_suffix('Z').unwrap_or(&exact);
        let short = exact.strip_suffix(".000").unwrap_or(exact);
        let short = short.strip_suffix(":00").unwrap_or(short);
        format!("{} UTC", short.replace('T', " "))
    }
}

fn more(count: usize, one: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("and 1 more {one}")),
        count => Some(format!("and {count} more {one}s")),
    }
}

/// What a grant says besides its streams.
struct Terms<'a> {
    access_mode: AccessMode,
    purpose_description: Option<&'a str>,
    retention: Option<&'a Value>,
}

impl<'a> Terms<'a> {
    fn from_grant(grant: &'a Grant) -> Self {
        let document = grant.document();
        Self {
            access_mode: document.access_mode,
            purpose_description: document.purpose_description.as_deref(),
            retention: document.retention.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::id::StreamName;

    fn stream(time: Option<(Option<&str>, Option<&str>)>, keys: Option<&[&str]>) -> GrantedStream {
        let field = |name: String| FieldName::parse(name).unwrap();
        GrantedStream {
            name: StreamName::parse("messages").unwrap(),
            instance_ids: vec![connection()],
            fields: (0..100).map(|n| field(format!("field_{n:03}"))).collect(),
            time_constraint: time.map(|(since, until)| TimeConstraint {
                field: field("sent_at".to_owned()),
                since: since.map(str::to_owned),
                until: until.map(str::to_owned),
            }),
            resources: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
        }
    }

    fn connection() -> ConnectionId {
        ConnectionId::parse("mail-work").unwrap()
    }

    fn row(wording: Wording, stream: &GrantedStream) -> String {
        wording.row(&connection(), stream)
    }

    #[test]
    fn every_limit_stands_in_the_words() {
        // TR-11: the words of a grant leave out no field, no bound and no key.
        let since = Some("2026-01-01");
        let until = Some("2026-02-01T10:30:05.250+02:00");
        let granted = stream(Some((since, until)), Some(&["m1", "a, b"]));
        let words = row(Wording::whole(str::to_owned), &granted);
        assert!(words.starts_with("mail-work messages: field_000, field_001, "));
        assert!(words.ends_with(
            ", field_099; only sent_at from 2026-01-01 00:00 UTC before 2026-02-01 08:30:05.250 UTC; only the 2 records m1, \"a, b\""
        ), "{words}");
        assert_eq!(words.matches("field_").count(), 100);
    }

    #[test]
    fn what_a_short_form_leaves_out_is_counted_and_no_limit_is_among_it() {
        let granted = stream(Some((None, Some("2026-02-01"))), Some(&["a", "b", "c"]));
        assert_eq!(
            row(Wording::brief(2, str::to_owned), &granted),
            "mail-work messages: field_000, field_001 and 98 more fields; only sent_at before 2026-02-01 00:00 UTC; only the 3 records a, b and 1 more record"
        );
    }

    #[test]
    fn a_bound_finer_than_a_millisecond_stands_as_written() {
        let fine = "2026-01-01T00:00:00.000001Z";
        let granted = stream(Some((Some(fine), None)), None);
        let words = row(Wording::whole(str::to_owned), &granted);
        assert!(
            words.ends_with(&format!("; only sent_at from {fine}")),
            "{words}"
        );
    }
}
