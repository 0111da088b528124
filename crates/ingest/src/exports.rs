//! Known exports: files that programs and services hand out, recognised by looking inside and imported with nothing
//! declared before, because the declaration of their connector comes along.
//!
//! A new one is a file in `importers/` with its [`Known`], a declaration, and a line in [`Export::ALL`].

mod connecting;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::rc::Rc;

use contract::key::RecordKey;
use tempfile::TempPath;

use crate::accept::Acceptor;
use crate::importer::Importer;
use crate::importers::{
    agent_logs, bank, browser, calendar, chatgpt, claude, contacts, discord, documents, git,
    github, health, linkedin, mail, markdown, mastodon, media, meta, notes, photos, places, reddit,
    slack, takeout, telegram, whatsapp, x,
};
use crate::input::Input;
use crate::lines::BYTE_ORDER_MARK;
use crate::readable_key;
use crate::shape::Shape;

/// A kind of export that is known.
#[derive(Clone, Copy)]
pub struct Export(&'static Known);

/// Everything that is to be known of a kind of export.
pub(crate) struct Known {
    /// Its name, as it travels.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) title: &'static str,
    pub(crate) declaration: Declared,
    /// How people get it.
    pub(crate) origin: &'static str,
    /// What of it becomes records.
    pub(crate) contents: &'static str,
    pub(crate) recognise: fn(&Candidate<'_>) -> Verdict,
    pub(crate) importer: MakeImporter,
}

/// The declaration of a connector that comes along.
pub(crate) enum Declared {
    Shape(Shape),
    Json {
        connector_key: &'static str,
        text: &'static str,
    },
}

pub(crate) type MakeImporter =
    for<'a> fn(Input, &'a Acceptor<'a>, &'a Companions) -> Box<dyn Importer + 'a>;

/// Whether a name ends in this, whatever its case.
pub(crate) fn has_ending(name: &str, ending: &str) -> bool {
    let found = std::path::Path::new(name).extension();
    found.is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// A file that may be part of an export.
pub(crate) struct Candidate<'c> {
    /// Its beginning, without a byte order mark; cut anywhere.
    pub(crate) head: &'c [u8],
    /// Where it stands, in a folder or an archive; empty for a pipe.
    pub(crate) path: &'c str,
}

impl Candidate<'_> {
    /// The last part of the path, without an ending that tells compression.
    pub(crate) fn file_name(&self) -> &str {
        let name = self.path.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut packed = [".gz", ".zst"].iter();
        let plain = packed.find_map(|ending| name.strip_suffix(ending));
        plain.unwrap_or(name)
    }
}

/// What a recogniser says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Takes,
    /// Takes it, and before others, which refer to what it holds: the lower, the earlier.
    Before(u8),
    /// Takes it if nobody else knows it.
    Otherwise,
    /// Knows it, and leaves it, because of this.
    Leaves(&'static str),
    /// It looks like one, and is none, because of this.
    Misses(&'static str),
    Unlike,
}

impl From<bool> for Verdict {
    fn from(takes: bool) -> Self {
        if takes { Self::Takes } else { Self::Unlike }
    }
}

/// What a file is, as told by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    Export {
        export: Export,
        /// Its place among the files of the export: those of a lower rank are read before it.
        rank: u8,
    },
    /// Part of an export, but nothing that becomes a record, because of this.
    Left(&'static str),
}

/// What earlier files of the same import said that later ones refer to, such as the names of people.
#[derive(Debug, Default)]
pub struct Companions {
    names: RefCell<HashMap<String, String>>,
    /// Which records took which keys.
    pub(crate) claims: Claims,
    /// Files that are read together with others, by where they stand.
    files: RefCell<HashMap<String, TempPath>>,
    /// Whether pictures are kept beside what is said of them.
    pub(crate) keeps_pictures: bool,
}

/// By hash of a key: the hash of what the record says that took it. Several records may be called alike where a format has no better
/// name for them, also in several files of one import.
#[derive(Debug, Default, Clone)]
pub(crate) struct Claims(Rc<RefCell<HashMap<u64, u64>>>);

impl Claims {
    /// Takes a key for what says this, unless it is taken by something else.
    pub(crate) fn take(&self, key: &str, content: &impl Hash) -> bool {
        let hash_of = |value: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };
        let content = hash_of(&|hasher| content.hash(hasher));
        let key = hash_of(&|hasher| key.hash(hasher));
        *self.0.borrow_mut().entry(key).or_insert(content) == content
    }
}

