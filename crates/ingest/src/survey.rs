//! What of the files of one import is taken: those that stand inside of an export belong to it, whatever they would be by themselves; and
//! which account an export is of, where its files say so.

use std::collections::HashMap;

use crate::exports::Export;
use crate::importers::browser::is_called_history;
use crate::input::Input;

/// Endings of files that hold no text. They belong to messages and posts, which name them.
const MEDIA: [&str; 24] = [
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".heic", ".bmp", ".tiff", ".svg", ".mp4", ".mov",
    ".avi", ".mkv", ".webm", ".3gp", ".mp3", ".m4a", ".aac", ".ogg", ".opus", ".oga", ".wav",
    ".flac", ".tgs",
];

/// Why pictures and what else is no text are left.
pub const MEDIA_LEFT: &str = "pictures, sounds and films";
/// Why files are left that came with messages or posts.
const BESIDE_LEFT: &str = "files that came with messages or posts, which name them; each is imported when it is named by itself";

/// Exports beside which a picture is one by itself.
const BESIDE_PICTURES: [Export; 5] = [
    Export::DOCUMENTS,
    Export::MARKDOWN,
    Export::PLACES,
    Export::GIT,
    Export::PHOTOS,
];

/// What people send each other.
const SENT: [Export; 4] = [
    Export::CONTACTS,
    Export::CALENDAR,
    Export::DOCUMENTS,
    Export::MARKDOWN,
];

/// Exports that bring what was sent along.
const SENDING: [Export; 13] = [
    Export::WHATSAPP,
    Export::TELEGRAM,
    Export::CHATGPT,
    Export::CLAUDE,
    Export::SLACK,
    Export::X,
    Export::FACEBOOK,
    Export::INSTAGRAM,
    Export::LINKEDIN,
    Export::MASTODON,
    Export::DISCORD,
    // These bring words about themselves.
    Export::SPOTIFY,
    Export::NETFLIX,
];

/// Exports whose files lie among others where nobody packed them.
const LOOSE: [Export; 4] = [
    Export::CHATGPT,
    Export::CLAUDE,
    Export::SPOTIFY,
    Export::NETFLIX,
];

/// What folders beside a history are called, or begin with, in which extensions and pages keep their files.
const OF_EXTENSIONS: [&str; 8] = [
    "extension",
    "browser-extension-data",
    "web applications",
    "service worker",
    "file system",
    "storage",
    "snapshots",
    "gmp-",
];
/// What would be taken for the owner's there.
const BROUGHT_ALONG: [Export; 3] = [Export::DOCUMENTS, Export::MARKDOWN, Export::PHOTOS];
const PROFILE_LEFT: &str = "files that a browser or its extensions keep in its profile";

/// Folders that Telegram puts beside its file.
const OF_TELEGRAM: [&str; 5] = ["chats", "contacts", "files", "stories", "video_files"];

/// Whether a file holds no text, as its name says.
pub fn is_media(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    MEDIA.iter().any(|ending| lower.ends_with(ending))
}

/// A file of an import.
pub struct Found<'f> {
    pub path: &'f str,
    /// Nothing if it is no known export.
    pub export: Option<Export>,
    /// Whether it was found in a folder or an archive; what was named itself is always taken.
    pub is_inside: bool,
    pub is_packed: bool,
}

