//! The part of the life that can be asked about: told once in `data/story.json`, and woven into every source.

use serde::Deserialize;

use crate::error::DemoError;
use crate::moment::Moment;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Story {
    pub(crate) letters: Vec<StoryLetter>,
    pub(crate) chat: Vec<StoryMessage>,
    pub(crate) events: Vec<StoryEvent>,
    pub(crate) notes: Vec<StoryNote>,
    pub(crate) commits: Vec<StoryCommit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryLetter {
    pub(crate) account: String,
    pub(crate) thread: String,
    pub(crate) id: Option<String>,
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    pub(crate) at: String,
    pub(crate) subject: Option<String>,
    pub(crate) body: Option<Vec<String>>,
    pub(crate) folder: Option<String>,
    #[serde(default)]
    pub(crate) files: Vec<StoryFile>,
}

/// A file of a letter; pictures are drawn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryFile {
    pub(crate) name: String,
    pub(crate) mime: String,
    pub(crate) text: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryMessage {
    pub(crate) channel: String,
    pub(crate) from: String,
    pub(crate) at: String,
    pub(crate) text: String,
    pub(crate) edited_at: Option<String>,
    pub(crate) replies: Vec<StoryReply>,
    pub(crate) reactions: Vec<(String, i64)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryReply {
    pub(crate) from: String,
    pub(crate) at: String,
    pub(crate) text: String,
}

/// An event; its times are kept as written, with their offset.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryEvent {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) calendar: String,
    pub(crate) starts_at: String,
    pub(crate) ends_at: String,
    pub(crate) location: Option<String>,
    pub(crate) organizer: String,
    pub(crate) attendees: Vec<String>,
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) all_day: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryNote {
    pub(crate) path: String,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) tags: Vec<String>,
    pub(crate) body: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoryCommit {
    pub(crate) repository: String,
    pub(crate) author: String,
    pub(crate) at: String,
    pub(crate) subject: String,
    pub(crate) body: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) insertions: i64,
    pub(crate) deletions: i64,
}

impl Story {
    pub(crate) fn bundled() -> Result<Self, DemoError> {
        Ok(serde_json::from_str(include_str!("../data/story.json"))?)
    }
}

pub(crate) fn moment(text: &str) -> Result<Moment, DemoError> {
    Moment::parse(text).ok_or_else(|| DemoError::Story(format!("{text} is no time")))
}
