//! What the schema of one value demands, and whether a value fulfils it.
//!
//! Types, formats, allowed values, bounds, and what objects and arrays must hold are checked, at any depth. Patterns are
//! not: they are written in a dialect that is not run here. Whatever else a schema says is carried and not checked, and
//! of alternatives one must fit, because what is not checked may be all that tells them apart.

use contract::declaration::{FieldDeclaration, JsonType};
use contract::json::{self, JsonKind, RecordBody, elements};
use contract::time::Instant;

use crate::rejection::{Given, RejectionCode, quoted};

#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: RejectionCode,
    /// Where inside the value, as a JSON Pointer; empty for the value itself.
    pub(crate) at: String,
    /// The rule: `must be integer`.
    pub(crate) rule: String,
    /// The value; nothing where it is missing.
    pub(crate) value: Option<Given>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ValueRules {
    types: Vec<JsonType>,
    format: Option<Format>,
    /// The values of `enum` and `const`, as JSON.
    allowed: Option<Vec<String>>,
    bounds: Vec<Bound>,
    required: Vec<String>,
    members: Vec<(String, ValueRules)>,
    items: Option<Box<ValueRules>>,
    /// All of these hold as well.
    all: Vec<ValueRules>,
    /// Of each of these lists one holds.
    any: Vec<Vec<ValueRules>>,
}

impl ValueRules {
    pub(crate) fn from_declaration(field: &FieldDeclaration) -> Self {
        let rules = Self::read(&field.schema);
        Self {
            // What is said through references and combinations is in here too.
            types: field.types.clone(),
            ..rules
        }
    }

    fn read(schema: &str) -> Self {
        let mut rules = Self::default();
        let Some(schema) = object(schema) else {
            return rules;
        };
        let tuple = schema.get("prefixItems").is_some();
        for (name, raw) in schema.members() {
            match name {
                "type" => rules.types = types(raw),
                "format" => {
                    rules.format = json::decode_string(raw).and_then(|it| Format::named(&it));
                }
                "enum" => rules.allowed = Some(elements(raw).map(str::to_owned).collect()),
                "const" => rules.allowed = Some(vec![raw.to_owned()]),
                "required" => rules.required = elements(raw).filter_map(text).collect(),
                "properties" => rules.members = members(raw),
                "items" if !tuple => {
                    rules.items = Some(Box::new(Self::read(raw))).filter(|it| !it.is_empty());
                }
                "allOf" => rules.all = alternatives(raw),
                "anyOf" | "oneOf" => rules.any.push(alternatives(raw)),
                _ => rules.bounds.extend(Bound::read(name, raw)),
            }
        }
        rules.all.retain(|rules| !rules.is_empty());
        // One that demands nothing always fits.
        rules
            .any
            .retain(|list| !list.is_empty() && !list.iter().any(Self::is_empty));
        rules
    }

    fn is_empty(&self) -> bool {
        self.types.is_empty()
            && self.format.is_none()
            && self.allowed.is_none()
            && self.bounds.is_empty()
            && self.required.is_empty()
            && self.members.is_empty()
            && self.items.is_none()
            && self.all.is_empty()
            && self.any.is_empty()
    }

    /// Holds a value against the rules. Both nest no deeper than JSON may, so this recursion is bounded.
    pub(crate) fn check(&self, raw: &str) -> Result<(), Fault> {
        let kind = json::kind_of(raw);
        if !self.types.is_empty() && !self.types.iter().any(|one| one.accepts(raw)) {
            let rule = format!("must be {}", listed(&self.types));
            return Err(fault(RejectionCode::InvalidFieldType, rule, raw));
        }
        // A type that names null admits it, also beside a list of values that forgot it.
        if kind == JsonKind::Null && self.types.contains(&JsonType::Null) {
            return Ok(());
        }
        let wrong = |rule| fault(RejectionCode::InvalidFieldValue, rule, raw);
        if let Some(allowed) = &self.allowed
            && !allowed.iter().any(|one| json::same_value(one, raw))
        {
            return Err(wrong(format!("must be {}", choices(allowed))));
        }
        if let (Some(format), JsonKind::String) = (self.format, kind)
            && !json::decode_string(raw).is_some_and(|text| format.holds(&text))
        {
            return Err(wrong(format!("must be {}", format.described())));
        }
        if let Some(bound) = self.bounds.iter().find(|bound| !bound.holds(raw, kind)) {
            return Err(wrong(bound.rule()));
        }
        match kind {
            JsonKind::Object => self.check_members(raw)?,
            JsonKind::Array => self.check_items(raw)?,
            _ => {}
        }
        self.all.iter().try_for_each(|rules| rules.check(raw))?;
        self.any.iter().try_for_each(|list| check_any(list, raw))
    }

