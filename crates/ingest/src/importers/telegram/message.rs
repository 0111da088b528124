//! One message of a Telegram export as a record. What agents ask about gets a field of its own, texts that Telegram
//! writes in pieces become one, and every other member is kept in `details` as it is written.

use contract::json::{self, JsonKind, RecordBody};
use contract::time::Instant;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use super::chat::Chat;
use crate::rejection::{Rejection, RejectionCode, quoted};

/// Members that are said by fields of the record, or say again what others do.
const SAID: [&str; 25] = [
    "id",
    "type",
    "date",
    "date_unixtime",
    "edited",
    "edited_unixtime",
    "from",
    "from_id",
    "actor",
    "actor_id",
    "action",
    "reply_to_message_id",
    "reply_to_peer_id",
    "forwarded_from",
    "media_type",
    "mime_type",
    "duration_seconds",
    "photo",
    "file",
    "file_name",
    "thumbnail",
    "text",
    "text_entities",
    "reactions",
    "poll",
];

/// What is sent besides text, by the member that tells.
const MEDIA: [(&str, &str); 8] = [
    ("photo", "photo"),
    ("file", "file"),
    ("location_information", "location"),
    ("contact_information", "contact"),
    ("poll", "poll"),
    ("game_title", "game"),
    ("invoice_information", "invoice"),
    ("story", "story"),
];

#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct MessageRecord<'m> {
    id: String,
    chat_id: String,
    chat_name: Option<&'m str>,
    chat_type: Option<&'m str>,
    message_id: i64,
    kind: Option<String>,
    action: Option<String>,
    author_name: Option<String>,
    author_id: Option<String>,
    sent_at: Option<String>,
    edited_at: Option<String>,
    reply_to_id: Option<String>,
    forwarded_from: Option<String>,
    #[serde(flatten)]
    sent: Sent,
    duration_seconds: Option<&'m RawValue>,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<String>,
    reactions: Option<&'m RawValue>,
    poll: Option<&'m RawValue>,
    #[serde(skip_serializing_if = "Details::is_empty")]
    details: Details<'m>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Sent {
    media_type: Option<String>,
    mime_type: Option<String>,
    file_name: Option<String>,
    file: Option<String>,
}

/// Members that have no field of their own, as they are written.
struct Details<'m>(Vec<(&'m str, &'m RawValue)>);

impl MessageRecord<'_> {
    /// Who wrote it; an empty text where nobody is named.
    pub(super) fn author(&self) -> &str {
        self.author_name.as_deref().unwrap_or_default()
    }
}

impl<'m> MessageRecord<'m> {
    pub(super) fn read(chat: &'m Chat, body: &'m RecordBody) -> Result<Self, Rejection> {
        let chat_id = chat.id()?;
        let number = whole_number(body, "id")?;
        let parts = Parts::read(body)?;
        Ok(Self {
            id: key(&chat_id, number),
            chat_name: chat.shown_name(),
            chat_type: chat.kind.as_deref(),
            message_id: number,
            kind: text_of(body, "type"),
            action: text_of(body, "action"),
            author_name: either(body, ["from", "actor"]),
            author_id: author_id(body),
            sent_at: moment(body, "date")?,
            edited_at: moment(body, "edited")?,
            reply_to_id: reply_to(&chat_id, body)?,
            forwarded_from: text_of(body, "forwarded_from"),
            sent: Sent::read(body),
            duration_seconds: as_written(body, "duration_seconds"),
            text: parts.text(body),
            links: parts.links(),
            reactions: as_written(body, "reactions"),
            poll: as_written(body, "poll"),
            details: Details::read(body),
            chat_id,
        })
    }
}

impl Sent {
    fn read(body: &RecordBody) -> Self {
        let told = || MEDIA.iter().find(|(member, _)| body.get(member).is_some());
        // A file that was not exported is a sentence in brackets where its path would be.
        let file = either(body, ["photo", "file"]).filter(|path| !path.starts_with('('));
        let last = || file.as_deref()?.rsplit('/').next().map(str::to_owned);
        Self {
            media_type: text_of(body, "media_type")
                .or_else(|| told().map(|(_, media)| (*media).to_owned())),
            mime_type: text_of(body, "mime_type"),
            file_name: text_of(body, "file_name").or_else(last),
            file,
        }
    }
}

impl<'m> Details<'m> {
    fn read(body: &'m RecordBody) -> Self {
        let others = body.members().filter(|(name, _)| !SAID.contains(name));
        Self(
            others
                .filter_map(|(name, raw)| Some((name, serde_json::from_str(raw).ok()?)))
                .collect(),
        )
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Details<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// A member as it is written. It has been parsed before, so it is JSON.
fn as_written<'m>(body: &'m RecordBody, member: &str) -> Option<&'m RawValue> {
    serde_json::from_str(body.get(member)?).ok()
}

/// The key of a message. The number is padded, so that keys sort as the messages were sent.
fn key(chat_id: &str, number: i64) -> String {
    format!("{chat_id}-{number:010}")
}

