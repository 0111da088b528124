//! The records of a calendar: one per event or task. Times that are essential must be readable, else the entry is refused;
//! when it was last changed is left out where it makes no sense.

use serde_json::{Map, Value, json};

use super::Calendar;
use super::recurrence::Occurrence;
use super::times::EventTime;
use super::zones::Zones;
use crate::importers::content_lines::{Component, Escapes, Property, filled, key_of};
use crate::importers::html;
use crate::rejection::{Rejection, RejectionCode, quoted};

type Read<T> = Result<T, Rejection>;

/// An event as a record, with the times it was made from.
pub(super) struct EventRecord {
    pub(super) record: Value,
    pub(super) start: Option<EventTime>,
    pub(super) end: Option<EventTime>,
    /// The occurrence of a series that it replaces.
    pub(super) replaces: Option<EventTime>,
}

/// Whether an event repeats, and is no changed occurrence of one that does.
pub(super) fn is_series(component: &Component) -> bool {
    let has = |name| component.property(name).is_some();
    (has("RRULE") || has("RDATE")) && !has("RECURRENCE-ID") && has("DTSTART")
}

pub(super) fn event(component: &Component, calendar: &Calendar) -> Read<EventRecord> {
    let entry = Entry {
        component,
        calendar,
    };
    let starts_at = entry.time("DTSTART", "starts_at")?;
    let ends_at = entry.end(starts_at.as_ref())?;
    let recurrence_id = entry.time("RECURRENCE-ID", "recurrence_id")?;
    let organizer = component.property("ORGANIZER").map(Person::from_property);
    let attendees: Vec<Person> = component
        .all("ATTENDEE")
        .map(Person::from_property)
        .collect();
    let names = attendees.iter().map(Person::name_and_address);
    let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    let is_day = starts_at.as_ref().is_some_and(EventTime::is_day);
    let repeats = component.property("RRULE").is_some() || component.property("RDATE").is_some();
    let series = recurrence_id.as_ref().map(|_| key_of(component, None));
    let record = filled(json!({
        "id": entry.key(),
        "uid": entry.plain("UID"),
        "title": entry.text("SUMMARY"),
        "calendar": calendar.name,
        "starts_at": starts_at.as_ref().map(EventTime::text),
        "ends_at": ends_at.as_ref().map(EventTime::text),
        "all_day": is_day || entry.is("X-MICROSOFT-CDO-ALLDAYEVENT", "TRUE"),
        "timezone": entry.zone(starts_at.as_ref()),
        "location": entry.text("LOCATION"),
        "organizer": organizer.as_ref().map(Person::name_or_address),
        "organizer_address": organizer.as_ref().map(|person| &person.address),
        "attendees": attendees.iter().map(Person::value).collect::<Vec<_>>(),
        "attendees_text": names.join(", "),
        "participants": participants(organizer.iter().chain(&attendees)),
        "status": entry.keyword("STATUS"),
        "busy": !entry.is("TRANSP", "TRANSPARENT"),
        "visibility": entry.keyword("CLASS"),
        "categories": entry.list("CATEGORIES"),
        "url": entry.plain("URL"),
        "conference_url": entry.plain("X-GOOGLE-CONFERENCE"),
        "repeats": repeats,
        "recurrence": entry.rules(),
        "recurrence_id": recurrence_id.as_ref().map(EventTime::text),
        "occurrence_of": series,
        "excluded_times": entry.times("EXDATE"),
        "further_times": entry.times("RDATE"),
        "created_at": entry.timestamp("CREATED"),
        "updated_at": entry.timestamp("LAST-MODIFIED"),
        "description": entry.description(),
    }));
    Ok(EventRecord {
        record,
        start: starts_at,
        end: ends_at,
        replaces: recurrence_id,
    })
}

/// What an occurrence has in common with its series. The description and the people stand there only: a search for them
/// finds the series once, and not each of its days.
const SHARED: [&str; 9] = [
    "uid",
    "title",
    "calendar",
    "all_day",
    "timezone",
    "location",
    "organizer",
    "status",
    "busy",
];