    fn check_members(&self, raw: &str) -> Result<(), Fault> {
        if self.required.is_empty() && self.members.is_empty() {
            return Ok(());
        }
        let Some(value) = object(raw) else {
            return Ok(());
        };
        if let Some(name) = self.required.iter().find(|name| value.get(name).is_none()) {
            return Err(Fault {
                code: RejectionCode::MissingField,
                at: step(name),
                rule: "is required and missing".to_owned(),
                value: None,
            });
        }
        for (name, rules) in &self.members {
            if let Some(raw) = value.get(name) {
                rules.check(raw).map_err(|fault| fault.inside(name))?;
            }
        }
        Ok(())
    }

    fn check_items(&self, raw: &str) -> Result<(), Fault> {
        let Some(rules) = &self.items else {
            return Ok(());
        };
        for (at, item) in elements(raw).enumerate() {
            let inside = |fault: Fault| fault.inside(&at.to_string());
            rules.check(item).map_err(inside)?;
        }
        Ok(())
    }
}

/// Holds a value against alternatives; what the nearest one misses is what is told.
fn check_any(list: &[ValueRules], raw: &str) -> Result<(), Fault> {
    let mut told = None;
    for rules in list {
        match rules.check(raw) {
            Ok(()) => return Ok(()),
            // One whose type fits was probably meant.
            Err(fault) if fault.code != RejectionCode::InvalidFieldType => told = Some(fault),
            Err(fault) => told = told.or(Some(fault)),
        }
    }
    told.map_or(Ok(()), Err)
}

impl Fault {
    fn inside(mut self, name: &str) -> Self {
        self.at.insert_str(0, &step(name));
        self
    }
}

fn fault(code: RejectionCode, rule: String, raw: &str) -> Fault {
    Fault {
        code,
        at: String::new(),
        rule,
        value: Some(Given::json(raw)),
    }
}

/// A JSON value for a message: texts in quotes, everything escaped and cut.
pub(crate) fn shorten(raw: &str) -> String {
    Given::json(raw).shown()
}

/// The types in words: `integer or null`.
pub(crate) fn listed(types: &[JsonType]) -> String {
    let names: Vec<&str> = types.iter().map(|one| one.as_str()).collect();
    names.join(" or ")
}

fn choices(allowed: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = allowed.iter().take(SHOWN).map(|raw| shorten(raw)).collect();
    if let Some(more) = allowed.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        names.push(format!("{more} others"));
    }
    match names.as_slice() {
        [] => "nothing at all: the declaration lists no value".to_owned(),
        [only] => only.clone(),
        _ => format!("one of {}", names.join(", ")),
    }
}

contract::names! {
    /// A form that texts are declared to have.
    enum Format {
        Date = "date",
        DateTime = "date-time",
        Time = "time",
        Email = "email",
        Uri = "uri",
        Uuid = "uuid",
    }
}

impl Format {
    fn described(self) -> &'static str {
        match self {
            Self::Date => "a date such as 2026-03-01",
            Self::DateTime => "a date-time such as 2026-03-01T10:00:00Z",
            Self::Time => "a time such as 10:00:00",
            Self::Email => "an email address",
            Self::Uri => "a URI such as https://example.org/",
            Self::Uuid => "a UUID",
        }
    }

    /// Whether a text has the form. A time may go without an offset, and a date-time without a time, because filters
    /// and orders read those: as UTC, and as midnight.
    fn holds(self, text: &str) -> bool {
        let bare = || !text.contains(|c: char| c.is_whitespace() || c.is_control());
        match self {
            Self::Date => has_shape(text, "0000-00-00") && Instant::parse(text).is_some(),
            Self::DateTime => Instant::parse(text).is_some(),
            Self::Time => {
                text.contains(':') && Instant::parse(&format!("1970-01-01T{text}")).is_some()
            }
            Self::Email => {
                let sides = text.rsplit_once('@');
                bare() && sides.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
            }
            Self::Uri => bare() && text.split_once(':').is_some_and(is_uri),
            Self::Uuid => has_shape(text, "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        }
    }
}

fn is_uri((scheme, rest): (&str, &str)) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !rest.is_empty()
}