pub(super) fn text_of(body: &RecordBody, member: &str) -> Option<String> {
    body.text(member).map(std::borrow::Cow::into_owned)
}

/// A moment that stands as `member` in the local time of the person who exported, and since 2021 also as `member_unixtime`.
pub(super) fn moment(body: &RecordBody, member: &str) -> Result<Option<String>, Rejection> {
    let exact = body.get(&format!("{member}_unixtime")).map(|raw| {
        json::decode_string(raw)
            .unwrap_or(raw.into())
            .parse::<i64>()
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000_000))
            .map(|micros| Instant(micros).to_rfc3339_millis())
    });
    if let Some(Some(exact)) = exact {
        return Ok(Some(exact));
    }
    match (body.get(member), text_of(body, member)) {
        (None, _) => Ok(None),
        (Some(_), Some(local)) if Instant::parse(&local).is_some() => Ok(Some(local)),
        (Some(raw), _) => {
            let message = format!("'{member}' is no time: {}", quoted(raw));
            Err(Rejection::new(RejectionCode::MalformedExport, message).in_field(member))
        }
    }
}

fn whole_number(body: &RecordBody, member: &str) -> Result<i64, Rejection> {
    let number = body.get(member).and_then(|raw| raw.parse().ok());
    number.ok_or_else(|| {
        let message = format!("the message has no number as its '{member}'");
        Rejection::new(RejectionCode::MissingKey, message).in_field(member)
    })
}

fn either(body: &RecordBody, members: [&str; 2]) -> Option<String> {
    members.into_iter().find_map(|member| text_of(body, member))
}

/// `user1` and the like; exports of before 2021 have the bare number.
fn author_id(body: &RecordBody) -> Option<String> {
    let raw = body.get("from_id").or_else(|| body.get("actor_id"))?;
    match json::kind_of(raw) {
        JsonKind::String => json::decode_string(raw).map(std::borrow::Cow::into_owned),
        JsonKind::Number => Some(format!("user{raw}")),
        _ => None,
    }
}

/// The key of the message that is answered, which may stand in another chat.
fn reply_to(chat_id: &str, body: &RecordBody) -> Result<Option<String>, Rejection> {
    if body.get("reply_to_message_id").is_none() {
        return Ok(None);
    }
    let number = whole_number(body, "reply_to_message_id")?;
    let peer = text_of(body, "reply_to_peer_id");
    Ok(Some(key(peer.as_deref().unwrap_or(chat_id), number)))
}

/// A text in pieces: what is plain, and what is marked as a link, a mention or the like.
struct Parts(Vec<Part>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Plain(String),
    Marked {
        #[serde(rename = "type")]
        kind: String,
        text: String,
        href: Option<String>,
    },
}

#[derive(Deserialize)]
struct Poll {
    question: TextForm,
    #[serde(default)]
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    text: TextForm,
}

/// A text, whole or in pieces.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextForm {
    Whole(String),
    Pieces(Vec<Part>),
}

fn joined(parts: &[Part]) -> String {
    parts
        .iter()
        .map(|part| match part {
            Part::Plain(text) | Part::Marked { text, .. } => text.as_str(),
        })
        .collect()
}

impl Poll {
    fn text(self) -> String {
        let answers = self.answers.into_iter().map(|answer| answer.text);
        let lines: Vec<String> = std::iter::once(self.question)
            .chain(answers)
            .map(|written| match written {
                TextForm::Whole(text) => text,
                TextForm::Pieces(parts) => joined(&parts),
            })
            .collect();
        lines.join("\n")
    }
}

impl Parts {
    /// `text` is a text or its pieces; in newer exports `text_entities` are always the pieces.
    fn read(body: &RecordBody) -> Result<Self, Rejection> {
        let member = match body.get("text") {
            Some(_) => "text",
            None => "text_entities",
        };
        let Some(raw) = body.get(member) else {
            return Ok(Self(Vec::new()));
        };
        let parts = match json::decode_string(raw) {
            Some(text) => Some(vec![Part::Plain(text.into_owned())]),
            None => serde_json::from_str(raw).ok(),
        };
        parts.map(Self).ok_or_else(|| {
            let message = format!("'{member}' is neither a text nor pieces of one");
            Rejection::new(RejectionCode::MalformedExport, message).in_field(member)
        })
    }

    /// The text as it was read by people. A poll has none but its question and answers.
    fn text(&self, body: &RecordBody) -> String {
        let text = joined(&self.0);
        let poll = body.get("poll").filter(|_| text.is_empty());
        match poll.and_then(|raw| serde_json::from_str::<Poll>(raw).ok()) {
            Some(poll) => poll.text(),
            None => text,
        }
    }

    /// The addresses that the text links to, each once.
    fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        for part in &self.0 {
            let link = match part {
                Part::Marked { kind, text, .. } if kind == "link" => text,
                Part::Marked {
                    href: Some(href), ..
                } => href,
                _ => continue,
            };
            if !links.contains(link) {
                links.push(link.clone());
            }
        }
        links
    }
}
