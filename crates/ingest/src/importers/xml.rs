//! XML: a file of any size is cut at the elements of certain names, and what was cut becomes a small tree. Namespaces are passed
//! over: an element is called by what stands behind the colon.

mod decoded;

use std::io::{self, BufRead, Read};

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Error, Reader, XmlVersion};

use self::decoded::Decoded;
use super::pieces::malformed;
use crate::error::InputError;
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::Rejection;

/// Elements inside elements; a hostile file could go on forever.
const DEEPEST: usize = 256;
/// What the buffers shrink back to after a large element.
const KEPT_BYTES: usize = 1024 * 1024;

/// Which elements are cut out of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct XmlCut {
    /// The names of those that are pieces, wherever they stand; not of those inside others that are pieces.
    pub(crate) pieces: &'static [&'static str],
    /// Elements inside them whose text is passed over, because it can be long and is not needed.
    pub(crate) without: &'static [&'static str],
}

/// Cuts a document into elements, without holding more than one.
pub(crate) struct Cutter<R> {
    reader: Reader<Metered<Decoded<R>>>,
    cut: XmlCut,
    event: Vec<u8>,
    piece: Vec<u8>,
    line: u64,
    /// Elements that are open.
    open: usize,
}

impl<R: BufRead> Cutter<R> {
    pub(crate) fn new(reader: R, cut: XmlCut) -> Self {
        Self {
            reader: Reader::from_reader(Metered {
                reader: Decoded::new(reader),
                line_ends: 0,
                left: 0,
            }),
            cut,
            event: Vec::new(),
            piece: Vec::new(),
            line: 1,
            open: 0,
        }
    }

    /// The line at which the element that was taken begins.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The element that was taken, as it is written.
    pub(crate) fn taken(&self) -> &[u8] {
        &self.piece
    }

    /// Takes the next element of one of the names, with everything inside. Says whether it fits the limit; nothing at the end.
    pub(crate) fn take(&mut self, limit: usize) -> Result<Option<bool>, InputError> {
        self.piece.clear();
        self.piece.shrink_to(KEPT_BYTES);
        let (mut fits, mut inside) = (true, 0_usize);
        loop {
            self.event.clear();
            self.event.shrink_to(KEPT_BYTES);
            let before = self.reader.get_ref().line_ends + 1;
            self.reader.get_mut().left = MAX_LINE_BYTES;
            let event = self.reader.read_event_into(&mut self.event);
            let event = event.map_err(|error| failed(error, before))?;
            let is_named = |start: &BytesStart<'_>| {
                let name = start.local_name().into_inner();
                self.cut.pieces.contains(&name)
            };
            let was_inside = inside;
            match &event {
                Event::Start(start) => {
                    self.open += 1;
                    if self.open > DEEPEST {
                        return Err(broken(before, "its elements are too deep inside others"));
                    }
                    inside += usize::from(inside > 0 || is_named(start));
                }
                Event::Empty(start) if inside == 0 && !is_named(start) => continue,
                Event::End(_) => {
                    self.open = self.open.saturating_sub(1);
                    inside = inside.saturating_sub(1);
                }
                Event::Eof if self.open > 0 => {
                    return Err(broken(before, "the file ends too early"));
                }
                Event::Eof => return Ok(None),
                _ => {}
            }
            let is_empty = matches!(event, Event::Empty(_));
            if was_inside == 0 && inside == 0 && !is_empty {
                continue;
            }
            if was_inside == 0 {
                self.line = before;
            }
            if fits {
                write(&event, &mut self.piece);
                fits = self.piece.len() <= limit;
            }
            if inside == 0 {
                return Ok(Some(fits));
            }
            if let Event::Start(start) = &event
                && self.cut.without.contains(&start.local_name().into_inner())
            {
                self.reader.get_mut().left = usize::MAX;
                pass_over_text(&mut self.reader.stream())?;
            }
        }
    }
}

/// Goes on to the next tag, without holding what stands before it.
fn pass_over_text(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk = reader.fill_buf()?;
        let tag = chunk.iter().position(|byte| *byte == b'<');
        let passed = tag.unwrap_or(chunk.len());
        let is_end = tag.is_some() || chunk.is_empty();
        reader.consume(passed);
        if is_end {
            return Ok(());
        }
    }
}

fn write(event: &Event<'_>, piece: &mut Vec<u8>) {
    let parts: [&str; 3] = match event {
        Event::Start(start) => ["<", start, ">"],
        Event::Empty(start) => ["<", start, "/>"],
        Event::End(end) => ["</", end, ">"],
        Event::Text(text) => ["", text, ""],
        Event::CData(text) => ["<![CDATA[", text, "]]>"],
        Event::GeneralRef(name) => ["&", name, ";"],
        _ => return,
    };
    for part in parts {
        piece.extend_from_slice(part.as_bytes());
    }
}

fn broken(line: u64, message: &'static str) -> InputError {
    InputError::Broken { line, message }
}

