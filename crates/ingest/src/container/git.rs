//! Git repositories, working or bare, wherever they stand. All files of one become one member, which reads as its log: a line of JSON
//! for the repository, and one for each commit that a branch or a tag leads to, the newest first. No `git` is needed.

mod log;
mod objects;
mod pack;
mod tree;

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use self::log::Log;
use self::objects::Objects;
use super::Member;
use super::bytes::Bytes;

/// What the first line of a log begins with.
pub(crate) const LOG_BEGINS: &str = "{\"git_repository\":";

/// What a folder is called, or how its name ends, that holds a repository.
pub(super) const ENDING: &str = ".git";

/// What a repository says of itself that is kept in another way, and why it is not read.
const UNREAD: [(&str, &str); 2] = [
    (
        "objectformat=sha256",
        "its objects are named by SHA-256, and such repositories are not read",
    ),
    (
        "refstorage=reftable",
        "its branches stand in a reftable, and such repositories are not read",
    ),
];

/// The longest file of a repository, other than its objects, that is read.
const TEXT_BYTES: u64 = 16 << 20;
/// All compressed objects of a repository inside an archive together: they are held in memory, because objects refer to each other.
const HELD_BYTES: u64 = 256 << 20;

/// The files of a repository, by their paths inside it.
#[derive(Default)]
pub(super) struct Repository {
    /// What it is called where nothing else tells.
    folder: String,
    files: HashMap<String, Member>,
}

impl Repository {
    pub(super) fn new(folder: &str) -> Self {
        let folder = folder.strip_suffix(ENDING).unwrap_or(folder);
        let folder = folder.trim_end_matches('/').rsplit('/').next();
        Self {
            folder: folder.unwrap_or_default().to_owned(),
            files: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, inside: &str, member: Member) {
        let is_read = matches!(inside, "HEAD" | "config" | "packed-refs")
            || inside.starts_with("refs/")
            || inside.starts_with("objects/");
        if is_read {
            self.files.insert(inside.to_owned(), member);
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        let has_objects = self.files.keys().any(|path| path.starts_with("objects/"));
        self.files.contains_key("HEAD") && has_objects
    }

    pub(super) fn size(&self) -> u64 {
        self.files.values().map(|member| member.size).sum()
    }

    pub(super) fn open(self: &Arc<Self>) -> io::Result<Box<dyn Read + Send>> {
        let mut config = self.text("config")?.to_ascii_lowercase();
        config.retain(|c| !c.is_whitespace());
        for (way, why) in UNREAD {
            if config.contains(way) {
                return Err(io::Error::other(why));
            }
        }
        let objects = Objects::new(self)?;
        Ok(Box::new(Log::new(self, objects)?))
    }

    /// The text of a file; empty if there is none.
    fn text(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        if let Some(member) = self.files.get(path) {
            member.open()?.take(TEXT_BYTES).read_to_end(&mut bytes)?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn paths<'r>(&'r self, begin: &'r str, end: &'r str) -> impl Iterator<Item = &'r str> {
        let paths = self.files.keys().map(String::as_str);
        paths.filter(move |path| path.starts_with(begin) && path.ends_with(end))
    }
}

impl Repository {
    /// The objects that stand compressed in an archive, unpacked: they refer to each other in any order.
    fn held_objects(&self) -> io::Result<HashMap<String, Bytes>> {
        let objects = self
            .files
            .iter()
            .filter(|(path, member)| path.starts_with("objects/") && member.bytes().is_none());
        let mut objects: Vec<_> = objects.collect();
        objects.sort_by_key(|(_, member)| member.place_on_tape());
        let mut left = HELD_BYTES;
        let mut held = HashMap::new();
        for (path, member) in objects {
            let mut bytes = Vec::new();
            let read = member.open()?.take(left + 1).read_to_end(&mut bytes)?;
            left = left.checked_sub(read as u64).ok_or_else(|| {
                io::Error::other(
                    "the repository is compressed and too large for that; unpack the archive and name the folder",
                )
            })?;
            held.insert(path.clone(), Bytes::from(bytes));
        }
        Ok(held)
    }
}

/// Where the path of a repository ends in a path inside an archive, if it leads through one.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    for part in path.split('/') {
        end += part.len();
        let inside = path.get(end + 1..)?;
        if part.ends_with(ENDING) {
            return Some((path.get(..end)?, inside));
        }
        end += 1;
    }
    None
}
