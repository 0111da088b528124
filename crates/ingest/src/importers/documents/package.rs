//! Documents that are zip archives: their parts, and books, whose chapters are pages of HTML.

use std::collections::HashMap;
use std::io::Read as _;

use super::{Document, MOST_PAGES, Page};
use crate::container::{Limits, Member, document_parts};
use crate::importers::html;
use crate::importers::pieces::{malformed, read_text};
use crate::importers::xml::Node;
use crate::rejection::Rejection;

/// The largest part that is read; everything together may be four times as large.
const LARGEST_PART: u64 = 32 << 20;

/// The parts of a document by their names.
pub(super) struct Package {
    parts: HashMap<String, Member>,
    left: u64,
}

impl Package {
    pub(super) fn open(bytes: &[u8]) -> Result<Self, Rejection> {
        let limits = Limits {
            members: 20_000,
            member_bytes: LARGEST_PART,
            ..Limits::default()
        };
        let parts = document_parts(bytes.to_vec(), &limits);
        let parts = parts.map_err(|error| malformed(format!("it is damaged: {error}")))?;
        let named = parts
            .into_iter()
            .map(|part| (part.inside().to_owned(), part));
        Ok(Self {
            parts: named.collect(),
            left: 4 * LARGEST_PART,
        })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.keys().map(String::as_str)
    }

    /// A part, if it is there, whole and not too large.
    pub(super) fn part(&mut self, name: &str) -> Option<Vec<u8>> {
        let part = self.parts.get(name)?;
        let room = self.left.min(LARGEST_PART);
        let mut bytes = Vec::new();
        let read = part.open().ok()?.take(room + 1).read_to_end(&mut bytes);
        self.left = self.left.saturating_sub(bytes.len() as u64);
        (read.is_ok() && bytes.len() as u64 <= room).then_some(bytes)
    }

    /// A part that the document cannot be without.
    pub(super) fn main_part(&mut self, name: &str) -> Result<Vec<u8>, Rejection> {
        let missing = || {
            malformed(format!(
                "its part {name} is missing, damaged or larger than {} MiB",
                LARGEST_PART >> 20
            ))
        };
        self.part(name).ok_or_else(missing)
    }
}

/// A book: what it says of itself, and its chapters in the order in which they are read.
pub(super) fn book(bytes: &[u8]) -> Result<Document, Rejection> {
    let mut package = Package::open(bytes)?;
    let container = Node::parse(&package.main_part("META-INF/container.xml")?)?;
    let root = container.find("rootfile");
    let root = root.and_then(|root| root.attribute("full-path"));
    let root = root.ok_or_else(|| malformed("it does not say where its contents stand"))?;
    let contents = Node::parse(&package.main_part(root)?)?;
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut files: HashMap<&str, &str> = HashMap::new();
    for item in contents
        .find("manifest")
        .into_iter()
        .flat_map(Node::children)
    {
        if let (Some(id), Some(file)) = (item.attribute("id"), item.attribute("href")) {
            files.insert(id, file);
        }
    }
    let mut document = Document::default();
    let spine = contents.find("spine").into_iter().flat_map(Node::children);
    let mut missing = 0;
    for reference in spine.take(MOST_PAGES) {
        let file = reference.attribute("idref").and_then(|id| files.get(id));
        let chapter = file.and_then(|file| package.part(&joined(folder, file)));
        let Some(chapter) = chapter else {
            missing += 1;
            continue;
        };
        let chapter = read_text(&chapter);
        let text = html::to_text(&chapter);
        if !text.trim().is_empty() {
            document.pages.push(Page {
                number: None,
                heading: html::title(&chapter),
                text,
            });
        }
    }
    if missing > 0 {
        document.note = Some(format!("{missing} of its chapters cannot be read"));
    }
    if let Some(about) = contents.find("metadata") {
        document.title = about.says("title");
        document.author = about.says("creator");
        document.created_at = about
            .says("date")
            .as_deref()
            .and_then(super::office::moment);
    }
    Ok(document)
}

/// Where a file stands that is named from inside a folder.
fn joined(folder: &str, file: &str) -> String {
    let file = file.split_once('#').map_or(file, |(file, _)| file);
    let file = percent_encoding::percent_decode_str(file).decode_utf8_lossy();
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
