//! What one note says. Its properties are a small part of YAML: names with a text, or with a list in one line or in several.

use contract::time::Instant;
use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) title: String,
    pub(super) created_at: Option<String>,
    pub(super) updated_at: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) links: Vec<String>,
    pub(super) aliases: Vec<String>,
    pub(super) text: String,
    pub(super) properties: Map<String, Value>,
}

/// Properties that tell when a note came to be, and when it was changed.
const CREATED: [&str; 5] = [
    "created",
    "created_at",
    "date created",
    "date",
    "created-at",
];
const UPDATED: [&str; 5] = [
    "updated",
    "updated_at",
    "modified",
    "date modified",
    "updated-at",
];

impl Note {
    pub(super) fn read(text: &str, name: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut note = Self::default();
        let body = note.read_front_matter(text);
        let body = note.read_page_properties(body);
        body.trim().clone_into(&mut note.text);
        let words = without_code(body);
        note.tags.extend(tags_in(&words));
        note.links.extend(links_in(&words));
        for list in [&mut note.tags, &mut note.links, &mut note.aliases] {
            let mut seen = std::collections::HashSet::new();
            list.retain(|one| !one.is_empty() && seen.insert(one.clone()));
        }
        let heading = words
            .lines()
            .find_map(|line| line.trim().strip_prefix("# "));
        let titled = note.text_of(&["title"]);
        note.title = titled
            .or_else(|| heading.map(|heading| heading.trim().to_owned()))
            .filter(|title| !title.is_empty())
            .unwrap_or_else(|| name.to_owned());
        note.created_at = note.moment_of(&CREATED).or_else(|| day_in(name));
        note.updated_at = note.moment_of(&UPDATED);
        note
    }

    /// Reads what stands between two lines of dashes at the very beginning, and gives what follows.
    fn read_front_matter<'t>(&mut self, text: &'t str) -> &'t str {
        let Some(rest) = text
            .strip_prefix("---\n")
            .or_else(|| text.strip_prefix("---\r\n"))
        else {
            return text;
        };
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            at += line.len();
            if matches!(line.trim_end(), "---" | "...") {
                let (matter, body) = rest.split_at_checked(at).unwrap_or((rest, ""));
                self.read_lines(matter);
                return body;
            }
        }
        text
    }

    fn read_lines(&mut self, matter: &str) {
        let mut name = String::new();
        for line in matter.lines() {
            let item = line.trim_start().strip_prefix("- ");
            if let (Some(item), false) = (item, name.is_empty()) {
                self.add_items(&name, vec![unquoted(item)]);
            } else if line.starts_with([' ', '\t', '#']) {
                // Objects inside objects, and comments, are passed over.
            } else if let Some((key, value)) = line
                .split_once(':')
                .filter(|(key, _)| !key.trim().is_empty())
            {
                key.trim().to_lowercase().clone_into(&mut name);
                self.set(&name, value.trim());
            }
        }
    }

    /// Logseq's properties: lines `name:: value` before everything else.
    fn read_page_properties<'t>(&mut self, text: &'t str) -> &'t str {
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            let line = line.trim().trim_start_matches("- ");
            let Some((name, value)) = line.split_once("::").filter(|(name, _)| is_name(name))
            else {
                break;
            };
            let items = value.split(',').map(|item| bare(item.trim()));
            let name = name.trim().to_lowercase();
            if is_list(&name) {
                self.add_items(&name, items.collect());
            } else {
                self.set(&name, value.trim());
            }
            rest = after;
        }
        rest
    }

    fn set(&mut self, name: &str, value: &str) {
        let inline = value
            .strip_prefix('[')
            .and_then(|inner| inner.strip_suffix(']'));
        if let Some(inline) = inline.filter(|inline| !inline.starts_with('[')) {
            return self.add_items(name, items_of(inline));
        }
        if is_list(name) && !value.is_empty() {
            return self.add_items(name, value.split([',', ' ']).map(unquoted).collect());
        }
        if !value.is_empty() {
            self.properties
                .insert(name.to_owned(), unquoted(value).into());
        }
    }

    fn add_items(&mut self, name: &str, items: Vec<String>) {
        let items = items.into_iter().filter(|item| !item.is_empty());
        match name {
            "tags" | "tag" => {
                self.tags
                    .extend(items.map(|tag| tag.trim_start_matches('#').to_owned()));
            }
            "aliases" | "alias" => self.aliases.extend(items),
            _ => {
                let list = self
                    .properties
                    .entry(name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    list.extend(items.map(Value::from));
                }
            }
        }
    }

    fn text_of(&self, names: &[&str]) -> Option<String> {
        let found = names.iter().find_map(|name| self.properties.get(*name));
        found.and_then(Value::as_str).map(str::to_owned)
    }

    fn moment_of(&self, names: &[&str]) -> Option<String> {
        let text = self.text_of(names)?;
        // Obsidian writes a space or nothing where a `T` should be.
        let text = text.replacen(' ', "T", 1);
        Instant::parse(&text).map(|_| text)
    }
}

fn is_list(name: &str) -> bool {
    matches!(name, "tags" | "tag" | "aliases" | "alias")
}

fn is_name(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.len() < 64 && !name.contains([' ', '(', '[', '`'])
}

