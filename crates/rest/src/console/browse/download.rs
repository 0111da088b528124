//! What a table shows as a file: all its rows, as CSV with its columns or as JSON lines; or all fields, as lines that can be
//! imported again.

use std::io::Write;
use std::sync::Arc;

use axum::http::{HeaderValue, header};
use contract::page::Page;
use contract::query::{MAX_PAGE_LIMIT, PageLimit, Reading, RecordsQuery};
use contract::reader::ReadContract as _;
use contract::record::Record;
use read::GrantReader;
use serde_json::value::RawValue;
use store::Store;

use super::chosen::Chosen;
use crate::console::frame::Section;
use crate::console::stream_shape::StreamShape;
use crate::console::value;
use crate::console::viewer::Viewer;
use crate::owner::wire::Refusal;
use crate::owner::{export_line, stream_bytes};
use crate::table::{HandlerResult, RequestContext};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    JsonLines,
    /// Lines with keys and times, which import as the same records.
    Export,
}

/// `GET /browse/{connection_id}/{stream}/download`
pub(in crate::console) async fn send(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Browse).await?;
    let (connection, name) = (context.part(0).to_owned(), context.part(1).to_owned());
    drop(context);
    let stream = crate::query_params::stream(&name, viewer.is_owner())?;
    let shape = StreamShape::read(&viewer, &stream, &connection).await?;
    let mut chosen = Chosen::new(&viewer, &shape, (&connection, stream))?;
    chosen.query.limit = PageLimit::new(MAX_PAGE_LIMIT);
    let kind = match viewer.params.text("format") {
        Some("jsonl") if chosen.is_whole => Kind::Export,
        Some("jsonl") => Kind::JsonLines,
        _ => Kind::Csv,
    };
    // The first page is read before answering, so that an error can still be a page.
    let first = viewer.reader.records(at(&chosen.query, None)).await?;
    let saving = Saving {
        kind,
        columns: chosen.columns.iter().map(ToString::to_string).collect(),
        store: Arc::clone(&viewer.service.store),
        reader: viewer.reader,
        query: chosen.query,
        runtime: tokio::runtime::Handle::current(),
    };
    let (media_type, disposition) = match kind {
        Kind::Csv => (
            "text/csv; charset=utf-8",
            "attachment; filename=\"records.csv\"",
        ),
        Kind::JsonLines | Kind::Export => (
            "application/x-ndjson",
            "attachment; filename=\"records.jsonl\"",
        ),
    };
    let mut response = stream_bytes(media_type, move |out| saving.write(first, out)).await?;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_DISPOSITION, disposition),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// A file that is being written, on a thread that may block.
struct Saving {
    kind: Kind,
    columns: Vec<String>,
    store: Arc<dyn Store>,
    reader: GrantReader,
    query: RecordsQuery,
    runtime: tokio::runtime::Handle,
}

impl Saving {
    /// Writes all pages. Whoever does not take them any more ends it.
    fn write(&self, mut page: Page<Record>, out: &mut dyn Write) -> Result<(), Refusal> {
        let heading = csv_line(self.columns.iter().map(String::as_str));
        if self.kind == Kind::Csv && out.write_all(heading.as_bytes()).is_err() {
            return Ok(());
        }
        loop {
            for record in &page.data {
                let line = match self.kind {
                    Kind::Csv => csv_row(&self.columns, record),
                    Kind::JsonLines => json_line(record),
                    Kind::Export => export_line(&*self.store, record)?,
                };
                if out.write_all(line.as_bytes()).is_err() {
                    return Ok(());
                }
            }
            let Some(cursor) = page.next_cursor().map(str::to_owned) else {
                return Ok(());
            };
            let next = self.reader.records(at(&self.query, Some(cursor)));
            page = self.runtime.block_on(next)?;
        }
    }
}

/// The same question at another place, without counting.
fn at(query: &RecordsQuery, cursor: Option<String>) -> RecordsQuery {
    let mut query = query.clone();
    if let Reading::List(options) = &mut query.reading {
        options.count = contract::query::Count::None;
        options.cursor = cursor;
    }
    query
}

/// The record as it was written, on one line: breaks stand only between its parts.
fn json_line(record: &Record) -> String {
    let data = record.data.as_deref().map_or("{}", RawValue::get);
    data.replace(['\n', '\r'], " ") + "\n"
}

fn csv_row(columns: &[String], record: &Record) -> String {
    let members = value::members(record.data.as_deref());
    let cell = |name: &String| {
        let raw = members.get(name).map_or("null", |raw| raw.get());
        match raw {
            "null" => String::new(),
            raw => serde_json::from_str(raw).map_or_else(|_| raw.to_owned(), text_cell),
        }
    };
    let cells: Vec<String> = columns.iter().map(cell).collect();
    csv_line(cells.iter().map(String::as_str))
}

/// A text that a spreadsheet would compute, after an apostrophe, which says that it is text. A number stays one.
fn text_cell(text: String) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula && text.parse::<f64>().is_err() {
        return format!("'{text}");
    }
    text
}

fn csv_line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"', '\n', '\r']) {
            return format!("\"{}\"", cell.replace('"', "\"\""));
        }
        cell.to_owned()
    };
    let mut line = cells.map(quoted).collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_formula_and_a_number_stays_one() {
        for (text, cell) in [
            (
                "=HYPERLINK(\"https://a.example\")",
                "'=HYPERLINK(\"https://a.example\")",
            ),
            ("+1 555 0100", "'+1 555 0100"),
            ("@name", "'@name"),
            ("-cmd", "'-cmd"),
            ("-12.50", "-12.50"),
            ("+3", "+3"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(text_cell(text.to_owned()), cell);
        }
    }

    #[test]
    fn a_line_is_the_record_as_it_was_written() {
        let data = "{\n  \"z\": 1.50,\r\n  \"a\": 1e+400,\"t\":\"x\\ny\"}";
        let mut record: Record = serde_json::from_str(
            "{\"object\":\"record\",\"id\":\"1\",\"stream\":\"s\",\"emitted_at\":\"\"}",
        )
        .unwrap();
        record.data = Some(RawValue::from_string(data.to_owned()).unwrap());
        let line = json_line(&record);
        assert_eq!(line, "{   \"z\": 1.50,    \"a\": 1e+400,\"t\":\"x\\ny\"}\n");
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let line = csv_line(["a", "b,c", "say \"x\"", "two\nlines"].into_iter());
        assert_eq!(line, "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
    }
}
