//! Podcasts and feeds one follows (OPML).

use serde_json::json;

use crate::exports::{Candidate, Declared, Known, Verdict, has_ending};
use crate::importers::json_members::some_text;
use crate::importers::pieces::{Converter, Cut, Made};
use crate::importers::xml::{Node, XmlCut};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "feeds",
    title: "podcasts and feeds (opml)",
    declaration: Declared::Shape(SHAPE),
    origin: "podcast apps and feed readers: Settings > Export subscriptions as OPML",
    contents: "what one follows, with its folders; not what was heard or read",
    recognise,
    importer: |input, acceptor, _| {
        let cut = Cut::Xml(XmlCut {
            pieces: &["outline"],
            without: &[],
        });
        cut.importer(input.into_reader(), acceptor, Feeds)
    },
};

const SHAPE: Shape = Shape {
    key: "feeds",
    name: "Feeds",
    streams: &[Stream {
        name: "feeds",
        label: "Feeds",
        about: "Podcasts and feeds that are followed.",
        time: None,
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched(),
            shape::text("folder").searched().grouped(),
            shape::text("text").role("body").searched(),
            shape::text("url").role("url").about("Its page."),
            shape::text("feed_url").searched(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let head = String::from_utf8_lossy(file.head);
    match file.file_name() {
        _ if head.contains("<opml") => Verdict::Takes,
        name if has_ending(name, "opml") => Verdict::Misses("it has no element opml"),
        _ => Verdict::Unlike,
    }
}

struct Feeds;

impl Converter for Feeds {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        add(&Node::parse(piece)?, "", made);
        Ok(())
    }
}

/// Adds a feed, or those of a folder.
fn add(outline: &Node, folder: &str, made: &mut Made) {
    let title = outline.attribute("title").or(outline.attribute("text"));
    if let Some(feed) = outline.attribute("xmlUrl") {
        let about = outline.attribute("description");
        made.add(
            "feeds",
            json!({
                "id": readable_key(feed),
                "title": title,
                "folder": some_text(folder.to_owned()),
                "text": about,
                "url": outline.attribute("htmlUrl"),
                "feed_url": feed,
            }),
        );
    }
    let folder = [folder, title.unwrap_or_default()].join("/");
    for inside in outline.named("outline") {
        add(inside, folder.trim_matches('/'), made);
    }
}
