//! "My Activity" and the histories of `YouTube`, as JSON or as HTML: what was searched, watched and asked, Gemini included. The same
//! entry is the same record in both forms.

use contract::time::Instant;
use jiff::civil::DateTime;
use serde_json::{Value, json};

use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::html;
use crate::importers::json_members::{
    each_text, first_words, list, members_of, moment, some_list, some_text, text,
};
use crate::importers::pieces::{
    Converter, Cut, Kept, Made, begins_with, malformed, parse_json, read_text,
};
use crate::importers::written_dates::{is_month, written};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

/// What every entry of the HTML form begins with.
const CELL: &str = "<div class=\"outer-cell";

pub(crate) const EXPORT: Known = Known {
    name: "google-activity",
    title: "activity with Google, YouTube and Gemini (Takeout)",
    declaration: Declared::Shape(SHAPE),
    origin: "takeout.google.com: choose My Activity, and YouTube history, if you can as JSON (Multiple formats)",
    contents: "what was searched, watched and asked, with what Gemini answered; files are named, not kept",
    recognise,
    importer: |input, acceptor, _| {
        let mut reader = input.into_reader();
        let is_json = begins_with(&mut reader, b"[");
        let cut = if is_json {
            Cut::Elements
        } else {
            Cut::Marked(CELL)
        };
        let converter = Activities {
            is_json,
            unread_times: 0,
        };
        cut.importer(reader, acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "google-activity",
    name: "Google activity",
    streams: &[Stream {
        name: "activities",
        label: "Activities",
        about: "What was done with services of Google.",
        time: Some("done_at"),
        fields: &[
            shape::text("id"),
            shape::text("product")
                .searched()
                .grouped()
                .about("Such as Search, YouTube or Gemini Apps."),
            shape::text("title").role("title").searched(),
            shape::time("done_at"),
            shape::text("url").role("url"),
            shape::text("channel")
                .role("author")
                .searched()
                .grouped()
                .about("Whose video it is, or what else is named below it."),
            shape::text("text")
                .role("body")
                .searched()
                .about("The whole of what was asked, and what was answered."),
            shape::texts("details"),
            shape::texts("attachments")
                .about("Names of files.")
                .searched(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let head = String::from_utf8_lossy(file.head);
    let members = members_of(file.head);
    let has = |name: &str| members.iter().any(|one| one == name);
    // Styles of this library come first, and can be many.
    let is_page = head.trim_start().starts_with("<html") && head.contains("mdl-");
    match file.file_name() {
        _ if has("header") && has("title") && (has("time") || has("products")) => Verdict::Takes,
        "MyActivity.html" | "watch-history.html" | "search-history.html" => Verdict::Takes,
        _ if is_page => Verdict::Takes,
        "MyActivity.json" | "watch-history.json" | "search-history.json" => {
            Verdict::Misses("its entries have no header, title and time")
        }
        _ => Verdict::Unlike,
    }
}

struct Activities {
    is_json: bool,
    unread_times: usize,
}

/// An entry, from either form.
#[derive(Default)]
struct Activity {
    product: Option<String>,
    title: String,
    done_at: Option<String>,
    url: Option<String>,
    channel: Option<String>,
    answer: Option<String>,
    details: Vec<String>,
    attachments: Vec<String>,
    /// Whether its time is written so that earlier releases could not read it.
    is_newly_read: bool,
}

impl Converter for Activities {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let activity = if self.is_json {
            from_json(&parse_json(piece)?)
        } else {
            let text = read_text(piece);
            // Before the first entry stand styles.
            if !text.starts_with(CELL) {
                return Ok(());
            }
            let activity = from_html(&text);
            self.unread_times += usize::from(activity.done_at.is_none());
            activity
        };
        if activity.title.trim().is_empty() {
            return Err(malformed("the entry has no title"));
        }
        let former = activity.is_newly_read.then(|| activity.what());
        let record = activity.record();
        match former {
            // Earlier releases could not read the time, and told all of one title and address as one.
            Some(what) => {
                let kept = Kept::Whole(readable_key(&what), &["title", "url"]);
                made.add_keeping("activities", record, kept);
            }
            None => made.add("activities", record),
        }
        Ok(())
    }

    fn note(&self) -> Option<String> {
        let unread = self.unread_times;
        (unread > 0).then(|| {
            format!("{unread} entries have no time, for it is written in a language that is not read here; export them as JSON")
        })
    }
}

impl Activity {
    /// What tells it from others of its second.
    fn what(&self) -> String {
        let url = self.url.as_deref().unwrap_or_default();
        short_hash(&format!("{}\n{url}", self.title))
    }

    fn record(self) -> Value {
        // The HTML form has whole seconds.
        let at = self.done_at.as_deref().and_then(Instant::parse);
        let done_at = at.map(Instant::to_rfc3339_millis);
        let done_at = done_at.and_then(|at| Some(format!("{}Z", at.get(..19)?)));
        let second = done_at.as_deref().unwrap_or_default();
        let second: String = second.chars().filter(char::is_ascii_digit).collect();
        let what = self.what();
        let title = first_words(&self.title);
        let is_cut = title != self.title.trim();
        let asked = is_cut.then(|| self.title.trim().to_owned());
        let texts: Vec<String> = asked.into_iter().chain(self.answer).collect();
        json!({
            "id": readable_key(format!("{second}-{what}").trim_start_matches('-')),
            "product": self.product,
            "title": title,
            "done_at": done_at,
            "url": self.url,
            "channel": self.channel,
            "text": some_text(texts.join("\n\n")),
            "details": some_list(self.details),
            "attachments": some_list(self.attachments),
        })
    }
}

fn from_json(value: &Value) -> Activity {
    let subtitles = each_text(list(value, "subtitles"), "name");
    let answer = each_text(list(value, "safeHtmlItem"), "html");
    let answer: Vec<String> = answer.iter().map(|html| html::to_text(html)).collect();
    let files = list(value, "attachedFiles")
        .iter()
        .filter_map(Value::as_str);
    let picture =
        text(value, "imageFile").filter(|picture| files.clone().all(|file| file != *picture));
    let attachments: Vec<String> = files.chain(picture).map(str::to_owned).collect();
    // Where files were sent along, they are what is named below.
    let channel = subtitles
        .into_iter()
        .next()
        .filter(|_| attachments.is_empty());
    Activity {
        product: text(value, "header").map(str::to_owned),
        title: text(value, "title").unwrap_or_default().to_owned(),
        done_at: moment(value, "time"),
        url: text(value, "titleUrl").map(str::to_owned),
        channel,
        answer: some_text(answer.join("\n\n")),
        details: each_text(list(value, "details"), "name"),
        attachments,
        is_newly_read: false,
    }
}

fn from_html(cell: &str) -> Activity {
    let product = cell.split_once("mdl-typography--title\">");
    let product = product.and_then(|(_, rest)| rest.split_once("</p>"));
    let content = cell.split_once("mdl-typography--body-1\">");
    let content = content.and_then(|(_, rest)| rest.split_once("</div>"));
    let content = content.map_or("", |(content, _)| content);
    let caption = cell.split_once("mdl-typography--caption\">");
    let caption = caption.map_or("", |(_, rest)| {
        rest.split("</div>").next().unwrap_or_default()
    });
    let targets: Vec<(String, String)> = content.split("<a ").skip(1).filter_map(link).collect();
    let lines: Vec<String> = content
        .split("<br>")
        .map(|line| without_tags(line).trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let time = lines.iter().rposition(|line| written_time(line).is_some());
    let title = lines.first().cloned().unwrap_or_default();
    let below = time
        .and_then(|time| lines.get(time + 1..))
        .unwrap_or_default();
    let url = targets.first().map(|(to, _)| to.clone());
    let details = caption
        .split_once("<b>Details:</b>")
        .map_or("", |(_, rest)| rest);
    let details = details
        .split("<b>")
        .next()
        .unwrap_or_default()
        .split("<br>");
    Activity {
        product: product
            .and_then(|(product, _)| some_text(without_tags(product).trim().to_owned())),
        done_at: time
            .and_then(|time| lines.get(time))
            .and_then(|line| written_time(line)),
        channel: lines
            .get(1)
            .filter(|_| time.is_some_and(|time| time > 1))
            .cloned(),
        answer: some_text(below.join("\n")),
        details: details
            .map(|line| without_tags(line).trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect(),
        title,
        url,
        attachments: Vec::new(),
        is_newly_read: time
            .and_then(|time| lines.get(time))
            .is_some_and(|line| !is_plain(line)),
    }
}

/// Where a link leads and what it shows, from its attributes on.
fn link(html: &str) -> Option<(String, String)> {
    let (_, rest) = html.split_once("href=\"")?;
    let (to, rest) = rest.split_once('"')?;
    let shown = rest.split_once('>')?.1.split("</a>").next()?;
    Some((to.replace("&amp;", "&"), without_tags(shown)))
}

/// The text of a line of HTML, without where its links lead.
fn without_tags(html: &str) -> String {
    let mut plain = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        plain.push_str(before);
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    html::to_text(&plain)
}

/// Offsets of the abbreviations that Takeout writes, in minutes. It writes one only where it is in use, and `GMT+8` elsewhere; one that is in
/// use in several places, such as IST, is not among them.
const ZONES: [(&str, i64); 31] = [
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 60),
    ("BST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("SGT", 480),
    ("JST", 540),
    ("AEST", 600),
    ("AEDT", 660),
    ("NZST", 720),
    ("NZDT", 780),
    ("EST", -300),
    ("EDT", -240),
    ("PST", -480),
    ("PDT", -420),
    ("MEZ", 60),
    ("MESZ", 120),
    ("KST", 540),
    ("BRT", -180),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
];
/// Those of them that earlier releases knew.
const KNOWN_BEFORE: usize = 20;
/// A longer line is no time.
const LONGEST_TIME: usize = 60;

/// A time of any language with its zone behind it, or right behind the day as in Chinese: `5 mars 2024, 10:00:00 CET`. As UTC.
fn written_time(line: &str) -> Option<String> {
    let line = line.replace(['\u{202f}', '\u{a0}'], " ");
    let line = line.trim();
    if line.chars().count() > LONGEST_TIME {
        return None;
    }
    let (time, minutes) = line.split(' ').rev().find_map(|word| {
        let minutes = offset(word)?;
        let (before, behind) = line.rsplit_once(word)?;
        Some((format!("{before} {behind}"), minutes))
    })?;
    let time = written(&time).filter(|_| begins_with_a_day(line))?;
    let offset = jiff::Span::new().try_minutes(minutes).ok()?;
    let utc = time.checked_sub(offset).ok()?;
    Some(format!("{utc}Z"))
}

/// Minutes that a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == zone) {
        return Some(*minutes);
    }
    let hours = zone.strip_prefix("GMT").or(zone.strip_prefix("UTC"))?;
    let (hours, minutes) = hours.split_once(':').unwrap_or((hours, "0"));
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(hours.checked_mul(60)? + minutes.checked_mul(sign)?)
}

/// What else stands in a cell may tell a time too, but not at its beginning.
fn begins_with_a_day(line: &str) -> bool {
    let begin = line.split([' ', ',']).next().unwrap_or_default();
    begin.starts_with(|c: char| c.is_ascii_digit()) || is_month(begin)
}

/// Whether earlier releases could read a time: English ones, with fewer zones.
fn is_plain(line: &str) -> bool {
    let line = line.replace(['\u{202f}', '\u{a0}'], " ");
    let forms = [
        "%b %d, %Y, %I:%M:%S %p",
        "%b %d, %Y, %H:%M:%S",
        "%d %b %Y, %H:%M:%S",
        "%d %B %Y, %H:%M:%S",
    ];
    let Some((time, zone)) = line.trim().rsplit_once(' ') else {
        return false;
    };
    let of_zone = ZONES.iter().position(|(name, _)| *name == zone);
    forms
        .iter()
        .any(|form| DateTime::strptime(form, time).is_ok())
        && of_zone.is_none_or(|at| at < KNOWN_BEFORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_takeout_writes_them() {
        for (line, expected) in [
            (
                "Mar 5, 2024, 10:00:00\u{202f}AM CET",
                Some("2024-03-05T09:00:00Z"),
            ),
            ("Mar 5, 2024, 12:30:00 AM UTC", Some("2024-03-05T00:30:00Z")),
            (
                "5 Mar 2024, 22:00:00 GMT+05:30",
                Some("2024-03-05T16:30:00Z"),
            ),
            (
                "5 Mar 2024, 22:00:00 GMT-03:30",
                Some("2024-03-06T01:30:00Z"),
            ),
            ("5 Mar 2024, 22:00:00 XYZ", None),
            ("05.03.2024, 10:00:00 MEZ", Some("2024-03-05T09:00:00Z")),
            ("05.03.2024, 10:00:00 XYZ", None),
            ("5 mars 2024, 10:00:00 CET", Some("2024-03-05T09:00:00Z")),
            (
                "5 de mar. de 2024, 22:00:00 BRT",
                Some("2024-03-06T01:00:00Z"),
            ),
            (
                "2024年3月5日 GMT+08:00 19:00:00",
                Some("2024-03-05T11:00:00Z"),
            ),
            ("2024/03/05 19:00:00 JST", Some("2024-03-05T10:00:00Z")),
            ("Mar 5, 2024, 10:00:00 AM CST", Some("2024-03-05T16:00:00Z")),
            ("5 Mar 2024, 22:00:00 IST", None),
            ("Watched a ship, 5 Mar 2024, 22:00:00 UTC", None),
            ("Watched something", None),
        ] {
            assert_eq!(written_time(line).as_deref(), expected, "{line}");
        }
    }
}
