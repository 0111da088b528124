//! Two repositories: the monitoring software of the office and the watering of the garden.

use serde::Serialize;

use crate::dice::Dice;
use crate::error::DemoError;
use crate::grammar::{Grammar, Talk};
use crate::life::Source;
use crate::lines::Lines;
use crate::moment::Moment;
use crate::people::{COLLEAGUES, HOME, Person, address};
use crate::story::{Story, moment};

const DECLARATION: &str = include_str!("../declarations/git.json");

struct Repository {
    name: &'static str,
    connection: (&'static str, &'static str),
    paths: &'static str,
    commits: usize,
    authors: [&'static Person; 4],
}

const REPOSITORIES: [Repository; 2] = [
    Repository {
        name: "spanwatch",
        connection: ("git-spanwatch", "spanwatch (work)"),
        paths: "path",
        commits: 760,
        authors: [
            &COLLEAGUES[0],
            &COLLEAGUES[5],
            &COLLEAGUES[6],
            &COLLEAGUES[5],
        ],
    },
    Repository {
        name: "kraut",
        connection: ("git-kraut", "kraut (garden)"),
        paths: "bed",
        commits: 190,
        authors: [&HOME[0], &HOME[0], &HOME[1], &HOME[0]],
    },
];

/// A commit before it has a hash.
struct Change {
    at: Moment,
    author: (String, String),
    subject: String,
    body: String,
    files: Vec<String>,
    insertions: i64,
    deletions: i64,
}

#[derive(Serialize)]
struct Commit<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    repository: &'a str,
    subject: &'a str,
    author_name: &'a str,
    author_email: &'a str,
    authored_at: &'a str,
    files: &'a [String],
    insertions: i64,
    deletions: i64,
    body: Option<&'a str>,
    url: String,
}

pub(crate) fn sources(grammar: &Grammar, story: &Story) -> Result<Vec<Source>, DemoError> {
    let mut sources = Vec::new();
    for repository in &REPOSITORIES {
        let mut changes = story_changes(story, repository)?;
        let mut talk = Talk::new(grammar, repository.name);
        changes.extend((0..repository.commits).map(|_| change(&mut talk, repository)));
        changes.sort_by_key(|change| change.at);
        let lines = write_commits(&changes, repository.name)?;
        sources.push(Source::new(DECLARATION, repository.connection, lines));
    }
    Ok(sources)
}

fn story_changes(story: &Story, repository: &Repository) -> Result<Vec<Change>, DemoError> {
    let own = story
        .commits
        .iter()
        .filter(|commit| commit.repository == repository.name);
    own.map(|commit| {
        let known = if repository.name == "kraut" {
            &HOME[..]
        } else {
            &COLLEAGUES[..]
        };
        let nobody = || DemoError::Story(format!("nobody is called {}", commit.author));
        Ok(Change {
            at: moment(&commit.at)?,
            author: address(&commit.author, known).ok_or_else(nobody)?,
            subject: commit.subject.clone(),
            body: commit.body.join("\n"),
            files: commit.files.clone(),
            insertions: commit.insertions,
            deletions: commit.deletions,
        })
    })
    .collect()
}

fn change(talk: &mut Talk<'_>, repository: &Repository) -> Change {
    talk.change_topic();
    let (subject, body) = talk.pair(repository.name);
    let author = *talk.dice.pick(&repository.authors);
    let mut files: Vec<String> = Vec::new();
    for _ in 0..talk.dice.few(5) {
        let file = talk.say(repository.paths);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let at = if repository.name == "kraut" {
        Moment::at_home(&mut talk.dice)
    } else {
        Moment::at_work(&mut talk.dice)
    };
    Change {
        at,
        author: (author.name.to_owned(), author.email.to_owned()),
        subject,
        body,
        files,
        insertions: talk.dice.between(1, 140),
        deletions: talk.dice.between(0, 90),
    }
}

fn write_commits(changes: &[Change], repository: &str) -> Result<Lines, DemoError> {
    let mut lines = Lines::default();
    let mut hashes = Dice::new(&format!("{repository} hashes"));
    let mut parent: Option<String> = None;
    for change in changes {
        let (first, second) = (hashes.next(), hashes.next());
        let id = format!("{first:016x}{second:016x}{:08x}", (first ^ second) >> 32);
        let authored_at = change.at.text();
        let commit = Commit {
            id: &id,
            parent: parent.as_deref(),
            repository,
            subject: &change.subject,
            author_name: &change.author.0,
            author_email: &change.author.1,
            authored_at: &authored_at,
            files: &change.files,
            insertions: change.insertions,
            deletions: change.deletions,
            body: Some(change.body.as_str()).filter(|body| !body.is_empty()),
            url: format!("https://git.tidewater.example/{repository}/commit/{id}"),
        };
        lines.add("commits", &id, &authored_at, &commit)?;
        parent = Some(id);
    }
    Ok(lines)
}
