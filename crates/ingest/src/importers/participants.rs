//! The people of a conversation, as its messages name them one by one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::accept::Acceptor;

/// A made-up export must not take all memory.
const MOST: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Participants(BTreeSet<String>);

impl Participants {
    pub(super) fn add(&mut self, name: &str) {
        if !name.is_empty() && self.0.len() < MOST && !self.0.contains(name) {
            self.0.insert(name.to_owned());
        }
    }

    /// All of them, with those that earlier exports named: one of a part of the conversation must not lose the others.
    pub(super) fn with_stored(&self, acceptor: &Acceptor<'_>, chat: &str) -> Vec<String> {
        let stored = acceptor.stored("chats", chat);
        let known = stored.iter().filter_map(|chat| chat.get("participants"));
        let known = known.filter_map(Value::as_array).flatten();
        let mut all = self.0.clone();
        all.extend(known.filter_map(Value::as_str).map(str::to_owned));
        all.into_iter().take(MOST).collect()
    }
}
