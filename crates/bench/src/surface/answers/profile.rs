//! Hosts differ in what of a tool's result they hand to their model, and in how much of it.

use serde_json::Value;

use crate::BenchError;

/// Beyond this a host cuts a result in the middle.
const CUT_BYTES: usize = 10 * 1024;
const CUT_LINES: usize = 256;
/// Beyond this a host refuses a result.
const MAX_TOKENS: usize = 25_000;

/// The result of a call, in both channels.
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) structured: Value,
}

impl Reply {
    pub(super) fn parse(message: &str) -> Result<Self, BenchError> {
        let message: Value = serde_json::from_str(message)?;
        let blocks = message.pointer("/result/content").and_then(Value::as_array);
        let texts = blocks
            .into_iter()
            .flatten()
            .filter_map(|block| block["text"].as_str());
        Ok(Self {
            text: texts.collect::<Vec<_>>().join("\n"),
            structured: message["result"]["structuredContent"].clone(),
        })
    }
}

pub(super) struct VisibleText {
    pub(super) text: String,
    pub(super) is_clipped: bool,
}

impl VisibleText {
    /// Whether a sentence can be read, marks aside.
    pub(super) fn holds(&self, sentence: &str) -> bool {
        let unmarked = self.text.replace("<mark>", "").replace("</mark>", "");
        unmarked.contains(sentence)
    }
}

contract::names! {
    pub(super) enum HostProfile {
        TextOnly = "text only",
        StructuredOnly = "structured only",
        Both = "both",
        /// Structured content, cut in the middle beyond 10 KiB or 256 lines.
        MiddleCut = "10 KiB middle cut",
        /// Structured content, refused beyond 25,000 tokens.
        TokenLimit = "25,000 token limit",
    }
}

impl HostProfile {
    pub(super) fn show(self, reply: &Reply, tokens: impl Fn(&str) -> usize) -> VisibleText {
        let structured = || reply.structured.to_string();
        let whole = |text: String| VisibleText {
            text,
            is_clipped: false,
        };
        match self {
            Self::TextOnly => whole(reply.text.clone()),
            Self::StructuredOnly => whole(structured()),
            Self::Both => whole(format!("{}\n{}", reply.text, structured())),
            Self::MiddleCut => cut_in_the_middle(structured()),
            Self::TokenLimit => {
                let text = structured();
                let is_clipped = tokens(&text) > MAX_TOKENS;
                VisibleText {
                    text: if is_clipped { String::new() } else { text },
                    is_clipped,
                }
            }
        }
    }
}

fn cut_in_the_middle(text: String) -> VisibleText {
    let lines: Vec<&str> = text.lines().collect();
    if text.len() <= CUT_BYTES && lines.len() <= CUT_LINES {
        return VisibleText {
            text,
            is_clipped: false,
        };
    }
    let mut kept = text.clone();
    if lines.len() > CUT_LINES {
        let half = CUT_LINES / 2;
        let (head, tail) = (&lines[..half], &lines[lines.len() - half..]);
        kept = format!("{}\n{}", head.join("\n"), tail.join("\n"));
    }
    if kept.len() > CUT_BYTES {
        let half = CUT_BYTES / 2;
        let head = kept.floor_char_boundary(half);
        let tail = kept.ceil_char_boundary(kept.len() - half);
        kept = format!("{}{}", &kept[..head], &kept[tail..]);
    }
    VisibleText {
        text: kept,
        is_clipped: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_loses_its_middle() {
        let text = format!("begin{}end", "ä".repeat(CUT_BYTES));
        let shown = cut_in_the_middle(text);
        assert!(shown.is_clipped && shown.text.len() <= CUT_BYTES);
        assert!(shown.text.starts_with("begin") && shown.text.ends_with("end"));
        let lines = cut_in_the_middle("x\n".repeat(CUT_LINES + 1));
        assert!(lines.is_clipped);
        assert_eq!(lines.text.lines().count(), CUT_LINES);
        assert!(!cut_in_the_middle("short".to_owned()).is_clipped);
    }

    #[test]
    fn every_host_shows_its_channel_and_marks_hide_nothing() {
        let message = r#"{"result":{"content":[{"type":"text","text":"in <mark>text</mark>"}],"structuredContent":{"a":"in structure"}}}"#;
        let reply = Reply::parse(message).unwrap();
        let holds = |profile: HostProfile, words| profile.show(&reply, str::len).holds(words);
        for profile in HostProfile::ALL {
            let is_text = matches!(profile, HostProfile::TextOnly | HostProfile::Both);
            assert_eq!(holds(profile, "in text"), is_text, "{profile:?}");
            let is_structured = profile != HostProfile::TextOnly;
            assert_eq!(holds(profile, "in structure"), is_structured, "{profile:?}");
        }
        let refused = HostProfile::TokenLimit.show(&reply, |_| MAX_TOKENS + 1);
        assert!(refused.is_clipped && refused.text.is_empty());
    }
}
