//! The text of HTML, for reading and finding: lines where a reader would see lines, quoted text marked with `>`, nothing of
//! scripts and styles. It goes over the document once, forward only, whatever is left open in it.
//!
//! What people type into forms may be HTML without saying so ([`typed_to_text`]). It is if a tag stands in it that is used
//! there; `a < b` and `<https://example.com>` are text and stay what they are.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::html::add_html_token;

/// Quotes within quotes that are marked.
const MAX_QUOTES: usize = 8;
/// The longest name of a character, with its signs.
const MAX_ENTITY: usize = 34;
/// Line ends in a row that are kept.
const MAX_LINES: usize = 3;

/// Elements whose content is not there to be read.
const HIDDEN: [&str; 4] = ["script", "style", "template", "title"];
/// Elements that stand on lines of their own.
const BLOCKS: [&str; 22] = [
    "address", "article", "aside", "center", "dd", "div", "dl", "dt", "fieldset", "figure",
    "footer", "form", "header", "li", "main", "nav", "ol", "section", "table", "tbody", "tr", "ul",
];
/// Elements with a blank line around them.
const PARAGRAPHS: [&str; 10] = [
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "p",
    "pre",
];

/// Elements that only format and that people know.
const INLINE: [&str; 13] = [
    "a", "b", "body", "br", "em", "font", "html", "i", "s", "span", "strong", "sub", "u",
];

pub(super) fn to_text(html: &str) -> String {
    Text::default().read(html)
}

/// What stands in the element `title`.
pub(super) fn title(html: &str) -> Option<String> {
    let mut tags = html.match_indices('<');
    let tag =
        tags.find_map(|(at, _)| Tag::begun_by(html.get(at..)?).filter(|tag| tag.name == "title"));
    let inside = after_tag(tag?.after);
    let inside = inside.split_once("</").map_or(inside, |(inside, _)| inside);
    let title = to_text(inside).replace('\n', " ");
    (!title.is_empty()).then_some(title)
}

/// The text of what was typed, HTML or not. Line ends are meant as such there, and where a link leads is told.
pub(super) fn typed_to_text(typed: &str) -> Cow<'_, str> {
    let Some((_, behind)) = typed.rsplit_once('>') else {
        return typed.into();
    };
    let behind = behind.len();
    let tags = typed.match_indices('<');
    let mut begun = tags.filter_map(|(at, _)| Tag::begun_by(typed.get(at..)?));
    if !begun.any(|tag| tag.is_meant(behind)) {
        return typed.into();
    }
    let text = Text {
        typed: Some(behind),
        preformatted: 1,
        ..Text::default()
    };
    text.read(typed).into()
}
/// The tag that a text begins with, up to its name.
struct Tag<'h> {
    name: String,
    is_end: bool,
    /// The attributes and everything behind them.
    after: &'h str,
}

impl<'h> Tag<'h> {
    fn begun_by(html: &'h str) -> Option<Self> {
        let inside = html.strip_prefix('<')?;
        let is_end = inside.starts_with('/');
        let inside = inside.strip_prefix('/').unwrap_or(inside);
        if !inside.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | ':'));
        let (name, after) = inside.split_at(end.unwrap_or(inside.len()));
        Some(Self {
            name: name.to_ascii_lowercase(),
            is_end,
            after,
        })
    }

    /// Whether it is the tag of an element that people know, and ends somewhere: not where the text has no `>` any more.
    fn is_meant(&self, behind_the_last: usize) -> bool {
        let name = self.name.as_str();
        let is_known = INLINE.contains(&name)
            || BLOCKS.contains(&name)
            || PARAGRAPHS.contains(&name)
            || HIDDEN.contains(&name)
            || matches!(name, "head" | "td" | "th");
        let is_tag = self.after.starts_with(['>', '/', ' ', '\t', '\n']);
        is_known && is_tag && self.after.len() > behind_the_last
    }
}

/// What stands between what was written and what comes next.
#[derive(Clone, Copy, Default)]
enum Gap {
    #[default]
    Nothing,
    Space,
    Lines(usize),
}

