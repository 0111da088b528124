//! The text of a search, under its budget: one line that says it all, then evidence, then hits, then bare ids, then what
//! is not shown and how to see it.

use super::hit_line::{
    Draft, Waiting, fitting_lines, flat, hit_line, named, one_line, widest_description, word,
};
use super::{Found, SearchArgs, nothing};
use crate::answer::{Excerpt, Hit};
use crate::budget;
use crate::text::lines::Lines;
use crate::text::{marks, paging, plain, several};
use crate::tool_call::ToolCall;

/// What the mandatory last lines may take when a first line is already too long.
const TAIL: usize = 320;
/// Warnings and the mix of sources, each; less where a long first line leaves little for evidence.
const NOTE: usize = 200;
const SHORT_NOTE: usize = 80;
/// The words of a search that found nothing have the room of its hits.
const LONG_NOTE: usize = 600;
const LONG_FIRST_LINE: usize = 600;
/// A printed call longer than this is told in words instead.
const CALL: usize = 220;
/// No excerpt is shorter.
const LEAST_EXCERPT: usize = 72;
/// Hits whose excerpts are shown first, so that each has context; the others have lines of their own.
const WITH_EXCERPT: usize = 3;
/// The line of a hit without an excerpt.
const PLAIN_LINE: usize = 136;
/// What stands next to a hit.
const NEIGHBOUR: usize = 120;

/// What was asked and what came.
struct View<'a> {
    args: &'a SearchArgs,
    found: &'a Found,
    hits: &'a [Hit],
}

pub(super) fn write(args: &SearchArgs, found: &Found) -> String {
    let page = &View {
        args,
        found,
        hits: &found.page.data,
    };
    let drafts: Vec<Draft<'_>> = (page.hits.iter().enumerate())
        .map(|(place, hit)| Draft::new(place, hit))
        .collect();
    let first = first_line(page);
    let note = if first.len() > LONG_FIRST_LINE {
        SHORT_NOTE
    } else {
        NOTE
    };
    let tail: Vec<String> = notes(page, note)
        .into_iter()
        .chain([last_line(page)])
        .collect();
    // Room for what is not shown is kept only where something is not.
    let (lines, hidden, _) = lines_before_tail(page, &drafts, &first, &tail, "");
    if hidden == 0 {
        return ended(lines, "", &tail);
    }
    let longest_call = if first.len() > LONG_FIRST_LINE {
        0
    } else {
        CALL
    };
    let unshown = unshown_line(page, page.hits.len(), page.hits.len(), longest_call);
    let (lines, hidden, leading) = lines_before_tail(page, &drafts, &first, &tail, &unshown);
    if hidden == 0 {
        // Shorter evidence made room for every id.
        return ended(lines, "", &tail);
    }
    let unshown = unshown_line(page, hidden, leading.max(1), longest_call);
    ended(lines, &unshown, &tail)
}

