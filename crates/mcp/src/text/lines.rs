//! The one writer of text under a byte budget: whole lines are dropped, never parts of one.

#[derive(Debug)]
pub(crate) struct Lines {
    ceiling: usize,
    reserved: usize,
    text: String,
}

impl Lines {
    /// Begins with the first line, which always stands, whole.
    pub(crate) fn new(ceiling: usize, first: impl Into<String>) -> Self {
        Self {
            ceiling,
            reserved: 0,
            text: first.into(),
        }
    }

    /// Keeps room for a line that will be written later.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.reserved += bytes + 1;
    }

    /// Gives reserved room back, to write what it was kept for.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.reserved = self.reserved.saturating_sub(bytes + 1);
    }

    pub(crate) fn room(&self) -> usize {
        self.ceiling
            .saturating_sub(self.text.len() + self.reserved + 1)
    }

    pub(crate) fn offer(&mut self, line: &str) -> bool {
        let fits = line.len() <= self.room();
        if fits {
            self.require(line);
        }
        fits
    }

    /// Adds one line of a label and as many words as fit, and says how many did.
    pub(crate) fn offer_words(&mut self, label: &str, words: &[String]) -> usize {
        let mut line = label.to_owned();
        let mut taken = 0;
        for word in words {
            if line.len() + 1 + word.len() > self.room() {
                break;
            }
            line.push(' ');
            line.push_str(word);
            taken += 1;
        }
        if taken > 0 {
            self.require(&line);
        }
        taken
    }

    pub(crate) fn offer_all(&mut self, lines: &[String]) -> bool {
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        let fits = bytes <= self.room() + 1;
        if fits {
            for line in lines {
                self.require(line);
            }
        }
        fits
    }

    /// Adds a line whatever the ceiling says: for handles that must stand whole.
    pub(crate) fn require(&mut self, line: &str) {
        self.text.push('\n');
        self.text.push_str(line);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_whole_or_not_at_all() {
        let mut lines = Lines::new(20, "head");
        lines.reserve(4);
        assert!(lines.offer("123456789"));
        assert!(!lines.offer("1"));
        lines.release(4);
        assert!(lines.offer("tail"));
        assert_eq!(lines.finish(), "head\n123456789\ntail");
    }

    #[test]
    fn words_are_added_while_they_fit() {
        let words = ["aa", "bb", "cc"].map(str::to_owned);
        let mut lines = Lines::new(14, "head");
        assert_eq!(lines.offer_words("ids:", &words), 1);
        assert_eq!(lines.finish(), "head\nids: aa");
        let mut lines = Lines::new(10, "head");
        assert_eq!(lines.offer_words("ids:", &words), 0);
        assert_eq!(lines.finish(), "head");
    }

    #[test]
    fn what_must_stand_stands() {
        let mut lines = Lines::new(3, "a long head");
        assert_eq!(lines.room(), 0);
        lines.require("id=x");
        assert_eq!(lines.finish(), "a long head\nid=x");
    }

    #[test]
    fn lines_that_belong_together_are_added_all_or_none() {
        let both = ["1234", "5678"].map(str::to_owned);
        let whole = "head\n1234\n5678";
        for ceiling in 5..20 {
            let mut lines = Lines::new(ceiling, "head");
            assert_eq!(lines.offer_all(&both), ceiling >= whole.len(), "{ceiling}");
        }
    }
}