impl Companions {
    /// Also keeps the pictures of photos.
    #[must_use]
    pub fn keeping_pictures(mut self, keeps: bool) -> Self {
        self.keeps_pictures = keeps;
        self
    }

    pub(crate) fn name(&self, id: &str) -> Option<String> {
        self.names.borrow().get(id).cloned()
    }

    /// Where a copy of a file is that was kept.
    pub(crate) fn file(&self, path: &str) -> Option<PathBuf> {
        let files = self.files.borrow();
        files.get(path).map(|file| file.to_path_buf())
    }

    pub(crate) fn keep(&self, path: &str, file: TempPath) {
        self.files.borrow_mut().insert(path.to_owned(), file);
    }

    pub(crate) fn learn(&self, id: &str, name: &str) {
        let mut names = self.names.borrow_mut();
        // A made-up export must not take all memory.
        if names.len() < 1_000_000 {
            names.insert(id.to_owned(), name.to_owned());
        }
    }
}

impl Export {
    pub const BANK: Self = Self(&bank::EXPORT);
    pub const BROWSER: Self = Self(&browser::EXPORT);
    pub const CHATGPT: Self = Self(&chatgpt::EXPORT);
    pub const CLAUDE: Self = Self(&claude::EXPORT);
    pub const CLAUDE_CODE: Self = Self(&agent_logs::CLAUDE_CODE);
    pub const CODEX: Self = Self(&agent_logs::CODEX);
    pub const GIT: Self = Self(&git::EXPORT);
    pub const GITHUB: Self = Self(&github::EXPORT);
    pub const DISCORD: Self = Self(&discord::EXPORT);
    pub const FACEBOOK: Self = Self(&meta::FACEBOOK);
    pub const INSTAGRAM: Self = Self(&meta::INSTAGRAM);
    pub const LINKEDIN: Self = Self(&linkedin::EXPORT);
    pub const MASTODON: Self = Self(&mastodon::EXPORT);
    pub const REDDIT: Self = Self(&reddit::EXPORT);
    pub const X: Self = Self(&x::EXPORT);
    pub const APPLE_HEALTH: Self = Self(&health::EXPORT);
    pub const APPLE_NOTES: Self = Self(&notes::APPLE_NOTES);
    pub const EVERNOTE: Self = Self(&notes::EVERNOTE);
    pub const GOOGLE_KEEP: Self = Self(&notes::KEEP);
    pub const NOTION: Self = Self(&notes::NOTION);
    pub const FEEDS: Self = Self(&media::FEEDS);
    pub const GOODREADS: Self = Self(&media::GOODREADS);
    pub const GOOGLE_ACTIVITY: Self = Self(&takeout::ACTIVITY);
    pub const GOOGLE_FIT: Self = Self(&takeout::FIT);
    pub const GOOGLE_PAY: Self = Self(&takeout::PAY);
    pub const GOOGLE_TIMELINE: Self = Self(&takeout::TIMELINE);
    pub const KINDLE: Self = Self(&media::KINDLE);
    pub const LETTERBOXD: Self = Self(&media::LETTERBOXD);
    pub const NETFLIX: Self = Self(&media::NETFLIX);
    pub const PHOTOS: Self = Self(&photos::EXPORT);
    pub const PLACES: Self = Self(&places::EXPORT);
    pub const SPOTIFY: Self = Self(&media::SPOTIFY);
    pub const DOCUMENTS: Self = Self(&documents::EXPORT);
    pub const MARKDOWN: Self = Self(&markdown::EXPORT);
    pub const SLACK: Self = Self(&slack::EXPORT);
    pub const CALENDAR: Self = Self(&calendar::EXPORT);
    pub const CONTACTS: Self = Self(&contacts::EXPORT);
    pub const MAIL: Self = Self(&mail::EXPORT);
    pub const TELEGRAM: Self = Self(&telegram::EXPORT);
    pub const WHATSAPP: Self = Self(&whatsapp::EXPORT);

