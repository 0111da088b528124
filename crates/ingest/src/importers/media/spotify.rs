//! Spotify's history of what was played, in the short form of the account's data and in the extended one.

use serde_json::{Value, json};

use super::id;
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::{members_of, moment, text};
use crate::importers::pieces::{Converter, Cut, Made, malformed, parse_json};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "spotify",
    title: "a Spotify history (zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "spotify.com: Account > Account privacy > Download your data, best the extended streaming history; the link comes by mail",
    contents: "what was played and for how long",
    recognise,
    importer: |input, acceptor, _| Cut::Elements.importer(input.into_reader(), acceptor, Plays),
};

const SHAPE: Shape = Shape {
    key: "spotify",
    name: "Spotify",
    streams: &[Stream {
        name: "plays",
        label: "Plays",
        about: "What was played.",
        time: Some("ended_at"),
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched().grouped(),
            shape::text("artist")
                .role("author")
                .searched()
                .grouped()
                .about("Or the podcast."),
            shape::text("album").searched().grouped(),
            shape::text("kind")
                .grouped()
                .about("music, podcast or audiobook."),
            shape::time("ended_at").about("When it ended."),
            shape::number("seconds"),
            shape::text("url").role("url"),
            shape::text("platform").grouped(),
            shape::boolean("is_skipped").grouped(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let members = members_of(file.head);
    let has = |name: &str| members.iter().any(|one| one == name);
    let name = file.file_name();
    match name {
        _ if has("ts") && has("ms_played") => Verdict::Takes,
        _ if has("endTime") && has("msPlayed") => Verdict::Takes,
        _ if name.starts_with("Playlist") && has("playlists") => {
            Verdict::Leaves("playlists of Spotify")
        }
        "YourLibrary.json" if has("tracks") => Verdict::Leaves("the library of Spotify"),
        _ if name.starts_with("Streaming_History") || name.starts_with("StreamingHistory") => {
            Verdict::Misses("its entries do not say when and how long they were played")
        }
        _ => Verdict::Unlike,
    }
}

struct Plays;

impl Converter for Plays {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let play = parse_json(piece)?;
        let first = |names: &[&str]| names.iter().find_map(|name| text(&play, name));
        // The short form has minutes only, in UTC.
        let short = text(&play, "endTime").map(|time| format!("{}:00Z", time.replace(' ', "T")));
        let short = short.filter(|time| contract::time::Instant::parse(time).is_some());
        let Some(ended_at) = moment(&play, "ts").or(short) else {
            return Err(malformed("the entry does not say when it was played"));
        };
        let title = first(&[
            "master_metadata_track_name",
            "trackName",
            "episode_name",
            "episodeName",
            "audiobook_chapter_title",
            "chapterName",
            "audiobookName",
        ]);
        let artist = first(&[
            "master_metadata_album_artist_name",
            "artistName",
            "episode_show_name",
            "podcastName",
            "audiobook_title",
            "authorName",
        ]);
        let uri = first(&["spotify_track_uri", "spotify_episode_uri", "audiobook_uri"]);
        let kind = match () {
            () if first(&["episode_name", "podcastName"]).is_some() => "podcast",
            () if first(&["audiobook_title", "audiobookName"]).is_some() => "audiobook",
            () => "music",
        };
        let millis = play.get("ms_played").or(play.get("msPlayed"));
        let millis = millis.and_then(Value::as_f64);
        let what = [title, artist].map(Option::unwrap_or_default).join("\n");
        made.add(
            "plays",
            json!({
                "id": id(&ended_at, &format!("{what}\n{millis:?}")),
                "title": title,
                "artist": artist,
                "album": first(&["master_metadata_album_album_name", "audiobookName"]),
                "kind": kind,
                "ended_at": ended_at,
                "seconds": millis.map(|millis| millis / 1000.0),
                "url": uri.and_then(address),
                "platform": text(&play, "platform"),
                "is_skipped": play.get("skipped").and_then(Value::as_bool),
            }),
        );
        Ok(())
    }
}

/// `spotify:track:ID` as an address.
fn address(uri: &str) -> Option<String> {
    let (kind, id) = uri.strip_prefix("spotify:")?.split_once(':')?;
    Some(format!("https://open.spotify.com/{kind}/{id}"))
}