/// Why each of the files is left; nothing for those that are taken.
pub fn left_beside(files: &[Found<'_>], takes_pictures: bool) -> Vec<Option<&'static str>> {
    let exports = || files.iter().filter_map(|file| file.export);
    let has_others = exports().any(|export| !BESIDE_PICTURES.contains(&export));
    let mut folders: HashMap<&str, bool> = HashMap::new();
    for (folder, is_whole) in files.iter().filter_map(reach) {
        *folders.entry(folder).or_default() |= is_whole;
    }
    let is_beside = |path: &str| {
        path.match_indices('/').any(|(at, _)| {
            let (folder, rest) = path.split_at(at);
            let (inside, _) = rest
                .trim_start_matches('/')
                .split_once('/')
                .unwrap_or_default();
            match folders.get(folder) {
                Some(true) => true,
                Some(false) => OF_TELEGRAM.contains(&inside),
                None => false,
            }
        })
    };
    let profiles: Vec<&str> = files.iter().filter_map(profile).collect();
    let is_in_profile = |path: &str| {
        let mut inside = profiles.iter().filter_map(|folder| {
            let inside = path.strip_prefix(folder)?.strip_prefix('/')?;
            Some(inside.split_once('/')?.0.to_lowercase())
        });
        inside.any(|folder| OF_EXTENSIONS.iter().any(|begin| folder.starts_with(begin)))
    };
    let left = |file: &Found<'_>| {
        let export = file.export.filter(|_| file.is_inside)?;
        if BROUGHT_ALONG.contains(&export) && is_in_profile(file.path) {
            return Some(PROFILE_LEFT);
        }
        if export == Export::PHOTOS {
            return (has_others && !takes_pictures).then_some(MEDIA_LEFT);
        }
        let was_sent = SENT.contains(&export) && is_beside(file.path);
        was_sent.then_some(BESIDE_LEFT)
    };
    files.iter().map(left).collect()
}

/// The folder that is all of an export, or of which some folders are.
fn reach<'f>(file: &Found<'f>) -> Option<(&'f str, bool)> {
    let export = file.export.filter(|export| SENDING.contains(export))?;
    let (folder, name) = file.path.rsplit_once('/')?;
    // Single files like these lie among others.
    let is_loose = (export == Export::WHATSAPP && name != "_chat.txt") || LOOSE.contains(&export);
    if !file.is_inside || (is_loose && !file.is_packed) {
        return None;
    }
    Some((folder, file.is_packed || export != Export::TELEGRAM))
}

/// The profile of a browser in which a history lies.
fn profile<'f>(file: &Found<'f>) -> Option<&'f str> {
    let (folder, name) = file.path.rsplit_once('/')?;
    let is_profile = file.export == Some(Export::BROWSER) && is_called_history(name);
    (is_profile && file.is_inside).then_some(folder)
}

/// The accounts that files name.
#[derive(Default)]
pub struct Accounts(Vec<(Export, String)>);

impl Accounts {
    pub fn note(&mut self, input: &Input) {
        if let Some(named) = input.account()
            && !self.0.contains(named)
        {
            self.0.push(named.clone());
        }
    }

    /// The account that the files of an export name; nothing if they name several.
    pub fn of(&self, export: Export) -> Option<&str> {
        let mut accounts = self.0.iter().filter(|(of, _)| *of == export);
        match (accounts.next(), accounts.next()) {
            (Some((_, only)), None) => Some(only),
            _ => None,
        }
    }
}

/// What the connection of an account is called, after the display name of its connector.
pub fn connection_name(connector: &str, account: Option<&str>) -> String {
    match account {
        Some(account) => format!("{connector} ({account})"),
        None => connector.to_owned(),
    }
}

