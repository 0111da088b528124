//! One window of a text, as a server gave it, made honest.
//!
//! What a window says about itself is checked against the text it carries: all offsets are recomputed, so that
//! following them yields the field exactly, and a window never passes for more than it is.

use contract::window::{Window, WindowSelector};
use serde_json::{Value, json};

/// A window, and whether the server's own account of it was wrong.
#[derive(Debug)]
pub(crate) struct ReceivedWindow {
    pub(crate) window: Window,
    pub(crate) is_recomputed: bool,
}

/// Reads the window of an answer. The selector must have passed its checks.
pub(super) fn received(
    body: &Value,
    asked: &WindowSelector,
) -> Result<ReceivedWindow, &'static str> {
    let place = [
        body.get("window"),
        body.pointer("/data/window"),
        body.get("data"),
        Some(body),
    ]
    .into_iter()
    .flatten()
    .find(|place| place.get("text").is_some_and(Value::is_string))
    .ok_or("the answer has no window text")?;
    let text = place.get("text").and_then(Value::as_str);
    let text = text.unwrap_or_default();
    let start = number(place, "start_chars").ok_or("the window does not say where it starts")?;
    let total =
        number(place, "total_chars").ok_or("the window does not say how long the field is")?;
    let count = text.chars().count();
    if start.checked_add(count).is_none_or(|end| end > total) {
        return Err("the window ends behind the end of its field");
    }
    let request = asked.request().map_err(|_| "the window cannot be asked")?;
    let wanted = match asked.q {
        Some(_) => start,
        None => offset(asked).min(total),
    };
    let skipped = wanted
        .checked_sub(start)
        .filter(|skipped| *skipped <= count)
        .ok_or("the window is not the one that was asked for")?;
    let limit = request.limit_chars();
    let text: String = text.chars().skip(skipped).take(limit).collect();
    if text.is_empty() && wanted < total {
        return Err("the window is empty before the end of its field");
    }
    let found = match_of(place, asked, &text, wanted);
    let mut window = at(text, wanted, total, limit);
    window.match_start_chars = found.map(|(from, _)| from);
    window.match_end_chars = found.map(|(_, to)| to);
    let is_recomputed = !agrees(place, &window);
    Ok(ReceivedWindow {
        window,
        is_recomputed,
    })
}

/// Cuts a window so that its text takes no more than so many bytes as JSON; what follows is read from its end on.
pub(crate) fn shorten(window: &mut Window, most: usize) {
    let mut used = 0;
    let fitting = window.text.chars().take_while(|character| {
        used += match character {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            control if *control < ' ' => 6,
            other => other.len_utf8(),
        };
        used <= most
    });
    let kept = fitting.count().max(1);
    if window.start_chars + kept >= window.end_chars {
        return;
    }
    let (start, total) = (window.start_chars, window.total_chars);
    let text: String = window.text.chars().take(kept).collect();
    let found = window.match_start_chars.zip(window.match_end_chars);
    *window = at(text, start, total, kept);
    if let Some((from, to)) = found.filter(|(_, to)| *to <= window.end_chars) {
        window.match_start_chars = Some(from);
        window.match_end_chars = Some(to);
    }
}

fn number(place: &Value, name: &str) -> Option<usize> {
    usize::try_from(place.get(name)?.as_u64()?).ok()
}

fn offset(asked: &WindowSelector) -> usize {
    match (&asked.cursor, asked.offset_chars) {
        (Some(cursor), _) => cursor.parse().unwrap_or(usize::MAX),
        (None, offset) => offset.unwrap_or(0),
    }
}

/// The window of this text at this place, with everything that follows from that.
fn at(text: String, start: usize, total: usize, limit: usize) -> Window {
    let end = start + text.chars().count();
    Window {
        text,
        start_chars: start,
        end_chars: end,
        total_chars: total,
        limit_chars: limit,
        match_start_chars: None,
        match_end_chars: None,
        complete: start == 0 && end == total,
        has_more: end < total,
        next_offset_chars: (end < total).then_some(end),
        previous_offset_chars: (start > 0).then(|| start.saturating_sub(limit)),
    }
}

