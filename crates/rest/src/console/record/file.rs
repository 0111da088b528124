//! The file a record points at: a preview where that is safe, and its bytes for the owner's session. They are sent so that
//! no browser runs them: sandboxed, with their declared type, and inline only as a picture or a PDF.

use std::io::Read as _;

use axum::http::{HeaderValue, header};
use contract::error::{ErrorCode, ReadError};
use contract::query::BlobQuery;
use contract::reader::ReadContract as _;
use contract::record::{Expanded, Record};
use contract::steering::is_steering;
use contract::wire::OrderedMap;
use serde::Deserialize;

use super::Subject;
use crate::blobs;
use crate::console::address::Address;
use crate::console::format::{label, readable};
use crate::console::frame::Section;
use crate::console::value::{self, Members};
use crate::console::viewer::Viewer;
use crate::params::percent_encode;
use crate::table::{HandlerResult, RequestContext};

/// How much of a file that is text is shown.
const PREVIEW_BYTES: u64 = 32 * 1024;
/// The longest name of a file, in characters.
const NAME_CHARS: usize = 120;
/// How many files that belong to a record are begun to be shown.
const PREVIEWS: usize = 5;
const FILE: &str = "file";

pub(super) struct FileRow {
    pub(super) name: String,
    /// The page of its own record; empty on that page.
    pub(super) record: String,
    pub(super) media_type: String,
    pub(super) size: String,
    pub(super) open: String,
    pub(super) download: String,
    pub(super) is_image: bool,
    pub(super) is_pdf: bool,
    /// How its text begins.
    pub(super) text: String,
}

#[derive(Deserialize)]
struct BlobRef {
    blob_id: String,
    mime_type: Option<String>,
    size_bytes: Option<u64>,
}

/// The record's own file, and those of records that belong to it.
pub(super) async fn rows(viewer: &Viewer, subject: &Subject) -> Vec<FileRow> {
    let own = (subject.stream.as_str(), subject.record.id.as_str());
    let (mut rows, mut begun) = (Vec::new(), 0);
    if let Some(mut row) = row(viewer, subject, own, &subject.members) {
        row.record = String::new();
        let has_text = subject.shape.with_role("body");
        let has_text = has_text.and_then(|body| value::text(&subject.members, body.name.as_str()));
        if row.media_type.starts_with("text/") && has_text.is_none() {
            let text = beginning(viewer, subject, &subject.members);
            row.text = text.await.unwrap_or_default();
        }
        rows.push(row);
    }
    let expanded = subject.record.expanded.iter().flat_map(OrderedMap::iter);
    for (_, related) in expanded {
        let related: Vec<&Record> = match related {
            Expanded::Many(list) => list.data.iter().collect(),
            Expanded::One(record) => vec![record],
            Expanded::None => Vec::new(),
        };
        for record in related {
            let members = value::members(record.data.as_deref());
            let name = (record.stream.as_str(), record.id.as_str());
            let Some(mut row) = row(viewer, subject, name, &members) else {
                continue;
            };
            if row.media_type.starts_with("text/") && begun < PREVIEWS {
                begun += 1;
                row.text = beginning(viewer, subject, &members)
                    .await
                    .unwrap_or_default();
            }
            rows.push(row);
        }
    }
    rows
}

fn row(
    viewer: &Viewer,
    subject: &Subject,
    (stream, key): (&str, &str),
    members: &Members,
) -> Option<FileRow> {
    let blob: BlobRef = serde_json::from_str(members.get("blob_ref")?.get()).ok()?;
    let connection = subject.connection.as_str();
    let bytes = Address::of_parts("/records", &[connection, stream, key, FILE]);
    let media_type = blob.mime_type.unwrap_or_default().to_ascii_lowercase();
    let kind = blobs::essence(&media_type);
    Some(FileRow {
        name: label(&file_name(members, key)),
        record: viewer.record(connection, stream, key),
        is_image: kind.starts_with("image/") && blobs::is_inline(kind),
        is_pdf: kind == "application/pdf",
        size: blob.size_bytes.map(size).unwrap_or_default(),
        open: viewer.seen(bytes.clone()).to_string(),
        download: viewer.seen(bytes.with("download", "1")).to_string(),
        text: String::new(),
        media_type: label(&media_type),
    })
}

