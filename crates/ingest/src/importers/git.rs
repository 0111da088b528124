//! The history of git repositories, from the log that [`crate::container::git`] makes of them.

use serde_json::{Value, json};

use super::json_members::{list, moment, some_list, text};
use super::pieces::{Converter, Cut, Kept, Made, malformed, parse_json};
use crate::container::git::LOG_BEGINS;
use crate::exports::{Candidate, Claims, Declared, Known, Verdict};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "git",
    title: "git repositories",
    declaration: Declared::Shape(SHAPE),
    origin: "Nothing to export: name the folder of the repository, or one that holds several. A clone of GitHub's needs its history: no --depth",
    contents: "commits of all branches with their authors, messages and paths; no contents of files",
    recognise,
    importer: |input, acceptor, companions| {
        let converter = Git {
            repository: None,
            claims: companions.claims.clone(),
        };
        Cut::Lines.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "git",
    name: "Git",
    streams: &[
        Stream {
            name: "commits",
            label: "Commits",
            about: "Commits of all branches and tags.",
            time: Some("authored_at"),
            fields: &[
                shape::text("id"),
                shape::text("repository_id").grouped(),
                shape::text("repository").searched().grouped(),
                shape::text("title").role("title").searched(),
                shape::text("message").role("body").searched(),
                shape::text("author").role("author").searched().grouped(),
                shape::text("author_email").searched().grouped(),
                shape::time("authored_at"),
                shape::text("committer").searched().grouped(),
                shape::time("committed_at"),
                shape::texts("parents"),
                shape::texts("paths")
                    .about("Files that it changed, 200 at most; none are told of a merge."),
            ],
            children: &[],
        },
        Stream {
            name: "repositories",
            label: "Repositories",
            about: "Repositories whose history is here.",
            time: None,
            fields: &[
                shape::text("id"),
                shape::text("name").role("title").searched(),
                shape::text("url").role("url").searched(),
                shape::text("branch").about("The branch that is checked out."),
            ],
            children: &[("commits", "repository_id")],
        },
    ],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    if file.head.starts_with(LOG_BEGINS.as_bytes()) {
        return Verdict::Takes;
    }
    if file.head.starts_with(b"PACK\0\0\0") || file.head.starts_with(b"# v2 git bundle") {
        return Verdict::Misses("a pack or a bundle is a part; name the folder of the repository");
    }
    Verdict::Unlike
}

struct Git {
    /// The name of the repository that the commits are of.
    repository: Option<String>,
    claims: Claims,
}

/// `owner/name` as a key.
fn key_of(repository: &str) -> String {
    readable_key(&repository.replace('/', "-"))
}

impl Converter for Git {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        if let Some(about) = value.get("git_repository") {
            let name = text(about, "name").unwrap_or("repository").to_owned();
            let (key, url, branch) = (key_of(&name), text(about, "url"), text(about, "branch"));
            // Of several clones the first one tells where it came from and what is checked out.
            if self.claims.take(&key, &(url, branch)) {
                made.add(
                    "repositories",
                    json!({"id": key, "name": name, "url": url, "branch": branch}),
                );
            }
            self.repository = Some(name);
            return Ok(());
        }
        let id = text(&value, "commit").ok_or_else(|| malformed("it is no commit"))?;
        let (author, committer) = (value.get("author"), value.get("committer"));
        let (author, committer) = (
            author.unwrap_or(&Value::Null),
            committer.unwrap_or(&Value::Null),
        );
        let message = text(&value, "message");
        let listed = |name: &str| {
            let texts = list(&value, name).iter().filter_map(Value::as_str);
            some_list(texts.map(str::to_owned).collect())
        };
        // A fork has the commits of what it was made of; the one that told them first keeps them.
        made.add_keeping(
            "commits",
            json!({
                "id": readable_key(id),
                "repository_id": self.repository.as_deref().map(key_of),
                "repository": self.repository,
                "title": message.and_then(|message| message.lines().next()),
                "message": message,
                "author": text(author, "name"),
                "author_email": text(author, "email"),
                "authored_at": moment(author, "at"),
                "committer": text(committer, "name"),
                "committed_at": moment(committer, "at"),
                "parents": listed("parents"),
                "paths": listed("paths"),
            }),
            Kept::Members(&["repository_id", "repository"]),
        );
        Ok(())
    }
}