/// The record of an occurrence that takes place as planned.
pub(super) fn occurrence(series: &Value, id: &str, occurrence: &Occurrence) -> Value {
    let mut record = Map::new();
    record.insert("id".to_owned(), id.into());
    for name in SHARED {
        if let Some(value) = series.get(name) {
            record.insert(name.to_owned(), value.clone());
        }
    }
    let starts_at = occurrence.starts_at.text();
    record.insert("starts_at".to_owned(), starts_at.clone().into());
    if let Some(end) = &occurrence.ends_at {
        record.insert("ends_at".to_owned(), end.text().into());
    }
    record.insert("repeats".to_owned(), false.into());
    record.insert("recurrence_id".to_owned(), starts_at.into());
    if let Some(series) = series.get("id") {
        record.insert("occurrence_of".to_owned(), series.clone());
    }
    Value::Object(record)
}

/// Moves a series to the first of its occurrences that takes place as planned.
pub(super) fn begin_at(series: &mut Value, first: &Occurrence) {
    let Value::Object(members) = series else {
        return;
    };
    if let Some(start) = members.insert("starts_at".to_owned(), first.starts_at.text().into()) {
        members.insert("series_starts_at".to_owned(), start);
    }
    match &first.ends_at {
        Some(end) => drop(members.insert("ends_at".to_owned(), end.text().into())),
        None => drop(members.remove("ends_at")),
    }
}

pub(super) fn task(component: &Component, calendar: &Calendar) -> Read<Value> {
    let entry = Entry {
        component,
        calendar,
    };
    let number = |name| entry.plain(name)?.parse::<i64>().ok();
    let completed_at = entry.time("COMPLETED", "completed_at")?;
    let status = entry.keyword("STATUS").unwrap_or_else(|| {
        let is_done = completed_at.is_some();
        if is_done { "completed" } else { "needs_action" }.to_owned()
    });
    Ok(filled(json!({
        "id": entry.key(),
        "uid": entry.plain("UID"),
        "title": entry.text("SUMMARY"),
        "calendar": calendar.name,
        "starts_at": entry.time("DTSTART", "starts_at")?.as_ref().map(EventTime::text),
        "due_at": entry.time("DUE", "due_at")?.as_ref().map(EventTime::text),
        "completed_at": completed_at.as_ref().map(EventTime::text),
        "status": status,
        "priority": number("PRIORITY"),
        "percent_complete": number("PERCENT-COMPLETE"),
        "location": entry.text("LOCATION"),
        "categories": entry.list("CATEGORIES"),
        "url": entry.plain("URL"),
        "recurrence": entry.rules(),
        "parent_uid": entry.plain("RELATED-TO"),
        "created_at": entry.timestamp("CREATED"),
        "updated_at": entry.timestamp("LAST-MODIFIED"),
        "description": entry.description(),
    })))
}

struct Entry<'a> {
    component: &'a Component,
    calendar: &'a Calendar,
}

