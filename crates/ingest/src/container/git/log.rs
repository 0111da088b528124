//! The log of a repository, read as lines of JSON.

use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Read};
use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde_json::{Value, json};

use super::Repository;
use super::objects::{Id, Kind, Objects, hex, parse_id};
use super::tree::changed_paths;

/// Paths that are told of one commit.
const MAX_PATHS: usize = 200;
/// Tags of tags.
const MAX_TAGS: usize = 8;

pub(super) struct Log {
    objects: Objects,
    /// Commits that are known and not yet told, by their time.
    waiting: BinaryHeap<(i64, Id)>,
    seen: HashSet<Id>,
    line: io::Cursor<Vec<u8>>,
}

impl Log {
    pub(super) fn new(repository: &Arc<Repository>, objects: Objects) -> io::Result<Self> {
        let mut log = Self {
            objects,
            waiting: BinaryHeap::new(),
            seen: HashSet::new(),
            line: io::Cursor::default(),
        };
        let head = repository.text("HEAD")?;
        let branch = head.trim().strip_prefix("ref: refs/heads/");
        let config = repository.text("config")?;
        let url = origin(&config);
        let name = url
            .as_deref()
            .and_then(named_by)
            .unwrap_or_else(|| repository.folder.clone());
        let about = json!({"name": name, "url": url, "branch": branch});
        log.line = io::Cursor::new(format!("{{\"git_repository\":{about}}}\n").into_bytes());
        for id in references(repository, &head)? {
            log.begin_at(id)?;
        }
        Ok(log)
    }

    /// Takes a commit, or the one that a tag names.
    fn begin_at(&mut self, id: Id) -> io::Result<()> {
        let mut id = id;
        for _ in 0..MAX_TAGS {
            let Some(object) = self.objects.get(&id)? else {
                return Ok(());
            };
            match object.kind {
                Kind::Tag => {
                    let tagged = object.bytes.strip_prefix(b"object ").and_then(parse_id);
                    let Some(tagged) = tagged else {
                        return Ok(());
                    };
                    id = tagged;
                }
                Kind::Commit => {
                    self.wait(id, &Commit::read(&object.bytes));
                    return Ok(());
                }
                Kind::Tree | Kind::Blob => return Ok(()),
            }
        }
        Ok(())
    }

    fn wait(&mut self, id: Id, commit: &Commit) {
        if self.seen.insert(id) {
            let at = commit.committer.as_ref().map_or(0, |person| person.seconds);
            self.waiting.push((at, id));
        }
    }

    /// The line of the next commit; nothing at the end.
    fn next_line(&mut self) -> io::Result<Option<String>> {
        let Some((_, id)) = self.waiting.pop() else {
            return Ok(None);
        };
        let Some(commit) = self.commit(&id)? else {
            return Ok(Some("\n".to_owned()));
        };
        let mut tree_before = None;
        for (nth, parent) in commit.parents.iter().enumerate() {
            if let Some(before) = self.commit(parent)? {
                self.wait(*parent, &before);
                if nth == 0 {
                    tree_before = before.tree;
                }
            }
        }
        // What a merge brings together was told of the commits before it; of one whose past was not cloned nothing is known.
        let is_told = match commit.parents.as_slice() {
            [] => true,
            [_] => tree_before.is_some(),
            _ => false,
        };
        let mut paths = Vec::new();
        if is_told {
            paths = changed_paths(&mut self.objects, tree_before, commit.tree, MAX_PATHS)?;
        }
        Ok(Some(format!("{}\n", commit.told(&id, &paths))))
    }

    fn commit(&mut self, id: &Id) -> io::Result<Option<Commit>> {
        let object = self.objects.get(id)?;
        let object = object.filter(|object| object.kind == Kind::Commit);
        Ok(object.map(|object| Commit::read(&object.bytes)))
    }
}

impl Read for Log {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.line.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            match self.next_line()? {
                Some(line) => self.line = io::Cursor::new(line.into_bytes()),
                None => return Ok(0),
            }
        }
    }
}

/// What all branches and tags lead to, but not what was put aside.
fn references(repository: &Repository, head: &str) -> io::Result<Vec<Id>> {
    let mut ids: Vec<Id> = parse_id(head.trim().as_bytes()).into_iter().collect();
    for line in repository.text("packed-refs")?.lines() {
        if !line.ends_with(" refs/stash") {
            ids.extend(parse_id(line.as_bytes()));
        }
    }
    let mut paths: Vec<&str> = repository.paths("refs/", "").collect();
    paths.sort_unstable();
    for path in paths.into_iter().filter(|path| *path != "refs/stash") {
        ids.extend(parse_id(repository.text(path)?.trim().as_bytes()));
    }
    Ok(ids)
}

