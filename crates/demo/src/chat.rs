//! A chat workspace: channels, people, and what they say to each other.

use serde::Serialize;

use crate::dice::Dice;
use crate::error::DemoError;
use crate::grammar::{Grammar, Talk};
use crate::life::Source;
use crate::lines::Lines;
use crate::moment::Moment;
use crate::people::{COLLEAGUES, Person};
use crate::story::{Story, moment};

const DECLARATION: &str = include_str!("../declarations/chat.json");

const TALKS: usize = 1_800;

/// Name, topic, purpose, and the project it is about, if any.
const CHANNELS: [(&str, &str, &str, Option<&str>); 10] = [
    (
        "general",
        "Company-wide",
        "What everybody should know.",
        None,
    ),
    (
        "random",
        "Cake, plants and lost gloves",
        "Everything that is not work.",
        None,
    ),
    (
        "harbour-bridge",
        "Superstructure, vendor, permits",
        "The harbour footbridge.",
        Some("harbour footbridge"),
    ),
    (
        "monitoring",
        "Sensors, gateways, alarms",
        "What the bridges tell us.",
        Some("Riverside sensors"),
    ),
    (
        "osaka-retrofit",
        "Bearings and the final report",
        "The retrofit in Osaka, with Kenji.",
        Some("Osaka retrofit"),
    ),
    (
        "lyon",
        "L'appel d'offres",
        "La passerelle de Lyon.",
        Some("Lyon tender"),
    ),
    (
        "spanwatch-dev",
        "Reviews and releases",
        "The monitoring software.",
        None,
    ),
    (
        "site",
        "Photos and weather",
        "From the building sites.",
        Some("canal lock inspection"),
    ),
    (
        "station-canopy",
        "Lighting and drainage",
        "The canopy of the station.",
        Some("station canopy"),
    ),
    (
        "finance",
        "Offers, invoices, budgets",
        "Only for project leads.",
        None,
    ),
];

const REACTIONS: [&str; 8] = [
    "+1",
    "eyes",
    "tada",
    "heart",
    "joy",
    "white_check_mark",
    "thinking_face",
    "pray",
];

struct Draft {
    channel: usize,
    author: &'static Person,
    at: Moment,
    edited_at: Option<Moment>,
    text: String,
    reactions: Vec<Reaction>,
    /// Which talk it belongs to; the first of a talk is what the others answer.
    talk: usize,
    replies: usize,
    is_reply: bool,
}

#[derive(Serialize)]
struct Reaction {
    name: String,
    count: i64,
}

#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    channel_id: &'a str,
    channel_name: &'a str,
    user_id: &'a str,
    author_name: &'a str,
    sent_at: &'a str,
    edited_at: Option<String>,
    thread_id: Option<&'a str>,
    reply_count: usize,
    reactions: &'a [Reaction],
    text: &'a str,
    permalink: String,
}

#[derive(Serialize)]
struct Channel<'a> {
    id: &'a str,
    name: &'a str,
    topic: &'a str,
    purpose: &'a str,
    is_private: bool,
    is_archived: bool,
    member_count: usize,
    created_at: &'a str,
}

#[derive(Serialize)]
struct User<'a> {
    id: &'a str,
    handle: &'a str,
    name: &'a str,
    title: &'a str,
    email: &'a str,
    time_zone: &'a str,
    is_bot: bool,
}

pub(crate) fn source(grammar: &Grammar, story: &Story) -> Result<Source, DemoError> {
    let mut lines = Lines::default();
    let founded = Moment::on(crate::moment::FIRST_DAY, 8, 0).text();
    for (number, person) in COLLEAGUES.iter().enumerate() {
        let id = user_id(number);
        let user = User {
            id: &id,
            handle: person.handle(),
            name: person.name,
            title: person.title,
            email: person.email,
            time_zone: person.time_zone,
            is_bot: false,
        };
        lines.add("users", &id, &founded, &user)?;
    }
    for (number, (name, topic, purpose, _)) in CHANNELS.into_iter().enumerate() {
        let id = channel_id(number);
        let channel = Channel {
            id: &id,
            name,
            topic,
            purpose,
            is_private: name == "finance",
            is_archived: false,
            member_count: COLLEAGUES.len(),
            created_at: &founded,
        };
        lines.add("channels", &id, &founded, &channel)?;
    }
    let mut drafts = story_messages(story)?;
    let begun = drafts.last().map_or(0, |last| last.talk + 1);
    let mut talk = Talk::new(grammar, "chat");
    (begun..begun + TALKS).for_each(|number| drafts.extend(chatted(&mut talk, number)));
    write(drafts, &mut lines)?;
    let connection = ("chat-tidewater", "Tidewater chat");
    Ok(Source::new(DECLARATION, connection, lines))
}

fn user_id(number: usize) -> String {
    format!("U{:03}", number + 1)
}

fn channel_id(number: usize) -> String {
    format!("C{:03}", number + 1)
}

