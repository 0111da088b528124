//! Google Keep, as Takeout hands it out: a JSON file per note, and the same as HTML, which is left.

use serde_json::{Value, json};

use super::shape;
use crate::exports::{Candidate, Declared, Known, Verdict, has_ending};
use crate::importers::json_members::{
    each_text, first_words, list, members_of, seconds_to_moment, some_list, some_text, text,
};
use crate::importers::pieces::{Converter, Cut, Made, parse_json};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;

pub(crate) const EXPORT: Known = Known {
    name: "google-keep",
    title: "notes of Google Keep (Takeout)",
    declaration: Declared::Shape(shape("google-keep", "Google Keep")),
    origin: "takeout.google.com: choose Keep; the archive, or its folder Keep",
    contents: "notes and lists with their labels and people; pictures are named, not kept",
    recognise,
    importer: |input, acceptor, _| {
        let converter = Keep {
            name: input.stem().to_owned(),
        };
        Cut::Whole.importer(input.into_reader(), acceptor, converter)
    },
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let stands_in_keep = file.path.rsplit('/').nth(1) == Some("Keep");
    let is_page = has_ending(file.path, "html");
    // The folder is called otherwise in other languages.
    let is_note = || {
        let head = String::from_utf8_lossy(file.head);
        let begins = [
            "<div class=\"note\"><div class=\"heading\">",
            "<div class=\"note ",
        ];
        begins.iter().any(|begin| head.contains(begin)) && head.contains("<div class=\"heading\">")
    };
    let is_labels = file.file_name() == "Labels.txt";
    let is_of_takeout = file.path.split('/').any(|part| part == "Takeout");
    let is_beside = (stands_in_keep && (is_page || is_labels)) || (is_labels && is_of_takeout);
    if is_beside || (is_page && is_note()) {
        return Verdict::Leaves("notes of Google Keep as HTML, which are there as JSON too");
    }
    let members = members_of(file.head);
    let has = |name: &str| members.iter().any(|one| one == name);
    match has("userEditedTimestampUsec") {
        true if has("isTrashed") || has("isArchived") => Verdict::Takes,
        true => Verdict::Misses("it does not say whether it is archived, as all notes do"),
        false => Verdict::Unlike,
    }
}

struct Keep {
    name: String,
}

impl Converter for Keep {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let note = parse_json(piece)?;
        let items = list(&note, "listContent").iter().filter_map(|item| {
            let is_checked = item.get("isChecked").and_then(Value::as_bool);
            let mark = if is_checked == Some(true) { 'x' } else { ' ' };
            Some(format!("- [{mark}] {}", text(item, "text")?))
        });
        let items = some_text(items.collect::<Vec<_>>().join("\n"));
        let words = text(&note, "textContent").map(str::to_owned).or(items);
        let title = text(&note, "title").map(str::to_owned);
        let title = title.or_else(|| words.as_deref().map(first_words));
        let links = list(&note, "annotations");
        let people = list(&note, "sharees")
            .iter()
            .filter(|person| person.get("isOwner").and_then(Value::as_bool) != Some(true));
        let people: Vec<Value> = people.cloned().collect();
        let flag = |name: &str| note.get(name).and_then(Value::as_bool);
        // A note is made only once in a microsecond. Exports of before 2021 do not say when.
        let made_at = note.get("createdTimestampUsec").and_then(Value::as_u64);
        let id = made_at.map_or_else(|| self.name.clone(), |made_at| made_at.to_string());
        made.add(
            "notes",
            json!({
                "id": readable_key(&id),
                "title": title,
                "created_at": micros(&note, "createdTimestampUsec"),
                "updated_at": micros(&note, "userEditedTimestampUsec"),
                "tags": some_list(each_text(list(&note, "labels"), "name")),
                "text": words,
                "url": links.iter().find_map(|link| text(link, "url")),
                "attachments": some_list(each_text(list(&note, "attachments"), "filePath")),
                "people": some_list(each_text(&people, "email")),
                "is_archived": flag("isArchived"),
                "is_deleted": flag("isTrashed"),
            }),
        );
        Ok(())
    }
}

/// A time in microseconds since 1970.
fn micros(note: &Value, name: &str) -> Option<String> {
    let micros = note.get(name)?.as_u64()?;
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    seconds_to_moment(&format!("{seconds}.{rest:06}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_notes_are_left_whatever_their_folder_is_called() {
        fn verdict(path: &str, head: &[u8]) -> Verdict {
            recognise(&Candidate { head, path })
        }
        let path = "Takeout/Google Notizen/x.html";
        for class in ["note", "note DEFAULT"] {
            let head = format!(
                "<?xml version=\"1.0\" ?><html><body><div class=\"{class}\"><div class=\"heading\">x"
            );
            let is_left = matches!(verdict(path, head.as_bytes()), Verdict::Leaves(_));
            assert!(is_left, "{class}");
        }
        assert_eq!(verdict(path, b"<html>Dear diary"), Verdict::Unlike);
    }
}
