//! Netflix: the list of a profile (`NetflixViewingHistory.csv`), or the detailed one of the account (`ViewingActivity.csv`).

use std::io::BufRead as _;

use jiff::civil::{Date, DateTime};
use serde_json::json;

use super::id;
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::text;
use crate::importers::pieces::{Converter, Cut, Made, has_columns, malformed, parse_json};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "netflix",
    title: "a Netflix viewing history (csv)",
    declaration: Declared::Shape(SHAPE),
    origin: "netflix.com: Account > Security > Personal info access, for everything; or Profile > Viewing activity > Download all",
    contents: "what was watched; no previews",
    recognise,
    importer: |input, acceptor, _| {
        let mut reader = input.into_reader();
        // What cannot be read is told when it is.
        let views = Views {
            order: Order::told_by(reader.fill_buf().unwrap_or_default()),
            is_assumed: false,
        };
        Cut::Rows.importer(reader, acceptor, views)
    },
};

const SHAPE: Shape = Shape {
    key: "netflix",
    name: "Netflix",
    streams: &[Stream {
        name: "views",
        label: "Views",
        about: "What was watched.",
        time: Some("watched_at"),
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched(),
            shape::text("series")
                .searched()
                .grouped()
                .about("What stands before the first colon; of a film its name."),
            shape::time("watched_at"),
            shape::number("minutes"),
            shape::text("profile").grouped(),
            shape::text("device").grouped(),
            shape::text("country").grouped(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let is_short = file.head.starts_with(b"Title,Date\n") || file.head.starts_with(b"Title,Date\r");
    let is_long = has_columns(
        file.head,
        &["Profile Name", "Start Time", "Duration", "Title"],
    );
    match file.file_name() {
        _ if is_short || is_long => Verdict::Takes,
        "NetflixViewingHistory.csv" | "ViewingActivity.csv" => {
            Verdict::Misses("its columns are not Title and Date, nor those of the detailed list")
        }
        _ => Verdict::Unlike,
    }
}

/// Which of day and month comes first where slashes stand between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Day,
    Month,
    /// No date tells, or one tells this and another that.
    Unknown,
}

impl Order {
    /// The order in which all dates at the beginning of a list can be read.
    fn told_by(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head);
        let dates = head
            .lines()
            .skip(1)
            .filter_map(|line| line.rsplit(',').next());
        let (mut first, mut second) = (0, 0);
        for date in dates {
            let mut numbers = date.trim_matches(['"', ' ']).split('/');
            let mut number = || numbers.next().and_then(|digits| digits.parse::<u32>().ok());
            if let (Some(one), Some(other)) = (number(), number()) {
                first = first.max(one);
                second = second.max(other);
            }
        }
        match (first > 12, second > 12) {
            (true, false) => Self::Day,
            (false, true) => Self::Month,
            _ => Self::Unknown,
        }
    }
}

struct Views {
    order: Order,
    /// Whether a date was read that may as well mean another day.
    is_assumed: bool,
}

impl Converter for Views {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let row = parse_json(piece)?;
        let Some(title) = text(&row, "Title") else {
            return Err(malformed("the row has no title").in_field("Title"));
        };
        // Trailers and the like that played by themselves.
        if text(&row, "Supplemental Video Type").is_some() {
            return Ok(());
        }
        let start = text(&row, "Start Time").and_then(|time| {
            let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", time).ok()?;
            Some(format!("{time}Z"))
        });
        let date = text(&row, "Date").filter(|_| start.is_none());
        self.is_assumed |=
            self.order == Order::Unknown && date.is_some_and(|date| date.contains('/'));
        let watched_at = start.or_else(|| day(date?, self.order));
        let Some(watched_at) = watched_at else {
            return Err(malformed("the row does not say when").in_field("Date"));
        };
        let profile = text(&row, "Profile Name");
        let series = title.split_once(": ").map_or(title, |(series, _)| series);
        made.add(
            "views",
            json!({
                "id": id(&watched_at, &format!("{title}\n{profile:?}")),
                "title": title,
                "series": series,
                "watched_at": watched_at,
                "minutes": text(&row, "Duration").and_then(minutes),
                "profile": profile,
                "device": text(&row, "Device Type"),
                "country": text(&row, "Country"),
            }),
        );
        Ok(())
    }

    fn note(&self) -> Option<String> {
        let note = "no date in it tells the day from the month; 3/5/24 is read with the month first, 05/03/2024 with the day";
        self.is_assumed.then(|| note.to_owned())
    }
}

/// Where the order is not known, `3/5/24` has the month first; `05/03/2024` and `05.03.2024` have the day first.
fn day(text: &str, order: Order) -> Option<String> {
    let year = text.rsplit(['/', '.', '-']).next()?;
    let forms: &[&str] = match (year.len(), order) {
        (2, Order::Day) if text.contains('/') => &["%d/%m/%y"],
        (2, _) if text.contains('/') => &["%m/%d/%y"],
        (4, Order::Month) if text.contains('/') => &["%m/%d/%Y"],
        (2, _) => &["%d.%m.%y", "%Y-%m-%d"],
        _ => &["%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"],
    };
    let day = forms
        .iter()
        .find_map(|form| Date::strptime(form, text).ok());
    day.map(|day| day.to_string())
}

/// `01:30:00`
fn minutes(text: &str) -> Option<f64> {
    let parts: Option<Vec<f64>> = text.split(':').map(|part| part.parse().ok()).collect();
    match parts?.as_slice() {
        [hours, minutes, seconds] => Some(hours * 60.0 + minutes + seconds / 60.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_dates_of_a_list_are_read_in_one_order() {
        let order = |dates: &str| Order::told_by(format!("Title,Date\n{dates}").as_bytes());
        assert_eq!(order("a,05/03/24\n\"b, c\",\"15/03/24\"\n"), Order::Day);
        assert_eq!(order("a,3/5/24\nb,3/15/24\n"), Order::Month);
        assert_eq!(order("a,3/5/24\n"), Order::Unknown);
        assert_eq!(day("05/03/24", Order::Day).as_deref(), Some("2024-03-05"));
        assert_eq!(day("3/5/2024", Order::Month).as_deref(), Some("2024-03-05"));
        assert_eq!(day("05/03/2024", Order::Day).as_deref(), Some("2024-03-05"));
    }

    #[test]
    fn days_are_read_as_netflix_writes_them() {
        for (text, expected) in [
            ("3/5/24", Some("2024-03-05")),
            ("05/03/2024", Some("2024-03-05")),
            ("05.03.24", Some("2024-03-05")),
            ("2024-03-05", Some("2024-03-05")),
            ("13/13/24", None),
            ("", None),
        ] {
            assert_eq!(day(text, Order::Unknown).as_deref(), expected, "{text}");
        }
    }
}
