//! Files that were uploaded and wait to be imported: a folder in the data directory with a name that cannot be guessed,
//! removed after the import, when it is discarded, or after a day.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use contract::time::Instant;
use ingest::container::{self, Limits, Member};
use ingest::{Export, FileContents, Format, Input};

use crate::owner::{FileName, ImportFiles};

const KEPT: Duration = Duration::from_hours(24);
const MAX_NAME_BYTES: usize = 120;
const NAMED: usize = 5;
/// Where folders stand that were uploaded.
const FOLDERS: &str = "folders";
/// Folders inside folders; deeper files are taken by themselves.
const DEEPEST: usize = 24;

pub(super) struct Staged {
    pub(super) id: String,
    folder: PathBuf,
}

/// What an upload holds.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) groups: Vec<Group>,
    /// What is not imported, and why.
    pub(super) left: Vec<String>,
}

/// Files of one kind, which go into one connection together.
pub(super) struct Group {
    /// `None` for lines and tables, which say themselves what they hold.
    pub(super) export: Option<Export>,
    pub(super) files: Vec<StagedFile>,
}

#[derive(Clone)]
pub(super) struct StagedFile {
    path: PathBuf,
    member: Option<Member>,
    /// Where it stands in its archive, or its name.
    pub(super) name: String,
    format: Format,
    rank: u8,
    pub(super) bytes: u64,
}

impl Staged {
    /// A new folder for an upload. What was left lying for a day goes.
    pub(super) fn begin(root: &Path, now: Instant) -> io::Result<Self> {
        sweep(root, now);
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let id = format!("{:032x}", u128::from_be_bytes(bytes));
        let folder = root.join(&id);
        fs::create_dir_all(&folder)?;
        Ok(Self { id, folder })
    }

    pub(super) fn find(root: &Path, id: &str) -> Option<Self> {
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let folder = root.join(id);
        (is_id && folder.is_dir()).then(|| Self {
            id: id.to_owned(),
            folder,
        })
    }

    /// The uploads that are here.
    pub(super) fn all(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| Self::find(root, entry.file_name().to_str()?));
        found.collect()
    }

    /// The names of its first files.
    pub(super) fn names(&self) -> Vec<String> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
        let names = files.flatten().take(NAMED);
        names
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Creates the file for one that a browser sends: a file of a folder where it stands in that folder, any other in a folder
    /// of its own.
    pub(super) fn create(&self, number: usize, name: &str) -> io::Result<File> {
        if let Some(path) = path_in_folder(name) {
            let path = self.folder.join(FOLDERS).join(path);
            let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
            // Two folders of the same name may have a file of the same name.
            if let Ok(file) = folder.and_then(|()| File::create_new(&path)) {
                return Ok(file);
            }
        }
        let folder = self.folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        File::create_new(folder.join(safe_name(name)))
    }

    pub(super) fn discard(&self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, "an upload could not be removed");
        }
    }

    /// Looks at every file for what it is.
    pub(super) fn contents(&self) -> io::Result<Contents> {
        let mut contents = Contents::default();
        let mut paths = Vec::new();
        for folder in fs::read_dir(&self.folder)? {
            for file in fs::read_dir(folder?.path())? {
                paths.push(file?.path());
            }
        }
        paths.sort();
        for path in paths {
            look_at(&path, &mut contents)?;
        }
        for group in &mut contents.groups {
            group.files.sort_by_key(|file| file.rank);
        }
        Ok(contents)
    }
}

fn sweep(root: &Path, now: Instant) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let since = modified
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let since = since.and_then(|since| i64::try_from(since.as_micros()).ok());
        let kept = i64::try_from(KEPT.as_micros()).unwrap_or(i64::MAX);
        if since.is_some_and(|since| now.0.saturating_sub(since) > kept) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Where a file of a folder stands in it, as browsers say it, without what leads elsewhere.
fn path_in_folder(name: &str) -> Option<PathBuf> {
    let parts = name.split('/').map(plain_name);
    let parts = parts.filter(|part| !part.trim_matches('.').is_empty());
    let parts: Vec<String> = parts.collect();
    let is_in_folder = (2..=DEEPEST).contains(&parts.len());
    is_in_folder.then(|| parts.iter().collect())
}

/// The last part of a name that a browser gives, without what a file system would read as something else.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    match plain_name(last.trim_start_matches('.')) {
        name if name.is_empty() => "file".to_owned(),
        name => name,
    }
}

fn plain_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_control() || "<>:\"|?*/\\".contains(c) {
            '_'
        } else {
            c
        }
    };
    let name: String = name.chars().map(plain).collect();
    // The ending may say what it is.
    let mut start = name.len().saturating_sub(MAX_NAME_BYTES);
    while !name.is_char_boundary(start) {
        start += 1;
    }
    name.get(start..).unwrap_or_default().to_owned()
}