/// The lines before the tail, how many hits are not among them, and how many are from the first on.
fn lines_before_tail(
    page: &View<'_>,
    drafts: &[Draft<'_>],
    first: &str,
    tail: &[String],
    unshown: &str,
) -> (Lines, usize, usize) {
    let ceiling = (budget::LIST_TEXT - 1).max(first.len() + TAIL);
    let mut lines = Lines::new(ceiling, first);
    for line in tail.iter().map(String::as_str).chain([unshown]) {
        lines.reserve(line.len());
    }
    let mut told = write_evidence(page, &mut lines);
    write_neighbours(page, &mut told, &mut lines);
    let shown = write_hits(drafts, &told, &mut lines);
    let hidden = shown.iter().filter(|shown| !**shown).count();
    let leading = shown.iter().take_while(|shown| **shown).count();
    (lines, hidden, leading)
}

fn ended(mut lines: Lines, unshown: &str, tail: &[String]) -> String {
    if !unshown.is_empty() {
        lines.require(unshown);
    }
    for line in tail {
        lines.require(line);
    }
    lines.finish()
}

/// What this is, whether it is all, the best handle, where a clipping host still shows it, the way on.
fn first_line(page: &View<'_>) -> String {
    let mut line = format!("search: {} hit(s).", page.hits.len());
    line.push_str(&paging::extent(&page.found.page));
    if let Some(shortened) = page.found.shortened {
        line.push_str(&shortened.to_string());
    }
    if paging::weaker_follow(&page.found.page) {
        line.push_str(" weaker_follow=true");
    }
    if let Some(hit) = page.hits.iter().find(|hit| hit.identity.is_fetchable()) {
        line.push_str(" first_fetch_");
        line.push_str(&named(hit));
    }
    line.push_str(&paging::way_on(&page.found.page));
    if let Some(recall) = paging::recall(&page.found.page) {
        line.push(' ');
        line.push_str(&recall);
    }
    line
}

fn last_line(page: &View<'_>) -> String {
    let mut line = String::from("Next:");
    if page.hits.iter().any(|hit| hit.identity.is_fetchable()) {
        line.push_str(
            " call fetch with a shown id as-is, adding connection_id only when it is shown separately.",
        );
    }
    if page.found.page.next_cursor().is_some() {
        line.push_str(" For more hits repeat this with cursor=next_cursor.");
    } else if page.found.page.has_more() && page.found.beyond == 0 {
        let connections = page.hits.iter().filter_map(|hit| hit.connection.as_deref());
        let repeat = ToolCall::repeat("search", page.args);
        let asked = page.args.connection_id.as_deref();
        line.push_str(&several::way_on(repeat, asked, connections, CALL));
    } else if line.ends_with(':') {
        let step = nothing::next_step(page.args, page.found, CALL);
        line.push(' ');
        line.push_str(
            step.as_deref().unwrap_or(
                "try fewer or other words, or call schema {} to see what can be searched.",
            ),
        );
    }
    line
}

/// Which sources contributed, and what the server warns of.
fn notes(page: &View<'_>, note: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if page.found.beyond > 0 {
        let way_on = match page.args.limit.map(|limit| limit.0) {
            Some(budget::MAX_LIMIT) => "narrow the search to see them",
            _ => "a larger limit shows them",
        };
        notes.push(format!(
            "beyond_limit={} sent but not asked for, {way_on}",
            page.found.beyond
        ));
    }
    if page.found.elsewhere > 0 {
        notes.push(format!(
            "other_connections={} hit(s) sent but not asked for; without connection_id they are shown",
            page.found.elsewhere
        ));
    }
    if page.found.other_times > 0 {
        notes.push(format!(
            "other_times={} hit(s) sent but not of the period asked for, which this server does not heed",
            page.found.other_times
        ));
    }
    if !page.found.is_ordered {
        notes.push("order_heeded=false hits stand in the server's own order".to_owned());
    }
    notes.extend(source_mix(page, note));
    let words = paging::words(&page.found.page);
    let width = if page.hits.is_empty() {
        LONG_NOTE
    } else {
        note
    };
    notes.extend(words.map(|told| plain::line(&told, width)));
    if let Some(warnings) = paging::page_warnings(&page.found.page) {
        notes.push(format!("warnings={}", plain::cut(&warnings, note)));
        let skipped = paging::skipped(&page.found.page);
        notes.extend(skipped.filter(|told| told.len() <= note));
    }
    // Where ids and cursors take all the room, structured content alone says so.
    let over_budget = page.found.over_budget.filter(|_| note == NOTE);
    notes.extend(over_budget.map(|over| over.to_string()));
    notes
}

/// Each connection with its count, when there is more than one.
fn source_mix(page: &View<'_>, note: usize) -> Option<String> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for connection in page.hits.iter().filter_map(|hit| hit.connection.as_deref()) {
        match counts.iter_mut().find(|(known, _)| *known == connection) {
            Some((_, count)) => *count += 1,
            None => counts.push((connection, 1)),
        }
    }
    if counts.len() < 2 && !page.found.source_mix.is_empty() {
        let told = page.found.source_mix.iter();
        counts = told.map(|(id, count)| (id.as_str(), *count)).collect();
    }
    if counts.len() < 2 {
        return None;
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut line = String::from("source_mix=");
    for (place, (connection, count)) in counts.iter().enumerate() {
        let piece = format!("{}:{count}", plain::token(connection));
        if place > 0 && line.len() + piece.len() > note {
            line.push_str("|more:");
            line.push_str(&(counts.len() - place).to_string());
            break;
        }
        if place > 0 {
            line.push('|');
        }
        line.push_str(&piece);
    }
    Some(line)
}

fn unshown_line(page: &View<'_>, hidden: usize, limit: usize, longest_call: usize) -> String {
    let call = ToolCall::repeat("search", page.args).with("limit", limit);
    let call = call.to_string();
    if call.len() <= longest_call {
        format!("not_shown={hidden} page through them with {call}")
    } else {
        format!(
            "not_shown={hidden} page through them by repeating this search, same cursor, with \"limit\":{limit}"
        )
    }
}

/// What the excerpts of a hit have told of it.
#[derive(Clone, Default)]
struct ExcerptText {
    /// Without marks.
    text: String,
    /// Whether they say what it is called, when and by whom it was written.
    is_described: bool,
}

