//! Evidence: the few stretches of one field that best show why it matched, with exact offsets. Everything is found in one pass over
//! the field's tokens, which ends early once the best possible stretches are known.

use std::ops::Range;

use crate::marks::Span;
use crate::matcher::{Matcher, Occurrence};
use crate::query::Expression;
use crate::tokens::Tokens;
use crate::windows::around;

/// How much evidence one field may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptLimits {
    /// Most excerpts.
    pub max_excerpts: usize,
    /// Most characters of one excerpt; at least 48 are taken.
    pub max_chars: usize,
    /// Characters kept free on each side of the matches, where the field has them; at most a third of `max_chars`.
    pub context_chars: usize,
}

impl Default for ExcerptLimits {
    fn default() -> Self {
        Self {
            max_excerpts: 3,
            max_chars: 240,
            context_chars: 40,
        }
    }
}

impl ExcerptLimits {
    fn clamped(self) -> Self {
        let max_chars = self.max_chars.max(48);
        Self {
            max_excerpts: self.max_excerpts,
            max_chars,
            context_chars: self.context_chars.clamp(8, max_chars / 3),
        }
    }

    /// Characters that matches may take up together; what is left is context.
    fn focus_chars(self) -> usize {
        self.max_chars - 2 * self.context_chars
    }
}

/// One stretch of a field that contains matches. Offsets are Unicode scalar values in the whole field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// First character shown.
    pub start_chars: usize,
    /// One behind the last character shown.
    pub end_chars: usize,
    /// Exactly the characters from `start_chars` to `end_chars`.
    pub text: String,
    /// The matches inside, absolute, sorted, apart from each other. A match too long to leave room for context is marked in part.
    pub matches: Vec<Span>,
    /// Whether the field has more text than this.
    pub truncated: bool,
}

/// The occurrences kept of one field; more of them add nothing to three excerpts.
const MAX_OCCURRENCES: usize = 65_536;

/// The best stretches of `text` for the wanted clauses of `expression`, best first: those that show clauses not shown yet, then those
/// with most different clauses, then the earliest. They never overlap; a text without a match has none.
pub fn excerpts(text: &str, expression: &Expression, limits: ExcerptLimits) -> Vec<Excerpt> {
    let limits = limits.clamped();
    if limits.max_excerpts == 0 || expression.matches_nothing() {
        return Vec::new();
    }
    let mut occurrences = collect(text, expression, limits);
    occurrences.sort_by_key(|found| (found.start, found.end, found.clause));
    let groups = groups(text, &occurrences, limits.focus_chars());
    choose(text, &groups, limits)
        .into_iter()
        .map(|window| excerpt(text, &window, &occurrences, limits))
        .collect()
}

fn collect(text: &str, expression: &Expression, limits: ExcerptLimits) -> Vec<Occurrence> {
    let mut matcher = Matcher::new(expression.wanted.iter());
    let mut enough = Enough::new(expression.wanted.len(), limits);
    let mut found = Vec::new();
    let mut tokens = Tokens::new(text);
    while found.len() < MAX_OCCURRENCES && tokens.advance() {
        let token = tokens.token();
        if token.start > enough.stop {
            break;
        }
        matcher.feed(&token, |occurrence| {
            found.push(occurrence);
            enough.note(occurrence);
        });
    }
    found
}

/// Knows when reading on cannot change the answer: as many places that show every clause have been passed as excerpts are wanted, so
/// far apart that none of them can be in another's way.
struct Enough {
    last_starts: Vec<Option<usize>>,
    wanted: usize,
    focus: usize,
    /// Bytes that an excerpt and its neighbour's context cannot exceed.
    apart: usize,
    next_from: usize,
    stop: usize,
}

impl Enough {
    fn new(clauses: usize, limits: ExcerptLimits) -> Self {
        Self {
            last_starts: vec![None; clauses],
            wanted: limits.max_excerpts,
            focus: limits.focus_chars(),
            apart: limits.max_chars.saturating_mul(8),
            next_from: 0,
            stop: usize::MAX,
        }
    }

    fn note(&mut self, found: Occurrence) {
        if self.wanted == 0 || found.start < self.next_from {
            return;
        }
        if let Some(last) = self.last_starts.get_mut(found.clause) {
            *last = Some(found.start);
        }
        let first = self.last_starts.iter().copied().min().flatten();
        // Bytes are never fewer than characters, so this is the stricter measure.
        if first.is_some_and(|first| found.end.saturating_sub(first) <= self.focus) {
            self.wanted -= 1;
            self.next_from = found.end.saturating_add(self.apart);
            self.last_starts.fill(None);
            if self.wanted == 0 {
                self.stop = self.next_from;
            }
        }
    }
}

/// Neighbouring occurrences that one excerpt can show.
#[derive(Clone, Debug)]
struct Group {
    bytes: Range<usize>,
    /// One bit per clause.
    clauses: u64,
}

