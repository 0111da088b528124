//! Folders and archives: a walk lists the files inside, each of which is opened and read in place. Nothing is ever unpacked
//! to disk, so no name inside an archive can lead anywhere. What cannot or must not be read is listed with the reason, and
//! the walk goes on.

mod bytes;
mod document;
pub(crate) mod git;
mod skipped;
mod tape;
mod zip;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::bytes::Bytes;
use self::document::is_document;
pub(crate) use self::document::{document_parts, parts_of_file};
use self::git::Repository;
pub use self::skipped::{SkipReason, Skipped};
use self::tape::{Packing, Tape};
use self::zip::ZipPart;

const ZIP_BEGINS: &[u8] = b"PK\x03\x04";

/// Endings of archives inside folders and archives. An office document is a zip too, and is not taken apart.
const ARCHIVE_ENDINGS: [&str; 6] = [".zip", ".tar", ".tgz", ".tar.gz", ".tar.zst", ".tzst"];

/// Endings of files that are looked at as they are: documents that are zips, and what there is most of. All others may be archives.
const PLAIN_ENDINGS: [&str; 29] = [
    ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".jar", ".apk", ".json", ".jsonl",
    ".csv", ".tsv", ".txt", ".md", ".html", ".xml", ".js", ".eml", ".emlx", ".vcf", ".ics", ".pdf",
    ".jpg", ".jpeg", ".png", ".heic", ".mp4", ".mbox",
];

/// How much is read of a container, so that a hostile one costs little.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub members: usize,
    /// Of one member, unpacked.
    pub member_bytes: u64,
    /// Of all members together, unpacked.
    pub total_bytes: u64,
    /// How many times larger than packed a member may be, if it is larger than `ratio_from`.
    pub ratio: u64,
    pub ratio_from: u64,
    /// Of all compressed archives inside archives: they are held in memory, because they cannot be read in place.
    pub nested_bytes: u64,
    /// Folders inside folders.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            members: 200_000,
            member_bytes: 256 << 30,
            total_bytes: 1 << 40,
            ratio: 500,
            ratio_from: 64 << 20,
            nested_bytes: 64 << 20,
            depth: 32,
        }
    }
}

/// A file inside a folder or an archive.
#[derive(Clone)]
pub struct Member {
    path: String,
    inside: String,
    size: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    File(PathBuf),
    Zip(ZipPart),
    Tape {
        tape: Arc<Tape>,
        /// Where it begins in the unpacked tape.
        at: u64,
    },
    Repository(Arc<Repository>),
}

/// What a folder or an archive holds.
#[derive(Default)]
pub struct Contents {
    pub members: Vec<Member>,
    pub skipped: Vec<Skipped>,
}

impl Member {
    /// Where it stands, with the folder or archive.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where it stands inside, from the folder or archive on. It does not depend on where that stands, nor on whether a folder
    /// was packed.
    pub fn inside(&self) -> &str {
        &self.inside
    }

    /// Whether it stands in an archive.
    pub fn is_packed(&self) -> bool {
        matches!(self.content, Content::Zip(_) | Content::Tape { .. })
    }

    /// Its size, unpacked, as the container says.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        match &self.content {
            Content::File(path) => Ok(Box::new(File::open(path)?)),
            Content::Zip(part) => part.open(),
            Content::Tape { tape, at } => Ok(Box::new(Tape::open(tape, *at, self.size)?)),
            Content::Repository(repository) => repository.open(),
        }
    }

    /// Whether it begins as an archive does that can be read.
    fn is_archive(&self) -> bool {
        let Ok(mut file) = self.open() else {
            return false;
        };
        let head = tape::read_head(&mut file).unwrap_or_default();
        head.starts_with(ZIP_BEGINS) || tape::begins(head, file)
    }

    /// Its place on a tape, where members are best read in their order.
    fn place_on_tape(&self) -> u64 {
        match &self.content {
            Content::Tape { at, .. } => *at,
            _ => 0,
        }
    }

    /// Its bytes where they can be read at any place without unpacking them.
    fn bytes(&self) -> Option<Bytes> {
        match &self.content {
            Content::File(path) => Bytes::open(path).ok(),
            Content::Zip(part) => part.stored(),
            Content::Tape { tape, at } => tape.plain(*at, self.size),
            Content::Repository(_) => None,
        }
    }
}

/// Lists what a folder or an archive holds; `None` if the path is neither.
pub fn walk(path: &Path, limits: Limits) -> io::Result<Option<Contents>> {
    let shown = path.display().to_string();
    let mut walk = Walk {
        limits,
        contents: Contents::default(),
        seen: HashSet::new(),
        total: 0,
        nested: 0,
        repositories: BTreeMap::new(),
    };
    if fs::metadata(path)?.is_dir() {
        let whole = fs::canonicalize(path)?;
        let name = whole.file_name().unwrap_or_default().to_string_lossy();
        let place = Place::new(shown.trim_end_matches('/'), &name);
        if path.join("HEAD").is_file() && path.join("objects").is_dir() {
            walk.repository(path, &place, &whole.to_string_lossy());
        } else {
            walk.folder(path, &place, 0);
        }
        return Ok(Some(walk.finished()));
    }
    let is_archive = walk.archive(&Bytes::open(path)?, &shown, 0)?;
    Ok(is_archive.then(|| walk.finished()))
}