/// Whether a text has a digit for each `0`, a hexadecimal one for each `f`, and everything else as it stands.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'f' => byte.is_ascii_hexdigit(),
                _ => byte == wanted,
            })
}

/// The least or the most a number, a text or an array may be.
#[derive(Debug, Clone)]
struct Bound {
    of: Bounded,
    /// As the declaration writes it.
    written: String,
    limit: f64,
    is_least: bool,
    /// Whether the limit itself is allowed.
    inclusive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bounded {
    Value,
    Characters,
    Elements,
}

impl Bound {
    fn read(keyword: &str, raw: &str) -> Option<Self> {
        let (of, is_least, inclusive) = match keyword {
            "minimum" => (Bounded::Value, true, true),
            "exclusiveMinimum" => (Bounded::Value, true, false),
            "maximum" => (Bounded::Value, false, true),
            "exclusiveMaximum" => (Bounded::Value, false, false),
            "minLength" => (Bounded::Characters, true, true),
            "maxLength" => (Bounded::Characters, false, true),
            "minItems" => (Bounded::Elements, true, true),
            "maxItems" => (Bounded::Elements, false, true),
            _ => return None,
        };
        let written = raw.trim().to_owned();
        let limit = written.parse().ok().filter(|_| json::is_number(&written))?;
        Some(Self {
            of,
            written,
            limit,
            is_least,
            inclusive,
        })
    }

    fn holds(&self, raw: &str, kind: JsonKind) -> bool {
        #[expect(
            clippy::cast_precision_loss,
            reason = "no text and no array is long enough to notice"
        )]
        let size = match (self.of, kind) {
            (Bounded::Value, JsonKind::Number) => raw.trim().parse().ok(),
            (Bounded::Characters, JsonKind::String) => {
                json::decode_string(raw).map(|text| text.chars().count() as f64)
            }
            (Bounded::Elements, JsonKind::Array) => Some(elements(raw).count() as f64),
            _ => None,
        };
        let Some(size): Option<f64> = size else {
            return true;
        };
        let beyond = if self.is_least {
            size > self.limit
        } else {
            size < self.limit
        };
        beyond || (self.inclusive && (size - self.limit).abs() == 0.0)
    }

    fn rule(&self) -> String {
        let compared = match (self.is_least, self.inclusive) {
            (true, true) => "at least",
            (true, false) => "more than",
            (false, true) => "at most",
            (false, false) => "less than",
        };
        let limit = &self.written;
        match self.of {
            Bounded::Value => format!("must be {compared} {limit}"),
            Bounded::Characters => format!("must have {compared} {limit} characters"),
            Bounded::Elements => format!("must have {compared} {limit} elements"),
        }
    }
}

fn step(name: &str) -> String {
    let name = quoted(name);
    format!(
        "/{}",
        name.trim_matches('\'')
            .replace('~', "~0")
            .replace('/', "~1")
    )
}

fn object(raw: &str) -> Option<RecordBody> {
    let is_object = json::kind_of(raw) == JsonKind::Object;
    is_object.then(|| RecordBody::parse(raw).ok()).flatten()
}

fn text(raw: &str) -> Option<String> {
    json::decode_string(raw).map(std::borrow::Cow::into_owned)
}

fn types(raw: &str) -> Vec<JsonType> {
    let one = |raw: &str| text(raw).and_then(|name| JsonType::named(&name));
    match json::kind_of(raw) {
        JsonKind::Array => elements(raw).filter_map(one).collect(),
        _ => one(raw).into_iter().collect(),
    }
}

fn members(raw: &str) -> Vec<(String, ValueRules)> {
    let Some(properties) = object(raw) else {
        return Vec::new();
    };
    let read = properties
        .members()
        .map(|(name, raw)| (name.to_owned(), ValueRules::read(raw)));
    read.filter(|(_, rules)| !rules.is_empty()).collect()
}

fn alternatives(raw: &str) -> Vec<ValueRules> {
    elements(raw).map(ValueRules::read).collect()
}

