//! Letterboxd: a table for each thing that can be said of a film.

use serde_json::{Number, json};

use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::html;
use crate::importers::json_members::{some_list, text};
use crate::importers::pieces::{Converter, Cut, Made, has_columns, malformed, parse_json};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "letterboxd",
    title: "a Letterboxd export (zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "letterboxd.com: Settings > Data > Export your data",
    contents: "diary, reviews, ratings, likes, films watched and to be watched; lists and comments are left",
    recognise,
    importer: |input, acceptor, _| {
        let converter = Films {
            list: input.stem().to_owned(),
        };
        Cut::Rows.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "letterboxd",
    name: "Letterboxd",
    streams: &[Stream {
        name: "films",
        label: "Films",
        about: "What was said of films; of one film there can be several.",
        time: Some("day"),
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched().grouped(),
            shape::integer("year"),
            shape::text("list")
                .grouped()
                .about("diary, reviews, ratings, watched, watchlist or likes."),
            shape::date("day").about("When it was watched, or put on the list."),
            shape::number("rating").about("From 0.5 to 5."),
            shape::boolean("is_rewatch").grouped(),
            shape::texts("tags").searched(),
            shape::text("text").role("body").searched(),
            shape::text("url").role("url"),
        ],
        children: &[],
    }],
};

/// What other files of the archive begin with, and what they are.
const OTHERS: [(&str, &str); 3] = [
    ("Letterboxd list export", "lists of Letterboxd"),
    ("Date,Content,Comment", "comments on Letterboxd"),
    ("Date Joined,Username,", "the profile at Letterboxd"),
];

fn recognise(file: &Candidate<'_>) -> Verdict {
    let mut others = OTHERS.iter();
    if let Some((_, why)) = others.find(|(begin, _)| file.head.starts_with(begin.as_bytes())) {
        return Verdict::Leaves(why);
    }
    let has = |columns: &[&str]| has_columns(file.head, columns);
    if !has(&["Date", "Letterboxd URI"]) {
        return Verdict::Unlike;
    }
    let mut folders = file.path.rsplit('/').skip(1);
    match folders.next() {
        _ if !has(&["Name"]) => Verdict::Leaves("likes of lists and reviews at Letterboxd"),
        Some("deleted" | "orphaned") => Verdict::Leaves("what was removed from Letterboxd"),
        Some("lists") => Verdict::Leaves("lists of Letterboxd"),
        _ => Verdict::Takes,
    }
}

struct Films {
    list: String,
}

impl Converter for Films {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let row = parse_json(piece)?;
        let Some((name, url)) = text(&row, "Name").zip(text(&row, "Letterboxd URI")) else {
            return Err(malformed("the row has no name or no address"));
        };
        let list = match self.list.as_str() {
            "films" => "likes",
            list => list,
        };
        let day = text(&row, "Watched Date").or(text(&row, "Date"));
        let day = day.filter(|day| day.parse::<jiff::civil::Date>().is_ok());
        let tags = text(&row, "Tags").unwrap_or_default().split(',');
        let tags = tags.map(|tag| tag.trim().to_owned());
        let rewatch = text(&row, "Rewatch").map(|rewatch| rewatch == "Yes");
        made.add(
            "films",
            json!({
                "id": readable_key(&format!("{list}-{name}-{}", short_hash(url))),
                "title": name,
                "year": text(&row, "Year").and_then(|year| year.parse::<u32>().ok()),
                "list": list,
                "day": day,
                "rating": text(&row, "Rating").and_then(|rating| rating.parse::<Number>().ok()),
                "is_rewatch": rewatch,
                "tags": some_list(tags.filter(|tag| !tag.is_empty()).collect()),
                "text": text(&row, "Review").map(review),
                "url": url,
            }),
        );
        Ok(())
    }
}

/// A review has marks of HTML, and lines of its own.
fn review(text: &str) -> String {
    let lines = text.lines().map(html::to_text);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_keeps_its_lines() {
        let text = "Good &amp; <i>wet</i>.\n\nVery<br>wet.";
        assert_eq!(review(text), "Good & wet.\n\nVery\nwet.");
    }
}