    /// All of them, in the order in which they are asked whether a file is theirs.
    pub const ALL: &[Self] = &[
        Self::MAIL,
        Self::TELEGRAM,
        Self::WHATSAPP,
        Self::CALENDAR,
        Self::CONTACTS,
        Self::CHATGPT,
        Self::CLAUDE,
        Self::CLAUDE_CODE,
        Self::CODEX,
        Self::SLACK,
        Self::BANK,
        Self::GIT,
        Self::GITHUB,
        Self::BROWSER,
        Self::X,
        Self::FACEBOOK,
        Self::INSTAGRAM,
        Self::LINKEDIN,
        Self::REDDIT,
        Self::MASTODON,
        Self::DISCORD,
        Self::APPLE_HEALTH,
        Self::EVERNOTE,
        Self::GOOGLE_KEEP,
        Self::APPLE_NOTES,
        Self::NOTION,
        Self::GOOGLE_ACTIVITY,
        Self::GOOGLE_TIMELINE,
        Self::GOOGLE_FIT,
        Self::GOOGLE_PAY,
        Self::PLACES,
        Self::SPOTIFY,
        Self::NETFLIX,
        Self::GOODREADS,
        Self::LETTERBOXD,
        Self::KINDLE,
        Self::FEEDS,
        // Any text may be one of these, so they are asked last.
        Self::MARKDOWN,
        Self::DOCUMENTS,
        Self::PHOTOS,
    ];

    /// What people look for and is not taken, and why.
    pub const NOT_KNOWN: &[(&'static str, &'static str)] = &[(
        "Signal",
        "its backups are encrypted, in formats of its own that change; a table that another program made of one is imported like any table",
    )];

    /// Tells from the beginning of a file what it is. The content decides; the path, empty for a pipe, at most helps.
    pub fn recognise(head: &[u8], path: &str) -> Option<Recognised> {
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let candidate = Candidate { head, path };
        let mut left = None;
        for export in Self::ALL.iter().copied() {
            match (export.0.recognise)(&candidate) {
                Verdict::Takes => {
                    let rank = u8::MAX;
                    return Some(Recognised::Export { export, rank });
                }
                Verdict::Before(rank) => return Some(Recognised::Export { export, rank }),
                Verdict::Otherwise => {
                    let rank = u8::MAX;
                    return left.or(Some(Recognised::Export { export, rank }));
                }
                Verdict::Leaves(why) => left = left.or(Some(Recognised::Left(why))),
                Verdict::Misses(_) | Verdict::Unlike => {}
            }
        }
        left
    }

    /// Why a file that looks like an export is none, from each that it looks like.
    pub fn near_misses(head: &[u8], path: &str) -> Vec<String> {
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let candidate = Candidate { head, path };
        let verdicts = Self::ALL
            .iter()
            .map(|export| (export, (export.0.recognise)(&candidate)));
        let misses = verdicts.filter_map(|(export, verdict)| match verdict {
            Verdict::Misses(why) => Some(format!("it is not {}: {why}", export.title())),
            _ => None,
        });
        misses.collect()
    }

    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|export| export.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    pub fn title(self) -> &'static str {
        self.0.title
    }

    pub fn connector_key(self) -> &'static str {
        match &self.0.declaration {
            Declared::Shape(shape) => shape.key,
            Declared::Json { connector_key, .. } => connector_key,
        }
    }

    /// The declaration of its connector, JSON.
    pub fn declaration(self) -> Cow<'static, str> {
        match &self.0.declaration {
            Declared::Shape(shape) => shape.declaration().into(),
            Declared::Json { text, .. } => Cow::Borrowed(text),
        }
    }

    /// How people get it.
    pub fn origin(self) -> &'static str {
        self.0.origin
    }

    /// What of it becomes records.
    pub fn contents(self) -> &'static str {
        self.0.contents
    }

    /// What makes of a key that cannot stand in a handle one that can.
    pub(crate) fn readable_key(self) -> fn(&str) -> String {
        if self == Self::CALENDAR {
            calendar::readable_key
        } else {
            readable_key::readable_key
        }
    }

    pub fn importer<'a>(
        self,
        input: Input,
        acceptor: &'a Acceptor<'a>,
        companions: &'a Companions,
    ) -> Box<dyn Importer + 'a> {
        (self.0.importer)(input, acceptor, companions)
    }

    /// Another key under which a later export may bring the same record, though the owner deleted it and everything beside
    /// it that tells its own key.
    pub fn other_key(
        connector: &str,
        stream: &str,
        key: &RecordKey,
        body: &str,
    ) -> Option<RecordKey> {
        let is_whatsapp = connector == Self::WHATSAPP.connector_key();
        let other =
            whatsapp::nameless_key(key, body).filter(|_| is_whatsapp && stream == "messages");
        other.filter(|other| other != key)
    }

    pub(crate) fn all_titles() -> String {
        let titles: Vec<&str> = Self::ALL.iter().map(|export| export.title()).collect();
        titles.join(", ")
    }
}