/// Where a repository was cloned from, without a password that may stand there.
fn origin(config: &str) -> Option<String> {
    let (_, section) = config.split_once("[remote \"origin\"]")?;
    let lines = section.lines().skip(1).map(str::trim);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let url = lines.find_map(|line| {
        Some(
            line.strip_prefix("url")?
                .trim_start()
                .strip_prefix('=')?
                .trim(),
        )
    })?;
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some(url.to_owned());
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit('@').next().unwrap_or(host);
    Some(format!("{scheme}://{host}/{path}"))
}

/// `owner/name` of an address.
fn named_by(url: &str) -> Option<String> {
    let url = url.trim_end_matches('/');
    let url = url.strip_suffix(".git").unwrap_or(url);
    let mut parts = url.rsplit(['/', ':']).filter(|part| !part.is_empty());
    let (name, owner) = (parts.next()?, parts.next());
    Some(match owner.filter(|owner| !owner.contains(['.', '@'])) {
        Some(owner) => format!("{owner}/{name}"),
        None => name.to_owned(),
    })
}

struct Commit {
    tree: Option<Id>,
    parents: Vec<Id>,
    author: Option<Person>,
    committer: Option<Person>,
    message: String,
}

impl Commit {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(2).position(|two| two == b"\n\n");
        let (head, message) = match end {
            Some(end) => (bytes.get(..end), bytes.get(end + 2..)),
            None => (Some(bytes), None),
        };
        let lines: Vec<&[u8]> = head
            .unwrap_or_default()
            .split(|byte| *byte == b'\n')
            .collect();
        let members = |name: &str| -> Vec<&[u8]> {
            let lines = lines
                .iter()
                .filter_map(|line| line.strip_prefix(name.as_bytes()));
            lines.filter_map(|rest| rest.strip_prefix(b" ")).collect()
        };
        let first = |name: &str| members(name).first().copied();
        let encoding = first("encoding").and_then(Encoding::for_label);
        let text = |bytes: &[u8]| match (encoding, std::str::from_utf8(bytes)) {
            (Some(encoding), _) if encoding != UTF_8 => encoding.decode(bytes).0.into_owned(),
            (_, Ok(text)) => text.to_owned(),
            (_, Err(_)) => WINDOWS_1252.decode(bytes).0.into_owned(),
        };
        Self {
            tree: first("tree").and_then(parse_id),
            parents: members("parent").into_iter().filter_map(parse_id).collect(),
            author: first("author").and_then(|line| Person::parse(&text(line))),
            committer: first("committer").and_then(|line| Person::parse(&text(line))),
            message: text(message.unwrap_or_default()).trim().to_owned(),
        }
    }

    fn told(&self, id: &Id, paths: &[String]) -> Value {
        let person = |person: Option<&Person>| {
            person.map(
                |person| json!({"name": person.name, "email": person.email, "at": person.at()}),
            )
        };
        let parents: Vec<String> = self.parents.iter().map(|id| hex(id)).collect();
        json!({
            "commit": hex(id),
            "parents": parents,
            "author": person(self.author.as_ref()),
            "committer": person(self.committer.as_ref()),
            "message": self.message,
            "paths": paths,
        })
    }
}

/// `Name <address> seconds +0100`.
struct Person {
    name: String,
    email: String,
    seconds: i64,
    offset_minutes: i32,
}

impl Person {
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('<')?;
        let (email, rest) = rest.rsplit_once('>')?;
        let mut words = rest.split_ascii_whitespace();
        let seconds = words.next()?.parse().ok()?;
        let offset: i32 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        Some(Self {
            name: name.trim().to_owned(),
            email: email.trim().to_owned(),
            seconds,
            offset_minutes: offset / 100 * 60 + offset % 100,
        })
    }

    /// The time, with the offset that the person had.
    fn at(&self) -> Option<String> {
        let offset = Offset::from_seconds(self.offset_minutes.checked_mul(60)?).ok();
        let offset = offset.unwrap_or(Offset::UTC);
        let time = Timestamp::from_second(self.seconds).ok()?;
        let time = time.to_zoned(TimeZone::fixed(offset));
        Some(time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
    }
}
