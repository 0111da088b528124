//! A random scene: what was written, what is granted of it, and the same as it would be had the hidden part never existed.

use std::collections::{BTreeMap, BTreeSet};

use contract::error::ErrorCode;
use contract::id::ConnectionId;
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::query::{ChangesSince, PageLimit, Reading, RecordsQuery};
use contract::time::Instant;
use serde_json::{Value, json};
use store::records::{Change, ChangeOp};
use testkit::Dice;

use super::declared::declaration;
use super::rule::Rule;
use crate::fixture::{Reader, World, code, stream};

pub(crate) const STREAMS: [&str; 2] = ["notes", "parts"];
pub(crate) const CONNECTIONS: [&str; 3] = ["conone", "contwo", "conthree"];
pub(crate) const IDS: [&str; 5] = ["n0", "n1", "n2", "n3", "n4"];
pub(crate) const WORDS: [&str; 4] = ["tea", "coffee", "milk", "tearoom"];
/// Words that mean alike.
pub(crate) const ALIKE: [&[&str]; 2] = [&["tea", "coffee"], &["milk", "tearoom"]];
const NOTES: [&str; 9] = [
    "akey", "btitle", "cbody", "dmoment", "eamount", "ftag", "gflag", "sent_at", "name",
];
const PARTS: [&str; 3] = ["pkey", "pnote", "ptext"];
pub(super) const MOMENTS: [&str; 5] = [
    "2026-01-10T00:00:00Z",
    "2026-02-10T00:00:00Z",
    "2026-03-10T00:00:00Z",
    "2026-04-10T00:00:00Z",
    "2026-05-10T00:00:00Z",
];

pub(crate) fn fields_of(stream: &str) -> &'static [&'static str] {
    if stream == "notes" { &NOTES } else { &PARTS }
}

