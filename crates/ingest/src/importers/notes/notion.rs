//! Exports of Notion: a file per page, Markdown or HTML, called by its title and its id. Tables come twice, as a file and as a page per
//! row; the pages are taken.

use serde_json::{Map, Value, json};

use super::shape;
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::html;
use crate::importers::json_members::{some_list, some_text};
use crate::importers::pieces::{Converter, Cut, Made, read_text};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;

pub(crate) const EXPORT: Known = Known {
    name: "notion",
    title: "a Notion export (zip)",
    declaration: Declared::Shape(shape("notion", "Notion")),
    origin: "Notion: Settings > General > Export all workspace content, as Markdown & CSV or HTML; the link comes by mail",
    contents: "pages, also those of the rows of tables, with their properties; files are not kept",
    recognise,
    importer: |input, acceptor, _| {
        let converter = Page {
            path: input.inside().to_owned(),
        };
        Cut::Whole.importer(input.into_reader(), acceptor, converter)
    },
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let Some((stem, ending)) = file.file_name().rsplit_once('.') else {
        return Verdict::Unlike;
    };
    let stem = stem.strip_suffix("_all").unwrap_or(stem);
    match (split_id(stem), ending) {
        (Some(_), "md" | "html") if !file.head.contains(&0) => Verdict::Takes,
        (Some(_), "md" | "html") => Verdict::Misses("it holds bytes that no text has"),
        (Some(_), "csv") => Verdict::Leaves("tables of Notion, whose rows are pages too"),
        _ => Verdict::Unlike,
    }
}

/// A title, and the id behind it: 32 hexadecimal digits.
fn split_id(name: &str) -> Option<(&str, &str)> {
    let (title, id) = name.rsplit_once(' ').unwrap_or(("", name));
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some((title, id))
}

struct Page {
    path: String,
}

impl Converter for Page {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let (folders, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let (named, id) = split_id(stem).unwrap_or((stem, stem));
        let folders: Vec<&str> = folders.split('/').collect();
        let is_top = |name: &&str| {
            name.starts_with("Export-")
                || name.starts_with("ExportBlock-")
                || name.contains("_Export-")
        };
        let top = folders.iter().rposition(is_top);
        let below = folders.get(top.map_or(0, |top| top + 1)..);
        let folders = below.unwrap_or_default().iter().map(|name| {
            let titled = split_id(name).map(|(title, _)| title);
            titled.unwrap_or(name)
        });
        let folders: Vec<&str> = folders.collect();
        let words = read_text(piece);
        let (title, properties, text) = if ending == "html" {
            read_html(&words)
        } else {
            read_markdown(&words)
        };
        let said = |names: &[&str]| {
            let mut found = names
                .iter()
                .filter_map(|name| properties.get(*name)?.as_str());
            found.next().map(str::to_owned)
        };
        let time = |names: &[&str]| said(names).as_deref().and_then(moment);
        let tags = said(&["Tags", "Tag"]).unwrap_or_default();
        let tags = tags.split(',').map(|tag| tag.trim().to_owned());
        made.add(
            "notes",
            json!({
                "id": readable_key(id),
                "title": title.or_else(|| some_text(named.to_owned())),
                "folder": some_text(folders.join("/")),
                "author": said(&["Created by", "Author"]),
                "created_at": time(&["Created", "Created time", "Created at", "Date"]),
                "updated_at": time(&["Last edited time", "Last edited", "Updated"]),
                "tags": some_list(tags.filter(|tag| !tag.is_empty()).collect()),
                "text": some_text(text),
                "url": said(&["URL"]),
                "properties": (!properties.is_empty()).then_some(properties),
            }),
        );
        Ok(())
    }
}

/// The same of a page as HTML, which has its properties in a table.
fn read_html(page: &str) -> (Option<String>, Map<String, Value>, String) {
    let title = html::title(page);
    let page = page
        .replace("<div class=\"checkbox checkbox-on\"></div>", "[x]")
        .replace("<div class=\"checkbox checkbox-off\"></div>", "[ ]");
    let around = page.split_once("<table class=\"properties\"");
    let around = around.and_then(|(before, rest)| Some((before, rest.split_once("</table>")?)));
    let Some((before, (table, after))) = around else {
        return (title, Map::new(), html::to_text(&page));
    };
    let cell = |row: &str, tag: &str| {
        let (_, cell) = row.split_once(&format!("<{tag}"))?;
        let (_, cell) = cell.split_once('>')?;
        let (cell, _) = cell.split_once(&format!("</{tag}>"))?;
        // Several values stand one after the other.
        let text = html::to_text(&cell.replace("</span><span", "</span>, <span"));
        some_text(text.trim().to_owned())
    };
    let rows = table.split("<tr").skip(1);
    let properties = rows.filter_map(|row| Some((cell(row, "th")?, cell(row, "td")?.into())));
    let properties = properties.collect();
    (
        title,
        properties,
        html::to_text(&format!("{before}{after}")),
    )
}

