//! Private mail: family, friends, newsletters.

use super::{Conversation, File, Letter};
use crate::error::DemoError;
use crate::grammar::{Grammar, Talk};
use crate::moment::Moment;
use crate::people::{HOME, Person};

const CONVERSATIONS: usize = 560;
const NEWSLETTERS: usize = 320;
const FILES: usize = 30;

/// Name, address, and the list of what they write.
const SENDERS: [(&str, &str, &str); 4] = [
    ("Rheinblatt", "letter@rheinblatt.example", "letter.paper"),
    (
        "Bank Dreiland",
        "service@bank-dreiland.example",
        "letter.bank",
    ),
    (
        "Stadtbibliothek",
        "info@stadtbibliothek.example",
        "letter.library",
    ),
    (
        "Schule Ahornweg",
        "sekretariat@schule-ahornweg.example",
        "letter.school",
    ),
];

pub(super) fn conversations(grammar: &Grammar) -> Result<Vec<Conversation>, DemoError> {
    let mut talk = Talk::new(grammar, "mail-private");
    let mut made = Vec::new();
    for _ in 0..CONVERSATIONS {
        made.push(exchange(&mut talk)?);
    }
    for _ in 0..NEWSLETTERS {
        made.push(vec![newsletter(&mut talk)]);
    }
    Ok(made)
}

/// Mara and one other write to each other.
fn exchange(talk: &mut Talk<'_>) -> Result<Conversation, DemoError> {
    talk.change_topic();
    let other = talk.dice.pick(&HOME[1..]);
    let absent = talk.dice.pick(&HOME[5..]).first_name();
    talk.set("person", absent);
    let (subject, opening) = talk.pair("home.topic");
    let mut at = Moment::at_home(&mut talk.dice);
    let mut pair: [&Person; 2] = [&HOME[0], other];
    if talk.dice.one_in(2) {
        pair.reverse();
    }
    let mut letters: Conversation = Vec::new();
    for place in 0..talk.dice.few(8) {
        let [author, to] = pair;
        talk.set("from", author.first_name());
        talk.set("to", to.first_name());
        let mut body = if place == 0 {
            let (greeting, closing) = (talk.say("home.greeting"), talk.say("home.closing"));
            format!("{greeting}\n\n{opening}\n\n{closing}")
        } else {
            talk.say("home.reply")
        };
        if let Some(before) = letters.last()
            && talk.dice.one_in(2)
        {
            body.push_str("\n\n");
            body.push_str(&before.quoted());
        }
        let subject = if place == 0 {
            subject.clone()
        } else {
            format!("Re: {subject}")
        };
        let letter = Letter::new((author.name, author.email), &[to], at);
        letters.push(letter.saying(subject, body));
        at = at.plus_minutes(talk.dice.between(2, 900)).awake(false);
        pair.reverse();
        if !at.has_passed() {
            break;
        }
    }
    if talk.dice.one_in(FILES) {
        letters[0].files = vec![File::picture("photo-scan.png", &mut talk.dice)?];
    }
    Ok(letters)
}

fn newsletter(talk: &mut Talk<'_>) -> Letter {
    talk.change_topic();
    let (name, email, list) = *talk.dice.pick(&SENDERS);
    let (subject, body) = talk.pair(list);
    let at = Moment::at_home(&mut talk.dice);
    Letter::new((name, email), &[&HOME[0]], at).saying(subject, body)
}