impl Entry<'_> {
    /// A changed occurrence has the `UID` of what repeats and says which one it stands for.
    fn key(&self) -> String {
        key_of(self.component, self.plain("RECURRENCE-ID"))
    }

    fn text(&self, name: &str) -> Option<String> {
        let property = self.component.property(name)?;
        Some(property.text(Escapes::All))
    }

    fn description(&self) -> Option<String> {
        let text = self.text("DESCRIPTION")?;
        Some(html::typed_to_text(&text).into_owned())
    }

    /// A value that is no text and knows no escapes.
    fn plain(&self, name: &str) -> Option<&str> {
        Some(self.component.property(name)?.value.trim())
    }

    /// One of the words of the format, as records write them: `NEEDS-ACTION` is `needs_action`.
    fn keyword(&self, name: &str) -> Option<String> {
        self.plain(name).map(keyword)
    }

    fn is(&self, name: &str, word: &str) -> bool {
        self.plain(name)
            .is_some_and(|given| given.eq_ignore_ascii_case(word))
    }

    fn list(&self, name: &str) -> Vec<String> {
        let properties = self.component.all(name);
        let items = properties.flat_map(|property| property.texts(',', Escapes::All));
        items.map(|item| item.trim().to_owned()).collect()
    }

    fn time(&self, name: &str, field: &str) -> Read<Option<EventTime>> {
        let Some(property) = self.component.property(name) else {
            return Ok(None);
        };
        match EventTime::read(property, &self.calendar.zones) {
            Some(when) => Ok(Some(when)),
            None => Err(unreadable(property, "time", field)),
        }
    }

    /// When it ends: as stated, or after its duration. A day without either is that day.
    fn end(&self, start: Option<&EventTime>) -> Read<Option<EventTime>> {
        if let Some(end) = self.time("DTEND", "ends_at")? {
            return Ok(Some(end));
        }
        let Some(start) = start else {
            return Ok(None);
        };
        match self.component.property("DURATION") {
            Some(duration) => match start.after(&duration.value) {
                Some(end) => Ok(Some(end)),
                None => Err(unreadable(duration, "duration", "ends_at")),
            },
            None if start.is_day() => Ok(start.after("P1D")),
            None => Ok(None),
        }
    }

    /// The rules of what repeats, a line each: hardly ever more than one.
    fn rules(&self) -> String {
        let rules = self.component.all("RRULE").map(|rule| rule.value.trim());
        rules.collect::<Vec<_>>().join("\n")
    }

    /// Exceptions and additions to what repeats, where `/` stands between the ends of a period. What is no time stays as it
    /// is written.
    fn times(&self, name: &str) -> Vec<String> {
        let zones = &self.calendar.zones;
        let mut times = Vec::new();
        for property in self.component.all(name) {
            let read = |text: &str| {
                let when = EventTime::read_text(text, property, zones);
                when.map_or_else(|| text.trim().to_owned(), |when| when.text())
            };
            for text in property.value.split(',') {
                times.push(text.split('/').map(read).collect::<Vec<_>>().join("/"));
            }
        }
        times
    }

    /// When it was made or changed. Some programs write the year 0 there.
    fn timestamp(&self, name: &str) -> Option<String> {
        let when = EventTime::read(self.component.property(name)?, &Zones::default())?;
        let text = when.text();
        (!text.starts_with("0000")).then_some(text)
    }

    /// The name of the zone: ours if we know it, else as written.
    fn zone(&self, start: Option<&EventTime>) -> Option<String> {
        match start? {
            EventTime::Moment(_, zone) => Some(zone.name().to_owned()),
            EventTime::Floating(_) => {
                let name = self.component.property("DTSTART")?.parameter("TZID")?;
                Some(name.to_owned())
            }
            EventTime::Day(_) => None,
        }
    }
}

struct Person {
    name: Option<String>,
    address: String,
    response: Option<String>,
}

impl Person {
    fn from_property(property: &Property) -> Self {
        let value = property.value.trim();
        let address = match value.split_at_checked("mailto:".len()) {
            Some((scheme, address)) if scheme.eq_ignore_ascii_case("mailto:") => address,
            // What Outlook writes for somebody without an address.
            _ if value.eq_ignore_ascii_case("invalid:nomail") => "",
            _ => property.parameter("EMAIL").unwrap_or(value),
        };
        let name = property.parameter("CN").map(str::trim);
        Self {
            name: name
                .filter(|name| !name.is_empty() && *name != address)
                .map(str::to_owned),
            address: address.trim().to_owned(),
            response: property.parameter("PARTSTAT").map(keyword),
        }
    }

    fn name_or_address(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.address)
    }

    fn name_and_address(&self) -> String {
        match &self.name {
            Some(name) if self.address.is_empty() => name.clone(),
            Some(name) => format!("{name} <{}>", self.address),
            None => self.address.clone(),
        }
    }

    fn value(&self) -> Value {
        json!({ "name": self.name, "address": self.address, "response": self.response })
    }
}

/// Names and addresses, each once and by itself.
fn participants<'p>(people: impl Iterator<Item = &'p Person>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for person in people {
        let address = person.address.to_lowercase();
        let texts = person.name.clone().into_iter().chain([address]);
        for text in texts.filter(|text| !text.is_empty()) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}

fn keyword(text: &str) -> String {
    text.to_ascii_lowercase().replace('-', "_")
}

fn unreadable(property: &Property, what: &str, field: &str) -> Rejection {
    let message = format!(
        "{} is no {what}: {}",
        property.name,
        quoted(&property.value)
    );
    Rejection::new(RejectionCode::MalformedExport, message).in_field(field)
}
