//! Data between tags where elements need not be closed: SGML, as OFX and bookmarks are written. Every tag is taken with the text behind it. Elements hold either
//! a text or elements, as all formats do that are read with this; so an element with a text is known to end before the next tag.

use mail_parser::decoders::html::add_html_token;

/// Leaves of one element that are kept; no honest one has as many.
const MAX_LEAVES: usize = 10_000;
/// The longest name of a character, with its signs.
const MAX_ENTITY: usize = 34;

pub(crate) struct Markup<'t> {
    rest: &'t str,
}

pub(crate) struct Tag<'t> {
    /// Without the prefix of its namespace.
    pub(crate) name: &'t str,
    pub(crate) attributes: &'t str,
    pub(crate) is_end: bool,
    is_empty: bool,
    /// What stands between it and the next tag, trimmed.
    pub(crate) text: String,
}

/// The texts inside an element.
#[derive(Default)]
pub(crate) struct Element {
    leaves: Vec<Leaf>,
}

struct Leaf {
    /// The names of the elements it stands in and its own, joined by `/`.
    path: String,
    text: String,
}

impl<'t> Markup<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// The texts up to the end of the element, whose beginning was the last tag.
    pub(crate) fn element(&mut self, name: &str) -> Element {
        let mut element = Element::default();
        let mut open: Vec<&str> = Vec::new();
        for tag in self.by_ref() {
            if tag.is_end {
                match open.iter().rposition(|one| *one == tag.name) {
                    Some(at) => open.truncate(at),
                    None if tag.name == name => break,
                    None => {}
                }
            } else if !tag.text.is_empty() && element.leaves.len() < MAX_LEAVES {
                let mut path = open.join("/");
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(tag.name);
                element.leaves.push(Leaf {
                    path,
                    text: tag.text,
                });
            } else if !tag.is_empty && open.len() < 64 {
                open.push(tag.name);
            }
        }
        element
    }
}

impl<'t> Iterator for Markup<'t> {
    type Item = Tag<'t>;

    fn next(&mut self) -> Option<Tag<'t>> {
        loop {
            let (_, inside) = self.rest.split_once('<')?;
            self.rest = if let Some(comment) = inside.strip_prefix("!--") {
                comment.split_once("-->")?.1
            } else if inside.starts_with(['!', '?']) {
                inside.split_once('>')?.1
            } else {
                let (tag, rest) = inside.split_once('>')?;
                let (text, rest) = text_before_tag(rest);
                self.rest = rest;
                let (is_end, tag) = match tag.strip_prefix('/') {
                    Some(tag) => (true, tag),
                    None => (false, tag),
                };
                let (is_empty, tag) = match tag.strip_suffix('/') {
                    Some(tag) => (true, tag),
                    None => (false, tag),
                };
                let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
                let name = name.rsplit(':').next().unwrap_or(name);
                return Some(Tag {
                    name,
                    attributes,
                    is_end,
                    is_empty,
                    text,
                });
            };
        }
    }
}

impl Element {
    /// The text at a path.
    pub(crate) fn at(&self, path: &str) -> Option<&str> {
        let mut leaves = self.leaves.iter();
        let leaf = leaves.find(|leaf| leaf.path == path)?;
        Some(&leaf.text)
    }

    /// The text of the first element of a name, wherever it stands.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let mut leaves = self.leaves.iter();
        let leaf = leaves.find(|leaf| leaf.path.rsplit('/').next() == Some(name))?;
        Some(&leaf.text)
    }
}

/// The value of an attribute.
pub(crate) fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        let (before, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after
            .chars()
            .next()
            .filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, behind) = after.get(1..)?.split_once(quote)?;
        if before.trim().eq_ignore_ascii_case(name) {
            return Some(decoded(value));
        }
        rest = behind;
    }
}

/// The text up to the next tag, and what follows it.
fn text_before_tag(rest: &str) -> (String, &str) {
    let mut text = String::new();
    let mut rest = rest;
    loop {
        let (plain, tag) = rest.split_at(tag_in(rest).unwrap_or(rest.len()));
        text.push_str(&decoded(plain));
        let Some(quoted) = tag.strip_prefix("<![CDATA[") else {
            return (text.trim().to_owned(), tag);
        };
        let (quoted, behind) = quoted.split_once("]]>").unwrap_or((quoted, ""));
        text.push_str(quoted);
        rest = behind;
    }
}

/// Where the first tag begins. A `<` that another follows before any `>` is one that the text has.
fn tag_in(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('<')?;
        let inside = text.get(at + 1..)?;
        let end = inside.find(['<', '>']);
        if inside.starts_with('!')
            || end.is_none_or(|end| inside.as_bytes().get(end) == Some(&b'>'))
        {
            return Some(at);
        }
        from = at + 1;
    }
}

/// A text in which characters may be written by their names or numbers. A `&` that begins none stays one.
pub(crate) fn decoded(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let end = after.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        let body = end.and_then(|end| after.get(..end));
        let digits = body.map(|body| body.strip_prefix('#').unwrap_or(body));
        let is_entity = digits.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        match body.filter(|_| is_entity) {
            Some("apos") => plain.push('\''),
            Some(body) => add_html_token(&mut plain, format!("&{body};").as_bytes(), false),
            None => plain.push('&'),
        }
        let used = body.filter(|_| is_entity).map_or(0, |body| body.len() + 1);
        rest = after.get(used..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_whether_they_are_closed_or_not() {
        for text in [
            "<?xml?><!-- <A> --><A><B>1 &amp; 2</B><C><D x=\"&lt;\">AT&T &#228;</D></C><E/><F><![CDATA[<x>]]></F></A><B>9</B>",
            "<A>\n<B>1 &amp; 2\n<C>\n<D x=\"&lt;\">AT&T &#228;\n</C>\n<E></E><F>&lt;x>\n</A>\n<B>9",
        ] {
            let mut markup = Markup::new(text);
            assert_eq!(markup.next().unwrap().name, "A");
            let element = markup.element("A");
            assert_eq!(element.at("B"), Some("1 & 2"), "{text}");
            assert_eq!(element.at("C/D"), Some("AT&T ä"));
            assert_eq!(element.text("D"), element.at("C/D"));
            assert_eq!(element.at("F"), Some("<x>"));
            let d = Markup::new(text).find(|tag| tag.name == "D").unwrap();
            assert_eq!(attribute(d.attributes, "X").unwrap(), "<");
            assert_eq!(markup.next().unwrap().text, "9");
        }
    }

    #[test]
    fn a_sign_in_a_text_is_no_tag_that_takes_the_end_of_its_element_along() {
        let mut markup = Markup::new("<A><B>1 <2 & <3</A><A><B>9</A>");
        let mut texts = std::iter::from_fn(|| {
            markup.next()?;
            Some(markup.element("A").text("B")?.to_owned())
        });
        assert_eq!(texts.next().as_deref(), Some("1 <2 & <3"));
        assert_eq!(texts.next().as_deref(), Some("9"));
    }
}