/// An excerpt, and the hit of the page that it proves.
#[derive(Clone, Copy)]
struct Proof<'a> {
    place: usize,
    hit: &'a Hit,
    excerpt: &'a Excerpt,
}

/// One excerpt of each hit, then the next of each, while there is room. Gives what was told, by hit.
fn write_evidence(page: &View<'_>, lines: &mut Lines) -> Vec<ExcerptText> {
    let mut told = vec![ExcerptText::default(); page.hits.len()];
    let rounds = 0..contract::search::MAX_EXCERPTS;
    let queue: Vec<Proof<'_>> = rounds
        .flat_map(|round| {
            page.hits
                .iter()
                .enumerate()
                .filter_map(move |(place, hit)| {
                    let mut shown = hit.excerpts.iter().chain(&hit.meant);
                    let excerpt = shown.nth(round)?;
                    Some(Proof {
                        place,
                        hit,
                        excerpt,
                    })
                })
        })
        .collect();
    if queue.is_empty() {
        return told;
    }
    let header = if queue.iter().all(|proof| proof.hit.excerpts.is_empty()) {
        "Passages found by meaning, no word matched:"
    } else {
        "Evidence excerpts:"
    };
    let mut room = evidence_room(page, lines.room()).saturating_sub(header.len() + 1);
    let expected = queue.len().min(WITH_EXCERPT);
    let mut has_header = false;
    for (turn, proof) in queue.into_iter().enumerate() {
        let Some(told) = told.get_mut(proof.place) else {
            break;
        };
        let fair = room / expected.saturating_sub(turn).max(1);
        // The best hit is the likeliest answer.
        let share = if turn == 0 {
            (fair * 5 / 4).min(room)
        } else {
            fair
        };
        let is_first = told.text.is_empty();
        let (line, is_described) = evidence_line(proof, share, is_first, page);
        // The first may take what it needs: a hit that is proven shows its proof.
        let allowed = if turn == 0 { lines.room() } else { room };
        if line.len() + 1 > allowed || (!has_header && header.len() + 2 + line.len() > lines.room())
        {
            break;
        }
        if !has_header {
            lines.require(header);
            has_header = true;
        }
        lines.require(&line);
        room = room.saturating_sub(line.len() + 1);
        told.text.push_str(&marks::unmarked(&proof.excerpt.text));
        told.is_described |= is_described;
    }
    told
}

/// What was said right before and after the best hit, where that leaves room for the hits. It may be a hit itself.
fn write_neighbours(page: &View<'_>, told: &mut [ExcerptText], lines: &mut Lines) {
    let Some(hit) = page.hits.first() else {
        return;
    };
    for neighbour in &hit.neighbours {
        let author = neighbour.author.as_ref();
        let author = author.map(|author| format!(" author={}", word(author, budget::LABEL)));
        let (text, _) = one_line(&flat(&neighbour.passage.text), "", NEIGHBOUR);
        let line = format!(
            "1. {} id={}{} said {text}",
            neighbour.side,
            plain::token(&neighbour.id),
            author.unwrap_or_default()
        );
        if line.len() < lines.room() / 4 {
            lines.require(&line);
            let mut hits = page.hits.iter().zip(&mut *told);
            if let Some((_, told)) = hits.find(|(hit, _)| hit.identity.id == neighbour.id) {
                told.text.push_str(&neighbour.passage.text);
            }
        }
    }
}

/// Evidence leaves room for the hits that are shown without, and for what it does not tell of a single one.
fn evidence_room(page: &View<'_>, room: usize) -> usize {
    if let [hit] = page.hits {
        let excerpts = hit.excerpts.iter().map(|excerpt| excerpt.text.as_str());
        let is_told = tells_snippet(hit, &marks::unmarked(&excerpts.collect::<String>()));
        let snippet = hit.snippet.as_deref().filter(|_| !is_told).map(flat);
        let widths = (budget::TITLE, budget::LABEL, 160);
        let line = hit_line(0, hit, widths, snippet.as_deref());
        return room.saturating_sub(line.len() + 16);
    }
    let others = page.hits.len().saturating_sub(WITH_EXCERPT);
    room - (others * PLAIN_LINE).min(room * 2 / 5)
}