impl PartialEq for Export {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Export {}

impl Hash for Export {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn every_export_brings_a_declaration_of_its_connector() {
        for export in Export::ALL {
            let declaration = export.bundled().unwrap();
            assert_eq!(
                declaration.connector_key().as_str(),
                export.connector_key(),
                "{export:?}"
            );
            assert_eq!(Export::parse(export.as_str()), Some(*export));
        }
    }

    #[test]
    fn lists_of_texts_are_filtered_and_grouped_by_and_those_of_people_and_topics_are_searched() {
        let searched = [
            "to",
            "cc",
            "labels",
            "tags",
            "categories",
            "members",
            "participants",
            "people",
            "assignees",
            "shelves",
            "attachments",
            "aliases",
        ];
        // Times that an event leaves out or adds are read with its rule.
        let plain = ["excluded_times", "further_times"];
        for export in Export::ALL {
            let declaration: serde_json::Value =
                serde_json::from_str(&export.declaration()).unwrap();
            for stream in declaration["streams"].as_array().unwrap() {
                let query = &stream["query"];
                let has = |list: &serde_json::Value, name: &str| {
                    let list = list.as_array().cloned().unwrap_or_default();
                    list.iter().any(|one| one == name)
                };
                for (name, schema) in stream["schema"]["properties"].as_object().unwrap() {
                    let name = name.as_str();
                    if schema["items"]["type"] != "string" || plain.contains(&name) {
                        continue;
                    }
                    let what = format!("{export:?} {} {name}", stream["name"]);
                    assert!(has(&query["range_filters"][name], "contains"), "{what}");
                    if searched.contains(&name) {
                        assert!(has(&query["search"]["lexical_fields"], name), "{what}");
                        assert!(has(&query["aggregations"]["group_by"], name), "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn exports_are_told_by_their_content() {
        for (head, file_name, expected) in [
            (
                "From - Mon Mar 04 10:11:12 2024\nSubject: x\n",
                "Inbox",
                Some(Export::MAIL),
            ),
            (
                "\u{feff}From 17@xxx Mon Mar 04 10:11:12 +0000 2024\r\nX-GM-THRID: 17\r\n",
                "x.txt",
                Some(Export::MAIL),
            ),
            (
                "Return-Path: <a@b>\nReceived: from c\n\tby d\nSubject: x\n\nHello",
                "x",
                Some(Export::MAIL),
            ),
            ("Subject: only one\n\nHello", "x.eml", Some(Export::MAIL)),
            ("", "Trash.mbox", Some(Export::MAIL)),
            (
                "{\n \"name\": \"A\",\n \"type\": \"bot_chat\",\n \"id\": 1,\n \"messages\": [",
                "x.json",
                Some(Export::TELEGRAM),
            ),
            (
                "\u{feff}[31.12.23, 21:15:07] A: \u{200e}Messages",
                "x",
                Some(Export::WHATSAPP),
            ),
            (
                "\u{feff}\r\nBegin:vCalendar\r\n",
                "x.txt",
                Some(Export::CALENDAR),
            ),
            ("BEGIN:VCALENDAR", "", Some(Export::CALENDAR)),
            ("BEGIN:VCARD\nVERSION:2.1\n", "x", Some(Export::CONTACTS)),
            ("BEGIN:VCARDS\n", "x.vcf", None),
            ("BEGIN:VEVENT\n", "x.ics", None),
            ("Subject: only one\n\nHello", "notes", None),
            ("From here on it is a story.\nOnce: upon\n", "story", None),
            (
                "Dear diary,\nFrom: nobody\nTo: nobody\n",
                "diary.txt",
                Some(Export::DOCUMENTS),
            ),
            ("{\"subject\":\"x\"}\n", "x.eml", None),
            ("id,subject\n1,x\n", "x", None),
            ("", "x", None),
            ("", "", None),
        ] {
            let rank = u8::MAX;
            assert_eq!(
                Export::recognise(head.as_bytes(), file_name),
                expected.map(|export| Recognised::Export { export, rank }),
                "{file_name}: {head}"
            );
        }
    }
}