fn failed(error: Error, line: u64) -> InputError {
    match error {
        Error::Io(error) => match std::sync::Arc::try_unwrap(error) {
            Ok(error) => error.into(),
            Err(error) => io::Error::new(error.kind(), error.to_string()).into(),
        },
        Error::Encoding(_) => broken(
            line,
            "its bytes are no text in UTF-8, or in what it declares",
        ),
        _ => broken(line, "it is not XML from here on"),
    }
}

/// Counts lines, and refuses to read more than is allowed at a time.
struct Metered<R> {
    reader: R,
    line_ends: u64,
    left: usize,
}

impl<R: BufRead> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Metered<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left = self.left;
        let chunk = self.reader.fill_buf()?;
        if left == 0 && !chunk.is_empty() {
            return Err(io::Error::other(InputError::Broken {
                line: self.line_ends + 1,
                message: "a text or a tag is longer than is read",
            }));
        }
        Ok(chunk.get(..left).unwrap_or(chunk))
    }

    fn consume(&mut self, amount: usize) {
        let chunk = self.reader.fill_buf().unwrap_or_default();
        let used = chunk.get(..amount).unwrap_or(chunk);
        self.line_ends += (used.split(|byte| *byte == b'\n').count() - 1) as u64;
        self.left = self.left.saturating_sub(amount);
        self.reader.consume(amount);
    }
}

/// An element with what is inside.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    content: Vec<Content>,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Node(Node),
}

impl Node {
    /// Reads a piece, or a whole document: its outermost element.
    pub(crate) fn parse(xml: &[u8]) -> Result<Self, Rejection> {
        let mut stack = vec![Self::default()];
        each_event(xml, &mut |event| {
            match event {
                XmlEvent::Open(start) if stack.len() <= DEEPEST => stack.push(Self {
                    name: start.local_name().into_inner().to_owned(),
                    attributes: attributes(start),
                    content: Vec::new(),
                }),
                XmlEvent::Open(_) => {
                    return Err(malformed("its elements are too deep inside others"));
                }
                XmlEvent::Close(_) => {
                    if let Some(node) = stack.pop()
                        && let Some(parent) = stack.last_mut()
                    {
                        parent.content.push(Content::Node(node));
                    }
                }
                XmlEvent::Text(text) => {
                    if let Some(node) = stack.last_mut() {
                        node.content.push(Content::Text(text.to_owned()));
                    }
                }
            }
            Ok(())
        })?;
        if stack.len() > 1 {
            return Err(malformed("it ends inside an element"));
        }
        let outermost = stack.swap_remove(0);
        let found = outermost.content.into_iter().find_map(|one| match one {
            Content::Node(node) => Some(node),
            Content::Text(_) => None,
        });
        found.ok_or_else(|| malformed("it holds no element"))
    }

    /// The value of an attribute, if it says something.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(one, _)| one == name);
        found
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        self.content.iter().filter_map(|one| match one {
            Content::Node(node) => Some(node),
            Content::Text(_) => None,
        })
    }

    pub(crate) fn named<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'n Self> {
        self.children().filter(move |child| child.name == name)
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children().find(|child| child.name == name)
    }

    /// The first element of that name at any depth.
    pub(crate) fn find(&self, name: &str) -> Option<&Self> {
        self.children().find_map(|child| {
            let is_it = (child.name == name).then_some(child);
            is_it.or_else(|| child.find(name))
        })
    }

    /// All texts inside, at any depth.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.add_text(&mut text);
        text
    }

    fn add_text(&self, text: &mut String) {
        for one in &self.content {
            match one {
                Content::Text(words) => text.push_str(words),
                Content::Node(node) => node.add_text(text),
            }
        }
    }

    /// What a child says, without white space around it.
    pub(crate) fn says(&self, name: &str) -> Option<String> {
        let text = self.child(name)?.text();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// What the element at the end of a path of names says, the first of each name.
    pub(crate) fn at(&self, path: &str) -> Option<String> {
        match path.split_once('/') {
            Some((name, rest)) => self.child(name)?.at(rest),
            None => self.says(path),
        }
    }
}

fn attributes(start: &BytesStart<'_>) -> Vec<(String, String)> {
    let all = start.attributes().filter_map(Result::ok);
    all.filter_map(|attribute| {
        let name = attribute.key.local_name().into_inner().to_owned();
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
        Some((name, value.into_owned()))
    })
    .collect()
}

