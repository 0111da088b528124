//! Exports of Evernote (`.enex`): one XML file per notebook, with everything that is attached inside.

use serde_json::json;

use super::shape;
use crate::exports::{Candidate, Claims, Declared, Known, Verdict, has_ending};
use crate::importers::html;
use crate::importers::json_members::{first_words, some_list, some_text};
use crate::importers::pieces::{Converter, Cut, Made};
use crate::importers::xml::{Node, XmlCut};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;

pub(crate) const EXPORT: Known = Known {
    name: "evernote",
    title: "an Evernote export (enex)",
    declaration: Declared::Shape(shape("evernote", "Evernote")),
    origin: "Evernote on a computer: right click on a notebook > Export notebook > ENEX format",
    contents: "notes with their tags; files are named, not kept; tasks as text",
    recognise,
    importer: |input, acceptor, companions| {
        let converter = Notebook {
            name: input.stem().to_owned(),
            claims: companions.claims.clone(),
        };
        // What is attached can be large, and is not kept.
        let cut = Cut::Xml(XmlCut {
            pieces: &["note"],
            without: &["data"],
        });
        cut.importer(input.into_reader(), acceptor, converter)
    },
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let head = String::from_utf8_lossy(file.head);
    match file.file_name() {
        _ if head.contains("<en-export") => Verdict::Takes,
        name if has_ending(name, "enex") => Verdict::Misses("it has no element en-export"),
        _ => Verdict::Unlike,
    }
}

struct Notebook {
    name: String,
    claims: Claims,
}

impl Converter for Notebook {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let note = Node::parse(piece)?;
        let words = note.says("content");
        let words = words.map(|content| html::to_text(&with_marks(&content)));
        let words = words.and_then(some_text);
        let tasks: Vec<String> = note.named("task").filter_map(task).collect();
        let texts = words.into_iter().chain(some_text(tasks.join("\n")));
        let text: Vec<String> = texts.collect();
        let text = some_text(text.join("\n\n"));
        let title = note.says("title");
        let title = title.or_else(|| text.as_deref().map(first_words));
        let created = note.says("created");
        // There are no ids: a note is known by when it was made and how it is called.
        let id = [&created, &title].map(|part| part.as_deref().unwrap_or_default());
        let mut id = id.join(" ");
        // Notes that were made in one go have one second, and may be called alike.
        let telling = format!("{}\n{}", self.name, text.as_deref().unwrap_or_default());
        if !self.claims.take(&id, &telling) {
            id = format!("{id} {}", short_hash(&telling));
        }
        let about = note.child("note-attributes");
        let said = |name: &str| about.and_then(|about| about.says(name));
        let files = note.named("resource").filter_map(|file| {
            let named = file.child("resource-attributes")?.says("file-name");
            named.or_else(|| file.says("mime"))
        });
        let tags = note.named("tag").map(|tag| tag.text().trim().to_owned());
        made.add(
            "notes",
            json!({
                "id": readable_key(&id),
                "title": title,
                "folder": some_text(self.name.clone()),
                "author": said("author"),
                "created_at": created.as_deref().and_then(moment),
                "updated_at": note.says("updated").as_deref().and_then(moment),
                "tags": some_list(tags.collect()),
                "text": text,
                "url": said("source-url"),
                "attachments": some_list(files.collect()),
            }),
        );
        Ok(())
    }
}

/// The content with the marks of its lists, as notes in Markdown write them, and without what is encrypted.
fn with_marks(content: &str) -> String {
    let mut marked = String::new();
    let mut rest = content;
    // The mark of an item stands behind the element that its text is in.
    let mut mark = "";
    loop {
        let (before, tag) = rest.split_once('<').unwrap_or((rest, ""));
        if !before.trim().is_empty() {
            marked.push_str(std::mem::take(&mut mark));
        }
        marked.push_str(before);
        if tag.is_empty() {
            return marked;
        }
        let (inside, after) = tag.split_once('>').unwrap_or((tag, ""));
        rest = after;
        let is_item = inside.starts_with("li ") && inside.contains("--en-checked:");
        if inside.starts_with("en-todo") {
            let is_done = inside.contains("checked=\"true");
            marked.push_str(if is_done { "- [x] " } else { "- [ ] " });
            continue;
        }
        if inside.starts_with("en-crypt") {
            rest = after
                .split_once("</en-crypt>")
                .map_or("", |(_, behind)| behind);
            continue;
        }
        if is_item {
            let is_done = inside.contains("--en-checked:true");
            mark = if is_done { "[x] " } else { "[ ] " };
        }
        marked.extend(["<", inside, ">"]);
    }
}

/// A task as a line, as notes in Markdown write it.
fn task(task: &Node) -> Option<String> {
    let mark = match task.says("taskStatus").as_deref() {
        Some("completed") => 'x',
        _ => ' ',
    };
    Some(format!("- [{mark}] {}", task.says("title")?))
}

/// `20240305T100000Z`
fn moment(text: &str) -> Option<String> {
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?;
    Some(format!("{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_what_is_done_and_nothing_of_what_is_encrypted() {
        let content = "<en-note><div><en-todo checked=\"true\"/>Sand</div><div><en-todo/>Varnish</div>\
            <en-crypt cipher=\"AES\">c2VjcmV0</en-crypt><ul style=\"--en-todo:true;\">\
            <li style=\"--en-checked:true;\"><div>Oars</div></li><li style=\"--en-checked:false;\"><div>Rope</div></li></ul></en-note>";
        let text = html::to_text(&with_marks(content));
        assert_eq!(text, "- [x] Sand\n- [ ] Varnish\n- [x] Oars\n- [ ] Rope");
    }
}