struct Walk {
    limits: Limits,
    contents: Contents,
    seen: HashSet<String>,
    total: u64,
    /// Bytes of archives that are held in memory.
    nested: u64,
    /// By where they stand.
    repositories: BTreeMap<String, (Place, Repository)>,
}

impl Walk {
    fn skip(&mut self, path: String, why: SkipReason) {
        if self.contents.skipped.len() < self.limits.members {
            self.contents.skipped.push(Skipped { path, why });
        }
    }

    fn folder(&mut self, folder: &Path, place: &Place, depth: usize) {
        if depth > self.limits.depth {
            return self.skip(place.shown.clone(), SkipReason::TooDeep);
        }
        let Ok(entries) = fs::read_dir(folder) else {
            return self.skip(place.shown.clone(), SkipReason::Broken);
        };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let place = place.join(&name);
            match entry.file_type() {
                _ if is_hidden(&name)
                    && name != git::ENDING
                    && !entry.path().join("cur").is_dir() =>
                {
                    self.skip(place.shown, SkipReason::Hidden);
                }
                Ok(kind) if kind.is_dir() && name.ends_with(git::ENDING) => {
                    let folder = entry.path();
                    self.repository(&folder, &place, &folder.to_string_lossy());
                }
                Ok(kind) if kind.is_dir() => self.folder(&entry.path(), &place, depth + 1),
                Ok(kind) if kind.is_file() => {
                    let size = entry.metadata().map_or(0, |metadata| metadata.len());
                    let content = Content::File(entry.path());
                    self.offer(place.member(size, content), 0);
                }
                _ => self.skip(place.shown, SkipReason::Link),
            }
        }
    }

    /// Takes the files of a repository together.
    fn repository(&mut self, folder: &Path, place: &Place, path: &str) {
        let mut folders = vec![(folder.to_owned(), String::new())];
        let mut count = 0;
        while let Some((folder, prefix)) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries.filter_map(Result::ok) {
                let inside = format!("{prefix}{}", entry.file_name().to_string_lossy());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push((entry.path(), format!("{inside}/"))),
                    Ok(kind) if kind.is_file() && count < self.limits.members => {
                        count += 1;
                        let size = entry.metadata().map_or(0, |metadata| metadata.len());
                        let member = place
                            .join(&inside)
                            .member(size, Content::File(entry.path()));
                        self.of_repository(place, path, &inside, member);
                    }
                    _ => {}
                }
            }
        }
    }

    fn of_repository(&mut self, place: &Place, path: &str, inside: &str, member: Member) {
        let new = || (place.clone(), Repository::new(path));
        let key = place.shown.clone();
        let (_, repository) = self.repositories.entry(key).or_insert_with(new);
        repository.add(inside, member);
    }

    /// What was found, once everything was looked at: a repository is one member.
    fn finished(mut self) -> Contents {
        for (shown, (place, repository)) in std::mem::take(&mut self.repositories) {
            if repository.is_whole() {
                let size = repository.size();
                let content = Content::Repository(Arc::new(repository));
                self.contents.members.push(place.member(size, content));
            } else {
                self.skip(shown, SkipReason::Hidden);
            }
        }
        self.contents
    }

    /// Takes a member, or the members of it if it is an archive. `nesting` says inside how many archives it stands.
    fn offer(&mut self, member: Member, nesting: usize) {
        let path = member.path.clone();
        self.total = self.total.saturating_add(member.size);
        if member.size > self.limits.member_bytes || self.total > self.limits.total_bytes {
            return self.skip(path, SkipReason::TooLarge);
        }
        let lower = path.to_ascii_lowercase();
        let is_called = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
        // A name without an ending says nothing, and so does one that a program made up.
        let may_be_archive = || nesting < 2 && !is_called(&PLAIN_ENDINGS) && member.is_archive();
        if is_called(&ARCHIVE_ENDINGS) || may_be_archive() {
            return self.offer_archive(member, nesting);
        }
        if self.contents.members.len() >= self.limits.members {
            return self.skip(path, SkipReason::TooMany);
        }
        self.contents.members.push(member);
    }

    fn offer_archive(&mut self, member: Member, nesting: usize) {
        let path = member.path.clone();
        if nesting > 1 {
            return self.skip(path, SkipReason::NestedTwice);
        }
        let bytes = match member.bytes() {
            Some(bytes) => bytes,
            None if member.size + self.nested > self.limits.nested_bytes => {
                return self.skip(path, SkipReason::NestedTooLarge);
            }
            None => {
                let mut held = Vec::new();
                let room = self.limits.nested_bytes;
                let read = member
                    .open()
                    .and_then(|file| file.take(room).read_to_end(&mut held));
                if read.is_err() {
                    return self.skip(path, SkipReason::Broken);
                }
                self.nested += held.len() as u64;
                Bytes::from(held)
            }
        };
        match self.archive(&bytes, &path, nesting) {
            Ok(true) => {}
            // Something else under the name of an archive.
            Ok(false) => self.contents.members.push(member),
            Err(_) => self.skip(path, SkipReason::Broken),
        }
    }

    /// Lists an archive. Says no if the bytes are none.
    fn archive(&mut self, bytes: &Bytes, shown: &str, nesting: usize) -> io::Result<bool> {
        if zip::is_zip(bytes)? {
            let entries = zip::list(bytes, &self.limits)?;
            if is_document(&entries) {
                return Ok(false);
            }
            let place = Place::in_archive(shown, entries.iter().map(|entry| entry.name.as_str()));
            for entry in entries {
                let content = |part: ZipPart| (part.size(), Content::Zip(part));
                self.listed(&place, &entry.name, entry.part.map(content), nesting);
            }
            return Ok(true);
        }
        let Some(packing) = Packing::detect(bytes)? else {
            return Ok(false);
        };
        let tape = Arc::new(Tape::new(bytes.clone(), packing));
        let entries = tape.list(&self.limits)?;
        let place = Place::in_archive(shown, entries.iter().map(|entry| entry.name.as_str()));
        for entry in entries {
            let content = |(at, size)| {
                let tape = Arc::clone(&tape);
                (size, Content::Tape { tape, at })
            };
            self.listed(&place, &entry.name, entry.place.map(content), nesting);
        }
        Ok(true)
    }

    fn listed(
        &mut self,
        archive: &Place,
        name: &str,
        found: Result<(u64, Content), SkipReason>,
        nesting: usize,
    ) {
        let name = name.replace('\\', "/");
        let place = archive.join(&name);
        let (path, hidden) = (place.shown.clone(), has_hidden_part(&name));
        match found {
            Err(why) => self.skip(path, why),
            Ok(_) if !is_safe(&name) => self.skip(path, SkipReason::UnsafeName),
            Ok(_) if !self.seen.insert(path.clone()) => self.skip(path, SkipReason::Duplicate),
            Ok((size, content)) if git::split(&name).is_some() => {
                let (repository, inside) = git::split(&name).unwrap_or_default();
                let at = archive.join(repository);
                let member = place.member(size, content);
                self.of_repository(&at, &at.inside, inside, member);
            }
            Ok(_) if hidden => self.skip(path, SkipReason::Hidden),
            Ok((size, content)) => self.offer(place.member(size, content), nesting + 1),
        }
    }
}

