//! The text of a record as blocks that a page can show: paragraphs, headings, lists, code, and quotes of mail, which are
//! folded. What marks them stays text wherever it is not understood; nothing of a record becomes markup.

use super::format::{format_number, readable};

/// The longest text that is laid out, in characters.
const MAX_CHARS: usize = 200_000;
/// The longest link that is recognised.
const MAX_LINK_BYTES: usize = 2_000;
/// A quote of more lines is folded.
const OPEN_QUOTE_LINES: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block {
    Paragraph(Vec<Span>),
    Heading(Vec<Span>),
    List(Vec<Vec<Span>>),
    Numbered(Vec<Vec<Span>>),
    Code(String),
    Quote(Quote),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) text: String,
    pub(super) lines: usize,
    pub(super) folded: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Span {
    Text(String),
    Strong(String),
    Code(String),
    Link { address: String, text: String },
}

pub(super) struct BodyText {
    pub(super) blocks: Vec<Block>,
    /// How many characters are not shown.
    /// Empty for none.
    pub(super) left_out: String,
}

pub(super) fn lay_out(text: &str) -> BodyText {
    let end = text.char_indices().nth(MAX_CHARS).map(|(end, _)| end);
    let (shown, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut layout = Layout::default();
    for line in shown.lines() {
        layout.line(line);
    }
    layout.close();
    BodyText {
        blocks: layout.blocks,
        left_out: match rest.chars().count() {
            0 => String::new(),
            left => format_number(u64::try_from(left).unwrap_or(u64::MAX)),
        },
    }
}

#[derive(Default)]
struct Layout {
    blocks: Vec<Block>,
    open: Open,
}

/// The block that further lines may belong to.
#[derive(Default)]
enum Open {
    #[default]
    Nothing,
    Paragraph(Vec<String>),
    Quote(Vec<String>),
    Code(Vec<String>),
    List(Vec<String>),
    Numbered(Vec<String>),
}

impl Layout {
    fn line(&mut self, line: &str) {
        let is_fence = line.trim_start().starts_with("```");
        if let Open::Code(lines) = &mut self.open {
            if is_fence {
                self.close();
            } else {
                lines.push(line.to_owned());
            }
            return;
        }
        if is_fence {
            self.close();
            self.open = Open::Code(Vec::new());
        } else if line.trim().is_empty() {
            self.close();
        } else if let Some(heading) = heading(line) {
            self.close();
            self.blocks.push(Block::Heading(spans(heading)));
        } else if let Some(quoted) = line.strip_prefix('>') {
            let quoted = quoted.strip_prefix(' ').unwrap_or(quoted).to_owned();
            match &mut self.open {
                Open::Quote(lines) => lines.push(quoted),
                _ => self.begin(Open::Quote(vec![quoted])),
            }
        } else if let Some(item) = item(line) {
            match &mut self.open {
                Open::List(items) => items.push(item.to_owned()),
                _ => self.begin(Open::List(vec![item.to_owned()])),
            }
        } else if let Some(item) = numbered(line) {
            match &mut self.open {
                Open::Numbered(items) => items.push(item.to_owned()),
                _ => self.begin(Open::Numbered(vec![item.to_owned()])),
            }
        } else {
            self.continue_with(line);
        }
    }

    /// A line that begins nothing of its own: it goes on with a list that it is indented under, or with a paragraph.
    fn continue_with(&mut self, line: &str) {
        match &mut self.open {
            Open::List(items) | Open::Numbered(items) if line.starts_with("  ") => {
                if let Some(last) = items.last_mut() {
                    last.push('\n');
                    last.push_str(line.trim_start());
                }
            }
            Open::Paragraph(lines) => lines.push(line.to_owned()),
            _ => self.begin(Open::Paragraph(vec![line.to_owned()])),
        }
    }

    fn begin(&mut self, open: Open) {
        self.close();
        self.open = open;
    }

    fn close(&mut self) {
        let items = |items: Vec<String>| items.iter().map(|item| spans(item)).collect();
        let block = match std::mem::take(&mut self.open) {
            Open::Nothing => return,
            Open::Paragraph(lines) => Block::Paragraph(spans(&lines.join("\n"))),
            Open::Code(lines) => Block::Code(readable(&lines.join("\n"))),
            Open::List(lines) => Block::List(items(lines)),
            Open::Numbered(lines) => Block::Numbered(items(lines)),
            Open::Quote(lines) => Block::Quote(Quote {
                lines: lines.len(),
                folded: lines.len() > OPEN_QUOTE_LINES,
                text: readable(&lines.join("\n")),
            }),
        };
        self.blocks.push(block);
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then_some(text)?.strip_prefix(' ')
}

fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["- ", "* ", "• "]
        .iter()
        .find_map(|sign| line.strip_prefix(sign))
}

fn numbered(line: &str) -> Option<&str> {
    let (number, text) = line.trim_start().split_once(". ")?;
    let is_number = (1..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some(text)
}

/// Cuts a text at what is emphasised, quoted as code, or an address of the web.
fn spans(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let at_word = !plain.ends_with(|c: char| c.is_alphanumeric());
        let found = match next {
            '*' => delimited(rest, "**").map(|(text, after)| (Span::Strong(readable(text)), after)),
            '`' => delimited(rest, "`").map(|(text, after)| (Span::Code(readable(text)), after)),
            '[' => named_link(rest),
            'h' if at_word => bare_link(rest),
            _ => None,
        };
        if let Some((span, after)) = found {
            if !plain.is_empty() {
                spans.push(Span::Text(readable(&std::mem::take(&mut plain))));
            }
            spans.push(span);
            rest = after;
        } else {
            plain.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
    if !plain.is_empty() {
        spans.push(Span::Text(readable(&plain)));
    }
    spans
}

fn delimited<'a>(text: &'a str, sign: &str) -> Option<(&'a str, &'a str)> {
    let (inside, after) = text.strip_prefix(sign)?.split_once(sign)?;
    let is_one = !inside.trim().is_empty() && !inside.contains('\n');
    is_one.then_some((inside, after))
}

fn named_link(text: &str) -> Option<(Span, &str)> {
    // Bounded, for a text may have as many brackets as characters.
    let near = text.get(..text.floor_char_boundary(MAX_LINK_BYTES))?;
    let (name, rest) = near.strip_prefix('[')?.split_once("](")?;
    let (address, _) = rest.split_once(')')?;
    let is_plain = !name.is_empty() && !name.contains(['[', '\n']);
    let span = Span::Link {
        address: web_address(address)?.to_owned(),
        // The address is shown with the name: what a link says is its author's word.
        text: format!("{} ({})", readable(name), readable(address)),
    };
    let after = text.get(name.len() + address.len() + "[]()".len()..)?;
    is_plain.then_some((span, after))
}

fn bare_link(text: &str) -> Option<(Span, &str)> {
    if !text.starts_with("http") {
        return None;
    }
    let near = text.get(..text.floor_char_boundary(MAX_LINK_BYTES))?;
    let end = near.find(|c: char| c.is_whitespace() || "<>\"`".contains(c));
    let address = near.get(..end.unwrap_or(near.len()))?;
    let address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*', '\'']);
    let span = Span::Link {
        address: web_address(address)?.to_owned(),
        text: readable(address),
    };
    Some((span, text.get(address.len()..)?))
}

