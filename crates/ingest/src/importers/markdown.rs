//! Notes in Markdown, as Obsidian and Logseq keep them: a file per note, with properties before it, links to others in double
//! brackets, and tags.

mod note;

use encoding_rs::Encoding;
use percent_encoding::percent_decode_str;
use serde_json::json;
use std::borrow::Cow;

use self::note::Note;
use super::json_members::{some_list, some_text};
use super::pieces::{Converter, Cut, Made, read_text};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "markdown",
    title: "notes in Markdown (md)",
    declaration: Declared::Shape(SHAPE),
    origin: "Obsidian, Logseq and others: nothing to export; name the folder of the notes",
    contents: "notes with their properties, links and tags",
    recognise,
    importer: |input, acceptor, _| {
        let converter = Notes {
            path: input.inside().to_owned(),
        };
        Cut::Whole.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "notes",
    name: "Notes",
    streams: &[Stream {
        name: "notes",
        label: "Notes",
        about: "Notes, one record per file.",
        time: Some("created_at"),
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched(),
            shape::text("path").searched(),
            shape::text("folder").searched().grouped(),
            shape::time("created_at").about("From the properties, or a day in the file's name."),
            shape::time("updated_at"),
            shape::texts("tags").searched(),
            shape::texts("links").about("Notes it links to."),
            shape::texts("aliases").searched(),
            shape::text("text").role("body").searched(),
            shape::object("properties"),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let ending = file.file_name().rsplit_once('.').map(|(_, ending)| ending);
    let is_note = |ending: &str| {
        ["md", "markdown"]
            .iter()
            .any(|md| ending.eq_ignore_ascii_case(md))
    };
    if !ending.is_some_and(is_note) {
        return Verdict::Unlike;
    }
    if ["/logseq/bak/", "/logseq/version-files/"]
        .iter()
        .any(|folder| file.path.contains(folder))
    {
        return Verdict::Leaves("earlier versions of notes, which Logseq keeps");
    }
    if file.head.contains(&0) && Encoding::for_bom(file.head).is_none() {
        return Verdict::Misses("it holds bytes that no text has");
    }
    Verdict::Takes
}

struct Notes {
    path: String,
}

impl Converter for Notes {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let text = read_text(piece);
        let path = self.path.as_str();
        let without_ending = path.rsplit_once('.').map_or(path, |(before, _)| before);
        let (folder, name) = without_ending
            .rsplit_once('/')
            .map_or((None, without_ending), |(folder, name)| {
                (Some(folder), name)
            });
        let note = Note::read(&text, &page_name(folder, name));
        made.add(
            "notes",
            json!({
                "id": readable_key(without_ending),
                "title": note.title,
                "path": path,
                "folder": folder,
                "created_at": note.created_at,
                "updated_at": note.updated_at,
                "tags": some_list(note.tags),
                "links": some_list(note.links),
                "aliases": some_list(note.aliases),
                "text": some_text(note.text),
                "properties": (!note.properties.is_empty()).then_some(note.properties),
            }),
        );
        Ok(())
    }
}

/// What a page is called whose file cannot be called so: Logseq writes `a/b` as `a___b` or `a%2Fb`.
fn page_name<'n>(folder: Option<&str>, name: &'n str) -> Cow<'n, str> {
    let is_page = folder.is_some_and(|folder| folder == "pages" || folder.ends_with("/pages"));
    if !is_page {
        return name.into();
    }
    let name = percent_decode_str(name).decode_utf8_lossy();
    name.replace("___", "/").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_logseq_are_called_as_they_are_called_there() {
        for (folder, name, expected) in [
            (Some("graph/pages"), "boat___sails", "boat/sails"),
            (Some("pages"), "boat%2Fsails", "boat/sails"),
            (Some("graph/notes"), "boat___sails", "boat___sails"),
            (None, "50%", "50%"),
        ] {
            assert_eq!(page_name(folder, name), expected);
        }
    }
}
