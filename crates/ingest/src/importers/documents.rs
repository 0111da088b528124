//! Documents, one file each: PDF, texts of offices (docx, odt), slides (pptx), books (epub), HTML and plain text. What can be read
//! in them becomes text, page by page where there are pages.

mod office;
mod package;
mod pdf;

use serde_json::json;

use super::html;
use super::json_members::some_text;
use super::pieces::{Converter, Cut, Made, read_text};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::lines::BYTE_ORDER_MARK;
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

/// The longest text of a document, or of a page of one, in bytes. What goes beyond is cut, with a note.
const LONGEST_TEXT: usize = 2 << 20;
/// Pages and chapters of one document that are read.
const MOST_PAGES: usize = 10_000;

pub(crate) const EXPORT: Known = Known {
    name: "documents",
    title: "documents (pdf, docx, odt, pptx, epub, html, txt)",
    declaration: Declared::Shape(SHAPE),
    origin: "nothing to export; name the files, or a folder or an archive of them",
    contents: "documents with their text, and pages of PDFs, slides and chapters of books by themselves; no pictures, and no text that is only in a picture",
    recognise,
    importer: |input, acceptor, _| {
        let converter = Documents {
            path: input.inside().to_owned(),
            note: None,
        };
        Cut::Whole.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "documents",
    name: "Documents",
    streams: &[
        Stream {
            name: "documents",
            label: "Documents",
            about: "Documents, one record per file.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::text("path").searched(),
                shape::text("folder").searched().grouped(),
                shape::text("kind")
                    .grouped()
                    .about("pdf, docx, odt, pptx, epub, html or txt."),
                shape::text("author").role("author").searched().grouped(),
                shape::time("created_at")
                    .about("As the document says; never the time of the file."),
                shape::time("updated_at"),
                shape::integer("page_count"),
                shape::integer("size_bytes"),
                shape::text("text")
                    .role("body")
                    .searched()
                    .about("Where there are pages, they have it."),
            ],
            children: &[("pages", "document_id")],
        },
        Stream {
            name: "pages",
            label: "Pages",
            about: "Pages of PDFs, slides, and chapters of books.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("document_id").role("thread").grouped(),
                shape::text("document").role("title").searched().grouped(),
                shape::integer("position")
                    .role("order")
                    .about("Its place in the document, from 1."),
                shape::integer("page").about("Its number, where the document has pages or slides."),
                shape::text("heading").searched(),
                shape::time("created_at").about("That of the document."),
                shape::text("text").role("body").searched(),
            ],
            children: &[],
        },
    ],
};

contract::names! {
    /// What a document is, by its content; a text by its name.
    enum Kind {
        Pdf = "pdf",
        Docx = "docx",
        Odt = "odt",
        Pptx = "pptx",
        Epub = "epub",
        Html = "html",
        Txt = "txt",
    }
}

impl Kind {
    fn detect(head: &[u8], name: &str) -> Option<Self> {
        let has = |what: &str| head.windows(what.len()).any(|at| at == what.as_bytes());
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        let ends = |one: &str| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(one));
        if head.starts_with(b"PK\x03\x04") {
            let office = [
                (Self::Epub, "mimetypeapplication/epub+zip"),
                (Self::Odt, "mimetypeapplication/vnd.oasis.opendocument.text"),
                (Self::Docx, "word/"),
                (Self::Pptx, "ppt/"),
            ];
            let found = office
                .iter()
                .find(|(kind, mark)| has(mark) || ends(kind.as_str()));
            return found.map(|(kind, _)| *kind);
        }
        // Some programs write a line before it.
        let begins = head.get(..1024).unwrap_or(head);
        if begins.windows(5).any(|at| at == b"%PDF-") {
            return Some(Self::Pdf);
        }
        let text = head.trim_ascii_start();
        let begins_like = |what: &str| {
            let begins = text.get(..what.len());
            begins.is_some_and(|begins| begins.eq_ignore_ascii_case(what.as_bytes()))
        };
        let is_html = begins_like("<!doctype html") || begins_like("<html");
        let is_page = ends("html") || ends("htm") || ends("xhtml");
        if is_html || (is_page && text.starts_with(b"<")) {
            return Some(Self::Html);
        }
        let is_utf_16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let is_text = is_utf_16 || !head.contains(&0);
        (ends("txt") && is_text && !is_json(text)).then_some(Self::Txt)
    }
}

/// Whether a text begins as lines or lists of JSON do, which are read as such.
fn is_json(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"{").or(text.strip_prefix(b"["));
    let inside = inside.map(<[u8]>::trim_ascii_start).unwrap_or_default();
    matches!(inside.first(), Some(b'{' | b'[' | b'"' | b'}' | b']'))
}

fn recognise(file: &Candidate<'_>) -> Verdict {
    let name = file.file_name();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    match (Kind::detect(file.head, name), ending) {
        _ if name == "archive_browser.html" => {
            Verdict::Leaves("what a browser shows of an archive of Google")
        }
        (Some(_), _) => Verdict::Otherwise,
        (None, Some("pdf")) => Verdict::Misses("it does not begin with %PDF-"),
        (None, Some("docx" | "odt" | "pptx" | "epub")) => {
            Verdict::Misses("it is no zip archive, as all documents of that kind are")
        }
        (None, Some("doc" | "ppt" | "rtf" | "pages")) => {
            Verdict::Misses("this kind is not read; save it as docx, odt, pptx or pdf")
        }
        _ => Verdict::Unlike,
    }
}

