//! A text in which every entry begins with, or ends in, the same mark; cut there, without holding more than an entry.

use std::io::{self, BufRead};

pub(super) struct Marked<R> {
    reader: R,
    mark: &'static [u8],
    /// What was read: from `start` to `end` it is the entry that was taken, from there on it belongs to later ones.
    held: Vec<u8>,
    start: usize,
    end: usize,
    line: u64,
}

impl<R: BufRead> Marked<R> {
    pub(super) fn new(reader: R, mark: &'static str) -> Self {
        Self {
            reader,
            mark: mark.as_bytes(),
            held: Vec::new(),
            start: 0,
            end: 0,
            line: 1,
        }
    }

    /// The line at which the entry that was taken begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The entry that was taken: from its mark, which the first one may not have, to the next.
    pub(super) fn taken(&self) -> &[u8] {
        self.held.get(self.start..self.end).unwrap_or_default()
    }

    /// Takes the next entry. Says whether it fits the limit; nothing at the end.
    pub(super) fn take(&mut self, limit: usize) -> io::Result<Option<bool>> {
        self.line += line_ends(self.taken());
        self.start = self.end;
        let (mut fits, mut searched) = (true, 1);
        loop {
            let rest = self.held.get(self.start + searched..).unwrap_or_default();
            let found = rest.windows(self.mark.len()).position(|at| at == self.mark);
            if let Some(found) = found {
                self.end = self.start + searched + found;
                return Ok(Some(fits));
            }
            self.held.drain(..self.start);
            self.start = 0;
            searched = (self.held.len() + 1).saturating_sub(self.mark.len()).max(1);
            let chunk = self.reader.fill_buf()?;
            let length = chunk.len();
            self.held.extend_from_slice(chunk);
            self.reader.consume(length);
            if length == 0 {
                self.end = self.held.len();
                return Ok((self.end > 0).then_some(fits));
            }
            if self.held.len() > limit {
                // What was searched holds no mark.
                fits = false;
                self.line += line_ends(self.held.get(..searched).unwrap_or_default());
                self.held.drain(..searched);
                searched = 0;
            }
        }
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    (bytes.split(|byte| *byte == b'\n').count() - 1) as u64
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn entries_are_cut_at_their_marks() {
        for size in 1..30 {
            let text = "head\n<<one\n<<two<\n<<\n<<";
            let reader = BufReader::with_capacity(size, text.as_bytes());
            let mut marked = Marked::new(reader, "<<");
            let mut entries = Vec::new();
            while marked.take(100).unwrap() == Some(true) {
                let entry = String::from_utf8(marked.taken().to_vec()).unwrap();
                entries.push((marked.line(), entry));
            }
            let expected = [
                (1, "head\n"),
                (2, "<<one\n"),
                (3, "<<two<\n"),
                (4, "<<\n"),
                (5, "<<"),
            ];
            let expected = expected.map(|(line, entry)| (line, entry.to_owned()));
            assert_eq!(entries, expected, "{size}");
        }
    }

    #[test]
    fn an_entry_beyond_the_limit_is_passed_over() {
        let text = format!("<<a<<{}<<b", "x".repeat(100));
        let reader = BufReader::with_capacity(3, text.as_bytes());
        let mut marked = Marked::new(reader, "<<");
        let mut entries = Vec::new();
        while let Some(fits) = marked.take(20).unwrap() {
            entries.push(fits.then(|| marked.taken().to_vec()));
        }
        assert_eq!(entries.first(), Some(&Some(b"<<a".to_vec())));
        assert_eq!(entries.get(1), Some(&None));
        assert_eq!(entries.last(), Some(&Some(b"<<b".to_vec())));
    }
}
