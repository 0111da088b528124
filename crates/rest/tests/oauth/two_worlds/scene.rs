//! What is written in both worlds, what is granted of it, and what the world that never held the rest gets instead.

use grants::budget::Budget;
use serde_json::{Map, Value, json};
use testkit::Dice;

use crate::fixture::World;

pub(super) const WORDS: [&str; 5] = ["letter", "harbour", "orchard", "quay", "bridge"];
pub(super) const SENDERS: [&str; 3] = ["bank@example.test", "anna@post.test", "doctor@clinic.test"];
pub(super) const KEYS: [&str; 8] = ["m1", "m2", "m3", "x1", "x2", "x3", "x4", "x5"];
pub(super) const FIELDS: [&str; 8] = [
    "id",
    "subject",
    "body",
    "from_email",
    "received_at",
    "size_bytes",
    "seen",
    "secret",
];
/// Stands in no text that may be shown.
pub(super) const HIDDEN: &str = "zzhidden";

/// A letter that is written, or its deletion.
pub(super) struct Letter {
    connection: &'static str,
    key: &'static str,
    /// `None` for a deletion.
    data: Option<Map<String, Value>>,
    number: usize,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    From(&'static str),
    FromPrefix(&'static str),
    SizeAtLeast(u64),
    SubjectWord(&'static str),
    Seen(bool),
}

impl Rule {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(5) {
            0 => Self::From(dice.pick(&SENDERS)),
            1 => Self::FromPrefix(dice.pick(&["a", "doc", "bank@"])),
            2 => Self::SizeAtLeast(dice.pick(&[1, 2, 3])),
            3 => Self::SubjectWord(dice.pick(&WORDS)),
            _ => Self::Seen(dice.once_in(2)),
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::From(_) | Self::FromPrefix(_) => "from_email",
            Self::SizeAtLeast(_) => "size_bytes",
            Self::SubjectWord(_) => "subject",
            Self::Seen(_) => "seen",
        }
    }

    fn document(self) -> Value {
        let field = self.field();
        match self {
            Self::From(sender) => json!({"field": field, "in": [sender]}),
            Self::FromPrefix(beginning) => json!({"field": field, "prefix": beginning}),
            Self::SizeAtLeast(size) => json!({"field": field, "gte": size.to_string()}),
            Self::SubjectWord(word) => json!({"field": field, "word": word}),
            Self::Seen(seen) => json!({"field": field, "eq": seen.to_string()}),
        }
    }

    fn holds(self, data: &Map<String, Value>) -> bool {
        let Some(value) = data.get(self.field()) else {
            return false;
        };
        let text = value.as_str().unwrap_or_default();
        match self {
            Self::From(sender) => text == sender,
            Self::FromPrefix(beginning) => text.starts_with(beginning),
            Self::SizeAtLeast(size) => value.as_u64().is_some_and(|value| value >= size),
            Self::SubjectWord(word) => text.split(' ').any(|one| one == word),
            Self::Seen(seen) => value.as_bool() == Some(seen),
        }
    }
}

pub(super) struct Scene {
    pub(super) letters: Vec<Letter>,
    pub(super) budget: Budget,
    fields: Vec<&'static str>,
    redact: Vec<(&'static str, &'static str)>,
    since: Option<&'static str>,
    only: Vec<Rule>,
    except: Vec<Rule>,
}

impl Scene {
    pub(super) fn random(dice: &mut Dice) -> Self {
        let some = |dice: &mut Dice| (0..dice.below(3)).map(|_| Rule::random(dice)).collect();
        let fields = FIELDS.into_iter().filter(|name| *name != "secret");
        let mut scene = Self {
            letters: Vec::new(),
            budget: Budget {
                records: dice.once_in(3).then(|| dice.pick(&[3, 20, 80])),
                distinct_records: dice.once_in(4).then(|| dice.pick(&[2, 5])),
                bytes: dice.once_in(4).then(|| dice.pick(&[2_000, 20_000])),
                pauses_when_unusual: false,
            },
            fields: fields
                .filter(|name| *name == "id" || !dice.once_in(3))
                .collect(),
            redact: Vec::new(),
            since: dice.once_in(3).then_some("2026-03-10"),
            only: some(dice),
            except: some(dice),
        };
        for (field, parts) in [
            ("subject", &["first:3", "presence"][..]),
            ("body", &["first:3", "presence"]),
            ("from_email", &["domain", "presence"]),
            ("received_at", &["month", "year"]),
            ("size_bytes", &["presence"]),
        ] {
            if scene.fields.contains(&field) && !scene.decides_by(field) && dice.once_in(3) {
                scene.redact.push((field, dice.pick(parts)));
            }
        }
        scene.letters = (0..36).map(|number| Letter::random(dice, number)).collect();
        scene
    }

    /// Whether records are shown or hidden by a field.
    fn decides_by(&self, field: &str) -> bool {
        let mut rules = self.only.iter().chain(&self.except);
        rules.any(|rule| rule.field() == field) || (field == "received_at" && self.since.is_some())
    }

    /// The stream of the authorization details.
    pub(super) fn stream(&self) -> Value {
        let mut stream =
            json!({"name": "messages", "instance_ids": ["work"], "fields": self.fields});
        for (name, rules) in [("where", &self.only), ("except", &self.except)] {
            if !rules.is_empty() {
                stream[name] = rules.iter().map(|rule| rule.document()).collect();
            }
        }
        if let Some(since) = self.since {
            stream["time_range"] = json!({"since": since});
        }
        if !self.redact.is_empty() {
            let parts = self.redact.iter();
            stream["redact"] = parts
                .map(|(field, part)| ((*field).to_owned(), json!(part)))
                .collect::<Map<_, _>>()
                .into();
        }
        stream
    }

    fn shows(&self, letter: &Letter) -> bool {
        let Some(data) = letter.data.as_ref().filter(|_| letter.connection == "work") else {
            return false;
        };
        let at = data.get("received_at").and_then(Value::as_str);
        self.since
            .is_none_or(|since| at.is_some_and(|at| at >= since))
            && self.only.iter().all(|rule| rule.holds(data))
            && !self.except.iter().any(|rule| rule.holds(data))
    }

    /// Writes a letter as it is into the one world, and what may be seen of it into the other.
    pub(super) async fn write(&self, rich: &World, poor: &World, letter: &Letter) {
        letter.write(rich, letter.data.clone()).await;
        if self.shows(letter) {
            let data = letter.data.clone().unwrap_or_default();
            let other = data.into_iter().map(|(name, value)| {
                let value = self.otherwise(&name, value);
                (name, value)
            });
            letter.write(poor, Some(other.collect())).await;
        } else if letter.connection == "work" {
            // Whatever took it out of sight: to the client it is deleted.
            letter.write(poor, None).await;
        }
    }

    /// Another value, where the grant does not show the difference.
    fn otherwise(&self, field: &str, value: Value) -> Value {
        let text = value.as_str().unwrap_or_default();
        let part = self.redact.iter().find(|(name, _)| *name == field);
        match part.map(|(_, part)| *part) {
            Some("first:3") => {
                let shown: String = text.chars().take(3).collect();
                json!(format!("{shown} {HIDDEN} quay"))
            }
            Some("domain") => {
                let (_, domain) = text.split_once('@').unwrap_or_default();
                json!(format!("{HIDDEN}@{domain}"))
            }
            Some("month") => json!(format!("{}27T00:00:00Z", text.get(..8).unwrap_or_default())),
            Some("year") => json!("2026-12-24T00:00:00Z"),
            Some(_) if field == "size_bytes" => json!(77),
            Some(_) => json!(HIDDEN),
            None if field == "id" || self.fields.contains(&field) || self.decides_by(field) => {
                value
            }
            None if value.is_string() && field != "received_at" => {
                json!(format!("{HIDDEN} bridge"))
            }
            None if value.is_number() => json!(55),
            None => value,
        }
    }
}

impl Letter {
    fn random(dice: &mut Dice, number: usize) -> Self {
        let key = dice.pick(&KEYS);
        let texts = |dice: &mut Dice| format!("{} {}", dice.pick(&WORDS), dice.pick(&WORDS));
        let data = (!dice.once_in(8)).then(|| {
            let data = json!({
                "id": key,
                "subject": texts(dice),
                "body": texts(dice),
                "from_email": dice.pick(&SENDERS),
                "received_at": format!("2026-03-{:02}T09:00:00Z", dice.below(27) + 1),
                "size_bytes": dice.below(5),
                "seen": dice.once_in(2),
                "secret": texts(dice),
            });
            let Value::Object(data) = data else {
                return Map::new();
            };
            data
        });
        Self {
            connection: if dice.once_in(4) { "home" } else { "work" },
            key,
            data,
            number,
        }
    }

    async fn write(&self, world: &World, data: Option<Map<String, Value>>) {
        let mut line = json!({"key": self.key, "emitted_at": format!("2026-05-01T{:02}:{:02}:00Z", self.number / 60, self.number % 60)});
        match data {
            Some(data) => line["data"] = data.into(),
            None => line["op"] = "delete".into(),
        }
        let target = format!("/v1/ingest/messages?connection_id={}", self.connection);
        world.write(&target, line.to_string()).await;
    }
}
