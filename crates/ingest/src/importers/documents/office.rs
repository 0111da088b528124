//! Documents of offices: what is read in their XML, paragraph by paragraph.

use contract::time::Instant;

use super::package::Package;
use super::{Document, MOST_PAGES, Page};
use crate::importers::json_members::{first_words, some_text};
use crate::importers::xml::{Node, XmlEvent, each_event};
use crate::rejection::Rejection;

/// Which elements of a document's XML mean what for its text.
struct Rules {
    /// Only texts inside these are read.
    texts: &'static [&'static str],
    /// These end a line.
    lines: &'static [&'static str],
    /// These are a gap within one.
    gaps: &'static [&'static str],
    /// Of these nothing is read.
    hidden: &'static [&'static str],
}

/// Text of Word and of slides. Tabulators are also defined, in `tabs`; text boxes are written a second time, in `Fallback`.
const MICROSOFT: Rules = Rules {
    texts: &["t"],
    lines: &["p", "br", "cr"],
    gaps: &["tab", "tc"],
    hidden: &["tabs", "Fallback", "del"],
};

const OPEN_DOCUMENT: Rules = Rules {
    texts: &["p", "h"],
    lines: &["p", "h", "line-break"],
    gaps: &["s", "tab"],
    hidden: &["tracked-changes", "annotation"],
};

pub(super) fn word(bytes: &[u8]) -> Result<Document, Rejection> {
    let mut package = Package::open(bytes)?;
    let mut text = text_of(&package.main_part("word/document.xml")?, &MICROSOFT)?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(notes) = package.part(notes) {
            text.push('\n');
            text.push_str(&text_of(&notes, &MICROSOFT)?);
        }
    }
    let mut document = properties(&mut package);
    document.text = Some(text);
    Ok(document)
}

pub(super) fn slides(bytes: &[u8]) -> Result<Document, Rejection> {
    let mut package = Package::open(bytes)?;
    let number = |name: &str| -> Option<usize> {
        let number = name.strip_prefix("ppt/slides/slide")?;
        number.strip_suffix(".xml")?.parse().ok()
    };
    let mut numbers: Vec<usize> = package.names().filter_map(number).collect();
    numbers.sort_unstable();
    let mut document = properties(&mut package);
    for number in numbers.into_iter().take(MOST_PAGES) {
        let slide = package.main_part(&format!("ppt/slides/slide{number}.xml"))?;
        let text = text_of(&slide, &MICROSOFT)?;
        document.pages.push(Page {
            number: Some(number),
            heading: some_text(first_words(&text)),
            text,
        });
    }
    Ok(document)
}

pub(super) fn open_document(bytes: &[u8]) -> Result<Document, Rejection> {
    let mut package = Package::open(bytes)?;
    let text = text_of(&package.main_part("content.xml")?, &OPEN_DOCUMENT)?;
    let about = package.part("meta.xml").map(|meta| Node::parse(&meta));
    let about = about.and_then(Result::ok).unwrap_or_default();
    let about = about.find("meta").unwrap_or(&about);
    let time = |name: &str| about.says(name).as_deref().and_then(moment);
    Ok(Document {
        title: about.says("title"),
        author: about.says("initial-creator").or(about.says("creator")),
        created_at: time("creation-date"),
        updated_at: time("date"),
        text: Some(text),
        ..Document::default()
    })
}

/// What documents of Microsoft say of themselves.
fn properties(package: &mut Package) -> Document {
    let about = package.part("docProps/core.xml");
    let about = about.and_then(|about| Node::parse(&about).ok());
    let about = about.unwrap_or_default();
    let time = |name: &str| about.says(name).as_deref().and_then(moment);
    Document {
        title: about.says("title"),
        author: about.says("creator"),
        created_at: time("created"),
        updated_at: time("modified"),
        ..Document::default()
    }
}

/// A time as documents write it: a date, or a date and a time. Years and months alone are none.
pub(super) fn moment(text: &str) -> Option<String> {
    Instant::parse(text).map(|_| text.to_owned())
}

fn text_of(xml: &[u8], rules: &Rules) -> Result<String, Rejection> {
    let mut text = String::new();
    let (mut reading, mut hidden) = (0_usize, 0_usize);
    each_event(xml, &mut |event| {
        match event {
            XmlEvent::Open(start) => {
                let name = start.local_name().into_inner();
                hidden += usize::from(rules.hidden.contains(&name));
                reading += usize::from(rules.texts.contains(&name));
            }
            XmlEvent::Close(name) => {
                if hidden == 0 && rules.lines.contains(&name) {
                    text.push('\n');
                } else if hidden == 0 && rules.gaps.contains(&name) {
                    text.push(' ');
                }
                hidden = hidden.saturating_sub(usize::from(rules.hidden.contains(&name)));
                reading = reading.saturating_sub(usize::from(rules.texts.contains(&name)));
            }
            XmlEvent::Text(words) if hidden == 0 && reading > 0 => text.push_str(words),
            XmlEvent::Text(_) => {}
        }
        Ok(())
    })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_as_it_looks() {
        let word = "<w:document><w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t xml:space=\"preserve\">One </w:t></w:r>\
            <w:r><w:tab/><w:t>two</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>\
            <mc:AlternateContent><mc:Choice><w:p><w:t>box</w:t></w:p></mc:Choice><mc:Fallback><w:t>box</w:t></mc:Fallback>\
            </mc:AlternateContent><w:p><w:r><w:t>three</w:t><w:br/><w:t>four &amp; five</w:t></w:r></w:p></w:document>";
        let text = text_of(word.as_bytes(), &MICROSOFT).unwrap();
        assert_eq!(text, "One  two\nbox\nthree\nfour & five");
        let open = "<office:text>\n <text:tracked-changes><text:p>gone</text:p></text:tracked-changes>\n <text:h>Title</text:h>\n \
            <text:p>One<text:s text:c=\"2\"/>two<text:line-break/>three <text:span>four</text:span></text:p></office:text>";
        let text = text_of(open.as_bytes(), &OPEN_DOCUMENT).unwrap();
        assert_eq!(text, "Title\nOne two\nthree four");
    }
}