pub(crate) fn required(schema: &str) -> Vec<String> {
    ValueRules::read(schema).required
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(schema: &str, value: &str) -> String {
        match ValueRules::read(schema).check(value) {
            Ok(()) => "fits".to_owned(),
            Err(fault) => {
                let got = fault.value.map(|value| format!(", got {}", value.shown()));
                format!("{} {}{}", fault.at, fault.rule, got.unwrap_or_default())
                    .trim()
                    .to_owned()
            }
        }
    }

    #[test]
    fn texts_have_the_declared_format() {
        let good = [
            ("date", "2026-03-01"),
            ("date-time", "2026-03-01T10:00:00.5+02:00"),
            ("date-time", "2026-03-01T10:00"),
            ("date-time", "2026-03-01"),
            ("time", "10:00:00Z"),
            ("time", "10:00"),
            ("email", "anna@example.org"),
            ("uri", "https://example.org/ä"),
            ("uri", "mailto:anna@example.org"),
            ("uuid", "3F2504E0-4f89-11d3-9a0c-0305e82c3301"),
            ("duration", "anything, for it is not checked"),
        ];
        let bad = [
            ("date", "01.03.2026"),
            ("date", "2026-02-30"),
            ("date", "2026-3-1"),
            ("date", "2026-03-01T10:00:00Z"),
            ("date", ""),
            ("date", "२०२६-०३-०१"),
            ("date-time", "yesterday"),
            ("date-time", "1772359200"),
            ("time", "25:00"),
            ("time", "10"),
            ("email", "anna"),
            ("email", "@example.org"),
            ("email", "Anna <anna@example.org>"),
            ("uri", "/path"),
            ("uri", "https://example.org/a b"),
            ("uri", "1a:b"),
            ("uuid", "3F2504E0"),
        ];
        let holds = |(format, text): &(&str, &str)| {
            let schema = format!(r#"{{"format":"{format}"}}"#);
            faults(&schema, &serde_json::Value::from(*text).to_string()) == "fits"
        };
        let refused: Vec<_> = good.iter().filter(|one| !holds(one)).collect();
        let accepted: Vec<_> = bad.iter().filter(|one| holds(one)).collect();
        assert!(
            refused.is_empty() && accepted.is_empty(),
            "{refused:?} {accepted:?}"
        );
        assert_eq!(faults(r#"{"format":"date"}"#, "5"), "fits");
    }

    /// A schema, a value, and what is told of it.
    const CASES: &str = r#"
{"enum":["a",1]} | 1.0 | fits
{"enum":["a",1]} | "b" | must be one of 'a', 1, got 'b'
{"const":true} | false | must be true, got false
{"type":["string","null"],"enum":["a"]} | null | fits
{"minimum":0} | -0.5 | must be at least 0, got -0.5
{"exclusiveMaximum":3} | 3 | must be less than 3, got 3
{"maximum":3} | 3.0 | fits
{"minLength":1} | "" | must have at least 1 characters, got ''
{"maxItems":1} | [1,2] | must have at most 1 elements, got [1,2]
{"items":{"type":"string"}} | ["a",5] | /1 must be string, got 5
{"properties":{"at":{"items":{"format":"date"}}}} | {"at":["2026-01-01","soon"]} | /at/1 must be a date such as 2026-03-01, got 'soon'
{"required":["a/b"]} | {} | /a~1b is required and missing
{"anyOf":[{"type":"integer"},{"type":"string","format":"date"}]} | "x" | must be a date such as 2026-03-01, got 'x'
{"oneOf":[{"type":"integer"},{"minimum":1}]} | 5 | fits
{"allOf":[{"minimum":1},{"maximum":3}]} | 4 | must be at most 3, got 4
{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}} | ["a"] | fits
true | 5 | fits
"#;

    #[test]
    fn values_bounds_and_what_is_inside_are_checked() {
        for row in CASES.trim().lines() {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [schema, value, expected] = cells[..] else {
                panic!("{row}")
            };
            assert_eq!(faults(schema, value), expected, "{row}");
        }
    }

    #[test]
    fn a_value_is_shown_cut_and_unable_to_forge() {
        let shown =
            shorten(&serde_json::Value::from("a\u{1b}[31m\u{202e}\n".repeat(50)).to_string());
        assert!(
            shown.chars().count() < 600 && shown.ends_with("…'"),
            "{shown}"
        );
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'));
    }
}
