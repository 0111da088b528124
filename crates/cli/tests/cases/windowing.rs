//! Long texts in parts.

use crate::answer::{Id, Window};
use crate::generated::{CONNECTIONS, WORDS, entry};
use crate::surface::{Named, Step, Surface, plain};
use crate::world::{Grant, archives, only};

fn long_texts(surface: Surface) -> Vec<(Grant, Id, String)> {
    let mut texts = Vec::new();
    for key in ["plain", "$HOME $(id)"] {
        let id = Id::new(CONNECTIONS[1], "entries", key);
        let text = entry(key, 1)["text"].as_str().unwrap().to_owned();
        texts.push((archives(), id, text));
    }
    // The longest letter of the sample life. A list of the tools shows its beginning only.
    let who = only("mail-work");
    let ask = plain().with("field", "size_bytes");
    let largest = surface.figures(&who, "messages", "max", ask);
    let ask = plain()
        .filter("size_bytes", largest.value.unwrap())
        .limit(1);
    let page = surface.page(&who, "messages", ask);
    let letter = surface.record(&who, &page.records[0].id, plain());
    let text = letter.data["body"].as_str().unwrap().to_owned();
    texts.push((who, letter.id, text));
    texts
}

fn field(id: &Id) -> &'static str {
    if id.stream == "messages" {
        "body"
    } else {
        "text"
    }
}

/// That a window says of itself what is so.
fn consistent(window: &Window, text: &str) {
    let chars = |from: u64, to: u64| -> String {
        let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
        text.chars().skip(from).take(to - from).collect()
    };
    assert_eq!(window.total, text.chars().count() as u64);
    assert_eq!(window.text, chars(window.start, window.end));
    assert_eq!(
        window.complete,
        window.start == 0 && window.end == window.total
    );
    assert_eq!(
        window.next,
        (window.end < window.total).then_some(window.end)
    );
    assert_eq!(window.previous.is_some(), window.start > 0);
}

pub(crate) fn windows_make_the_whole_text(surface: Surface) {
    // FW-02, FW-03, FW-07
    for (who, id, text) in long_texts(surface) {
        assert!(text.chars().count() > 5_000, "{}", text.len());
        let mut whole = String::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let ask = plain()
                .with("offset_chars", offset)
                .with("limit_chars", 7_001);
            let window = surface.window(&who, &id, field(&id), ask);
            assert_eq!(window.id, id);
            consistent(&window, &text);
            whole.push_str(&window.text);
            next = window.next;
        }
        assert_eq!(whole, text);
    }
}

pub(crate) fn windows_go_back_as_they_went_forth(surface: Surface) {
    let (who, id, text) = long_texts(surface).remove(0);
    let ask = |offset: u64| {
        plain()
            .with("offset_chars", offset)
            .with("limit_chars", 1_000)
    };
    let mut window = surface.window(&who, &id, "text", ask(2_500));
    let mut first = window.start;
    while let Some(previous) = window.previous {
        window = surface.window(&who, &id, "text", ask(previous));
        consistent(&window, &text);
        // Nothing is left out between them.
        assert!(window.start < first && window.end >= first);
        first = window.start;
    }
    assert_eq!(first, 0);
}

pub(crate) fn a_word_is_found_with_its_surroundings(surface: Surface) {
    // FW-05
    let (who, id, text) = long_texts(surface).remove(0);
    for word in WORDS {
        let ask = plain()
            .with("q", word)
            .with("before_chars", 11)
            .with("after_chars", 7);
        let window = surface.window(&who, &id, "text", ask);
        consistent(&window, &text);
        let (from, to) = window.found.unwrap();
        assert_eq!((from - window.start, window.end - to), (11, 7));
        let marked: String = text
            .chars()
            .skip(usize::try_from(from).unwrap())
            .take(usize::try_from(to - from).unwrap())
            .collect();
        assert_eq!(marked, word);
    }
    let none = plain().with("q", "xylophonquarz");
    let refused = surface.read(&who, &id, "text", none).unwrap_err();
    assert_eq!(refused.code, "query_not_found");
}

pub(crate) fn an_empty_place_and_the_end_are_told(surface: Surface) {
    let (who, id, text) = long_texts(surface).remove(0);
    let total = text.chars().count() as u64;
    for offset in [total - 1, total] {
        let ask = plain().with("offset_chars", offset);
        let window = surface.window(&who, &id, "text", ask);
        consistent(&window, &text);
        assert_eq!((window.start, window.next), (offset, None));
    }
    let short = Id::new(CONNECTIONS[0], "entries", "e-001");
    let window = surface.window(&who, &short, "kind", plain());
    assert!(window.complete);
}

pub(crate) fn what_was_quoted_is_checked(surface: Surface) {
    // GM-20, GM-21, GM-22
    let (who, id, text) = long_texts(surface).remove(0);
    let ask = plain().with("offset_chars", 10).with("limit_chars", 30);
    let read = Step::Read(Named::Parts(&id), "text");
    let shown = surface.shown(&who, &read, &ask).unwrap();
    let cite = shown.split(r#""cite":""#).nth(1).unwrap();
    let cite = cite.split('"').next().unwrap();
    let check = |who: &Grant| {
        let step = Step::Verify(Named::Parts(&id), "text", cite);
        surface.shown(who, &step, &plain()).unwrap()
    };
    let quoted: String = text.chars().skip(10).take(30).collect();
    let quoted = serde_json::to_string(&quoted).unwrap();
    let checked = check(&who);
    assert!(checked.contains(r#""status":"current""#), "{checked}");
    assert!(checked.contains(&quoted), "{checked}");
    let of_another = check(&only("mail-work"));
    assert!(of_another.contains("not_yours_to_know"), "{of_another}");
    assert!(!of_another.contains(&quoted), "{of_another}");
    // The owner can check it, too.
    let named = format!("{}/{}:{}", CONNECTIONS[1], id.stream, id.record);
    let owner = who.world.run(&["--json", "verify", &named, cite]);
    assert!(owner.succeeds().stdout.contains(&quoted));
}
