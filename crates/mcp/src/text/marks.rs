//! Texts with `<mark>` tags, cut so that the match stays in sight and every tag that opens also closes.

const OPEN: &str = "<mark>";
const CLOSE: &str = "</mark>";

/// A stretch of text, marked or not.
struct Run<'a> {
    text: &'a str,
    marked: bool,
}

pub(crate) fn unmarked(source: &str) -> String {
    runs(source).iter().map(|run| run.text).collect()
}

/// The characters of a text without its tags.
pub(crate) fn unmarked_chars(source: &str) -> usize {
    runs(source)
        .iter()
        .map(|run| run.text.chars().count())
        .sum()
}

/// The characters of the first mark, as they stand.
pub(crate) fn first_marked(source: &str) -> Option<String> {
    let runs = runs(source);
    let run = runs.iter().find(|run| run.marked)?;
    Some(run.text.to_owned())
}

/// A text within so many bytes, centred on its first mark, else on the first occurrence of one of these words; and
/// whether anything was left out.
pub(crate) fn excerpt_for(source: &str, words: &str, bytes: usize) -> (String, bool) {
    let runs = runs(source);
    // A short text without tags is shown as it is.
    if source.len() <= bytes && matches!(runs.as_slice(), [Run { text, .. }] if *text == source) {
        return (source.to_owned(), false);
    }
    let plain: String = runs.iter().map(|run| run.text).collect();
    let mut spans = Vec::new();
    let mut at = 0;
    for run in &runs {
        if run.marked {
            spans.push((at, at + run.text.len()));
        }
        at += run.text.len();
    }
    let centre = spans.first().copied().or_else(|| first_word(&plain, words));
    // Each mark inside the window costs its tags; the window shrinks until all fits.
    let mut room = bytes;
    loop {
        let (start, end) = window(&plain, centre, room);
        let (text, cut) = marked(&plain, start, end, &spans);
        if text.len() <= bytes || room < 16 {
            return (text, cut);
        }
        room -= (text.len() - bytes).clamp(8, room.saturating_sub(8).max(8));
    }
}

/// Splits at tags. A tag that closes nothing, or opens twice, is dropped; one left open closes at the end.
fn runs(source: &str) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    let mut rest = source;
    let mut marked = false;
    while !rest.is_empty() {
        let (at, tag) = next_tag(rest);
        let (text, after) = rest.split_at(at);
        if !text.is_empty() {
            runs.push(Run { text, marked });
        }
        marked = tag == OPEN;
        rest = after.get(tag.len()..).unwrap_or_default();
    }
    runs
}

/// Where the next tag stands, and which it is; at the end there is none.
fn next_tag(text: &str) -> (usize, &'static str) {
    let mut tags = text.match_indices('<').filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let tag = [OPEN, CLOSE]
            .into_iter()
            .find(|tag| rest.starts_with(tag))?;
        Some((at, tag))
    });
    tags.next().unwrap_or((text.len(), ""))
}

/// Where the first of these words occurs, ignoring case.
fn first_word(plain: &str, words: &str) -> Option<(usize, usize)> {
    let folded = plain.to_lowercase();
    // Lower case may change lengths; then offsets would lie.
    if folded.len() != plain.len() {
        return None;
    }
    let whole = words.trim().to_lowercase();
    let mut candidates = vec![whole.clone()];
    candidates.extend(
        whole
            .split(|character: char| !character.is_alphanumeric())
            .map(str::to_owned),
    );
    let found = candidates
        .iter()
        .filter(|word| !word.is_empty())
        .find_map(|word| folded.find(word.as_str()).map(|at| (at, at + word.len())))?;
    (plain.is_char_boundary(found.0) && plain.is_char_boundary(found.1)).then_some(found)
}