/// The items of a list in one line. A comma within quotes is part of its item.
fn items_of(inline: &str) -> Vec<String> {
    let (mut quote, mut is_begun) = (None, false);
    let items = inline.split(|sign: char| {
        match quote {
            Some(open) if open == sign => quote = None,
            Some(_) => return false,
            None if !is_begun && matches!(sign, '"' | '\'') => quote = Some(sign),
            None => {}
        }
        is_begun = sign != ',' && (is_begun || !sign.is_whitespace());
        sign == ','
    });
    items.map(unquoted).collect()
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let quoted = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    bare(quoted('"').or_else(|| quoted('\'')).unwrap_or(text))
}

/// Without the brackets of a link.
fn bare(text: &str) -> String {
    let inner = text
        .strip_prefix("[[")
        .and_then(|rest| rest.strip_suffix("]]"));
    inner.unwrap_or(text).to_owned()
}

/// A day in the name of a file, as journals have it: `2024-01-15` or `2024_01_15`.
fn day_in(name: &str) -> Option<String> {
    let day = name.get(..10)?.replace('_', "-");
    day.parse::<jiff::civil::Date>().ok().map(|_| day)
}

/// The text without blocks and spans of code, in which signs mean nothing.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        for (index, span) in line.split('`').enumerate() {
            if index % 2 == 0 {
                kept.push_str(span);
            }
        }
        kept.push('\n');
    }
    kept
}

/// Words behind a `#` that stands at the beginning of a word. A number alone is no tag.
fn tags_in(text: &str) -> Vec<String> {
    let mut tags = Vec::new();
    // Logseq puts a tag of several words in brackets.
    for behind in text.split("#[[").skip(1) {
        let tag = behind.split_once("]]").map_or("", |(tag, _)| tag.trim());
        if !tag.contains(['\n', '[']) {
            tags.push(tag.to_owned());
        }
    }
    // A link to a heading of the same note.
    let text = text.replace("](#", "](");
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '(' | '"' | ',')) {
        let Some(tag) = word.strip_prefix('#') else {
            continue;
        };
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
        let end = tag.find(|c| !is_part(c)).unwrap_or(tag.len());
        let tag = tag.get(..end).unwrap_or_default().trim_end_matches('/');
        if tag.chars().any(char::is_alphabetic) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

/// Names of notes in double brackets, without the heading or block they point at and the words shown for them.
fn links_in(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("[[") {
        let Some((link, behind)) = after.split_once("]]") else {
            break;
        };
        let target = link
            .split(['|', '#', '^'])
            .next()
            .unwrap_or_default()
            .trim();
        if !target.is_empty() && !target.contains('\n') && target.chars().count() <= 500 {
            links.push(target.to_owned());
        }
        rest = behind;
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_links_and_tags_are_read_and_code_is_not() {
        let note = Note::read(
            "---\ntitle: \"The boat: plans\"\ndate: 2024-03-05 10:11\ntags: [wood, \"#sea\"]\naliases:\n  - Dinghy\n  - '[[Skiff]]'\nstatus: open\nnested:\n  deep: x\n---\n\
             # Heading\nSee [[Rope|ropes]], [[Knots#Bowline]] and ![[sketch.png]]. #todo #2024 #project/boat.\n```\n#no [[no]]\n```\nUse `#nor` C#.\n",
            "boat",
        );
        assert_eq!(note.title, "The boat: plans");
        assert_eq!(note.created_at.as_deref(), Some("2024-03-05T10:11"));
        assert_eq!(note.tags, ["wood", "sea", "todo", "project/boat"]);
        assert_eq!(note.links, ["Rope", "Knots", "sketch.png"]);
        assert_eq!(note.aliases, ["Dinghy", "Skiff"]);
        assert_eq!(note.properties["status"], "open");
        assert!(note.text.starts_with("# Heading"), "{}", note.text);
    }

    #[test]
    fn a_comma_in_quotes_parts_no_items_and_a_link_to_a_heading_is_no_tag() {
        let note = Note::read(
            "---\naliases: [Beet, \"Hoch, Beet\", Ida's, 'a, b']\n---\n[x](#heading) (#tag)\n",
            "n",
        );
        assert_eq!(note.aliases, ["Beet", "Hoch, Beet", "Ida's", "a, b"]);
        assert_eq!(note.tags, ["tag"]);
    }

    #[test]
    fn pages_of_logseq_and_plain_notes_are_read_as_well() {
        let page = Note::read(
            "tags:: [[garden]], beds\ntype:: page\n\n- Sow [[peas]] #[[early spring]] #soil\n",
            "2024_04_01",
        );
        assert_eq!(page.tags, ["garden", "beds", "early spring", "soil"]);
        assert_eq!(page.properties["type"], "page");
        assert_eq!(page.created_at.as_deref(), Some("2024-04-01"));
        assert_eq!(page.title, "2024_04_01");
        assert_eq!(page.links, ["peas", "early spring"]);
        let broken = Note::read("---\n: : x\nkind: y\n---\n", "n");
        assert_eq!(broken.properties.len(), 1);
        let open = Note::read("---\nnever closed: x\n", "n");
        assert_eq!(open.text, "---\nnever closed: x");
        assert_eq!(Note::read("# Plain\n", "n").title, "Plain");
        assert_eq!(Note::read("", "n").title, "n");
    }
}