/// How the text of a file begins.
async fn beginning(viewer: &Viewer, subject: &Subject, members: &Members) -> Option<String> {
    let raw = members.get("blob_ref")?;
    let blob: BlobRef = serde_json::from_str(raw.get()).ok()?;
    let query = BlobQuery {
        blob_id: blob.blob_id,
        connection_id: Some(subject.connection.to_string()),
    };
    let blob = viewer.reader.blob(query).await.ok()?;
    let read = read::run_blocking(move || {
        let mut bytes = Vec::new();
        let read = blob.content.take(PREVIEW_BYTES).read_to_end(&mut bytes);
        read.ok().map(|_| bytes)
    });
    let bytes = read.await.ok().flatten()?;
    Some(readable(&String::from_utf8_lossy(&bytes)))
}

/// A size as people say it.
fn size(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let unit = units.into_iter().find(|(_, one)| bytes >= *one);
    match unit {
        None => format!("{bytes} bytes"),
        Some((name, one)) => {
            let tenths = bytes / (one / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    }
}

/// `GET /records/{connection_id}/{stream}/{record_id}/file`
pub(in crate::console) async fn send(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Browse).await?;
    let path = [context.part(0), context.part(1), context.part(2)].map(str::to_owned);
    let headers = context.headers.clone();
    drop(context);
    let subject = Subject::read(&viewer, path.each_ref().map(String::as_str)).await?;
    let missing = || ReadError::new(ErrorCode::NotFound, "this record has no file");
    let raw = subject.members.get("blob_ref").ok_or_else(missing)?;
    let blob: BlobRef = serde_json::from_str(raw.get()).map_err(|_| missing())?;
    let query = BlobQuery {
        blob_id: blob.blob_id,
        connection_id: Some(subject.connection.to_string()),
    };
    let blob = viewer.reader.blob(query).await?;
    let mut response = blobs::response(&headers, blob)?;
    let headers = response.headers_mut();
    let is_saved = viewer.params.text("download").is_some()
        || headers.contains_key(header::CONTENT_DISPOSITION);
    let how = if is_saved { "attachment" } else { "inline" };
    let name = file_name(&subject.members, &subject.record.id);
    if let Ok(disposition) = HeaderValue::from_str(&disposition(how, &name)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// What a file is called.
fn file_name(members: &Members, key: &str) -> String {
    let named = ["name", "file_name", "title"];
    let name = named.iter().find_map(|field| value::text(members, field));
    name.unwrap_or_else(|| key.to_owned())
}

/// How a file is given, with its name (RFC 6266): what could lead elsewhere or hide its ending is no part of it.
fn disposition(how: &str, name: &str) -> String {
    let is_odd = |c: char| is_steering(c) || "/\\:*?\"<>|".contains(c);
    let name: String = name.chars().take(NAME_CHARS).collect();
    let name = name.replace(is_odd, "_");
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii() { c } else { '_' })
        .collect();
    let name = percent_encode(&name);
    format!("{how}; filename=\"{plain}\"; filename*=UTF-8''{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_saved_under_its_name_and_nowhere_else() {
        for (name, given) in [
            ("a.pdf", "filename=\"a.pdf\"; filename*=UTF-8''a.pdf"),
            (
                "Käse \u{202e}fdp.exe",
                "filename=\"K_se _fdp.exe\"; filename*=UTF-8''K%C3%A4se%20_fdp.exe",
            ),
            (
                "../x\"\r\n",
                "filename=\".._x___\"; filename*=UTF-8''.._x___",
            ),
        ] {
            assert_eq!(
                disposition("attachment", name),
                format!("attachment; {given}")
            );
        }
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, said) in [
            (12, "12 bytes"),
            (1_000, "1.0 kB"),
            (48_211, "48.2 kB"),
            (3_250_000_000, "3.2 GB"),
        ] {
            assert_eq!(size(bytes), said);
        }
    }
}