/// Which connections of a connector may be meant for an account: the one that is called after it, else those that are called after none.
pub fn of_account<C>(
    mut connections: Vec<C>,
    name_of: impl Fn(&C) -> &str,
    (connector, account): (&str, Option<&str>),
) -> Vec<C> {
    if account.is_none() {
        return connections;
    }
    let own = connection_name(connector, account);
    if let Some(found) = connections.iter().position(|one| name_of(one) == own) {
        return vec![connections.swap_remove(found)];
    }
    let begin = format!("{connector} (");
    connections.retain(|one| !(name_of(one).starts_with(&begin) && name_of(one).ends_with(')')));
    connections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(files: &[(&str, Export, bool)]) -> Vec<usize> {
        let found = |(path, export, is_packed): &(&'static str, Export, bool)| Found {
            path,
            export: Some(*export),
            is_inside: true,
            is_packed: *is_packed,
        };
        let files: Vec<(&'static str, Export, bool)> = files
            .iter()
            .map(|(path, export, packed)| (&*path.to_string().leak(), *export, *packed))
            .collect();
        let found: Vec<Found<'_>> = files.iter().map(found).collect();
        let left = left_beside(&found, false).into_iter().enumerate();
        left.filter_map(|(at, why)| why.map(|_| at)).collect()
    }

    #[test]
    fn what_was_sent_belongs_to_the_export_that_it_stands_in() {
        let (card, page) = (Export::CONTACTS, Export::DOCUMENTS);
        assert_eq!(
            left(&[
                ("a/x.zip/_chat.txt", Export::WHATSAPP, true),
                ("a/x.zip/1-Noor.vcf", card, true),
                ("a/x.zip/deep/plan.pdf", page, true),
                ("a/plan.pdf", page, false),
                ("a/x.zip.pdf", page, false),
            ]),
            [1, 2]
        );
        assert_eq!(
            left(&[
                (
                    "a/x.zip/Streaming_History_Audio_2024.json",
                    Export::SPOTIFY,
                    true
                ),
                ("a/x.zip/ReadMeFirst.pdf", page, true),
                ("b/StreamingHistory0.json", Export::SPOTIFY, false),
                ("b/plan.pdf", page, false),
            ]),
            [1]
        );
        assert_eq!(
            left(&[
                ("a/result.json", Export::TELEGRAM, false),
                ("a/files/plan.pdf", page, false),
                ("a/notes/plan.md", Export::MARKDOWN, false),
                ("a/files", page, false),
            ]),
            [1]
        );
        // A chat among downloads says nothing of what lies beside it.
        assert_eq!(
            left(&[
                ("a/WhatsApp Chat with Noor.txt", Export::WHATSAPP, false),
                ("a/plan.pdf", page, false),
                ("a/takeout.mbox", Export::MAIL, false),
                ("a/card.vcf", card, false),
            ]),
            [] as [usize; 0]
        );
    }

    #[test]
    fn what_lies_in_the_profile_of_a_browser_belongs_to_it() {
        let (page, history) = (Export::DOCUMENTS, Export::BROWSER);
        assert_eq!(
            left(&[
                ("a/Default/History", history, false),
                ("a/Default/Bookmarks", history, false),
                ("a/Default/Extensions/x/popup.html", page, false),
                ("a/Default/Extensions/x/README.md", Export::MARKDOWN, false),
                ("a/Default/Mail/Inbox", Export::MAIL, false),
                ("a/Default.html", page, false),
                // A history may have been copied to where other things are.
                ("a/Default/plan.pdf", page, false),
                ("a/Default/Letters/storage.html", page, false),
                // Bookmarks that were exported lie among other files.
                ("a/bookmarks.html", history, false),
            ]),
            [2, 3]
        );
    }

    #[test]
    fn pictures_are_taken_where_nothing_else_is_told_of_them() {
        let photo = ("a/x.jpg", Export::PHOTOS, false);
        assert_eq!(
            left(&[photo, ("a/b.md", Export::MARKDOWN, false)]),
            [] as [usize; 0]
        );
        assert_eq!(left(&[photo, ("a/b.mbox", Export::MAIL, false)]), [0]);
    }

    #[test]
    fn an_account_has_its_own_connection_or_one_of_nobody() {
        let named =
            |all: &[&'static str], account| of_account(all.to_vec(), |name| *name, ("X", account));
        assert_eq!(named(&["X", "X (ida)"], Some("ida")), ["X (ida)"]);
        assert_eq!(named(&["X", "X (ida)"], Some("noor")), ["X"]);
        assert_eq!(named(&["X", "X (ida)"], None), ["X", "X (ida)"]);
    }
}
