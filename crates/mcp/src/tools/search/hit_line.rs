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

/// The width in which every hit has its line, if it has one at all.
const NARROWEST: usize = WIDTHS.len() - 1;

/// How wide a title and labels are beside an excerpt, from wide to narrow.
const BESIDE_EXCERPT: [(usize, usize); 4] =
    [(budget::TITLE, budget::LABEL), (60, 40), (60, 0), (40, 0)];
/// An author's name, where labels have no room.
const AUTHOR: usize = 24;
/// A time is never cut; what is longer is none.
const TIME: usize = 40;
/// Words of the question, in other forms or missing; none where a title is no wider than this.
const WORDS: usize = 60;
const NARROW: usize = 40;

/// What an excerpt keeps, where it is so long, beside a description; the id says of which connection and stream it is, so that
/// labels must leave it more.
const DESCRIBED_EXCERPT: usize = 96;
const LABELLED_EXCERPT: usize = 160;

/// A hit whose line is tried in several widths, and twice where something does not fit: each is written once.
pub(super) struct Draft<'a> {
    pub(super) place: usize,
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

    /// The line in one of the widths, of which the first is the widest.
    fn line(&self, width: usize, with_snippet: bool) -> &str {
        let kept = self.lines.get(usize::from(with_snippet));
        let kept = kept.and_then(|lines| Some((lines.get(width)?, *WIDTHS.get(width)?)));
        kept.map_or("", |(line, widths)| {
            line.get_or_init(|| self.write_line(widths, with_snippet))
        })
    }

    fn write_line(&self, widths: Widths, with_snippet: bool) -> String {
        let flat = |text: &'a str| self.snippet.get_or_init(|| flat(text)).as_str();
        let snippet = self.hit.snippet.as_deref();
        let snippet = snippet.filter(|_| with_snippet && widths.2 > 0).map(flat);
        hit_line(self.place, self.hit, widths, snippet)
    }
}

/// A hit that is to have a line.
pub(super) struct Waiting<'a> {
    pub(super) draft: &'a Draft<'a>,
    pub(super) with_snippet: bool,
    /// What the ids of the hits behind it take.
    pub(super) behind: usize,
}

/// The lines of these hits, while the ids of those behind them have their room: all as wide as there is room for all, and what
/// is left over goes to the first.
pub(super) fn fitting_lines<'a>(
    waiting: &[Waiting<'a>],
    room: usize,
    for_ids: usize,
) -> Vec<&'a str> {
    let (mut chosen, mut used, mut left) = (Vec::new(), 0, 0);
    for one in waiting {
        let line = one.draft.line(NARROWEST, one.with_snippet);
        let kept = (one.behind + 10).min(for_ids) * usize::from(one.behind > 0);
        let Some(rest) = room.checked_sub(used + line.len() + kept) else {
            break;
        };
        // Ids that have no room yet need it more than longer lines do.
        left = if one.behind + 10 > for_ids { 0 } else { rest };
        used += line.len() + 1;
        chosen.push(line);
    }
    for width in (0..NARROWEST).rev() {
        for (line, one) in chosen.iter_mut().zip(waiting) {
            let wider = one.draft.line(width, one.with_snippet);
            if let Some(rest) = (left + line.len()).checked_sub(wider.len()) {
                left = rest;
                *line = wider;
            }
        }
    }
    chosen
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

/// The widest description of a hit before an excerpt of this length, where both have so many bytes. None where not even the
/// narrowest fits.
pub(super) fn widest_description(hit: &Hit, room: usize, excerpt: usize) -> Option<String> {
    let widths = BESIDE_EXCERPT.iter();
    let mut descriptions = widths.map(|(title, label)| {
        let kept = if *label > 0 {
            LABELLED_EXCERPT
        } else {
            DESCRIBED_EXCERPT
        };
        let room = room.saturating_sub(kept.min(excerpt));
        (described(hit, *title, *label), room)
    });
    let fitting = descriptions.find(|(description, room)| description.len() <= *room);
    fitting.map(|(description, _)| description)
}

/// Of which source a hit is, what it is called, when and by whom it was written, and how its words are not those of the
/// question. Labels of no width are left out.
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
    let author = hit.author.as_ref();
    for (name, value, room) in [("time", time, TIME), ("author", author, AUTHOR)] {
        if let Some(value) = value {
            add(name, &word(value, label.max(room)));
        }
    }
    if let Some(near) = &hit.near {
        add("near", &plain::token(near));
        add("matched", "nothing");
    }
    let forms = hit.forms.iter();
    let forms: Vec<String> = forms
        .map(|(asked, found)| format!("{asked}→{found}"))
        .collect();
    for (name, words) in [("found", &forms), ("missing", &hit.missing)] {
        if title > NARROW && !words.is_empty() {
            add(name, &word(&words.join(", "), WORDS));
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