/// What was read of a document.
#[derive(Debug, Default)]
struct Document {
    title: Option<String>,
    author: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    text: Option<String>,
    pages: Vec<Page>,
    /// What was left out, for the owner.
    note: Option<String>,
}

#[derive(Debug, Default)]
struct Page {
    number: Option<usize>,
    heading: Option<String>,
    text: String,
}

struct Documents {
    path: String,
    note: Option<String>,
}

impl Converter for Documents {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let head = piece.get(..64 * 1024).unwrap_or(piece);
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let kind = Kind::detect(head, name).unwrap_or(Kind::Txt);
        let mut document = match kind {
            Kind::Pdf => pdf::read(piece)?,
            Kind::Docx => office::word(piece)?,
            Kind::Odt => office::open_document(piece)?,
            Kind::Pptx => office::slides(piece)?,
            Kind::Epub => package::book(piece)?,
            Kind::Html => page_of_html(piece),
            Kind::Txt => Document {
                text: Some(read_text(piece).into_owned()),
                ..Document::default()
            },
        };
        self.note = bound(&mut document);
        self.add(kind, piece.len(), document, made);
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }
}

impl Documents {
    fn add(&self, kind: Kind, size: usize, document: Document, made: &mut Made) {
        let path = self.path.as_str();
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, path),
        };
        let id = readable_key(path);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let title = document.title.filter(|title| !title.trim().is_empty());
        let title = title.unwrap_or_else(|| stem.to_owned());
        let page_count = document.pages.len();
        for (index, page) in document.pages.into_iter().enumerate() {
            // A page without text, or one that is a picture, is only counted.
            let Some(text) = some_text(page.text) else {
                continue;
            };
            made.add(
                "pages",
                json!({
                    "id": readable_key(&format!("{path}#{}", index + 1)),
                    "document_id": id,
                    "document": title,
                    "position": index + 1,
                    "page": page.number,
                    "heading": page.heading,
                    "created_at": document.created_at,
                    "text": text,
                }),
            );
        }
        made.add(
            "documents",
            json!({
                "id": id,
                "title": title,
                "path": path,
                "folder": folder,
                "kind": kind.as_str(),
                "author": document.author,
                "created_at": document.created_at,
                "updated_at": document.updated_at,
                "page_count": (page_count > 0).then_some(page_count),
                "size_bytes": size,
                "text": document.text.and_then(some_text),
            }),
        );
    }
}

/// Cuts what is too long, and says what was left out.
fn bound(document: &mut Document) -> Option<String> {
    let mut notes: Vec<String> = document.note.take().into_iter().collect();
    if document.pages.len() > MOST_PAGES {
        document.pages.truncate(MOST_PAGES);
        notes.push(format!("only the first {MOST_PAGES} pages are kept"));
    }
    let texts = document.pages.iter_mut().map(|page| &mut page.text);
    let mut is_cut = false;
    for text in texts.chain(&mut document.text) {
        if text.len() > LONGEST_TEXT {
            is_cut = true;
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        }
    }
    if is_cut {
        let longest = LONGEST_TEXT >> 20;
        notes.push(format!("of a text only the first {longest} MiB are kept"));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn page_of_html(bytes: &[u8]) -> Document {
    let text = read_text(bytes);
    Document {
        title: html::title(&text),
        text: Some(html::to_text(&text)),
        ..Document::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_by_their_content_and_texts_by_their_name() {
        let verdict = |head: &[u8], path| recognise(&Candidate { head, path });
        for (head, path, expected) in [
            (b"%PDF-1.4\n".as_slice(), "x", Verdict::Otherwise),
            (
                b"HTTP/1.1 200 OK\n\n%PDF-1.4\n",
                "a/x.bin",
                Verdict::Otherwise,
            ),
            (b" <!DOCTYPE HTML><p>", "x", Verdict::Otherwise),
            (b"<p>One</p>", "a.html", Verdict::Otherwise),
            (b"<p>One</p>", "a.xml", Verdict::Unlike),
            (b"Dear diary", "diary.TXT", Verdict::Otherwise),
            (b"\xff\xfeD\0e\0", "diary.txt", Verdict::Otherwise),
            (b"{\"a\": 1}", "lines.txt", Verdict::Unlike),
            (b"\0\x01\x02", "data.txt", Verdict::Unlike),
            (b"Dear diary", "diary", Verdict::Unlike),
            (b"PK\x03\x04....word/document.xml", "x", Verdict::Otherwise),
            (b"PK\x03\x04....xl/workbook.xml", "x.xlsx", Verdict::Unlike),
        ] {
            assert_eq!(verdict(head, path), expected, "{path}");
        }
        for (head, path) in [
            (b"nothing".as_slice(), "a.pdf"),
            (b"nothing", "a.docx"),
            (b"{\\rtf1", "a.rtf"),
        ] {
            assert!(matches!(verdict(head, path), Verdict::Misses(_)), "{path}");
        }
    }
}
