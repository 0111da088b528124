//! Notes in a folder, keyed by their path; and the two notes that frame the sample life.

use serde::Serialize;

use crate::error::DemoError;
use crate::grammar::{Grammar, Talk};
use crate::life::Source;
use crate::lines::Lines;
use crate::moment::{LAST_DAY, Moment};
use crate::people::COLLEAGUES;
use crate::story::{Story, moment};

pub(crate) const DECLARATION: &str = include_str!("../declarations/notes.json");

pub(crate) const CONNECTION: (&str, &str) = ("notes", "Mara's notes");
pub(crate) const STREAM: &str = "notes";
/// The key of the note that is written first: a directory that holds it is ours to fill.
pub(crate) const ABOUT: &str = "About this sample life.md";
/// The key of the note that is written last: a directory that holds it is full.
pub(crate) const WHO: &str = "Who is who.md";

const JOURNAL: usize = 420;
const FOLDERS: [&str; 5] = ["Journal", "Work", "House", "Garden", "Ideas"];

#[derive(Serialize)]
struct Note<'a> {
    id: &'a str,
    title: &'a str,
    folder: &'a str,
    tags: &'a [String],
    created_at: &'a str,
    updated_at: &'a str,
    word_count: usize,
    body: &'a str,
}

pub(crate) fn source(grammar: &Grammar, story: &Story) -> Result<Source, DemoError> {
    let mut lines = Lines::default();
    for note in &story.notes {
        let times = (moment(&note.created_at)?, moment(&note.updated_at)?);
        write(
            &mut lines,
            &note.path,
            &note.body.join("\n"),
            &note.tags,
            times,
        )?;
    }
    let mut talk = Talk::new(grammar, "notes");
    for number in 0..JOURNAL {
        talk.change_topic();
        let person = talk.dice.pick(&COLLEAGUES[1..]).first_name();
        talk.set("person", person);
        let folder = *talk.dice.pick(&FOLDERS);
        let (title, text) = talk.pair(&format!("note.{folder}"));
        let created = Moment::at_home(&mut talk.dice);
        let changed = created.plus_minutes(talk.dice.between(0, 4_000));
        // Titles repeat, paths must not.
        let path = format!("{folder}/{} {title}, no. {}.md", created.date(), number + 1);
        let body = format!("# {title}\n\n{text}\n");
        let tags = [folder.to_lowercase()];
        write(&mut lines, &path, &body, &tags, (created, changed))?;
    }
    Ok(Source::new(DECLARATION, CONNECTION, lines))
}

/// The note that says what all this is.
pub(crate) fn about() -> Result<Source, DemoError> {
    framing(ABOUT, include_str!("../data/about.md"))
}

pub(crate) fn who() -> Result<Source, DemoError> {
    framing(WHO, include_str!("../data/who.md"))
}

fn framing(path: &str, body: &str) -> Result<Source, DemoError> {
    let mut lines = Lines::default();
    let at = Moment::on(LAST_DAY, 20, 0);
    write(&mut lines, path, body, &[], (at, at))?;
    Ok(Source::new(DECLARATION, CONNECTION, lines))
}

fn write(
    lines: &mut Lines,
    path: &str,
    body: &str,
    tags: &[String],
    (created, updated): (Moment, Moment),
) -> Result<(), DemoError> {
    let (folder, file) = path.split_once('/').unwrap_or(("", path));
    // As importers do it: a key that can stand in a handle.
    let key = path.replace('/', "-");
    let note = Note {
        id: &key,
        title: file.strip_suffix(".md").unwrap_or(file),
        folder,
        tags,
        created_at: &created.text(),
        updated_at: &updated.text(),
        word_count: body.split_whitespace().count(),
        body,
    };
    lines.add(STREAM, &key, &updated.text(), &note)
}
