//! Which files are of an archive of Meta, and of which of the two.

use super::lists::{LISTS, Listed, OLDER_LISTS};
use crate::exports::{Candidate, Verdict, has_ending};
use crate::importers::outline::first_members;

/// Whether a file is of Instagram's archive. What both write, such as conversations, is told by the folders.
pub(super) fn is_of_instagram(file: &Candidate<'_>) -> bool {
    let (members, _) = first_members(file.head, "");
    let has = |wanted: &str| members.iter().any(|name| name == wanted);
    let is_only_there = has("string_list_data")
        || has("string_map_data")
        || LISTS.iter().any(|(name, listed)| {
            matches!(listed, Listed::Named(_) | Listed::Pictures(_)) && has(name)
        })
        || is_pictures(file.head, &members);
    is_only_there
        || match service_of_path(file.path) {
            Some(is_instagram) => is_instagram,
            None => OF_INSTAGRAM.iter().any(|mark| contains(file.head, mark)),
        }
}

/// What only messages of Instagram hold.
const OF_INSTAGRAM: [&str; 3] = [
    "your_instagram_activity/",
    "\"original_content_owner\"",
    "\"Instagram User\"",
];

/// Whether the folders are those of Instagram's archive or of Facebook's: the innermost that names one of the two decides. Folders of
/// conversations are called after people, who may be called anything.
fn service_of_path(path: &str) -> Option<bool> {
    let lower = path.to_ascii_lowercase();
    let folders = lower
        .rsplit_once("/messages/")
        .map_or(&*lower, |(folders, _)| folders);
    let (instagram, facebook) = (folders.rfind("instagram"), folders.rfind("facebook"));
    (instagram != facebook).then_some(instagram > facebook)
}

/// Whether it is a list of Instagram's posts.
fn is_pictures(head: &[u8], members: &[String]) -> bool {
    let is_list = head.trim_ascii_start().starts_with(b"[");
    let has = |name: &str| members.iter().any(|member| member == name);
    is_list && has("media") && contains(head, "\"creation_timestamp\"")
}

fn contains(head: &[u8], text: &str) -> bool {
    head.windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Whether it is a list of what Facebook notes with a time: posts, comments and reactions.
fn is_entries(file: &Candidate<'_>, members: &[String]) -> bool {
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_list = file.head.trim_ascii_start().starts_with(b"[");
    if !is_list || !has("timestamp") || !(has("data") || has("attachments")) {
        return false;
    }
    // Of such lists there are many elsewhere.
    let path = file.path.to_ascii_lowercase();
    ["facebook", "your_posts", "likes_and_reactions"]
        .iter()
        .any(|name| path.contains(name))
        || [
            "\"post\"",
            "\"update_timestamp\"",
            "\"reaction\"",
            "\"external_context\"",
        ]
        .iter()
        .any(|name| contains(file.head, name))
}

/// Whether it is a list of an older archive: a lone member, and entries with a time.
fn is_older_list(file: &Candidate<'_>, members: &[String]) -> bool {
    let [member] = members else {
        return false;
    };
    let is_told = |(name, _, mark): &(&str, Listed, &str)| {
        member == name && contains(file.head, mark) && contains(file.head, "\"timestamp\"")
    };
    let is_of_facebook = file.path.to_ascii_lowercase().contains("facebook");
    let is_friends = member == "friends";
    OLDER_LISTS.iter().any(is_told) && (is_of_facebook || !is_friends)
}

/// Whether it is a list of reactions with labels. Other lists of the archive have labels too.
fn is_labelled_reactions(file: &Candidate<'_>, members: &[String]) -> bool {
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_told = file.file_name().contains("reactions") || contains(file.head, "\"Reaction\"");
    has("label_values") && has("timestamp") && is_told
}

/// Folders that only these archives have.
const FOLDERS: [&str; 11] = [
    "your_facebook_activity/",
    "your_instagram_activity/",
    "ads_information/",
    "apps_and_websites_off_of_",
    "logged_information/",
    "security_and_login_information/",
    "connections/contacts/",
    "connections/followers",
    "connections/friends/",
    "preferences/your_topics/",
    "/personal_information/",
];
/// Files that stand beside conversations, also where these stand alone.
const BESIDE_MESSAGES: [&str; 3] = [
    "autofill_information.json",
    "secret_conversations.json",
    "support_messages.json",
];

/// Whether it is a page, as these archives have them unless they are asked for as JSON.
fn is_page(path: &str) -> bool {
    let folder = path.rsplit('/').nth(2).unwrap_or_default();
    let is_of_messages = path.contains("/message_")
        && [
            "inbox",
            "archived_threads",
            "filtered_threads",
            "message_requests",
        ]
        .contains(&folder);
    has_ending(path, "html")
        && (is_of_messages || FOLDERS.iter().any(|folder| path.contains(folder)))
}

/// Whether it is another part of an archive, as its folders say; the archive itself is called after the service and the account.
fn is_left(file: &Candidate<'_>, path: &str) -> bool {
    let is_json = has_ending(path, "json");
    let mut parts = path.split('/');
    let is_called = |part: &str| part.starts_with("facebook-") || part.starts_with("instagram-");
    let is_inside = parts.any(is_called);
    let is_page = file.file_name() == "start_here.html" || file.file_name() == "no-data.txt";
    let is_of_meta = || contains(file.head, "Facebook") || contains(file.head, "Instagram");
    let is_folder = FOLDERS.iter().any(|folder| path.contains(folder));
    (is_json && (is_inside || is_folder || BESIDE_MESSAGES.contains(&file.file_name())))
        || (is_page && (is_inside || is_of_meta()))
}

pub(super) fn recognise(file: &Candidate<'_>) -> Verdict {
    let (members, _) = first_members(file.head, "");
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_known = (has("participants") && has("messages"))
        || LISTS.iter().any(|(name, _)| has(name))
        || has("string_list_data")
        || has("string_map_data")
        || is_pictures(file.head, &members)
        || is_entries(file, &members)
        || is_older_list(file, &members)
        || is_labelled_reactions(file, &members);
    if is_known {
        return Verdict::Takes;
    }
    let path = file.path.to_ascii_lowercase();
    if is_page(&path) {
        return Verdict::Leaves(
            "pages of an archive of Meta; ask for it as JSON, of which messages and posts are read",
        );
    }
    if is_left(file, &path) {
        return Verdict::Leaves("parts of an archive of Meta that hold no posts or messages");
    }
    Verdict::Unlike
}
