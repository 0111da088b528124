//! Files that were uploaded and wait to be imported: a folder in the data directory with a name that cannot be guessed,
//! removed after the import, when it is discarded, or after a day.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use contract::time::Instant;
use ingest::container::{self, Limits, Member};
use ingest::survey::{self, Accounts, Found};
use ingest::table::{self, Inferred, TableColumns, Told};
use ingest::{Export, FileContents, Format, ImportError, Input};

use crate::owner::{FileName, ImportFiles};

const KEPT: Duration = Duration::from_hours(24);
const MAX_NAME_BYTES: usize = 120;
const NAMED: usize = 5;
/// Where folders stand that were uploaded.
const FOLDERS: &str = "folders";
/// Folders inside folders; deeper files are taken by themselves.
const DEEPEST: usize = 24;
/// Tables of different kinds in one upload.
const MOST_TABLES: usize = 50;

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
    accounts: Accounts,
}

/// Files of one kind, which go into one connection together.
pub(super) struct Group {
    /// `None` for lines and tables, which say themselves what they hold.
    pub(super) export: Option<Export>,
    /// The account that it is of, where its files name it.
    pub(super) account: Option<String>,
    /// The tables of its first file, where its lines do not say themselves where they belong.
    pub(super) tables: Vec<TableColumns>,
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
        contents.leave_companions();
        for group in &mut contents.groups {
            let account = group.export.and_then(|export| contents.accounts.of(export));
            group.account = account.map(str::to_owned);
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
    let walked = match container::walk(path, Limits::default()) {
        Ok(walked) => walked,
        Err(error) => {
            let left = format!("{name}: it cannot be read: {error}");
            contents.left.push(left);
            return Ok(());
        }
    };
    let Some(walked) = walked else {
        let content = File::open(path)?;
        match Input::from_file(&name, &name, content) {
            Ok(input) => add(contents, &input, (path, None, &name)),
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
            Ok(input) => add(contents, &input, (path, Some(member), &inside)),
            Err(error) => contents.left.push(format!("{inside}: {error}")),
        }
    }
    Ok(())
}

fn add(
    contents: &mut Contents,
    input: &Input,
    (path, member, name): (&Path, Option<Member>, &str),
) {
    contents.accounts.note(input);
    let (format, rank) = match input.contents() {
        FileContents::Format { format, .. }
            if *format != Format::Export(Export::PHOTOS)
                && member.is_some()
                && survey::is_media(name) =>
        {
            return contents
                .left
                .push(format!("{name}: {}", survey::MEDIA_LEFT));
        }
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
    let same = |group: &&mut Group| {
        let mut files = group.files.iter();
        group.export == export && files.any(|one| export.is_some() || one.is_with(&file))
    };
    match contents.groups.iter_mut().find(same) {
        Some(group) => group.files.push(file),
        None => contents.groups.push(Group {
            export,
            account: None,
            tables: Vec::new(),
            files: vec![file],
        }),
    }
}

impl Contents {
    /// Leaves files that belong to what stands beside them.
    fn leave_companions(&mut self) {
        let companions = self.companions();
        for group in &mut self.groups {
            group.files.retain(|file| {
                let why = companions.get(&file.at());
                self.left
                    .extend(why.map(|why| format!("{}: {why}", file.name)));
                why.is_none()
            });
        }
        self.groups.retain(|group| !group.files.is_empty());
    }

    /// Where these files stand, and why they are left.
    fn companions(&self) -> HashMap<String, &'static str> {
        let files = self.groups.iter().flat_map(|group| &group.files);
        let files: Vec<(String, &StagedFile)> = files.map(|file| (file.at(), file)).collect();
        let found = files.iter().map(|(path, file)| Found {
            path,
            export: match file.format {
                Format::Export(export) => Some(export),
                _ => None,
            },
            is_inside: file.member.is_some(),
            is_packed: file.member.as_ref().is_some_and(Member::is_packed),
        });
        let left = survey::left_beside(&found.collect::<Vec<_>>(), false);
        let left = left.into_iter().zip(&files);
        left.filter_map(|(why, (path, _))| Some((path.clone(), why?)))
            .collect()
    }

    /// Looks at the columns of tables, and puts those together that have the same.
    pub(super) fn with_tables(mut self) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for mut group in self.groups {
            group.tables = group.find_tables();
            let same = groups.iter_mut().find(|one| one.has_columns_of(&group));
            if let Some(same) = same {
                same.files.append(&mut group.files);
            } else if group.export.is_none() && groups.len() >= MOST_TABLES {
                let why =
                    format!("{MOST_TABLES} tables are taken at a time; import it after these");
                let files = group.files.iter();
                self.left
                    .extend(files.map(|file| format!("{}: {why}", file.name)));
            } else {
                groups.push(group);
            }
        }
        self.groups = groups;
        self
    }
}

