//! Which files are of an archive of Meta, and of which of the two.

use super::{LISTS, Listed};
use crate::exports::{Candidate, Verdict};
use crate::importers::outline::first_members;

/// Whether a file is of Instagram's archive. What both write, such as conversations, is told by the folders.
pub(super) fn is_of_instagram(file: &Candidate<'_>) -> bool {
    let (members, _) = first_members(file.head, "");
    let has = |wanted: &str| members.iter().any(|name| name == wanted);
    let is_only_there = has("string_list_data")
        || has("string_map_data")
        || LISTS
            .iter()
            .any(|(name, listed)| matches!(listed, Listed::Named(_)) && has(name))
        || is_pictures(file.head, &members);
    is_only_there || is_path_of_instagram(file.path)
}

/// Whether the folders are those of Instagram's archive: the innermost that names one of the two decides. Folders of conversations
/// are called after people, who may be called anything.
fn is_path_of_instagram(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let folders = lower
        .rsplit_once("/messages/")
        .map_or(&*lower, |(folders, _)| folders);
    let last = |name: &str| folders.rfind(name);
    last("instagram") > last("facebook")
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

pub(super) fn recognise(file: &Candidate<'_>) -> Verdict {
    let (members, _) = first_members(file.head, "");
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_known = (has("participants") && has("messages"))
        || LISTS.iter().any(|(name, _)| has(name))
        || has("string_list_data")
        || has("string_map_data")
        || is_pictures(file.head, &members)
        || is_entries(file, &members);
    if is_known {
        return Verdict::Takes;
    }
    let path = file.path.to_ascii_lowercase();
    let is_called = |ending: &str| path.ends_with(ending);
    let is_archive = ["your_facebook_activity", "your_instagram_activity"];
    if is_archive.iter().any(|folder| path.contains(folder)) && is_called(".json") {
        return Verdict::Leaves("parts of an archive of Meta that hold no posts or messages");
    }
    if is_called(".html") && (path.contains("message_") || path.contains("your_posts")) {
        return Verdict::Misses("it is a page; ask for the archive as JSON");
    }
    Verdict::Unlike
}