#[derive(Default)]
struct Text {
    written: String,
    gap: Gap,
    quotes: usize,
    /// Quotes that the last line is in.
    marked: usize,
    /// Elements that are open in which white space counts.
    preformatted: usize,
    /// For what was typed, where HTML may not be meant everywhere: how much stands behind the last `>`.
    typed: Option<usize>,
    /// Where the text of an open link begins, and where it leads.
    link: Option<(usize, String)>,
    /// Whether nothing stands behind the dash of an item yet.
    begins_item: bool,
}

impl Text {
    fn read(mut self, html: &str) -> String {
        let mut rest = html;
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '<' => self.markup(rest),
                '&' => self.entity(rest),
                other => {
                    self.push(other);
                    rest.get(other.len_utf8()..).unwrap_or_default()
                }
            };
        }
        self.written
    }

    fn push(&mut self, character: char) {
        match character {
            // Fillers and hints for breaking lines.
            '\r' | '\u{ad}' | '\u{34f}' | '\u{200b}' | '\u{feff}' => {}
            '\n' if self.preformatted > 0 => self.lines(1, true),
            ' ' | '\t' if self.preformatted > 0 => self.write(character),
            ' ' | '\t' | '\n' | '\u{c}' | '\u{a0}' => {
                if matches!(self.gap, Gap::Nothing) {
                    self.gap = Gap::Space;
                }
            }
            // Joins and parts letters; where there are none it is a filler too.
            '\u{200c}' if !matches!(self.gap, Gap::Nothing) || self.written.is_empty() => {}
            other => self.write(other),
        }
    }

    fn write(&mut self, character: char) {
        self.begins_item = false;
        let quotes = self.quotes.min(MAX_QUOTES);
        match std::mem::take(&mut self.gap) {
            _ if self.written.is_empty() => self.begin_line(quotes),
            Gap::Nothing => {}
            Gap::Space => self.written.push(' '),
            Gap::Lines(lines) => {
                for line in 1..=lines {
                    self.written.push('\n');
                    if line < lines {
                        let both = quotes.min(self.marked);
                        self.written.extend(std::iter::repeat_n('>', both));
                    }
                }
                self.begin_line(quotes);
            }
        }
        self.written.push(character);
    }

    fn begin_line(&mut self, quotes: usize) {
        self.marked = quotes;
        self.written.extend(std::iter::repeat_n('>', quotes));
        if quotes > 0 {
            self.written.push(' ');
        }
    }

    /// Asks for line ends: so many, or so many more.
    fn lines(&mut self, wanted: usize, more: bool) {
        let there = match self.gap {
            Gap::Lines(lines) => lines,
            Gap::Nothing | Gap::Space => 0,
        };
        let lines = if more {
            there + wanted
        } else {
            there.max(wanted)
        };
        self.gap = Gap::Lines(lines.min(MAX_LINES));
    }

    /// Steps over a tag or a comment, and says what follows.
    fn markup<'h>(&mut self, html: &'h str) -> &'h str {
        if let Some(comment) = html.strip_prefix("<!--") {
            return after(comment, "-->");
        }
        let inside = html.get(1..).unwrap_or_default();
        if inside.starts_with(['!', '?']) && self.typed.is_none() {
            return after(inside, ">");
        }
        let tag = Tag::begun_by(html);
        let tag = tag.filter(|tag| self.typed.is_none_or(|behind| tag.is_meant(behind)));
        let Some(tag) = tag else {
            self.write('<');
            return inside;
        };
        let rest = match self.typed {
            // A quote that is left open must not swallow what follows.
            Some(_) => after(tag.after, ">"),
            None => after_tag(tag.after),
        };
        if !tag.is_end && HIDDEN.contains(&tag.name.as_str()) {
            return after_element(rest, &tag.name);
        }
        if tag.name == "a" {
            self.end_link();
            let attributes = tag.after.strip_suffix(rest).unwrap_or_default();
            let to = address(attributes).filter(|to| self.typed.is_some() || leads_out(to));
            self.link = to.map(|to| (self.written.len(), to));
        }
        self.element(&tag.name, tag.is_end);
        rest
    }

    /// Tells where the link that is open leads, unless that is what it shows.
    fn end_link(&mut self) {
        if let Some((start, to)) = self.link.take() {
            let shown = self.written.get(start..).unwrap_or_default().trim();
            let plain = to.strip_prefix("mailto:").unwrap_or(&to);
            if shown != to && shown != plain.trim_end_matches('/') {
                format!(" <{to}>").chars().for_each(|one| self.push(one));
            }
        }
    }

    fn element(&mut self, name: &str, is_end: bool) {
        // An item is often a paragraph, which begins behind the dash.
        let begins_item = self.begins_item && !is_end && matches!(name, "div" | "p" | "section");
        match name {
            _ if begins_item => {}
            "br" => self.lines(1, true),
            "td" | "th" => self.push(' '),
            name if PARAGRAPHS.contains(&name) => self.lines(2, false),
            name if BLOCKS.contains(&name) => self.lines(1, false),
            _ => {}
        }
        let count = |open: usize| {
            if is_end {
                open.saturating_sub(1)
            } else {
                open + 1
            }
        };
        match name {
            "blockquote" => self.quotes = count(self.quotes),
            "pre" => self.preformatted = count(self.preformatted),
            "li" if !is_end => {
                self.write('-');
                self.gap = Gap::Space;
                self.begins_item = true;
            }
            _ => {}
        }
    }

    /// Reads a character that is written by its name or number, and says what follows.
    fn entity<'h>(&mut self, html: &'h str) -> &'h str {
        let end = html.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        let token = end.and_then(|end| html.get(..=end));
        let body = token.and_then(|token| token.get(1..token.len() - 1));
        let is_entity = body.is_some_and(|body| {
            let digits = body.strip_prefix('#').unwrap_or(body);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        let Some(token) = token.filter(|_| is_entity) else {
            self.write('&');
            return html.get(1..).unwrap_or_default();
        };
        let mut decoded = String::new();
        add_html_token(&mut decoded, token.as_bytes(), false);
        for character in decoded.chars() {
            match character {
                // Numbers of an old character set, which all programs read as such.
                '\u{80}'..='\u{9f}' => {
                    let byte = u8::try_from(u32::from(character)).unwrap_or(b'?');
                    let decode = charset_decoder(b"windows-1252");
                    let text = decode.map(|decode| decode(&[byte]));
                    text.iter()
                        .flat_map(|text| text.chars())
                        .for_each(|one| self.push(one));
                }
                other if other.is_control() && !other.is_ascii_whitespace() => {}
                other => self.push(other),
            }
        }
        html.get(token.len()..).unwrap_or_default()
    }
}

