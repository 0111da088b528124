//! Descriptions that are HTML without saying so become plain text.
//!
//! A text counts as HTML if a tag stands in it that people use to format; `a < b` and `<https://example.com>` are text and stay
//! what they are. Line ends stay too, as those who write descriptions mean them.

use std::borrow::Cow;

/// Tags that only format.
const INLINE: [&str; 12] = [
    "a", "b", "em", "font", "html", "body", "i", "s", "span", "strong", "sub", "u",
];

/// Tags that begin a line.
const BLOCKS: [&str; 17] = [
    "blockquote",
    "div",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "table",
    "td",
    "tr",
    "ul",
];

/// Tags whose content is not shown.
const HIDDEN: [&str; 4] = ["head", "script", "style", "title"];

/// The longest name of a character that is looked at: `&nbsp;`, `&#x1F600;`.
const MAX_ENTITY: usize = 10;

/// The text without its tags, if it has any.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let has_tags = text
        .match_indices('<')
        .any(|(at, _)| tag_name(text.get(at..).unwrap_or_default()).is_some());
    if !has_tags {
        return Cow::Borrowed(text);
    }
    let mut page = Page::default();
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
        page.text.push_str(before);
        rest = match special.strip_prefix('<') {
            Some(_) => page.tag(special),
            None => page.entity(special),
        };
    }
    page.text.push_str(rest);
    Cow::Owned(page.text.trim().to_owned())
}

/// The name of the tag that a text begins with, in small letters, with `/` before it where the tag closes.
fn tag_name(text: &str) -> Option<String> {
    let inside = text.strip_prefix('<')?;
    let closes = inside.starts_with('/');
    let name = inside.trim_start_matches('/');
    let length = name
        .find(|character: char| !character.is_ascii_alphanumeric())
        .filter(|length| *length <= "blockquote".len())?;
    let (name, after) = name.split_at_checked(length)?;
    let name = name.to_ascii_lowercase();
    let is_known = name == "br"
        || INLINE.contains(&name.as_str())
        || BLOCKS.contains(&name.as_str())
        || HIDDEN.contains(&name.as_str());
    let is_tag = is_known && after.starts_with(['>', '/', ' ', '\t', '\n']);
    is_tag.then(|| if closes { format!("/{name}") } else { name })
}

/// What was written so far.
#[derive(Default)]
struct Page {
    text: String,
    /// Where the text of an open link begins, and where it leads.
    link: Option<(usize, String)>,
    /// Whether no tag ends any more, so that nobody has to look for that again.
    is_past_tags: bool,
}

impl Page {
    /// Reads a tag, or the one character that begins none. Returns what follows.
    fn tag<'t>(&mut self, text: &'t str) -> &'t str {
        let name = tag_name(text).filter(|_| !self.is_past_tags);
        let Some(name) = name else {
            return self.literal(text);
        };
        let Some((tag, after)) = text.split_once('>') else {
            self.is_past_tags = true;
            return self.literal(text);
        };
        match name.as_str() {
            "br" | "/br" => self.text.push('\n'),
            "a" => self.link = address(tag).map(|to| (self.text.len(), to)),
            "/a" => self.end_link(),
            "li" => {
                self.begin_line();
                self.text.push_str("- ");
            }
            name if HIDDEN.contains(&name) => return after_hidden(after, name),
            name if BLOCKS.contains(&name.trim_start_matches('/')) => self.begin_line(),
            _ => {}
        }
        after
    }

    /// Reads `&amp;` and the like, or the one character that begins none. Returns what follows.
    fn entity<'t>(&mut self, text: &'t str) -> &'t str {
        let end = text.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        let parts = end.and_then(|end| Some((text.get(1..end)?, text.get(end + 1..)?)));
        match parts.and_then(|(name, after)| Some((character(name)?, after))) {
            Some((character, after)) => {
                self.text.push(character);
                after
            }
            None => self.literal(text),
        }
    }

    fn literal<'t>(&mut self, text: &'t str) -> &'t str {
        let mut characters = text.chars();
        self.text.extend(characters.next());
        characters.as_str()
    }

    fn begin_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Where a link leads is kept, unless it is what the link shows.
    fn end_link(&mut self) {
        if let Some((start, to)) = self.link.take() {
            let shown = self.text.get(start..).unwrap_or_default().trim();
            if shown != to && Some(shown) != to.strip_prefix("mailto:") {
                self.text.extend([" <", &to, ">"]);
            }
        }
    }
}

/// Where a link leads.
fn address(tag: &str) -> Option<String> {
    let at = tag.to_ascii_lowercase().find("href=")?;
    let value = tag.get(at + "href=".len()..)?;
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value.get(1..)?.split(quote).next()?,
        _ => value.split_ascii_whitespace().next()?,
    };
    let value = value.replace("&amp;", "&");
    (!value.is_empty()).then_some(value)
}

/// What follows the end of a hidden part. Without an end, nothing does.
fn after_hidden<'t>(text: &'t str, name: &str) -> &'t str {
    let close = format!("/{name}");
    let mut closings = text.match_indices("</");
    let rest = closings.find_map(|(at, _)| {
        let rest = text.get(at..)?;
        (tag_name(rest)? == close).then_some(rest)
    });
    rest.and_then(|rest| rest.split_once('>'))
        .map_or("", |(_, after)| after)
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "bull" => '•',
        "euro" => '€',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn html_becomes_text_and_text_stays_text() {
        for (given, expected) in [
            ("a < b && c > d &amp; e", "a < b && c > d &amp; e"),
            (
                "see <https://example.com> <anna@example.com>",
                "see <https://example.com> <anna@example.com>",
            ),
            ("<br", "<br"),
            ("one<br>two<BR/>three\nfour", "one\ntwo\nthree\nfour"),
            (
                "<p>one</p><p>two &amp; &lt;three&gt;&nbsp;&#8211; &#x1F600; &nope; &</p>",
                "one\ntwo & <three> – 😀 &nope; &",
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
            ("<b>1 < 2</b> <unknown>", "1 < 2 <unknown>"),
        ] {
            assert_eq!(plain(given), expected, "{given}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(parts in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(vec!["<", ">", "</", "a", "href=", "'", "<br>", "<li", "<script>", "&", "#x", ";", " "]).prop_map(str::to_owned),
                ".{0,3}",
            ], 0..30)) {
            let text = parts.concat();
            prop_assert!(plain(&text).len() <= 4 * text.len());
        }
    }
}
