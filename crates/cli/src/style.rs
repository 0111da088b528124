//! How text is set for the reader: colour and width at a terminal, neither elsewhere.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
    width: Option<usize>,
}

impl Style {
    pub(crate) fn new(coloured: bool) -> Self {
        Self {
            coloured,
            width: None,
        }
    }

    /// The same for a screen of so many columns.
    pub(crate) fn within(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    /// How many columns there are, where a line must end somewhere.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    pub(crate) fn title(self, text: &str) -> String {
        self.between("\u{1b}[1m", text)
    }

    /// What stands beside it.
    pub(crate) fn dim(self, text: &str) -> String {
        self.between("\u{1b}[2m", text)
    }

    pub(crate) fn command(self, text: &str) -> String {
        self.between("\u{1b}[36m", text)
    }

    /// What was looked for. Without colour it stands in brackets.
    pub(crate) fn highlight(self, text: &str) -> String {
        if self.coloured {
            self.between("\u{1b}[1;33m", text)
        } else {
            format!("[{text}]")
        }
    }

    pub(crate) fn success(self, text: &str) -> String {
        self.between("\u{1b}[32m", text)
    }

    pub(crate) fn error(self, text: &str) -> String {
        self.between("\u{1b}[1;31m", text)
    }

    pub(crate) fn message(self, text: &str) -> String {
        let kinds = [
            ("error:", "\u{1b}[1;31m"),
            ("warning:", "\u{1b}[1;33m"),
            ("hint:", "\u{1b}[36m"),
        ];
        let line = |line: &str| {
            let kind = kinds.iter().find(|(word, _)| line.starts_with(word));
            match kind.and_then(|(word, code)| Some((word, code, line.strip_prefix(word)?))) {
                Some((word, code, rest)) => self.between(code, word) + rest,
                None => line.to_owned(),
            }
        };
        text.split('\n').map(line).collect::<Vec<_>>().join("\n")
    }

    fn between(self, code: &str, text: &str) -> String {
        if self.coloured && !text.is_empty() {
            format!("{code}{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_all_or_nothing() {
        let (plain, coloured) = (Style::new(false), Style::new(true));
        assert_eq!(plain.title("a") + &plain.dim("b"), "ab");
        assert_eq!(plain.highlight("a"), "[a]");
        assert_eq!(coloured.highlight("a"), "\u{1b}[1;33ma\u{1b}[0m");
        assert_eq!(coloured.dim(""), "");
    }

    #[test]
    fn only_the_kind_of_a_message_is_coloured() {
        let text = "error: no\n  more of it\nhint: do";
        assert_eq!(Style::new(false).message(text), text);
        assert_eq!(
            Style::new(true).message(text),
            "\u{1b}[1;31merror:\u{1b}[0m no\n  more of it\n\u{1b}[36mhint:\u{1b}[0m do"
        );
    }
}