/// What follows the first occurrence; nothing if there is none.
fn after<'h>(html: &'h str, what: &str) -> &'h str {
    html.split_once(what).map_or("", |(_, rest)| rest)
}

/// What follows the end of the tag. The sign may stand within a quoted value.
fn after_tag(attributes: &str) -> &str {
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in attributes.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'>') => return attributes.get(at + 1..).unwrap_or_default(),
            (None, b'"' | b'\'') if after_equals => quote = Some(byte),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            after_equals = byte == b'=' && quote.is_none();
        }
    }
    ""
}

/// Whether an address means something outside of its document.
fn leads_out(address: &str) -> bool {
    let schemes = ["http://", "https://", "mailto:"];
    schemes.iter().any(|scheme| address.starts_with(scheme))
}

fn address(attributes: &str) -> Option<String> {
    let at = attributes.to_ascii_lowercase().find("href=")?;
    let value = attributes.get(at + "href=".len()..)?;
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value.get(1..)?.split(quote).next()?,
        _ => value.split([' ', '\t', '\n', '>']).next()?,
    };
    (!value.is_empty()).then(|| value.replace("&amp;", "&"))
}

/// What follows the element, of which nothing is read.
fn after_element<'h>(html: &'h str, name: &str) -> &'h str {
    let mut rest = html;
    while let Some((_, tail)) = rest.split_once("</") {
        let begins = tail.get(..name.len());
        if begins.is_some_and(|begins| begins.eq_ignore_ascii_case(name)) {
            return after_tag(tail.get(name.len()..).unwrap_or_default());
        }
        rest = tail;
    }
    ""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_document_reads_as_it_looks() {
        for (html, expected) in [
            ("<p>One</p><p>Two<br>Three</p>", "One\n\nTwo\nThree"),
            ("a\n  b\t<b>c</b>d", "a b cd"),
            ("<div>a</div><div>b</div>", "a\nb"),
            (
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>",
                "a b\nc",
            ),
            ("<ul><li>one</li><li>two</li></ul>", "- one\n- two"),
            (
                "<ul><li><div>one</div><div>more</div></li><li></li><li>\n<p>two</p></li></ul>x",
                "- one\nmore\n-\n- two\n\nx",
            ),
            (
                "Hi<blockquote>old<blockquote>older</blockquote></blockquote>new",
                "Hi\n\n> old\n>\n>> older\n\nnew",
            ),
            ("<pre>a\n  b</pre>", "a\n  b"),
            (
                "<head><title>t</title><STYLE>p > a {}</sTyle ></head>x<script>if (a </ b) {}</script>y",
                "xy",
            ),
            ("a<!-- b > c -->d<![if !mso]>e<![endif]><?xml ?>", "ade"),
            ("<a title=\"a > b\" href='x'>link</a>", "link"),
            (
                "<p>See <a href=\"https://example.org/a?b=1&amp;c=2\">the <b>list</b></a>, <a href='https://example.org/'>https://example.org</a>",
                "See the list <https://example.org/a?b=1&c=2>, https://example.org",
            ),
            ("<p don't>it's</p>", "it's"),
            (
                "1 < 2 & 3 &lt; 4 &amp; &#228;&#x1F600;&eacute; &nosuch; &#146;",
                "1 < 2 & 3 < 4 & ä😀é &nosuch; ’",
            ),
            ("a&nbsp;&zwnj;&nbsp;&zwnj;&nbsp;b", "a b"),
            ("<br><br><br><br>a<br><br><br><br><br>b", "a\n\n\nb"),
            ("cut <a href=\"", "cut"),
            ("cut <!-- ", "cut"),
            ("cut <script> a", "cut"),
            ("", ""),
        ] {
            assert_eq!(to_text(html), expected, "{html}");
        }
    }

    #[test]
    fn what_was_typed_stays_as_it_is_where_it_is_not_html() {
        for (typed, expected) in [
            ("a < b && c > d &amp; e", "a < b && c > d &amp; e"),
            (
                "see <https://example.com> <anna@example.com>",
                "see <https://example.com> <anna@example.com>",
            ),
            ("<br", "<br"),
            ("one<br>two<BR/>three\nfour", "one\ntwo\nthree\nfour"),
            (
                "<p>one</p><p>two &amp; &lt;three&gt;&nbsp;&#8211; &#x1F600; &nope; &</p>",
                "one\n\ntwo & <three> – 😀 &nope; &",
            ),
            (
                "<ul><li>milk</li><li><b>bread</b></li></ul>after",
                "- milk\n- bread\nafter",
            ),
            (
                "<a href=\"https://example.com/?a=1&amp;b=2\">Join</a> or <a href='mailto:a@example.com'>a@example.com</a>",
                "Join <https://example.com/?a=1&b=2> or a@example.com",
            ),
            (
                "<a href=https://example.com/ target=_blank>https://example.com/</a>",
                "https://example.com/",
            ),
            (
                "<html><head><title>x</title></head><style>p < q</style>Hello<script>alert(1)",
                "Hello",
            ),
            ("<b>1 < 2</b> <unknown> <!", "1 < 2 <unknown> <!"),
            ("<b>a <a href=\"open>b</b> <i c", "a b <i c"),
        ] {
            assert_eq!(typed_to_text(typed), expected, "{typed}");
        }
    }

    #[test]
    fn a_page_says_what_it_is_called() {
        let page = "<html><head><TITLE lang=en>A &amp;\nB</TITLE></head>";
        assert_eq!(title(page).as_deref(), Some("A & B"));
        assert_eq!(title("<p>no</p>"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(html in "(<|>|/|!|-|&|;|#|\"|'|=|br|p|pre|li|script|style|blockquote|é|\u{200c}| |\\PC){0,60}") {
            to_text(&html);
            prop_assert!(typed_to_text(&html).len() <= 4 * html.len() + 4);
        }
    }
}