/// For each occurrence, the group that begins with it.
#[expect(
    clippy::indexing_slicing,
    reason = "there are as many ranges as occurrences, and clauses are taken modulo the counts"
)]
fn groups(text: &str, occurrences: &[Occurrence], focus_chars: usize) -> Vec<Group> {
    let ranges = char_ranges(text, occurrences);
    let mut groups = Vec::with_capacity(occurrences.len());
    let mut counts = [0_u32; 64];
    let mut clauses = 0_u64;
    let mut next = 0;
    for (index, first) in occurrences.iter().enumerate() {
        let limit = ranges[index].start + focus_chars;
        while next < occurrences.len() && (ranges[next].end <= limit || next == index) {
            let clause = occurrences[next].clause % 64;
            counts[clause] += 1;
            clauses |= 1 << clause;
            next += 1;
        }
        let last = occurrences[index..next].last().unwrap_or(first);
        let mut end = first.end.max(last.end);
        if ranges[index].end > limit {
            end = clip(text, first.start, first.end, focus_chars);
        }
        groups.push(Group {
            bytes: first.start..end,
            clauses,
        });
        let clause = first.clause % 64;
        counts[clause] -= 1;
        if counts[clause] == 0 {
            clauses &= !(1 << clause);
        }
    }
    groups
}

/// Starts and ends of the occurrences in characters.
fn char_ranges(text: &str, occurrences: &[Occurrence]) -> Vec<Range<usize>> {
    let (mut bytes, mut chars) = (0, 0);
    occurrences
        .iter()
        .map(|found| {
            chars += text[bytes..found.start].chars().count();
            bytes = found.start;
            chars..chars + text[found.start..found.end].chars().count()
        })
        .collect()
}

/// The end of a stretch, but no more than `chars` characters behind its start.
fn clip(text: &str, start: usize, end: usize, chars: usize) -> usize {
    text[start..end]
        .char_indices()
        .nth(chars)
        .map_or(end, |(at, _)| start + at)
}

/// The windows to show, best first.
fn choose(text: &str, groups: &[Group], limits: ExcerptLimits) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    let mut shown = 0_u64;
    while windows.len() < limits.max_excerpts {
        let mut best: Option<(u32, u32, &Group, Range<usize>)> = None;
        for group in groups {
            let fresh = (group.clauses & !shown).count_ones();
            let all = group.clauses.count_ones();
            if best
                .as_ref()
                .is_some_and(|(most_fresh, most, ..)| (fresh, all) <= (*most_fresh, *most))
            {
                continue;
            }
            if let Some(bounds) = free_bounds(text, group, &windows, limits.context_chars) {
                best = Some((fresh, all, group, bounds));
            }
        }
        let Some((_, _, group, bounds)) = best else {
            break;
        };
        shown |= group.clauses;
        windows.push(around(text, &group.bytes, &bounds, limits.max_chars));
    }
    windows
}

/// The part of the text between the windows already chosen in which this group lies, if that leaves it its context.
fn free_bounds(
    text: &str,
    group: &Group,
    windows: &[Range<usize>],
    context_chars: usize,
) -> Option<Range<usize>> {
    let mut bounds = 0..text.len();
    for window in windows {
        if window.end <= group.bytes.start {
            bounds.start = bounds.start.max(window.end);
        } else if window.start >= group.bytes.end {
            bounds.end = bounds.end.min(window.start);
        } else {
            return None;
        }
    }
    let has_room =
        |gap: Range<usize>| text[gap].chars().take(context_chars).count() == context_chars;
    let room_before = bounds.start == 0 || has_room(bounds.start..group.bytes.start);
    let room_after = bounds.end == text.len() || has_room(group.bytes.end..bounds.end);
    (room_before && room_after).then_some(bounds)
}

fn excerpt(
    text: &str,
    window: &Range<usize>,
    occurrences: &[Occurrence],
    limits: ExcerptLimits,
) -> Excerpt {
    let shown = &text[window.clone()];
    let start_chars = text[..window.start].chars().count();
    let char_at = |byte: usize| start_chars + text[window.start..byte].chars().count();
    let first = occurrences.partition_point(|found| found.start < window.start);
    let mut matches: Vec<Span> = Vec::new();
    let following = occurrences.iter().skip(first);
    for found in following.take_while(|found| found.start < window.end) {
        let end = clip(text, found.start, found.end, limits.focus_chars());
        if end > window.end {
            continue;
        }
        let span = Span {
            start_chars: char_at(found.start),
            end_chars: char_at(end),
        };
        match matches.last_mut() {
            Some(last) if span.start_chars <= last.end_chars => {
                last.end_chars = last.end_chars.max(span.end_chars);
            }
            _ => matches.push(span),
        }
    }
    Excerpt {
        start_chars,
        end_chars: start_chars + shown.chars().count(),
        text: shown.to_owned(),
        matches,
        truncated: window.start > 0 || window.end < text.len(),
    }
}