/// The title, the properties below it, and what follows.
fn read_markdown(text: &str) -> (Option<String>, Map<String, Value>, String) {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let Some((title, rest)) = text
        .strip_prefix("# ")
        .map(|rest| rest.split_once('\n').unwrap_or((rest, "")))
    else {
        return (None, Map::new(), text.to_owned());
    };
    let rest = rest.trim_start();
    let end = rest.find("\n\n").unwrap_or(rest.len());
    let (block, body) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let lines = block.lines().map(|line| line.split_once(": "));
    let properties: Option<Map<String, Value>> = lines
        .map(|pair| pair.map(|(name, value)| (name.to_owned(), Value::from(value.trim()))))
        .collect();
    // Lines that are not all properties are the beginning of the text.
    let (properties, body) = match properties {
        Some(properties) if !properties.is_empty() => (properties, body),
        _ => (Map::new(), rest),
    };
    (
        some_text(title.trim().to_owned()),
        properties,
        body.trim().to_owned(),
    )
}

/// `March 5, 2024 10:00 AM (GMT+1)`, which counts as UTC where no offset stands behind it. Of two times, the first.
fn moment(text: &str) -> Option<String> {
    let text = text.split_once(" → ").map_or(text, |(from, _)| from);
    let text = text.trim().trim_start_matches('@');
    if let Some((time, zone)) = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" ("))
    {
        let time = moment(time)?;
        let offset = offset(zone).filter(|_| time.contains('T'));
        return Some(time + &offset.unwrap_or_default());
    }
    let forms = ["%B %d, %Y %I:%M %p", "%Y/%m/%d %H:%M", "%d/%m/%Y %H:%M"];
    let mut times = forms.iter().filter_map(|form| {
        let time = jiff::civil::DateTime::strptime(form, text).ok()?;
        Some(time.to_string())
    });
    times.next().or_else(|| {
        let days = ["%B %d, %Y", "%Y/%m/%d", "%d/%m/%Y"];
        let mut days = days.iter().filter_map(|form| {
            let day = jiff::civil::Date::strptime(form, text).ok()?;
            Some(day.to_string())
        });
        days.next()
    })
}

/// `GMT+1` or `GMT-3:30` as `+01:00` or `-03:30`.
fn offset(zone: &str) -> Option<String> {
    let hours = zone.strip_prefix("GMT").or(zone.strip_prefix("UTC"))?;
    let Some(sign) = hours.chars().next() else {
        return Some("Z".to_owned());
    };
    let hours = hours.strip_prefix(['+', '-'])?;
    let (hours, minutes) = hours.split_once(':').unwrap_or((hours, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_a_page_are_read_from_its_table() {
        let page = "<html><head><title>Keel</title></head><body><h1>Keel</h1><table class=\"properties\"><tbody>\
            <tr class=\"property-row\"><th><span>i</span>Tags</th><td><span class=\"s\">boat</span><span class=\"s\">wood</span></td></tr>\
            <tr><th>Created</th><td><time>@March 5, 2024 10:00 AM</time></td></tr></tbody></table>\
            <ul class=\"to-do-list\"><li><div class=\"checkbox checkbox-on\"></div> <span>Saw</span></li></ul><p>Oak.</p></body></html>";
        let (title, properties, text) = read_html(page);
        assert_eq!(title.as_deref(), Some("Keel"));
        let names: Vec<&String> = properties.keys().collect();
        assert_eq!(names.len(), 2, "{properties:?}");
        assert!(text.ends_with("- [x] Saw\n\nOak."), "{text}");
        assert!(!text.contains("wood"), "{text}");
        let created = properties["Created"].as_str().and_then(moment);
        assert_eq!(created.as_deref(), Some("2024-03-05T10:00:00"));
    }

    #[test]
    fn times_are_read_as_notion_writes_them() {
        for (text, expected) in [
            ("March 5, 2024 10:00 PM", Some("2024-03-05T22:00:00")),
            ("March 5, 2024", Some("2024-03-05")),
            ("2024/03/05 10:00", Some("2024-03-05T10:00:00")),
            ("March 5, 2024 → March 7, 2024", Some("2024-03-05")),
            (
                "March 5, 2024 10:00 AM (GMT+1) → 11:00 AM",
                Some("2024-03-05T10:00:00+01:00"),
            ),
            (
                "2024/03/05 10:00 (GMT-3:30)",
                Some("2024-03-05T10:00:00-03:30"),
            ),
            ("2024/03/05 10:00 (UTC)", Some("2024-03-05T10:00:00Z")),
            ("2024/03/05 10:00 (EST)", Some("2024-03-05T10:00:00")),
            ("March 5, 2024 (GMT+1)", Some("2024-03-05")),
            ("soon", None),
        ] {
            assert_eq!(moment(text).as_deref(), expected, "{text}");
        }
    }
}