impl Group {
    /// The file that tells what tables it has.
    pub(super) fn table(&self) -> Option<&StagedFile> {
        let mut files = self.files.iter();
        files.find(|file| {
            !file.is_log() && !matches!(file.format, Format::Singer | Format::Export(_))
        })
    }

    /// Whether a source can be made of it: it is a table, or has lines that do not say themselves where they belong.
    pub(super) fn makes_source(&self) -> bool {
        self.table().is_some_and(StagedFile::is_table) || !self.tables.is_empty()
    }

    /// Looks at all rows. `key` is what its connector would be called.
    pub(super) fn infer(&self, key: &str) -> Option<Result<Inferred, ImportError>> {
        let file = self.table().filter(|_| self.makes_source())?;
        let told = Told::default();
        let inferred = file
            .input()
            .and_then(|input| table::infer(input, self.log(), (file.title(), key), &told));
        Some(inferred)
    }

    /// What is wrong with a table is told when all of it is looked at.
    fn find_tables(&self) -> Vec<TableColumns> {
        let Some(file) = self.table() else {
            return Vec::new();
        };
        let input = file.input();
        let tables = input.and_then(|input| table::tables(input, file.title(), self.log()));
        tables.unwrap_or_default()
    }

    /// What was written beside a database and is not yet in it.
    fn log(&self) -> Option<PathBuf> {
        let log = self.files.iter().find(|file| file.is_log());
        log.map(|log| log.path.clone())
    }

    fn has_columns_of(&self, other: &Self) -> bool {
        let is_text = |group: &Self| {
            let table = group.table();
            table.is_some_and(|file| matches!(file.format, Format::Csv | Format::Json))
        };
        match (self.tables.as_slice(), other.tables.as_slice()) {
            ([one], [two]) => is_text(self) && is_text(other) && one.columns == two.columns,
            _ => false,
        }
    }
}

impl StagedFile {
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Where it stands.
    fn at(&self) -> String {
        let member = self.member.as_ref().map(|member| member.path().to_owned());
        member.unwrap_or_else(|| self.path.display().to_string())
    }

    /// What people may call what it holds.
    pub(super) fn title(&self) -> &str {
        table::title(&self.name)
    }

    /// Whether it holds tables, and not lines, which may say themselves where they belong.
    fn is_table(&self) -> bool {
        use Format::{Csv, Database, Json, Workbook};
        matches!(self.format, Csv | Database | Json | Workbook)
    }

    /// Whether it is what was written beside a database.
    fn is_log(&self) -> bool {
        self.format == Format::Database && self.name.ends_with("-wal")
    }

    /// Whether it goes where another file without an export goes: both hold lines, or one was written beside the other.
    fn is_with(&self, other: &Self) -> bool {
        let is_beside = |log: &Self, file: &Self| {
            log.is_log() && log.name.strip_suffix("-wal") == Some(file.name.as_str())
        };
        let are_lines = !self.is_table() && !other.is_table();
        are_lines || is_beside(self, other) || is_beside(other, self)
    }

    fn input(&self) -> Result<Input, ImportError> {
        let content = File::open(&self.path).map_err(|error| ImportError::Input {
            name: self.name.clone(),
            error: error.into(),
        })?;
        Input::of_format(&self.name, &self.name, self.format, content)
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

    #[test]
    fn tables_stand_alone_and_a_database_with_what_was_written_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let staged = Staged::begin(root.path(), Instant(0)).unwrap();
        let database = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../ingest/tests/tables/boat.db"
        );
        let database = fs::read(database).unwrap();
        let files: [(&str, &[u8]); 6] = [
            ("a.db", &database),
            ("a.csv", b"x,y\n1,2\n"),
            ("a.jsonl", b"{\"id\":1}\n"),
            ("a.db-wal", b"\x37\x7f\x06\x82"),
            ("b.jsonl", b"{\"id\":1}\n"),
            ("b.csv", b"x,y\n3,4\n"),
        ];
        for (number, (name, content)) in files.into_iter().enumerate() {
            io::copy(&mut &*content, &mut staged.create(number, name).unwrap()).unwrap();
        }
        let names = |contents: &Contents| -> Vec<Vec<String>> {
            let names = |group: &Group| group.files.iter().map(|file| file.name.clone()).collect();
            contents.groups.iter().map(names).collect()
        };
        let contents = staged.contents().unwrap();
        let database = ["a.db-wal", "a.db"];
        let lines = ["a.jsonl", "b.jsonl"];
        assert_eq!(
            names(&contents),
            [&database[..], &["a.csv"], &lines, &["b.csv"]]
        );
        // Those of the same columns go together.
        let contents = contents.with_tables();
        assert_eq!(
            names(&contents),
            [&database[..], &["a.csv", "b.csv"], &lines]
        );
        assert!(contents.groups.iter().all(Group::makes_source));
    }
}
