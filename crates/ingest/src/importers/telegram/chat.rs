//! Chats and contacts of a Telegram export.

use contract::json::{self, JsonKind, RecordBody};
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::message::{moment, text_of};
use crate::accept::Acceptor;
use crate::importers::participants::Participants;
use crate::rejection::{Rejection, RejectionCode};

/// What is known of the chat that is being read.
#[derive(Default)]
pub(super) struct Chat {
    pub(super) line: u64,
    /// Whether its record was given.
    pub(super) announced: bool,
    /// Whether its messages were come to.
    pub(super) is_begun: bool,
    pub(super) name: Option<String>,
    /// Telegram's word for it, such as `personal_chat`.
    pub(super) kind: Option<String>,
    number: Option<i64>,
    pub(super) participants: Participants,
}

impl Chat {
    pub(super) fn at(line: u64) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    /// Takes in a member. A name may be null: that of a deleted account is.
    pub(super) fn learn(&mut self, member: &str, raw: &[u8]) {
        let Ok(raw) = std::str::from_utf8(raw) else {
            return;
        };
        let text = || json::decode_string(raw).map(std::borrow::Cow::into_owned);
        match member {
            "name" => self.name = text(),
            "type" => self.kind = text(),
            "id" => self.number = raw.parse().ok(),
            _ => {}
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.number.is_some() && self.family() != "other"
    }

    /// The id: Telegram counts people, groups and channels apart and writes of authors `user1`, `chat1` or `channel1`.
    /// Being made public changes the word for a chat, but not its family.
    pub(super) fn id(&self) -> Result<String, Rejection> {
        match self.number {
            Some(number) => Ok(format!("{}{number}", self.family())),
            None => Err(Rejection::new(
                RejectionCode::MissingKey,
                "the chat has no 'id' before its messages",
            )
            .in_field("id")),
        }
    }

    fn family(&self) -> &'static str {
        match self.kind.as_deref() {
            Some(
                "personal_chat" | "bot_chat" | "saved_messages" | "replies" | "verification_codes",
            ) => "user",
            Some("private_group") => "chat",
            Some(
                "private_supergroup" | "public_supergroup" | "private_channel" | "public_channel",
            ) => "channel",
            _ => "other",
        }
    }

    /// The name people see. Two kinds of chat have none of their own.
    pub(super) fn shown_name(&self) -> Option<&str> {
        match (self.name.as_deref(), self.kind.as_deref()) {
            (Some(name), _) => Some(name),
            (None, Some("saved_messages")) => Some("Saved Messages"),
            (None, Some("replies")) => Some("Replies"),
            (None, _) => None,
        }
    }

    pub(super) fn record(&self, acceptor: &Acceptor<'_>) -> Result<ChatRecord<'_>, Rejection> {
        let id = self.id()?;
        Ok(ChatRecord {
            participants: self.participants.with_stored(acceptor, &id),
            id,
            name: self.shown_name(),
            kind: self.kind.as_deref(),
        })
    }
}

#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ChatRecord<'c> {
    id: String,
    name: Option<&'c str>,
    #[serde(rename = "type")]
    kind: Option<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    participants: Vec<String>,
}

#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct Contact {
    id: String,
    name: String,
    user_id: Option<String>,
    phone_number: Option<String>,
    added_at: Option<String>,
}

impl Contact {
    /// Reads a contact. Somebody without an account is known by telephone; of somebody who has deleted theirs nothing is
    /// left but a date, and there is no record.
    pub(super) fn read(body: &RecordBody) -> Result<Option<Self>, Rejection> {
        let phone_number = text_of(body, "phone_number").filter(|phone| !phone.is_empty());
        let user_id = match body.get("user_id") {
            Some(raw) if json::kind_of(raw) == JsonKind::Number && raw != "0" => {
                Some(format!("user{raw}"))
            }
            _ => None,
        };
        let Some(id) = user_id.clone().or_else(|| phone_number.clone()) else {
            return Ok(None);
        };
        let names = [text_of(body, "first_name"), text_of(body, "last_name")];
        let names = names.into_iter().flatten().filter(|name| !name.is_empty());
        Ok(Some(Self {
            id,
            name: names.collect::<Vec<String>>().join(" "),
            user_id,
            phone_number,
            // A time of zero was never set.
            added_at: moment(body, "date")?.filter(|at| !at.starts_with("1970-01-01")),
        }))
    }
}
