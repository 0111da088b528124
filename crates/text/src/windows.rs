//! Where an excerpt may begin and end: as much context on both sides of a match as fits, cut at white space where some is near, and
//! never between a character and what stands on it.

use std::ops::Range;

use crate::classes::{Class, class_of, may_cut_between};

/// How far a cut moves inwards to find white space.
const SNAP_CHARS: usize = 24;

/// The bytes to show around `focus`: at most `max_chars` characters in all, inside `bounds`.
pub(crate) fn around(
    text: &str,
    focus: &Range<usize>,
    bounds: &Range<usize>,
    max_chars: usize,
) -> Range<usize> {
    let shown = text[focus.clone()].chars().count();
    let extra = max_chars.saturating_sub(shown);
    let room_before = text[bounds.start..focus.start]
        .chars()
        .rev()
        .take(extra)
        .count();
    let room_after = text[focus.end..bounds.end].chars().take(extra).count();
    let before = room_before.min((extra / 2).max(extra - room_after));
    let after = room_after.min(extra - before);
    let start = back(text, bounds.start, focus.start, before);
    let end = forth(text, focus.end, bounds.end, after);
    let slack = |chars: usize| SNAP_CHARS.min(chars / 2);
    Range {
        start: if start == 0 {
            0
        } else {
            snap_start(text, start..focus.start, slack(before))
        },
        end: if end == text.len() {
            end
        } else {
            snap_end(text, focus.end..end, slack(after))
        },
    }
}

fn back(text: &str, floor: usize, from: usize, chars: usize) -> usize {
    text[floor..from]
        .char_indices()
        .rev()
        .take(chars)
        .last()
        .map_or(from, |(at, _)| floor + at)
}

fn forth(text: &str, from: usize, ceiling: usize, chars: usize) -> usize {
    from + text[from..ceiling]
        .chars()
        .take(chars)
        .map(char::len_utf8)
        .sum::<usize>()
}

/// The first place in `context` where a word begins, else the first where a cut is safe, else its start.
fn snap_start(text: &str, context: Range<usize>, slack: usize) -> usize {
    let places = || {
        text[context.clone()]
            .char_indices()
            .map(|(at, c)| (context.start + at, c))
    };
    places()
        .take(slack + 1)
        .find(|&(at, c)| !c.is_whitespace() && text[..at].ends_with(char::is_whitespace))
        .or_else(|| places().find(|&(at, _)| is_safe(text, at)))
        .map_or(context.start, |(at, _)| at)
}

/// The last place in `context` where a word ends, else the last where a cut is safe, else its end.
fn snap_end(text: &str, context: Range<usize>, slack: usize) -> usize {
    // Each place is the end of a character of the context.
    let places = || {
        text[context.clone()]
            .char_indices()
            .rev()
            .map(|(at, c)| (context.start + at + c.len_utf8(), c))
    };
    places()
        .take(slack + 1)
        .find(|&(at, c)| !c.is_whitespace() && text[at..].starts_with(char::is_whitespace))
        .or_else(|| places().find(|&(at, _)| is_safe(text, at)))
        .map_or(context.end, |(at, _)| at)
}

fn is_safe(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    let (Some(last), Some(first)) = (before.chars().next_back(), after.chars().next()) else {
        return true;
    };
    let flags = if class_of(first) == Class::Flag {
        // Flags pair up from the start of their row; a row beyond this length is no text.
        before
            .chars()
            .rev()
            .take(1024)
            .take_while(|c| class_of(*c) == Class::Flag)
            .count()
    } else {
        0
    };
    may_cut_between(last, first, flags)
}
