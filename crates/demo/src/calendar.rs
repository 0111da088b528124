//! A calendar: what repeats, what comes up, and the trips of the story.

use serde::Serialize;

use crate::error::DemoError;
use crate::grammar::{Grammar, Talk, capitalised};
use crate::life::Source;
use crate::lines::Lines;
use crate::moment::{FIRST_DAY, LAST_DAY, Moment, weekday};
use crate::people::{COLLEAGUES, HOME, MARA, MARA_AT_HOME, address};
use crate::story::{Story, StoryEvent, moment};

const DECLARATION: &str = include_str!("../declarations/calendar.json");

const MEETINGS: usize = 420;

/// Day of the week, hour, minutes, title, calendar, location.
const WEEKLY: [(i64, i64, i64, &str, &str, &str); 4] = [
    (0, 8, 30, "Standup", "work", "room Birs"),
    (
        2,
        15,
        60,
        "Swimming, Lina and Emil",
        "family",
        "Schwimmschule Rhyblick",
    ),
    (3, 9, 45, "Project leads", "work", "the big room"),
    (4, 18, 120, "Choir", "family", "Kirchgemeindehaus"),
];

/// Month and day, and whose birthday.
const BIRTHDAYS: [(&str, &str); 6] = [
    ("02-17", "Lina"),
    ("04-03", "Ruth (Mama)"),
    ("05-29", "Daniel"),
    ("08-08", "Emil"),
    ("09-21", "Felix"),
    ("12-02", "Tante Hedi"),
];

#[derive(Serialize)]
struct Event<'a> {
    id: &'a str,
    title: &'a str,
    calendar: &'a str,
    starts_at: &'a str,
    ends_at: &'a str,
    all_day: bool,
    location: Option<&'a str>,
    organizer: &'a str,
    attendees: &'a [String],
    status: &'a str,
    description: Option<&'a str>,
}

pub(crate) fn source(grammar: &Grammar, story: &Story) -> Result<Source, DemoError> {
    let mut lines = Lines::default();
    for event in &story.events {
        story_event(event, &mut lines)?;
    }
    for day in FIRST_DAY..=LAST_DAY {
        recurring_events(day, &mut lines)?;
    }
    let mut talk = Talk::new(grammar, "calendar");
    for number in 0..MEETINGS {
        meeting(&mut talk, number, &mut lines)?;
    }
    Ok(Source::new(
        DECLARATION,
        ("calendar", "Mara's calendar"),
        lines,
    ))
}

fn story_event(event: &StoryEvent, lines: &mut Lines) -> Result<(), DemoError> {
    let attendees = event.attendees.iter().map(|given| {
        let found = address(given, &HOME[1..2]);
        found.map(|(_, email)| email)
    });
    let attendees: Option<Vec<String>> = attendees.collect();
    let nobody = || DemoError::Story(format!("the guests of {} are unknown", event.title));
    let record = Event {
        id: &event.id,
        title: &event.title,
        calendar: &event.calendar,
        starts_at: &event.starts_at,
        ends_at: &event.ends_at,
        all_day: event.all_day,
        location: event.location.as_deref(),
        organizer: &event.organizer,
        attendees: &attendees.ok_or_else(nobody)?,
        status: "confirmed",
        description: Some(&event.description),
    };
    // It was entered when it was known, which is no later than the last day.
    let entered = moment(&event.starts_at)?.min(Moment::on(LAST_DAY, 18, 0));
    lines.add("events", &event.id, &entered.text(), &record)
}

fn recurring_events(day: i64, lines: &mut Lines) -> Result<(), DemoError> {
    let midnight = Moment::on(day, 0, 0);
    let date = midnight.date();
    for (on, hour, minutes, title, calendar, location) in WEEKLY {
        if weekday(day) == on {
            let starts = Moment::on(day, hour, 0);
            let ends = starts.plus_minutes(minutes).text();
            let id = format!("{title} {date}");
            let event = Event {
                id: &id,
                title,
                calendar,
                starts_at: &starts.text(),
                ends_at: &ends,
                all_day: false,
                location: Some(location),
                organizer: MARA,
                attendees: &[MARA_AT_HOME.to_owned()],
                status: "confirmed",
                description: None,
            };
            lines.add("events", &id, &starts.text(), &event)?;
        }
    }
    for (birthday, name) in BIRTHDAYS {
        if date.ends_with(birthday) {
            let title = format!("Birthday: {name}");
            let id = format!("birthday {date}");
            let event = Event {
                id: &id,
                title: &title,
                calendar: "family",
                starts_at: &midnight.text(),
                ends_at: &midnight.plus_days(1).text(),
                all_day: true,
                location: None,
                organizer: MARA,
                attendees: &[],
                status: "confirmed",
                description: Some("Cake, without hazelnuts if Lina comes."),
            };
            lines.add("events", &id, &midnight.text(), &event)?;
        }
    }
    Ok(())
}

fn meeting(talk: &mut Talk<'_>, number: usize, lines: &mut Lines) -> Result<(), DemoError> {
    talk.change_topic();
    let host = talk.dice.pick(&COLLEAGUES[1..]);
    talk.set("person", host.first_name());
    let (project, document) = (talk.say("project"), talk.say("document"));
    let title = capitalised(&format!("{project}: {document}"));
    let day = Moment::at_work(&mut talk.dice).day();
    let quarter = 15 * talk.dice.between(0, 3);
    let starts = Moment::on(day, talk.dice.between(7, 15), quarter);
    let ends = starts.plus_minutes(30 * talk.dice.between(1, 4));
    let id = format!("evt-{:04}@tidewater.example", number + 1);
    let attendees = [host.email.to_owned(), COLLEAGUES[0].email.to_owned()];
    let description = talk.say("work.detail");
    let room = talk.say("room");
    let event = Event {
        id: &id,
        title: &title,
        calendar: "work",
        starts_at: &starts.text(),
        ends_at: &ends.text(),
        all_day: false,
        location: Some(&room),
        organizer: host.name,
        attendees: &attendees,
        status: if talk.dice.one_in(15) {
            "cancelled"
        } else {
            "confirmed"
        },
        description: Some(&description)
            .filter(|_| !number.is_multiple_of(3))
            .map(String::as_str),
    };
    lines.add("events", &id, &starts.plus_days(-2).text(), &event)
}