/// An address that may stand in a link: of the web, and nothing that a browser would run.
pub(super) fn web_address(text: &str) -> Option<&str> {
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))?;
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    (!host.is_empty() && text.chars().all(is_plain)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Span {
        Span::Text(text.to_owned())
    }

    fn link(address: &str, text: &str) -> Span {
        Span::Link {
            address: address.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_mail_is_paragraphs_and_a_folded_quote() {
        let body = lay_out(
            "Hello,\nyes.\n\nOn Monday she wrote:\n> one\n> two\n> three\n> four\n> five\n\n-- \nA",
        );
        let [greeting, said, Block::Quote(quote), end] = body.blocks.as_slice() else {
            panic!("{:?}", body.blocks);
        };
        assert_eq!(*greeting, Block::Paragraph(vec![text("Hello,\nyes.")]));
        assert_eq!(*said, Block::Paragraph(vec![text("On Monday she wrote:")]));
        assert_eq!((quote.lines, quote.folded), (5, true));
        assert_eq!(quote.text, "one\ntwo\nthree\nfour\nfive");
        assert_eq!(*end, Block::Paragraph(vec![text("-- \nA")]));
    }

    #[test]
    fn markdown_is_understood_where_it_is_plain() {
        let body = lay_out(
            "# A **plan**\n- one\n- two\n  more\n1. first\n```\n<b> **x**\n```\n#hashtag * 2",
        );
        assert_eq!(
            body.blocks,
            [
                Block::Heading(vec![text("A "), Span::Strong("plan".to_owned())]),
                Block::List(vec![vec![text("one")], vec![text("two\nmore")]]),
                Block::Numbered(vec![vec![text("first")]]),
                Block::Code("<b> **x**".to_owned()),
                Block::Paragraph(vec![text("#hashtag * 2")]),
            ]
        );
    }

    #[test]
    fn only_the_web_is_linked() {
        assert_eq!(
            spans("see https://a.example/x?y=1, or (http://b.example)."),
            [
                text("see "),
                link("https://a.example/x?y=1", "https://a.example/x?y=1"),
                text(", or ("),
                link("http://b.example", "http://b.example"),
                text(")."),
            ]
        );
        assert_eq!(
            spans("[bank](https://evil.example)"),
            [link("https://evil.example", "bank (https://evil.example)")]
        );
        for hostile in [
            "[x](javascript:alert(1))",
            "javascript:alert(1)",
            "[x](data:text/html,1)",
            "xhttps://a.example",
            "https://",
        ] {
            assert_eq!(spans(hostile), [text(hostile)]);
        }
    }

    #[test]
    fn a_very_long_text_is_cut_openly() {
        let body = lay_out(&"x".repeat(MAX_CHARS + 7));
        assert_eq!(body.left_out, "7");
        assert_eq!(body.blocks.len(), 1);
    }
}
