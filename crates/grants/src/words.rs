//! A grant in words. Every surface that shows a grant takes its words from here, so that none leaves out a limit.
//!
//! Names come from declarations, records and applications: each surface passes the function that makes them harmless there.

use contract::declaration::FilterOperator;
use contract::grant::{AccessMode, Grant, GrantedStream, Redaction, RowRule, TimeConstraint};
use contract::id::{ConnectionId, FieldName};
use contract::time::Instant;
use serde_json::Value;

use crate::issue::{IssuedStream, streams_of};
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
        self.overview_with(overview, ConnectionId::to_string)
    }

    /// The same with connections by the names that they are given, which must be harmless.
    pub fn overview_with(
        &self,
        overview: &Overview,
        name: impl Fn(&ConnectionId) -> String,
    ) -> Vec<String> {
        let mut lines = self.rows(&overview.streams, &name);
        for grant in &overview.grants {
            for line in self.terms(&Terms::from_grant(grant)) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// What one grant gives, in the same lines. `current` says which of its streams are closed.
    pub fn grant(&self, grant: &Grant, current: &[IssuedStream]) -> Vec<String> {
        let mut rows = streams_of(grant);
        for row in &mut rows {
            let is_row = |one: &&IssuedStream| {
                one.connection_id == row.connection_id && one.stream == row.stream
            };
            row.closed = current
                .iter()
                .find(is_row)
                .and_then(|one| one.closed.clone());
        }
        let mut lines = self.rows(&rows, &ConnectionId::to_string);
        lines.extend(self.terms(&Terms::from_grant(grant)));
        lines
    }

    /// What was agreed to when the grant was made, if that was kept: how it is told apart from any other sentence, and its
    /// lines where they are not those of now.
    pub fn agreed(&self, grant: &Grant) -> Vec<String> {
        let Some(agreed) = &grant.document().agreed else {
            return Vec::new();
        };
        let mut lines = vec![format!("agreed to as {}", (self.harmless)(&agreed.digest))];
        if *agreed != crate::issue::agreed(grant) {
            let then = agreed.lines.iter();
            lines.extend(then.map(|line| format!("then: {}", (self.harmless)(line))));
        }
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
        self.row_of(connection.as_str(), stream)
    }

    fn row_of(&self, connection: &str, stream: &GrantedStream) -> String {
        let fields = stream.fields.iter().map(FieldName::as_str);
        let mut parts = vec![self.names("field", fields)];
        parts.extend(self.limits(stream));
        let name = (self.harmless)(stream.name.as_str());
        format!("{connection} {name}: {}", parts.join("; "))
    }

    /// What is granted of a stream besides its fields: its time, its list of records, its rules, and of which fields only a
    /// part. Empty for all of it.
    pub fn limits(&self, stream: &GrantedStream) -> Vec<String> {
        let time = stream.time_constraint.as_ref().map(|time| self.span(time));
        let keys = stream.resources.as_deref().map(|keys| self.records(keys));
        let only = stream.only.iter().flatten();
        let only = only.map(|rule| format!("only where {}", self.rule(rule)));
        let except = stream.except.iter().flatten();
        let except = except.map(|rule| format!("never where {}", self.rule(rule)));
        let limits = time.into_iter().chain(keys);
        let redact = stream.redact.iter().flatten();
        let redact = redact.map(|(field, how)| self.redaction(field, *how));
        limits.chain(only).chain(except).chain(redact).collect()
    }

    fn redaction(&self, field: &FieldName, how: Redaction) -> String {
        format!(
            "of {} only {}",
            self.name(field.as_str()),
            part_in_words(how)
        )
    }

    /// That a field of which a part was shown is shown whole.
    pub(crate) fn now_whole(&self, field: &FieldName, until_now: Redaction) -> String {
        format!(
            "{} whole, until now only {}",
            self.name(field.as_str()),
            part_in_words(until_now)
        )
    }

    pub fn rule(&self, rule: &RowRule) -> String {
        let rule = rule.document();
        let mut field = (self.harmless)(rule.field.as_str());
        if let Some(via) = &rule.via {
            field = format!("the {field} of {}", (self.harmless)(via.as_str()));
        }
        if let Some(value) = &rule.eq {
            return format!("{field} is {}", self.value(value));
        }
        if let Some(values) = &rule.one_of {
            let values: Vec<String> = values.iter().map(|value| self.value(value)).collect();
            let left_out = values.len().saturating_sub(self.most);
            let shown: Vec<&str> = values.iter().take(self.most).map(String::as_str).collect();
            let more = more(left_out, "value").map_or_else(String::new, |more| format!(" {more}"));
            return format!("{field} is one of {}{more}", shown.join(", "));
        }
        if let Some(beginning) = &rule.prefix {
            return format!("{field} begins with {}", self.value(beginning));
        }
        if let Some(words) = &rule.word {
            return format!("{field} has the words {}", self.value(words));
        }
        if let Some(value) = &rule.contains {
            return format!("{field} contains {}", self.value(value));
        }
        let words = [
            (FilterOperator::Gte, "at least"),
            (FilterOperator::Gt, "more than"),
            (FilterOperator::Lte, "at most"),
            (FilterOperator::Lt, "less than"),
        ];
        let bounds = words.iter().filter_map(|(operator, words)| {
            let bound = rule.operand(*operator)?;
            Some(format!("{words} {}", self.value(bound)))
        });
        format!("{field} is {}", bounds.collect::<Vec<_>>().join(" and "))
    }

    /// The value of a rule, in quotes: it may hold any words.
    fn value(&self, value: &str) -> String {
        (self.harmless)(&Value::from(value).to_string())
    }

    fn span(&self, time: &TimeConstraint) -> String {
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

    fn records(&self, keys: &[String]) -> String {
        let names = self.names("record", keys.iter().map(String::as_str));
        match keys {
            [_] => format!("only the record {names}"),
            _ => format!("only the {} records {names}", keys.len()),
        }
    }

    fn rows(&self, rows: &[IssuedStream], name: &dyn Fn(&ConnectionId) -> String) -> Vec<String> {
        let shown = rows.iter().take(self.most);
        let mut lines: Vec<String> = shown
            .map(|row| {
                let words = self.row_of(&name(&row.connection_id), &row.granted());
                match &row.closed {
                    None => words,
                    Some(why) => format!("{words}; closed: {}", (self.harmless)(why)),
                }
            })
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

    pub(crate) fn names<'a>(
        &self,
        one: &str,
        names: impl ExactSizeIterator<Item = &'a str>,
    ) -> String {
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

/// What is shown of a field that is not shown whole.
pub fn part_in_words(part: Redaction) -> String {
    match part {
        Redaction::First(1) => "the first character".to_owned(),
        Redaction::First(chars) => format!("the first {chars} characters"),
        Redaction::Year => "the year".to_owned(),
        Redaction::Month => "year and month".to_owned(),
        Redaction::Domain => "the domain".to_owned(),
        Redaction::Hash => "a hash".to_owned(),
        Redaction::Presence => "whether there is one".to_owned(),
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
            only: None,
            except: None,
            redact: None,
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
    fn every_rule_stands_in_the_words() {
        // GM-01: the words of a grant name the field, the operator and every value of its rules.
        let rules = |rules: &[&str]| {
            let rules = rules.iter().map(|rule| serde_json::from_str(rule).unwrap());
            Some(rules.collect::<Vec<RowRule>>())
        };
        let granted = GrantedStream {
            fields: vec![FieldName::parse("id").unwrap()],
            only: rules(&[
                r#"{"field":"channel","in":["family","a \"b\"","work"]}"#,
                r#"{"field":"size","gte":"1","lt":"9"}"#,
            ]),
            except: rules(&[
                r#"{"field":"sender","eq":"my doctor"}"#,
                r#"{"field":"path","prefix":"/private/"}"#,
                r#"{"field":"body","word":"salary"}"#,
                r#"{"via":"channel_id","field":"name","eq":"work"}"#,
            ]),
            redact: serde_json::from_str(r#"{"at":"month","from":"domain","text":"first:20"}"#)
                .ok(),
            ..stream(None, None)
        };
        assert_eq!(
            row(Wording::whole(str::to_owned), &granted),
            r#"mail-work messages: id; only where channel is one of "family", "a \"b\"", "work"; only where size is at least "1" and less than "9"; never where sender is "my doctor"; never where path begins with "/private/"; never where body has the words "salary"; never where the name of channel_id is "work"; of at only year and month; of from only the domain; of text only the first 20 characters"#
        );
        let brief = row(Wording::brief(1, str::to_owned), &granted);
        assert!(
            brief.contains(r#"channel is one of "family" and 2 more values; only where size"#),
            "{brief}"
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
