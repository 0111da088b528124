//! The line of one hit: who it is, when and by whom it was written, and what was found, as wide as there is room for.

use std::cell::OnceCell;

use crate::answer::Hit;
use crate::budget;
use crate::text::{marks, plain};

/// No snippet is shorter.
const LEAST_SNIPPET: usize = 40;

/// How wide the parts of a hit's line are: title, label, snippet.
type Widths = (usize, usize, usize);

/// From wide to narrow. Without labels the id still says of which connection and stream a hit is.
const WIDTHS: [Widths; 6] = [
    (budget::TITLE, budget::LABEL, 240),
    (budget::TITLE, budget::LABEL, 120),
    (60, 40, 72),
    (60, 40, LEAST_SNIPPET),
    (40, 24, 0),
    (40, 0, 0),
];

/// How wide a title and labels are beside an excerpt, from wide to narrow.
const BESIDE_EXCERPT: [(usize, usize); 4] =
    [(budget::TITLE, budget::LABEL), (60, 40), (60, 0), (40, 0)];
/// An author's name, where labels have no room.
const AUTHOR: usize = 24;

/// A hit whose line is tried in several widths, and twice where something does not fit: each is written once.
pub(super) struct Draft<'a> {
    place: usize,
    pub(super) hit: &'a Hit,
    /// The snippet on one line.
    snippet: OnceCell<String>,
    /// By width; first without the snippet, then with it.
    lines: [[OnceCell<String>; WIDTHS.len()]; 2],
}

impl<'a> Draft<'a> {
    pub(super) fn new(place: usize, hit: &'a Hit) -> Self {
        Self {
            place,
            hit,
            snippet: OnceCell::new(),
            lines: Default::default(),
        }
    }

    /// The line in every width, from wide to narrow.
    pub(super) fn lines(&self, with_snippet: bool) -> impl Iterator<Item = &str> {
        let kept = self.lines.get(usize::from(with_snippet)).into_iter();
        kept.flatten().zip(WIDTHS).map(move |(line, widths)| {
            line.get_or_init(|| self.write_line(widths, with_snippet))
                .as_str()
        })
    }

    fn write_line(&self, widths: Widths, with_snippet: bool) -> String {
        let flat = |text: &'a str| self.snippet.get_or_init(|| flat(text)).as_str();
        let snippet = self.hit.snippet.as_deref();
        let snippet = snippet.filter(|_| with_snippet && widths.2 > 0).map(flat);
        hit_line(self.place, self.hit, widths, snippet)
    }
}

/// A text on one line, with single spaces.
pub(super) fn flat(source: &str) -> String {
    let mut flat = String::with_capacity(source.len());
    for word in source.split_whitespace() {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.push_str(word);
    }
    flat
}

/// An excerpt of a flat text in quotes, and whether something is missing.
pub(super) fn one_line(source: &str, query: &str, width: usize) -> (String, bool) {
    let mut bytes = width;
    loop {
        let (text, was_cut) = marks::excerpt_for(source, query, bytes);
        let quoted = plain::exact(&text);
        // Escaping makes texts longer; what was to be bounded is what is printed.
        if quoted.len() <= width + 2 || bytes <= 24 {
            return (quoted, was_cut);
        }
        bytes = bytes * 3 / 4;
    }
}

/// One hit with the snippet, already flat, that it is to show.
pub(super) fn hit_line(place: usize, hit: &Hit, widths: Widths, snippet: Option<&str>) -> String {
    let (title, label, most) = widths;
    let mut line = format!("{}. {}", place + 1, named(hit));
    line.push_str(&described(hit, title, label));
    if let Some(text) = snippet {
        line.push_str(" snippet=");
        line.push_str(&one_line(text, "", most).0);
    }
    line
}

/// The widest description of a hit within so many bytes, to stand before an excerpt. None where not even the narrowest fits.
pub(super) fn widest_description(hit: &Hit, room: usize) -> Option<String> {
    let widths = BESIDE_EXCERPT.iter();
    let mut descriptions = widths.map(|(title, label)| described(hit, *title, *label));
    descriptions.find(|description| description.len() <= room)
}

/// Of which source a hit is, what it is called, when and by whom it was written. Labels of no width are left out.
fn described(hit: &Hit, title: usize, label: usize) -> String {
    let mut line = String::new();
    let mut add = |name: &str, value: &str| {
        for piece in [" ", name, "=", value] {
            line.push_str(piece);
        }
    };
    for (name, value) in [
        ("connector_key", &hit.connector),
        ("stream", &hit.stream),
        ("display_name", &hit.label),
    ] {
        if let Some(value) = value.as_ref().filter(|_| label > 0) {
            add(name, &word(value, label));
        }
    }
    // A title made of source, stream and time repeats the line; where room is scarce the time is enough.
    let is_short = title < budget::TITLE;
    let (is_titled, time) = match &hit.time {
        Some(time) if !hit.is_titled => (!is_short, Some(time).filter(|_| is_short)),
        _ => (true, hit.authored_at.as_ref()),
    };
    if is_titled {
        add("title", &plain::quoted(&hit.title, title));
    }
    for (name, value) in [("time", time), ("author", hit.author.as_ref())] {
        if let Some(value) = value {
            add(name, &word(value, label.max(AUTHOR)));
        }
    }
    line
}

/// The id with what must be passed beside it. What cannot be fetched is not called an id.
pub(super) fn named(hit: &Hit) -> String {
    let id = plain::token(&hit.identity.id);
    if !hit.identity.is_fetchable() {
        return format!("ref={id} (cannot be fetched)");
    }
    match hit.identity.separate_connection() {
        Some(connection) => format!("id={id} connection_id={}", plain::token(connection)),
        None => format!("id={id}"),
    }
}

/// A name: bare where it is nothing but one, else in quotes, so that it cannot pass for anything of ours.
pub(super) fn word(text: &str, bytes: usize) -> String {
    let shown = plain::cut(text, bytes);
    let is_name = shown.chars().all(|character| {
        character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | ':' | '…')
    });
    if is_name {
        shown.into_owned()
    } else {
        plain::exact(&marks::unmarked(&shown))
    }
}