/// Whether what the server says of its window is so; what it does not say is no lie.
fn agrees(place: &Value, window: &Window) -> bool {
    let said = |name: &str, ours: Value| place.get(name).is_none_or(|theirs| *theirs == ours);
    said("start_chars", json!(window.start_chars))
        && said("end_chars", json!(window.end_chars))
        && said("complete", json!(window.complete))
        && said("has_more", json!(window.has_more))
        && said("next_offset_chars", json!(window.next_offset_chars))
}

/// Where the searched text stands: as the server says, if that can be; else as it is found in the window.
fn match_of(
    place: &Value,
    asked: &WindowSelector,
    text: &str,
    start: usize,
) -> Option<(usize, usize)> {
    let q = asked.q.as_deref()?;
    let end = start + text.chars().count();
    let said = number(place, "match_start_chars").zip(number(place, "match_end_chars"));
    if let Some((from, to)) = said
        && start <= from
        && from < to
        && to <= end
    {
        return Some((from, to));
    }
    let selector = WindowSelector {
        q: Some(q.to_owned()),
        ..WindowSelector::default()
    };
    let found = contract::window::cut(text, &selector.request().ok()?).ok()?;
    Some((
        start + found.match_start_chars?,
        start + found.match_end_chars?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(offset: usize, limit: usize) -> WindowSelector {
        WindowSelector {
            offset_chars: Some(offset),
            limit_chars: Some(limit),
            ..WindowSelector::default()
        }
    }

    #[test]
    fn a_lying_window_is_refused() {
        // LG-04
        for window in [
            json!({"start_chars":0,"total_chars":5}),
            json!({"text":"abc","total_chars":5}),
            json!({"text":"abc","start_chars":0}),
            json!({"text":"abcdef","start_chars":0,"total_chars":5}),
            json!({"text":"abc","start_chars":3,"total_chars":9}),
            json!({"text":"","start_chars":0,"total_chars":9}),
            json!({"text":"abc","start_chars":-1,"total_chars":9}),
            json!({"text":7,"start_chars":0,"total_chars":7}),
            json!([]),
        ] {
            let read = received(&json!({"window":window}), &selector(0, 10));
            assert!(read.is_err(), "{window}: {read:?}");
        }
    }

    #[test]
    fn a_window_s_own_account_of_its_end_is_not_believed() {
        // LG-04, FW-07: a server that counts UTF-16 units would make its readers skip text.
        let body = json!({"window":{"text":"😀é","start_chars":0,"end_chars":3,"total_chars":6,"complete":true,
            "has_more":true,"next_offset_chars":3}});
        let read = received(&body, &selector(0, 2)).unwrap();
        assert!(read.is_recomputed);
        assert_eq!((read.window.end_chars, read.window.complete), (2, false));
        assert_eq!(read.window.next_offset_chars, Some(2));
    }

    #[test]
    fn a_server_that_ignores_the_selector_is_cut_to_it() {
        let text = "0123456789".repeat(40_000);
        let body =
            json!({"window":{"text":text,"start_chars":0,"total_chars":400_000,"complete":true}});
        let read = received(&body, &selector(4, 3)).unwrap();
        assert_eq!(read.window.text, "456");
        assert!(read.is_recomputed && !read.window.complete);
        assert_eq!(read.window.next_offset_chars, Some(7));
    }

    #[test]
    fn a_missing_match_is_found_in_the_window() {
        // FW-05
        let asked = WindowSelector {
            q: Some("needle".to_owned()),
            ..WindowSelector::default()
        };
        let body = json!({"window":{"text":"日本 Needle","start_chars":100,"total_chars":500,"match_start_chars":7,
            "match_end_chars":9}});
        let read = received(&body, &asked).unwrap();
        assert_eq!(read.window.match_start_chars, Some(103));
        assert_eq!(read.window.match_end_chars, Some(109));
    }
}
