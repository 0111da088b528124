//! What GitHub hands out of an account: lists of issues, pull requests, comments and the like, which refer to each other by address.
//! The repositories stand beside them and are read as such.

use serde_json::{Value, json};

use super::json_members::{list, moment, some_list, text};
use super::outline::first_members;
use super::pieces::{Converter, Cut, Made, malformed, names_only, parse_json};
use crate::exports::{Candidate, Companions, Declared, Known, Verdict};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "github",
    title: "a GitHub account (tar.gz)",
    declaration: Declared::Shape(SHAPE),
    origin: "GitHub: Settings > Account > Export account data > Start export; the link comes by mail",
    contents: "issues and pull requests with their comments, and repositories; their commits are taken as git repositories",
    recognise,
    importer: |input, acceptor, companions| {
        Cut::Elements.importer(
            input.into_reader(),
            acceptor,
            Github {
                names: false,
                companions,
            },
        )
    },
};

const SHAPE: Shape = Shape {
    key: "github",
    name: "GitHub",
    streams: &[
        Stream {
            name: "issues",
            label: "Issues",
            about: "Issues and pull requests.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("kind").grouped().about("issue or pull_request"),
                shape::text("repository").searched().grouped(),
                shape::text("title").role("title").searched(),
                shape::text("body").role("body").searched(),
                shape::text("author").role("author").searched().grouped(),
                shape::text("state")
                    .grouped()
                    .about("open, closed or merged"),
                shape::texts("labels").searched(),
                shape::texts("assignees").searched(),
                shape::text("branch").about("That a pull request asks to take over."),
                shape::time("created_at"),
                shape::time("closed_at"),
                shape::text("url").role("url"),
            ],
            children: &[("comments", "issue_id")],
        },
        Stream {
            name: "comments",
            label: "Comments",
            about: "Comments on issues, pull requests, commits and lines, and reviews.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("issue_id").role("thread").grouped(),
                shape::text("repository").searched().grouped(),
                shape::text("kind").grouped(),
                shape::text("author").role("author").searched().grouped(),
                shape::text("text").role("body").searched(),
                shape::text("path").searched(),
                shape::time("created_at"),
                shape::text("url").role("url"),
            ],
            children: &[],
        },
        Stream {
            name: "repositories",
            label: "Repositories",
            about: "Repositories of the account.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("name").role("title").searched(),
                shape::text("description").role("body").searched(),
                shape::boolean("is_private").grouped(),
                shape::time("created_at"),
                shape::text("url").role("url"),
            ],
            children: &[],
        },
    ],
};

/// Lists that are part of an export and say nothing that becomes a record.
const LEFT: [&str; 12] = [
    "attachment",
    "bot",
    "issue_event",
    "milestone",
    "organization",
    "project",
    "protected_branch",
    "pull_request_review_thread",
    "release",
    "repository_file",
    "repository_ruleset",
    "team",
];

fn recognise(file: &Candidate<'_>) -> Verdict {
    let (members, kind) = first_members(file.head, "type");
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_schema = file.file_name() == "schema.json" && has("github_sha");
    match kind.as_deref() {
        _ if is_schema => Verdict::Leaves("parts of a GitHub export that hold no records"),
        Some(_) if !has("url") => Verdict::Unlike,
        // Users have names that others do not.
        Some("user") if has("login") => Verdict::Before(0),
        Some("repository") if has("owner") && has("name") => Verdict::Before(1),
        Some("issue" | "pull_request") if has("repository") && has("user") => Verdict::Before(2),
        Some(
            "issue_comment"
            | "commit_comment"
            | "pull_request_review"
            | "pull_request_review_comment",
        ) if has("user") => Verdict::Takes,
        Some(kind) if LEFT.contains(&kind) => {
            Verdict::Leaves("parts of a GitHub export that hold no records")
        }
        _ => Verdict::Unlike,
    }
}

struct Github<'a> {
    /// Whether the file names people.
    names: bool,
    companions: &'a Companions,
}

/// The path of an address: `https://github.com/ada/boat/issues/1` is `ada/boat/issues/1`.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').map_or(rest, |(_, path)| path)
}

/// The key of what has an address.
fn key(url: &str) -> String {
    readable_key(&path(url).replace(['/', '#'], "-"))
}

/// `owner/name` of the repository that an address leads into.
fn repository(url: &str) -> Option<String> {
    let mut parts = path(url).split('/');
    Some(format!("{}/{}", parts.next()?, parts.next()?))
}

impl Github<'_> {
    /// The name of a person from their address.
    fn person(&self, url: &str) -> String {
        let name = self.companions.name(url);
        name.unwrap_or_else(|| path(url).to_owned())
    }

    fn issue(&self, kind: &str, url: &str, value: &Value, made: &mut Made) {
        let is_merged = text(value, "merged_at").is_some();
        let state = match text(value, "closed_at") {
            _ if is_merged => "merged",
            Some(_) => "closed",
            None => "open",
        };
        let last = |url: &Value| Some(url.as_str()?.rsplit('/').next()?.to_owned());
        let labels = list(value, "labels").iter().filter_map(last);
        let assignees = list(value, "assignees").iter().filter_map(Value::as_str);
        made.add(
            "issues",
            json!({
                "id": key(url),
                "kind": kind,
                "repository": repository(url),
                "title": text(value, "title"),
                "body": text(value, "body"),
                "author": text(value, "user").map(|user| self.person(user)),
                "state": state,
                "labels": some_list(labels.collect()),
                "assignees": some_list(assignees.map(|user| self.person(user)).collect()),
                "branch": value.get("head").and_then(|head| text(head, "ref")),
                "created_at": moment(value, "created_at"),
                "closed_at": moment(value, "closed_at"),
                "url": url,
            }),
        );
    }

    fn comment(&self, kind: &str, url: &str, value: &Value, made: &mut Made) {
        // A review without a text only says yes or no.
        let said = text(value, "body").or_else(|| text(value, "state"));
        let issue = text(value, "issue").or_else(|| text(value, "pull_request"));
        let created = moment(value, "created_at").or_else(|| moment(value, "submitted_at"));
        made.add(
            "comments",
            json!({
                "id": key(url),
                "issue_id": issue.map(key),
                "repository": repository(url),
                "kind": kind,
                "author": text(value, "user").map(|user| self.person(user)),
                "text": said,
                "path": text(value, "path"),
                "created_at": created,
                "url": url,
            }),
        );
    }
}

impl Converter for Github<'_> {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        let url = text(&value, "url").ok_or_else(|| malformed("it has no address in 'url'"))?;
        match text(&value, "type").unwrap_or_default() {
            "user" => {
                self.names = true;
                if let Some(name) = text(&value, "name").or_else(|| text(&value, "login")) {
                    self.companions.learn(url, name);
                }
            }
            "repository" => made.add(
                "repositories",
                json!({
                    "id": key(url),
                    "name": repository(url),
                    "description": text(&value, "description"),
                    "is_private": value.get("private").and_then(Value::as_bool),
                    "created_at": moment(&value, "created_at"),
                    "url": url,
                }),
            ),
            kind @ ("issue" | "pull_request") => self.issue(kind, url, &value, made),
            kind => self.comment(kind, url, &value, made),
        }
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.names.then(names_only)
    }
}