/// Where something stands: as it is shown, and from its folder or archive on.
#[derive(Debug, Clone)]
struct Place {
    shown: String,
    inside: String,
}

impl Place {
    fn new(shown: &str, inside: &str) -> Self {
        Self {
            shown: shown.to_owned(),
            inside: inside.to_owned(),
        }
    }

    /// The top of an archive, which counts as a folder of its name unless it holds one folder and nothing else.
    fn in_archive<'n>(shown: &str, mut names: impl Iterator<Item = &'n str>) -> Self {
        let top = |name: &'n str| name.split_once(['/', '\\']).map(|(top, _)| top);
        let first = names.next().and_then(top);
        if first.is_some() && names.all(|name| top(name) == first) {
            return Self::new(shown, "");
        }
        let name = shown.rsplit('/').next().unwrap_or_default();
        let name = name.split_once('.').map_or(name, |(stem, _)| stem);
        Self::new(shown, name)
    }

    fn join(&self, name: &str) -> Self {
        let inside = match self.inside.as_str() {
            "" => name.to_owned(),
            inside => format!("{inside}/{name}"),
        };
        Self {
            shown: format!("{}/{name}", self.shown),
            inside,
        }
    }

    fn member(self, size: u64, content: Content) -> Member {
        Member {
            path: self.shown,
            inside: self.inside,
            size,
            content,
        }
    }
}

/// Whether a name is of the system's or of a program's own files.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "__MACOSX" | "Thumbs.db" | "desktop.ini")
}

/// Whether a path leads through a hidden folder or to a hidden file. Folders of a Maildir begin with a dot too: they hold one that
/// is called `cur`.
fn has_hidden_part(path: &str) -> bool {
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let of_maildir = matches!(parts.peek(), Some(&("cur" | "new" | "tmp")));
        if is_hidden(part) && !of_maildir {
            return true;
        }
    }
    false
}

/// Whether a name inside an archive stays inside.
fn is_safe(name: &str) -> bool {
    let is_drive = name.as_bytes().get(1) == Some(&b':');
    let mut parts = name.split(['/', '\\']);
    !name.is_empty()
        && !name.starts_with(['/', '\\'])
        && !is_drive
        && !name.chars().any(char::is_control)
        && parts.all(|part| part != "..")
}
