//! Colour for people at a terminal: a handful of ANSI codes, and none at all elsewhere.

/// How text is set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    pub(crate) fn new(coloured: bool) -> Self {
        Self { coloured }
    }

    /// What a thing is called.
    pub(crate) fn title(self, text: &str) -> String {
        self.between("\u{1b}[1m", text)
    }

    /// What stands beside it.
    pub(crate) fn quiet(self, text: &str) -> String {
        self.between("\u{1b}[2m", text)
    }

    /// What can be run.
    pub(crate) fn command(self, text: &str) -> String {
        self.between("\u{1b}[36m", text)
    }

    /// What was looked for. Without colour it stands in brackets.
    pub(crate) fn found(self, text: &str) -> String {
        if self.coloured {
            self.between("\u{1b}[1;33m", text)
        } else {
            format!("[{text}]")
        }
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
        assert_eq!(plain.title("a") + &plain.quiet("b"), "ab");
        assert_eq!(plain.found("a"), "[a]");
        assert_eq!(coloured.found("a"), "\u{1b}[1;33ma\u{1b}[0m");
        assert_eq!(coloured.quiet(""), "");
    }
}