/// What matched in a hit, and the call that reads on; the first of a hit also says who it is, where that leaves room.
fn evidence_line(
    Proof {
        place,
        hit,
        excerpt,
    }: Proof<'_>,
    share: usize,
    is_first: bool,
    page: &View<'_>,
) -> (String, bool) {
    let field = plain::token(&excerpt.field);
    let read = excerpt.read.as_ref().map(ToString::to_string);
    let read = read.unwrap_or_else(|| named(hit));
    let by = if hit.excerpts.is_empty() {
        " by_meaning"
    } else {
        ""
    };
    let flat = flat(&excerpt.text);
    let frame = format!(
        "{}.{by} field_path={field}  complete=false {read}",
        place + 1
    )
    .len()
        + 2;
    let room = share.saturating_sub(frame);
    let description = is_first
        .then(|| widest_description(hit, room, flat.len()))
        .flatten();
    let is_described = description.is_some();
    let who = description.unwrap_or_default();
    let width = room
        .saturating_sub(who.len())
        .clamp(LEAST_EXCERPT, budget::EXCERPT);
    let (text, was_cut) = one_line(&flat, &page.args.query, width);
    let complete = excerpt.complete && !was_cut;
    let line = format!(
        "{}.{by}{who} field_path={field} {text} complete={complete} {read}",
        place + 1
    );
    (line, is_described)
}

/// Full lines of hits that were not told of, while the ids of those behind them still fit, then bare ids. Says which hits were
/// shown.
fn write_hits(drafts: &[Draft<'_>], told: &[ExcerptText], lines: &mut Lines) -> Vec<bool> {
    // An excerpt names its record, too.
    let mut shown: Vec<bool> = told.iter().map(|told| !told.text.is_empty()).collect();
    let mut ids: Vec<String> = drafts.iter().map(|draft| bare_id(draft.hit)).collect();
    let known = ids.iter_mut().zip(&shown).filter(|(_, shown)| **shown);
    known.for_each(|(id, _)| id.clear());
    let header = "Top results:";
    let for_ids = lines.room() * 2 / 5;
    let waiting = drafts.iter().zip(told).enumerate();
    let waiting: Vec<Waiting<'_>> = waiting
        .filter(|(_, (draft, told))| !(told.is_described && tells_snippet(draft.hit, &told.text)))
        .map(|(place, (draft, told))| Waiting {
            draft,
            with_snippet: !tells_snippet(draft.hit, &told.text),
            behind: ids.iter().skip(place + 1).map(|id| id.len() + 1).sum(),
        })
        .collect();
    let room = lines.room().saturating_sub(header.len() + 1);
    let chosen = fitting_lines(&waiting, room, for_ids);
    if !chosen.is_empty() {
        lines.require(header);
    }
    for (one, line) in waiting.iter().zip(chosen) {
        lines.require(line);
        let place = one.draft.place;
        if let (Some(shown), Some(id)) = (shown.get_mut(place), ids.get_mut(place)) {
            *shown = true;
            id.clear();
        }
    }
    let first = drafts.first().map(|draft| draft.hit);
    if let Some(first) = first.filter(|_| waiting.is_empty()) {
        // Every hit was told of above; the list that readers look for says so.
        let line = format!("{header}\n1. {} as above", named(first));
        if line.len() < lines.room() {
            lines.require(&line);
        }
    }
    let is_named = first.is_some_and(|hit| hit.identity.is_fetchable());
    if let Some(shown @ false) = shown.first_mut().filter(|_| is_named) {
        // The first line names it whole; where its id leaves no room to stand twice, that is its place.
        lines.require("1. first_fetch_id, fetch shows it");
        *shown = true;
        ids.iter_mut().take(1).for_each(String::clear);
    }
    for (label, is_near) in [
        ("More ids:", false),
        ("More next to these, no match:", true),
    ] {
        let unnamed = ids.iter().zip(drafts).enumerate();
        let (places, words): (Vec<usize>, Vec<String>) = unnamed
            .filter(|(_, (id, draft))| !id.is_empty() && draft.hit.near.is_some() == is_near)
            .map(|(place, (id, _))| (place, id.clone()))
            .unzip();
        let taken = lines.offer_words(label, &words);
        for place in places.into_iter().take(taken) {
            if let Some(shown) = shown.get_mut(place) {
                *shown = true;
            }
        }
    }
    shown
}

/// Whether what was shown of a hit holds its snippet, if it has one.
fn tells_snippet(hit: &Hit, shown: &str) -> bool {
    let snippet = hit.snippet.as_deref().map(marks::unmarked);
    snippet.is_none_or(|snippet| shown.contains(snippet.trim_matches('…')))
}

/// The id as a word; nothing for hits that cannot be fetched by it alone.
fn bare_id(hit: &Hit) -> String {
    if hit.identity.is_fetchable() && hit.identity.separate_connection().is_none() {
        plain::token(&hit.identity.id).into_owned()
    } else {
        String::new()
    }
}
