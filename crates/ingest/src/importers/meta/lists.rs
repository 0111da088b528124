//! Lists of Meta's archives, by the member in which they stand, and what their entries are.

/// Members of the lists that are read of an object, and what their entries are.
pub(super) const LISTS: [(&str, Listed); 26] = [
    ("comments_v2", Listed::Comments),
    ("group_comments_v2", Listed::Comments),
    ("group_posts_v2", Listed::Entries),
    ("reactions_v2", Listed::Entries),
    ("saves_v2", Listed::Saved),
    ("friends_v2", Listed::People("friend")),
    ("following_v3", Listed::People("following")),
    ("followers_v3", Listed::People("follower")),
    ("relationships_following", Listed::Named("following")),
    ("relationships_followers", Listed::Named("follower")),
    ("relationships_close_friends", Listed::Named("close_friend")),
    ("relationships_blocked_users", Listed::Named("blocked")),
    (
        "relationships_restricted_users",
        Listed::Named("restricted"),
    ),
    (
        "relationships_follow_requests_sent",
        Listed::Named("requested"),
    ),
    (
        "relationships_unfollowed_users",
        Listed::Named("unfollowed"),
    ),
    ("ig_stories", Listed::Pictures("story")),
    ("ig_reels_media", Listed::Pictures("reel")),
    ("ig_igtv_media", Listed::Pictures("video")),
    ("ig_archived_post_media", Listed::Pictures("post")),
    ("ig_other_media", Listed::Pictures("post")),
    ("text_post_app_text_posts", Listed::Pictures("thread")),
    ("likes_media_likes", Listed::Named("like")),
    ("likes_comment_likes", Listed::Named("comment_like")),
    ("saved_saved_media", Listed::Named("saved")),
    ("comments_reels_comments", Listed::Named("comment")),
    ("comments_media_comments", Listed::Named("comment")),
];

/// The same in archives of before 2021, whose names say little; what tells a file with one of them stands in its entries.
pub(super) const OLDER_LISTS: [(&str, Listed, &str); 3] = [
    ("comments", Listed::Comments, "\"comment\""),
    ("reactions", Listed::Entries, "\"reaction\""),
    ("friends", Listed::People("friend"), "\"name\""),
];

/// The members of all these lists.
#[expect(
    clippy::indexing_slicing,
    reason = "an index beyond an end would not compile"
)]
pub(super) const MEMBERS: [&str; LISTS.len() + OLDER_LISTS.len()] = {
    let mut members = [""; LISTS.len() + OLDER_LISTS.len()];
    let mut at = 0;
    while at < members.len() {
        members[at] = if at < LISTS.len() {
            LISTS[at].0
        } else {
            OLDER_LISTS[at - LISTS.len()].0
        };
        at += 1;
    }
    members
};

/// What the entries of a member are.
pub(super) fn listed_in(member: &str) -> Option<Listed> {
    let older = OLDER_LISTS.iter().map(|(name, listed, _)| (*name, *listed));
    let mut all = LISTS.iter().copied().chain(older);
    all.find_map(|(name, listed)| (name == member).then_some(listed))
}

/// What Instagram's lists of people are of.
pub(super) const OF_PEOPLE: [&str; 7] = [
    "follower",
    "following",
    "close_friend",
    "blocked",
    "restricted",
    "requested",
    "unfollowed",
];

/// What stands in a list.
#[derive(Clone, Copy)]
pub(super) enum Listed {
    /// Posts and reactions as Facebook writes them.
    Entries,
    /// Comments as Facebook writes them; some are only a picture.
    Comments,
    /// What was saved, as Facebook writes it.
    Saved,
    /// People by name, as Facebook writes them.
    People(&'static str),
    /// What Instagram names with an address or with labels.
    Named(&'static str),
    /// What Instagram shows, with its words.
    Pictures(&'static str),
}