type Address = (&'static str, &'static str, &'static str);
pub(super) type Members = Vec<(&'static str, Value)>;

#[derive(Clone)]
pub(super) struct Write {
    /// Connection, stream and key.
    pub(super) address: Address,
    emitted_at: String,
    /// Nothing for a deletion.
    pub(super) record: Option<Members>,
    /// The text in each member that occurs nowhere else.
    marker: String,
    /// The markers of members that an earlier write brought.
    kept: BTreeMap<&'static str, String>,
}

pub(crate) struct Granted {
    pub(crate) connections: Vec<&'static str>,
    pub(crate) fields: Vec<&'static str>,
    since: Option<&'static str>,
    until: Option<&'static str>,
    keys: Option<Vec<&'static str>>,
    only: Vec<Rule>,
    except: Vec<Rule>,
    /// Fields of which only a part is shown.
    pub(super) redact: BTreeMap<&'static str, &'static str>,
}

impl Granted {
    fn random(dice: &mut Dice, stream: &str) -> Self {
        let timed = stream == "notes" && dice.once_in(2);
        Self {
            connections: dice.some(&CONNECTIONS),
            fields: dice.some(fields_of(stream)),
            since: timed.then_some(MOMENTS[1]),
            until: (timed && dice.once_in(2)).then_some(MOMENTS[4]),
            keys: dice.once_in(3).then(|| dice.some(&IDS)),
            only: Rule::some(dice, stream),
            except: Rule::some(dice, stream),
            redact: BTreeMap::new(),
        }
    }

    /// What must be stored for the grant to show what it shows.
    fn keeps(&self, field: &str) -> bool {
        self.fields.contains(&field) || self.decides_by(field)
    }

    /// Whether records are shown or hidden by the value of a field.
    pub(super) fn decides_by(&self, field: &str) -> bool {
        let mut rules = self.only.iter().chain(&self.except);
        (field == "dmoment" && self.since.is_some()) || rules.any(|rule| rule.field == field)
    }

    fn document(&self, name: &str) -> Value {
        let mut answer =
            json!({"name": name, "instance_ids": self.connections, "fields": self.fields});
        if let Some(since) = self.since {
            answer["time_constraint"] = json!({"field": "dmoment", "since": since});
            if let Some(until) = self.until {
                answer["time_constraint"]["until"] = json!(until);
            }
        }
        if let Some(keys) = &self.keys {
            answer["resources"] = json!(keys);
        }
        for (name, rules) in [("where", &self.only), ("except", &self.except)] {
            if !rules.is_empty() {
                answer[name] = rules.iter().map(|rule| rule.document.clone()).collect();
            }
        }
        if !self.redact.is_empty() {
            answer["redact"] = json!(self.redact);
        }
        answer
    }
}

pub(crate) struct Scene {
    pub(super) first: Vec<Write>,
    pub(super) second: Vec<Write>,
    pub(crate) granted: BTreeMap<&'static str, Granted>,
}

impl Scene {
    pub(crate) fn random(dice: &mut Dice) -> Self {
        let mut granted = BTreeMap::from([("notes", Granted::random(dice, "notes"))]);
        if !dice.once_in(3) {
            granted.insert("parts", Granted::random(dice, "parts"));
        }
        let mut scene = Self {
            first: Vec::new(),
            second: Vec::new(),
            granted,
        };
        // In some scenes nothing that may be seen changes in the second half.
        let quiet = dice.once_in(3);
        let mut last: BTreeMap<Address, Write> = BTreeMap::new();
        for number in 0..60 {
            let mut write = Write::random(dice, number);
            if dice.once_in(3)
                && let Some(before) = last.get(&write.address)
            {
                scene.change_what_is_hidden(&mut write, before);
            }
            let first = number < 36;
            let before = last.get(&write.address).and_then(|one| scene.shown(one));
            if quiet && !first && scene.shown(&write) != before {
                continue;
            }
            last.insert(write.address, write.clone());
            if first {
                scene.first.push(write);
            } else {
                scene.second.push(write);
            }
        }
        scene
    }

    /// Makes a write one that leaves what may be seen of the record as it was.
    fn change_what_is_hidden(&self, write: &mut Write, before: &Write) {
        let Some(members) = &before.record else {
            return;
        };
        let granted = self.granted.get(write.address.1);
        let keeps = |name: &str| granted.is_some_and(|one| one.keeps(name));
        let new = write.record.take().unwrap_or_default();
        let new = new.into_iter().filter(|(name, _)| !keeps(name));
        let kept = members.iter().filter(|(name, _)| keeps(name)).cloned();
        write.record = Some(kept.chain(new).collect());
        // What is kept holds its old markers.
        write.kept.clone_from(&before.kept);
        let kept = members.iter().filter(|(name, _)| keeps(name));
        for (name, _) in kept {
            let marker = before.marker_of(name);
            write.kept.insert(name, marker);
        }
    }

    /// What the grant needs of a write, if it may see it.
    fn shown(&self, write: &Write) -> Option<Value> {
        let (connection, stream, id) = write.address;
        let granted = self.granted.get(stream)?;
        let members = write.record.as_ref()?;
        let in_time = granted.since.is_none_or(|since| {
            let moment = members.iter().find(|(name, _)| *name == "dmoment");
            let moment = moment.and_then(|(_, value)| Instant::parse(value.as_str()?));
            let bound = |text: &str| Instant::parse(text).unwrap();
            moment.is_some_and(|moment| {
                moment >= bound(since) && granted.until.is_none_or(|until| moment < bound(until))
            })
        });
        let listed = granted.keys.as_ref().is_none_or(|keys| keys.contains(&id));
        let ruled = granted.only.iter().all(|rule| rule.holds(members))
            && !granted.except.iter().any(|rule| rule.holds(members));
        (granted.connections.contains(&connection) && in_time && listed && ruled)
            .then(|| object(members, &|name| granted.keeps(name)))
    }

    /// A store with everything, the first half written.
    pub(crate) fn rich(&self) -> World {
        let world = World::empty();
        let declaration = declaration(&|_, _| true, &|_, _| true);
        for connection in CONNECTIONS {
            world.connect(&declaration, connection, &format!("Label of {connection}"));
        }
        write_all(&world, self.first.iter().map(Write::change).collect());
        world
    }

    /// A store that never held what is hidden, the first half written.
    pub(crate) fn poor(&self) -> World {
        let world = World::empty();
        let granted = |stream: &str, test: &dyn Fn(&Granted) -> bool| {
            self.granted.get(stream).is_some_and(test)
        };
        let declaration = declaration(
            &|stream, field| {
                let is_key = ["akey", "pkey"].contains(&field);
                granted(stream, &|one| is_key || one.keeps(field))
            },
            &|stream, field| granted(stream, &|one| one.fields.contains(&field)),
        );
        for connection in CONNECTIONS {
            if self
                .granted
                .values()
                .any(|one| one.connections.contains(&connection))
            {
                world.connect(&declaration, connection, &format!("Label of {connection}"));
            }
        }
        let mut there = BTreeSet::new();
        write_all(
            &world,
            self.first
                .iter()
                .filter_map(|write| self.poor_change(write, &mut there))
                .collect(),
        );
        world
    }

    pub(crate) fn write_rest(&self, world: &World) {
        write_all(world, self.second.iter().map(Write::change).collect());
    }

    /// Writes the second half into both.
    pub(crate) fn go_on(&self, rich: &World, poor: &World) {
        self.write_rest(rich);
        let mut there = BTreeSet::new();
        for write in &self.first {
            self.poor_change(write, &mut there);
        }
        write_all(
            poor,
            self.second
                .iter()
                .filter_map(|write| self.poor_change(write, &mut there))
                .collect(),
        );
    }

    /// What a write is to a store that holds only what may be seen: a write, a deletion, or nothing.
    fn poor_change(
        &self,
        write: &Write,
        there: &mut BTreeSet<Address>,
    ) -> Option<(&'static str, Change)> {
        match self.shown(write) {
            Some(shown) => {
                there.insert(write.address);
                Some(write.as_change(Some(&shown)))
            }
            None => there.remove(&write.address).then(|| write.as_change(None)),
        }
    }

    pub(crate) fn reader(&self, world: &World) -> Reader {
        let streams: Vec<Value> = self
            .granted
            .iter()
            .map(|(name, granted)| granted.document(name))
            .collect();
        world.client("random", streams.into())
    }

    /// A bookmark per granted stream and connection.
    pub(crate) fn bookmarks(
        &self,
        world: &World,
    ) -> BTreeMap<(&'static str, &'static str), String> {
        let reader = self.reader(world);
        let mut marks = BTreeMap::new();
        for (name, granted) in &self.granted {
            for connection in &granted.connections {
                let mut query = RecordsQuery::new(stream(name));
                query.connection_id = Some((*connection).to_owned());
                query.reading = Reading::Changes(ChangesSince::Beginning);
                let page = reader.records(query).unwrap();
                let mark = page["next_changes_since"].as_str().unwrap().to_owned();
                marks.insert((*name, *connection), mark);
            }
        }
        marks
    }

    /// Texts that no answer may hold: those of writes that the grant never saw, and of members that are not granted.
    pub(crate) fn forbidden_markers(&self) -> Vec<String> {
        let mut forbidden = Vec::new();
        for write in self.first.iter().chain(&self.second) {
            let visible = self.shown(write).is_some();
            for (name, value) in write.record.iter().flatten() {
                let granted = self.granted.get(write.address.1);
                let shows = visible && granted.is_some_and(|one| one.fields.contains(name));
                let marker = write.marker_of(name);
                if !shows && value.as_str().is_some_and(|text| text.contains(&marker)) {
                    forbidden.push(marker);
                }
            }
        }
        forbidden
    }

    /// Names that no answer may hold unless it was asked with them.
    pub(crate) fn hidden_names(&self) -> impl Iterator<Item = &'static str> {
        let hidden = STREAMS.into_iter().flat_map(|stream| {
            let granted = self.granted.get(stream);
            // `name` is part of many words, and stands for none here.
            let fields = fields_of(stream)
                .iter()
                .copied()
                .filter(|name| *name != "name");
            fields.filter(move |name| !granted.is_some_and(|one| one.fields.contains(name)))
        });
        let connections = CONNECTIONS.into_iter().filter(|connection| {
            let mut granted = self.granted.values();
            !granted.any(|one| one.connections.contains(connection))
        });
        hidden.chain(connections)
    }

    pub(crate) fn cursors_of_the_owner_do_not_open(&self, world: &World) {
        let (owner, client) = (world.owner(), self.reader(world));
        for (name, granted) in &self.granted {
            let mut query = RecordsQuery::new(stream(name));
            query.connection_id = Some(granted.connections[0].to_owned());
            query.limit = PageLimit::new(1);
            let page = owner.records(query.clone()).unwrap();
            if let (Some(cursor), Reading::List(options)) =
                (page["next_cursor"].as_str(), &mut query.reading)
            {
                options.cursor = Some(cursor.to_owned());
                assert_eq!(code(client.records(query)), ErrorCode::InvalidCursor);
            }
        }
    }
}

impl Write {
    fn random(dice: &mut Dice, number: usize) -> Self {
        let stream = dice.pick(&STREAMS);
        let marker = format!("mk{number}x");
        let record = (!dice.once_in(6)).then(|| {
            let fields = fields_of(stream)
                .iter()
                .filter(|_| !dice.once_in(5))
                .copied()
                .collect::<Vec<_>>();
            let members = fields
                .into_iter()
                .map(|name| (name, value(dice, name, &format!("{marker}{name}"))));
            members.collect()
        });
        Self {
            address: (dice.pick(&CONNECTIONS), stream, dice.pick(&IDS)),
            emitted_at: format!("2026-05-{:02}T{:02}:00:00Z", number % 28 + 1, number / 28),
            record,
            marker,
            kept: BTreeMap::new(),
        }
    }

    fn marker_of(&self, name: &str) -> String {
        let kept = self.kept.get(name).cloned();
        kept.unwrap_or_else(|| format!("{}{name}", self.marker))
    }

    fn change(&self) -> (&'static str, Change) {
        let record = self
            .record
            .as_ref()
            .map(|members| object(members, &|_| true));
        self.as_change(record.as_ref())
    }

    fn as_change(&self, record: Option<&Value>) -> (&'static str, Change) {
        let (connection, name, id) = self.address;
        let op = match record {
            Some(record) => ChangeOp::Upsert(RecordBody::parse(record.to_string()).unwrap()),
            None => ChangeOp::Delete,
        };
        let change = Change {
            stream: stream(name),
            key: RecordKey::single(id).unwrap(),
            emitted_at: self.emitted_at.clone(),
            op,
        };
        (connection, change)
    }
}

/// A value of a field; texts hold words to search for and a marker.
fn value(dice: &mut Dice, name: &str, marker: &str) -> Value {
    match name {
        "dmoment" | "sent_at" => json!(dice.pick(&MOMENTS)),
        "eamount" => json!(dice.below(5)),
        "gflag" => json!(dice.once_in(2)),
        "pnote" => json!(dice.pick(&IDS)),
        "ftag" if dice.once_in(2) => json!(dice.pick(&WORDS)),
        _ => json!(format!(
            "{} {marker} {}",
            dice.pick(&WORDS),
            dice.pick(&WORDS)
        )),
    }
}

fn object(members: &Members, keeps: &dyn Fn(&str) -> bool) -> Value {
    let kept = members.iter().filter(|(name, _)| keeps(name));
    kept.map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn write_all(world: &World, changes: Vec<(&'static str, Change)>) {
    let mut batches: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
    for (connection, change) in changes {
        batches.entry(connection).or_default().push(change);
    }
    for (connection, batch) in batches {
        world
            .store
            .write(&ConnectionId::parse(connection).unwrap(), batch)
            .unwrap();
    }
}