fn look_at(path: &Path, contents: &mut Contents) -> io::Result<()> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let walked = container::walk(path, Limits::default());
    let Some(walked) = walked? else {
        let content = File::open(path)?;
        match Input::from_file(&name, &name, content) {
            Ok(input) => add(contents, input.contents(), (path, None, &name)),
            Err(error) => contents.left.push(format!("{name}: {error}")),
        }
        return Ok(());
    };
    // The owner knows the name of the upload, not where it is kept.
    let kept_in = path.parent().unwrap_or(path);
    for skipped in walked.skipped {
        let shown = Path::new(&skipped.path);
        let shown = shown.strip_prefix(kept_in).unwrap_or(shown).display();
        contents.left.push(format!("{shown}: {}", skipped.why));
    }
    for member in walked.members {
        let inside = member.inside().to_owned();
        let file_name = inside.rsplit('/').next().unwrap_or_default().to_owned();
        let opened = member.open().map_err(|error| error.to_string());
        let input = opened.and_then(|content| {
            let input = Input::from_file(member.path(), &file_name, content);
            input.map_err(|error| error.to_string())
        });
        match input {
            Ok(input) => add(contents, input.contents(), (path, Some(member), &inside)),
            Err(error) => contents.left.push(format!("{inside}: {error}")),
        }
    }
    Ok(())
}

fn add(
    contents: &mut Contents,
    found: &FileContents,
    (path, member, name): (&Path, Option<Member>, &str),
) {
    let (format, rank) = match found {
        FileContents::Format { format, rank } => (*format, *rank),
        FileContents::Left(why) => return contents.left.push(format!("{name}: {why}")),
        FileContents::Unknown(why) => {
            return contents.left.push(format!("{name}: {why}"));
        }
    };
    let export = match format {
        Format::Export(export) => Some(export),
        Format::Jsonl
        | Format::Json
        | Format::Csv
        | Format::Workbook
        | Format::Database
        | Format::Singer => None,
    };
    // Lines in an archive do not say what they hold.
    if export.is_none() && member.is_some() {
        let why = "tables and JSON lines are imported by themselves";
        return contents.left.push(format!("{name}: {why}"));
    }
    let bytes = match &member {
        Some(member) => member.size(),
        None => fs::metadata(path).map_or(0, |found| found.len()),
    };
    let file = StagedFile {
        path: path.to_owned(),
        bytes,
        member,
        name: name.to_owned(),
        format,
        rank,
    };
    match contents
        .groups
        .iter_mut()
        .find(|group| group.export == export)
    {
        Some(group) => group.files.push(file),
        None => contents.groups.push(Group {
            export,
            files: vec![file],
        }),
    }
}

/// Staged files, opened one after the other.
pub(super) struct OpenedFiles(pub(super) std::vec::IntoIter<StagedFile>);

impl ImportFiles for OpenedFiles {
    fn next_file(&mut self) -> io::Result<Option<(FileName, Box<dyn Read>)>> {
        let Some(file) = self.0.next() else {
            return Ok(None);
        };
        let content: Box<dyn Read> = match &file.member {
            Some(member) => member.open()?,
            None => Box::new(File::open(&file.path)?),
        };
        let last = file.name.rsplit('/').next().unwrap_or_default().to_owned();
        let name = FileName {
            name: file.name.clone(),
            file_name: Some(last),
            inside: file
                .member
                .as_ref()
                .map(|member| member.inside().to_owned()),
            format: Some(file.format.as_str().to_owned()),
        };
        Ok(Some((name, content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_browsers_stay_inside_their_folder() {
        for (name, safe) in [
            ("../../etc/passwd", "passwd"),
            ("C:\\mail\\a.mbox", "a.mbox"),
            ("..", "file"),
            ("", "file"),
            (".hidden", "hidden"),
            ("a\0b\n.csv", "a_b_.csv"),
        ] {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        for (name, path) in [
            ("notes/a.md", Some("notes/a.md")),
            ("/../notes/./.obsidian/a\\b", Some("notes/.obsidian/a_b")),
            ("../../a.md", None),
            ("a.md", None),
        ] {
            let expected = path.map(PathBuf::from);
            assert_eq!(path_in_folder(name), expected, "{name:?}");
        }
        let long = format!("{}é.jsonl", "x".repeat(500));
        assert!(safe_name(&long).ends_with("é.jsonl") && safe_name(&long).len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn only_an_id_of_ours_is_looked_for() {
        let root = tempfile::tempdir().unwrap();
        let staged = Staged::begin(root.path(), Instant(0)).unwrap();
        assert!(Staged::find(root.path(), &staged.id).is_some());
        for id in ["", "..", "../x", "0123456789abcdef0123456789abcdef"] {
            assert!(Staged::find(root.path(), id).is_none(), "{id}");
        }
        staged.discard();
        assert!(Staged::find(root.path(), &staged.id).is_none());
        // What was left lying goes with the next upload.
        let left = Staged::begin(root.path(), Instant(0)).unwrap();
        Staged::begin(root.path(), Instant(i64::MAX)).unwrap();
        assert!(Staged::find(root.path(), &left.id).is_none());
    }
}