/// What a document says, in its order.
pub(crate) enum XmlEvent<'e> {
    Open(&'e BytesStart<'e>),
    /// With the name of the element.
    Close(&'e str),
    Text(&'e str),
}

/// Goes through a document that is in memory. An empty element opens and closes.
pub(crate) fn each_event(
    xml: &[u8],
    tell: &mut dyn FnMut(XmlEvent<'_>) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    let mut reader = Reader::from_reader(xml);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        match event.map_err(|error| malformed(format!("it is not XML: {error}")))? {
            Event::Start(start) => tell(XmlEvent::Open(&start))?,
            Event::Empty(start) => {
                tell(XmlEvent::Open(&start))?;
                tell(XmlEvent::Close(start.local_name().into_inner()))?;
            }
            Event::End(end) => tell(XmlEvent::Close(end.local_name().into_inner()))?,
            Event::Text(text) => tell(XmlEvent::Text(&text.xml10_content()))?,
            Event::CData(text) => tell(XmlEvent::Text(&text.xml10_content()))?,
            Event::GeneralRef(name) => tell(XmlEvent::Text(&resolved(&name)))?,
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The character that a reference stands for; the reference itself where nobody knows.
fn resolved(name: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = name.resolve_char_ref() {
        return character.to_string();
    }
    match resolve_predefined_entity(name) {
        Some(text) => text.to_owned(),
        None => format!("&{};", &**name),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CUT: XmlCut = XmlCut {
        pieces: &["a", "b"],
        without: &["data"],
    };

    /// The pieces, with their lines; what does not fit is none.
    fn cut(xml: &str, limit: usize) -> Vec<(u64, Option<String>)> {
        let mut cutter = Cutter::new(xml.as_bytes(), CUT);
        let mut pieces = Vec::new();
        while let Some(fits) = cutter.take(limit).unwrap() {
            let piece = String::from_utf8(cutter.taken().to_vec()).unwrap();
            pieces.push((cutter.line(), fits.then_some(piece)));
        }
        pieces
    }

    #[test]
    fn elements_are_cut_whole_wherever_they_stand() {
        let xml = "<?xml version=\"1.0\"?><!DOCTYPE r [<!ELEMENT r (a)>]>\n<r>\n<x><n:a k='1'>t<a/>&amp;<![CDATA[<]]></n:a></x>\n<b/>\n<c/></r>";
        let pieces = [(3, "<n:a k='1'>t<a/>&amp;<![CDATA[<]]></n:a>"), (4, "<b/>")];
        let pieces = pieces.map(|(line, piece)| (line, Some(piece.to_owned())));
        assert_eq!(cut(xml, 100), pieces);
        assert_eq!(cut(xml, 10), [(3, None), (4, Some("<b/>".to_owned()))]);
        let xml = "<a><data k='1'>long\n<c/>more</data></a>";
        let piece = "<a><data k='1'><c/>more</data></a>".to_owned();
        assert_eq!(cut(xml, 100), [(1, Some(piece))]);
    }

    #[test]
    fn letters_are_read_in_the_encoding_that_is_declared() {
        let text = |declared: &str, letter: &[u8]| {
            let declared = format!("<?xml version='1.0'{declared}?>\n<r><a>Gr");
            let rest = [letter, b"n</a></r>"].concat();
            // Read in small portions, so that letters are cut.
            let rest = io::BufReader::with_capacity(1, rest.as_slice());
            let mut cutter = Cutter::new(declared.as_bytes().chain(rest), CUT);
            let taken = cutter.take(100).ok()??;
            assert!(taken);
            String::from_utf8(cutter.taken().to_vec()).ok()
        };
        let green = Some("<a>Grün</a>".to_owned());
        assert_eq!(text("", "ü".as_bytes()), green);
        assert_eq!(text(" encoding=\"ISO-8859-1\"", b"\xfc"), green);
        assert_eq!(text(" encoding = 'UTF-16'", "ü".as_bytes()), green);
        assert_eq!(
            text(" encoding='Shift_JIS'", b"\x83\x89"),
            Some("<a>Grラn</a>".to_owned())
        );
        assert_eq!(text("", b"\xfc"), None);
        assert_eq!(text(" encoding='Shift_JIS'", b"\xff"), None);
    }

    #[test]
    fn what_is_no_xml_ends_the_reading_with_its_line() {
        for xml in ["<r>\n<a>x</b>", "<r>\n<a>", "<r>\n<a/>", "<r>\n<a/></q>"] {
            let mut cutter = Cutter::new(xml.as_bytes(), CUT);
            let error = loop {
                match cutter.take(100) {
                    Ok(Some(_)) => {}
                    other => break other,
                }
            };
            assert!(
                matches!(error, Err(InputError::Broken { line: 2, .. })),
                "{xml}: {error:?}"
            );
        }
        let deep = "<x>".repeat(DEEPEST + 1);
        assert!(Cutter::new(deep.as_bytes(), CUT).take(10).is_err());
        assert!(Node::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn a_tree_says_what_stands_in_it() {
        let xml = "<note x=\" 1 &lt; 2 \" y=''><title> T &amp; &#228; &nope; </title><b><i>deep</i></b></note>";
        let node = Node::parse(xml.as_bytes()).unwrap();
        assert_eq!(node.attribute("x"), Some("1 < 2"));
        assert_eq!(node.attribute("y"), None);
        assert_eq!(node.says("title").as_deref(), Some("T & ä &nope;"));
        assert_eq!(node.find("i").map(Node::text).as_deref(), Some("deep"));
        assert!(Node::parse(b"no element").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(xml in "(<|>|/|a|b|&|;|\"|'|=|<!\\[CDATA\\[|\\]\\]>|<!--|-->| |\\PC){0,60}") {
            let mut cutter = Cutter::new(xml.as_bytes(), CUT);
            while let Ok(Some(_)) = cutter.take(20) {}
            let _ = Node::parse(xml.as_bytes());
        }
    }
}
