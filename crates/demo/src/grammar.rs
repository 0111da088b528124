//! Sentences from lists: the prose stands in `data/*.txt`, this puts it together.
//!
//! `[name]` opens a list, each line is one entry. In an entry `{name}` draws from another list, `{3-9}` is a number, `{nl}` ends a line.

use std::collections::HashMap;

use crate::dice::Dice;

const FILES: [&str; 7] = [
    include_str!("../data/words.txt"),
    include_str!("../data/work.txt"),
    include_str!("../data/home.txt"),
    include_str!("../data/chat.txt"),
    include_str!("../data/code.txt"),
    include_str!("../data/letters.txt"),
    include_str!("../data/catalogue.txt"),
];

/// How deep lists may refer to lists; more is a circle.
const MAX_DEPTH: usize = 8;

/// What a conversation keeps talking about once it has begun.
const KEPT: [&str; 5] = ["project", "part", "document", "firm", "weekday"];

pub(crate) struct Grammar(HashMap<&'static str, Vec<&'static str>>);

impl Grammar {
    /// The lists that come with the program.
    pub(crate) fn bundled() -> Self {
        let mut lists: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
        let mut name = "";
        for line in FILES.iter().flat_map(|file| file.lines()) {
            let heading = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            match heading {
                Some(heading) => name = heading,
                None if line.is_empty() || line.starts_with('#') => {}
                None => lists.entry(name).or_default().push(line),
            }
        }
        Self(lists)
    }

    /// The entries of a list; none where there is no such list.
    pub(crate) fn list(&self, name: &str) -> &[&'static str] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Somebody who talks: lists, chance, and what the talk is about.
pub(crate) struct Talk<'a> {
    grammar: &'a Grammar,
    pub(crate) dice: Dice,
    given: Vec<(&'static str, String)>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(grammar: &'a Grammar, name: &str) -> Self {
        Self {
            grammar,
            dice: Dice::new(name),
            given: Vec::new(),
        }
    }

    /// Begins to talk about something new.
    pub(crate) fn change_topic(&mut self) {
        self.given.clear();
        for name in KEPT {
            let drawn = self.say(name);
            self.given.push((name, drawn));
        }
    }

    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.given.retain(|(known, _)| *known != name);
        self.given.push((name, value.into()));
    }

    /// An entry of a list, complete.
    pub(crate) fn say(&mut self, list: &str) -> String {
        self.slot(list, 0)
    }

    /// An entry of the form `title :: text`, both complete.
    pub(crate) fn pair(&mut self, list: &str) -> (String, String) {
        let entry = self.entry(list);
        let (first, second) = entry.split_once("::").unwrap_or((entry, ""));
        let title = self.complete(first.trim(), 1);
        (capitalised(&title), self.complete(second.trim(), 1))
    }

    fn entry(&mut self, list: &str) -> &'static str {
        let entries = self.grammar.list(list);
        entries
            .get(self.dice.below(entries.len()))
            .copied()
            .unwrap_or_default()
    }

    fn complete(&mut self, entry: &str, depth: usize) -> String {
        let mut said = String::new();
        let mut rest = entry;
        while let Some((before, after)) = rest.split_once('{') {
            said.push_str(before);
            let (name, tail) = after.split_once('}').unwrap_or((after, ""));
            said.push_str(&self.slot(name, depth));
            rest = tail;
        }
        said.push_str(rest);
        said
    }

    fn slot(&mut self, name: &str, depth: usize) -> String {
        if name == "nl" {
            return "\n".to_owned();
        }
        if let Some((_, value)) = self.given.iter().find(|(known, _)| *known == name) {
            return value.clone();
        }
        if let Some((low, high)) = range(name) {
            return self.dice.between(low, high).to_string();
        }
        if depth > MAX_DEPTH || self.grammar.list(name).is_empty() {
            // Left as it is, which a test of the whole life finds.
            return format!("{{{name}}}");
        }
        let entry = self.entry(name);
        self.complete(entry, depth + 1)
    }
}

/// The text with a capital at its beginning.
pub(crate) fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(rest).collect()
}

fn range(name: &str) -> Option<(i64, i64)> {
    let (low, high) = name.split_once('-')?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_talk_stays_with_its_topic_until_it_changes() {
        let grammar = Grammar::bundled();
        let mut talk = Talk::new(&grammar, "topic");
        talk.set("person", "Ann");
        talk.change_topic();
        let project = talk.say("project");
        assert_eq!(talk.say("project"), project);
        talk.set("project", "the moon");
        assert_eq!(talk.say("project"), "the moon");
    }

    #[test]
    fn every_slot_of_every_list_leads_somewhere() {
        let grammar = Grammar::bundled();
        let set_by_code = ["nl", "person", "to", "from"];
        for (list, entries) in &grammar.0 {
            for slot in entries.iter().flat_map(|entry| entry.split('{').skip(1)) {
                let name = slot.split('}').next().unwrap();
                let leads = set_by_code.contains(&name)
                    || range(name).is_some_and(|(low, high)| low < high)
                    || !grammar.list(name).is_empty();
                assert!(leads, "{{{name}}} in [{list}]");
            }
        }
    }
}