fn story_messages(story: &Story) -> Result<Vec<Draft>, DemoError> {
    let mut drafts = Vec::new();
    for (talk, told) in story.chat.iter().enumerate() {
        let unknown = |what: &str| DemoError::Story(format!("the chat does not know {what}"));
        let channel = CHANNELS.iter().position(|(name, ..)| *name == told.channel);
        let channel = channel.ok_or_else(|| unknown(&told.channel))?;
        let author = |name: &str| {
            let found = COLLEAGUES.iter().find(|person| person.name == name);
            found.ok_or_else(|| unknown(name))
        };
        let reactions = told.reactions.iter().cloned();
        drafts.push(Draft {
            channel,
            author: author(&told.from)?,
            at: moment(&told.at)?,
            edited_at: told.edited_at.as_deref().map(moment).transpose()?,
            text: told.text.clone(),
            reactions: reactions
                .map(|(name, count)| Reaction { name, count })
                .collect(),
            talk,
            replies: told.replies.len(),
            is_reply: false,
        });
        for reply in &told.replies {
            drafts.push(Draft {
                channel,
                author: author(&reply.from)?,
                at: moment(&reply.at)?,
                edited_at: None,
                text: reply.text.clone(),
                reactions: Vec::new(),
                talk,
                replies: 0,
                is_reply: true,
            });
        }
    }
    Ok(drafts)
}

/// Somebody says something, and mostly somebody answers.
fn chatted(talk: &mut Talk<'_>, number: usize) -> Vec<Draft> {
    talk.change_topic();
    let channel = talk.dice.below(CHANNELS.len());
    let (name, .., project) = CHANNELS[channel];
    if let Some(project) = project {
        talk.set("project", project);
    }
    let person = talk.dice.pick(&COLLEAGUES).first_name();
    talk.set("person", person);
    let mut at = Moment::at_work(&mut talk.dice);
    let replies = if talk.dice.one_in(4) {
        0
    } else {
        talk.dice.few(12)
    };
    let (openings, answers) = match name {
        "random" => ("chat.garden", "chat.chatter"),
        _ => ("chat.open", "chat.reply"),
    };
    let mut drafts: Vec<Draft> = Vec::new();
    for place in 0..=replies {
        let author: &Person = talk.dice.pick(&COLLEAGUES);
        let own = own_language(author);
        let text = match own {
            Some(own) if place > 0 && name != "random" && talk.dice.one_in(5) => talk.say(own),
            _ if place > 0 => talk.say(answers),
            _ => talk.say(openings),
        };
        drafts.push(Draft {
            channel,
            author,
            at,
            edited_at: talk.dice.one_in(40).then(|| at.plus_minutes(2)),
            text,
            reactions: reactions(&mut talk.dice),
            talk: number,
            replies: if place == 0 { replies } else { 0 },
            is_reply: place > 0,
        });
        at = at.plus_minutes(talk.dice.between(1, 45));
    }
    drafts
}

/// The list of what somebody says in another language than English.
fn own_language(author: &Person) -> Option<&'static str> {
    match author.first_name() {
        "Claire" => Some("chat.Claire"),
        "Jonas" => Some("chat.Jonas"),
        "Kenji" => Some("chat.Kenji"),
        "Amina" => Some("chat.Amina"),
        _ => None,
    }
}

fn reactions(dice: &mut Dice) -> Vec<Reaction> {
    if !dice.one_in(5) {
        return Vec::new();
    }
    vec![Reaction {
        name: (*dice.pick(&REACTIONS)).to_owned(),
        count: dice.between(1, 6),
    }]
}

/// Gives ids in the order of time: the channel, a slash and the second, as chat programs do.
fn write(mut drafts: Vec<Draft>, lines: &mut Lines) -> Result<(), DemoError> {
    drafts.sort_by_key(|one| (one.at, one.talk, one.is_reply));
    let count = drafts.iter().map(|one| one.talk + 1).max().unwrap_or(0);
    let mut begun: Vec<Option<String>> = vec![None; count];
    for (number, one) in drafts.iter().enumerate() {
        let channel = channel_id(one.channel);
        let id = format!("{channel}-{:06}.{:02}", 100_000 + number, one.talk % 100);
        if !one.is_reply {
            begun[one.talk] = Some(id.clone());
        }
        let user = COLLEAGUES.iter().position(|person| person == one.author);
        let sent_at = one.at.text();
        let message = Message {
            id: &id,
            channel_id: &channel,
            channel_name: CHANNELS[one.channel].0,
            user_id: &user_id(user.unwrap_or(0)),
            author_name: one.author.name,
            sent_at: &sent_at,
            edited_at: one.edited_at.map(Moment::text),
            thread_id: begun[one.talk].as_deref().filter(|_| one.is_reply),
            reply_count: one.replies,
            reactions: &one.reactions,
            text: &one.text,
            permalink: format!("https://tidewater.chat.example/{id}"),
        };
        lines.add("messages", &id, &sent_at, &message)?;
    }
    Ok(())
}
