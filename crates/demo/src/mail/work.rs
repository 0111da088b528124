//! Mail at work: projects, minutes, robots, letters in other languages, and a few very long documents.

use std::fmt::Write as _;

use super::{Conversation, File, Letter};
use crate::error::DemoError;
use crate::grammar::{Grammar, Talk};
use crate::moment::Moment;
use crate::people::{COLLEAGUES, Person};

const CONVERSATIONS: usize = 1_080;
const NOTICES: usize = 330;
const DOCUMENTS: usize = 9;
/// The longest letters, in bytes.
const LONG: usize = 49_000;
const FILES: usize = 36;

/// Language, author, and how many letters of it.
const FOREIGN: [(&str, usize, usize); 4] =
    [("de", 1, 70), ("fr", 4, 45), ("ja", 3, 38), ("ar", 2, 30)];

pub(super) fn conversations(grammar: &Grammar) -> Result<Vec<Conversation>, DemoError> {
    let mut talk = Talk::new(grammar, "mail-work");
    let mut made = Vec::new();
    for _ in 0..CONVERSATIONS {
        made.push(project(&mut talk)?);
    }
    for _ in 0..NOTICES {
        made.push(vec![notice(&mut talk)]);
    }
    for (language, author, count) in FOREIGN {
        for _ in 0..count {
            made.push(vec![foreign(&mut talk, language, &COLLEAGUES[author])]);
        }
    }
    for number in 0..DOCUMENTS {
        made.push(vec![document(&mut talk, LONG * (number + 1) / DOCUMENTS)]);
    }
    Ok(made)
}

/// Two to four people, Mara always among them.
fn circle(talk: &mut Talk<'_>) -> Vec<&'static Person> {
    let mut circle = vec![&COLLEAGUES[0]];
    let size = talk.dice.between(2, 4);
    while circle.len() < usize::try_from(size).unwrap_or(2) {
        let person = talk.dice.pick(&COLLEAGUES);
        if !circle.contains(&person) {
            circle.push(person);
        }
    }
    circle
}

fn project(talk: &mut Talk<'_>) -> Result<Conversation, DemoError> {
    talk.change_topic();
    let circle = circle(talk);
    let absent = talk.dice.pick(&COLLEAGUES[1..]).first_name();
    talk.set("person", absent);
    let (subject, opening) = talk.pair("work.topic");
    let length = talk.dice.few(16);
    let mut at = Moment::at_work(&mut talk.dice);
    let mut author = *talk.dice.pick(&circle);
    let mut letters: Conversation = Vec::new();
    for place in 0..length {
        let others: Vec<&Person> = circle
            .iter()
            .copied()
            .filter(|one| *one != author)
            .collect();
        let text = if place == 0 {
            opening.clone()
        } else {
            talk.say("work.reply")
        };
        let body = letter_text(talk, author, others[0], &text, letters.last());
        let subject = if place == 0 {
            subject.clone()
        } else {
            format!("Re: {subject}")
        };
        let letter = Letter::new((author.name, author.email), &others, at);
        letters.push(letter.saying(subject, body));
        author = *talk.dice.pick(&others);
        at = at.plus_minutes(talk.dice.between(3, 1_600)).awake(true);
        if !at.has_passed() {
            break;
        }
    }
    if talk.dice.one_in(FILES) {
        letters[0].files = vec![file(talk)?];
    }
    Ok(letters)
}

/// Greeting, text, farewell and quotation; hurried people leave out most of it.
fn letter_text(
    talk: &mut Talk<'_>,
    author: &Person,
    to: &Person,
    text: &str,
    before: Option<&Letter>,
) -> String {
    talk.set("from", author.first_name());
    talk.set("to", to.first_name());
    let hurried = before.is_some() && talk.dice.one_in(3);
    let mut body = if before.is_some() && talk.dice.one_in(70) {
        // Somebody answers with nothing but the quotation.
        String::new()
    } else if hurried {
        text.to_owned()
    } else {
        let (greeting, closing) = (talk.say("work.greeting"), talk.say("work.closing"));
        format!("{greeting}\n\n{text}\n\n{closing}")
    };
    if let Some(before) = before
        && !talk.dice.one_in(4)
    {
        body.push_str("\n\n");
        body.push_str(&before.quoted());
    }
    body
}

fn file(talk: &mut Talk<'_>) -> Result<File, DemoError> {
    let part = talk.say("part").replace(' ', "-");
    if talk.dice.one_in(2) {
        return File::picture(format!("{part}.png"), &mut talk.dice);
    }
    let mut table = String::from("time,displacement_mm,temperature_c\n");
    for hour in 0..24 {
        let (millimetres, degrees) = (talk.dice.between(0, 99), talk.dice.between(-40, 289));
        let line = format!(
            "{hour:02}:00,{}.{},{}.{}\n",
            millimetres / 10,
            millimetres % 10,
            degrees / 10,
            (degrees % 10).abs()
        );
        table.push_str(&line);
    }
    Ok(File::text(
        format!("{part}-readings.csv"),
        "text/csv",
        table,
    ))
}

fn notice(talk: &mut Talk<'_>) -> Letter {
    talk.change_topic();
    let person = talk.dice.pick(&COLLEAGUES[1..]).first_name();
    talk.set("person", person);
    let (subject, body) = (talk.say("work.robot.subject"), talk.say("work.robot.body"));
    let at = Moment::at_work(&mut talk.dice);
    let from = ("Tidewater robots", "robots@tidewater.example");
    Letter::new(from, &[&COLLEAGUES[0]], at).saying(subject, body)
}

fn foreign(talk: &mut Talk<'_>, language: &str, author: &Person) -> Letter {
    talk.change_topic();
    let (subject, body) = talk.pair(language);
    let at = Moment::at_work(&mut talk.dice);
    Letter::new((author.name, author.email), &[&COLLEAGUES[0]], at).saying(subject, body)
}

fn document(talk: &mut Talk<'_>, bytes: usize) -> Letter {
    talk.change_topic();
    let author = &COLLEAGUES[1];
    talk.set("person", "Viktor");
    let project = talk.say("project");
    let mut body =
        format!("Hi Mara,\n\nthe whole specification of the {project} as text, for searching.\n");
    let mut chapter = 0;
    while body.len() < bytes {
        chapter += 1;
        let heading = talk.say("spec.heading");
        // Writing to a String cannot fail.
        let _ = write!(body, "\n{chapter}. {heading}\n\n");
        for _ in 0..talk.dice.between(4, 12) {
            talk.change_topic();
            talk.set("person", "Viktor");
            body.push_str(&talk.say("spec.sentence"));
            body.push(' ');
        }
        body.push('\n');
    }
    let at = Moment::at_work(&mut talk.dice);
    let subject = format!("Specification of the {project}, full text");
    Letter::new((author.name, author.email), &[&COLLEAGUES[0]], at).saying(subject, body)
}
