//! Goodreads: the library as a table.

use jiff::civil::Date;
use serde_json::{Value, json};

use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::html;
use crate::importers::json_members::{some_list, text};
use crate::importers::pieces::{Converter, Cut, Made, has_columns, malformed, parse_json};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "goodreads",
    title: "a Goodreads library (csv)",
    declaration: Declared::Shape(SHAPE),
    origin: "goodreads.com: My Books > Import and export > Export Library",
    contents: "books with shelves, ratings and reviews",
    recognise,
    importer: |input, acceptor, _| Cut::Rows.importer(input.into_reader(), acceptor, Books),
};

const SHAPE: Shape = Shape {
    key: "goodreads",
    name: "Goodreads",
    streams: &[Stream {
        name: "books",
        label: "Books",
        about: "Books on shelves.",
        time: Some("added_on"),
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched(),
            shape::text("author").role("author").searched().grouped(),
            shape::text("isbn").searched(),
            shape::text("publisher").searched().grouped(),
            shape::integer("page_count"),
            shape::integer("year"),
            shape::integer("rating").about("From 1 to 5."),
            shape::text("shelf")
                .grouped()
                .about("read, to-read or currently-reading."),
            shape::texts("shelves").searched(),
            shape::date("read_on"),
            shape::date("added_on"),
            shape::text("review").role("body").searched(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let columns = ["Book Id", "Title", "Author", "Exclusive Shelf"];
    match file.file_name() {
        _ if has_columns(file.head, &columns) => Verdict::Takes,
        "goodreads_library_export.csv" => Verdict::Misses("its columns are not those of a library"),
        _ => Verdict::Unlike,
    }
}

struct Books;

impl Converter for Books {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let row = parse_json(piece)?;
        let Some(id) = text(&row, "Book Id") else {
            return Err(malformed("the row has no Book Id").in_field("Book Id"));
        };
        let number = |name: &str| text(&row, name)?.parse::<u32>().ok();
        let day = |name: &str| {
            let day = Date::strptime("%Y/%m/%d", text(&row, name)?).ok()?;
            Some(day.to_string())
        };
        let shelves = text(&row, "Bookshelves").unwrap_or_default().split(',');
        let shelves = shelves.map(|shelf| shelf.trim().to_owned());
        let review = text(&row, "My Review").map(html::to_text);
        made.add(
            "books",
            json!({
                "id": readable_key(id),
                "title": text(&row, "Title"),
                "author": text(&row, "Author"),
                "isbn": isbn(&row, "ISBN13").or_else(|| isbn(&row, "ISBN")),
                "publisher": text(&row, "Publisher"),
                "page_count": number("Number of Pages"),
                "year": number("Original Publication Year").or_else(|| number("Year Published")),
                // Nothing was said is written as 0.
                "rating": number("My Rating").filter(|rating| *rating > 0),
                "shelf": text(&row, "Exclusive Shelf"),
                "shelves": some_list(shelves.filter(|shelf| !shelf.is_empty()).collect()),
                "read_on": day("Date Read"),
                "added_on": day("Date Added"),
                "review": review,
            }),
        );
        Ok(())
    }
}

/// Written as a formula, `="9780140"`, so that tables keep its zeros.
fn isbn(row: &Value, name: &str) -> Option<String> {
    let isbn = text(row, name)?.trim_start_matches('=').trim_matches('"');
    (!isbn.is_empty()).then(|| isbn.to_owned())
}