/// The part of the text to show: all of it, or about a third of the room before the centre and the rest behind it.
fn window(plain: &str, centre: Option<(usize, usize)>, room: usize) -> (usize, usize) {
    if plain.len() <= room {
        return (0, plain.len());
    }
    let (first, last) = centre.unwrap_or((0, 0));
    let length = (last - first).min(room);
    let before = (room - length) / 3;
    let start = first.saturating_sub(before).min(plain.len() - room);
    let end = (start + room).min(plain.len());
    // A word is not begun or ended in the middle where a space is near.
    let start = plain.ceil_char_boundary(start);
    let end = plain.floor_char_boundary(end);
    (
        word_start(plain, start, first),
        word_end(plain, end, last.max(start)),
    )
}

fn word_start(plain: &str, start: usize, limit: usize) -> usize {
    if start == 0 {
        return 0;
    }
    let near = plain.get(start..limit.min(start + 24)).unwrap_or_default();
    let space = near
        .char_indices()
        .find(|(_, character)| character.is_whitespace());
    space.map_or(start, |(at, character)| start + at + character.len_utf8())
}

fn word_end(plain: &str, end: usize, limit: usize) -> usize {
    if end == plain.len() {
        return end;
    }
    let from = plain.ceil_char_boundary(limit.max(end.saturating_sub(24)));
    let near = plain.get(from..end).unwrap_or_default();
    let space = near
        .char_indices()
        .rev()
        .find(|(_, character)| character.is_whitespace());
    space.map_or(end, |(at, _)| from + at)
}

fn marked(plain: &str, start: usize, end: usize, spans: &[(usize, usize)]) -> (String, bool) {
    let mut text = String::new();
    let (cut_before, cut_after) = (start > 0, end < plain.len());
    if cut_before {
        text.push('…');
    }
    let mut at = start;
    for (first, last) in spans {
        let (first, last) = ((*first).max(start), (*last).min(end));
        if first < last {
            text.push_str(plain.get(at..first).unwrap_or_default());
            text.push_str(OPEN);
            text.push_str(plain.get(first..last).unwrap_or_default());
            text.push_str(CLOSE);
            at = last;
        }
    }
    text.push_str(plain.get(at..end).unwrap_or_default());
    if cut_after {
        text.push('…');
    }
    (text, cut_before || cut_after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balanced(text: &str) -> bool {
        let mut open = false;
        for (at, _) in text.match_indices('<') {
            let rest = &text[at..];
            if rest.starts_with(OPEN) {
                if open {
                    return false;
                }
                open = true;
            } else if rest.starts_with(CLOSE) {
                if !open {
                    return false;
                }
                open = false;
            }
        }
        !open
    }

    #[test]
    fn marks_stay_balanced_at_every_cut() {
        // SE-14
        for place in 0..120 {
            for bytes in [16, 40, 64, 96, 200] {
                let mut source = "wörd ".repeat(30);
                let at = source.floor_char_boundary(place);
                source.insert_str(at, "<mark>treffer</mark>");
                let (text, _) = excerpt_for(&source, "", bytes);
                assert!(balanced(&text), "{text}");
                assert!(text.contains(OPEN), "the match is in sight: {text}");
                assert!(
                    text.len() <= bytes.max(64),
                    "{} > {bytes}: {text}",
                    text.len()
                );
            }
        }
    }

    #[test]
    fn stray_tags_are_dropped() {
        for source in [
            "a</mark>b",
            "a<mark>b",
            "<mark><mark>b</mark>",
            "</mark></mark>x<mark>",
        ] {
            let (text, _) = excerpt_for(source, "", 100);
            assert!(balanced(&text), "{source} gave {text}");
            assert_eq!(unmarked(&text), unmarked(source));
        }
    }

    #[test]
    fn without_marks_the_words_are_the_centre() {
        let source = format!("{}Needle{}", "x ".repeat(200), " y".repeat(200));
        let (text, cut) = excerpt_for(&source, "the needle", 60);
        assert!(cut && text.contains("Needle"), "{text}");
        assert_eq!(
            excerpt_for("short", "absent", 60),
            ("short".to_owned(), false)
        );
    }
}
