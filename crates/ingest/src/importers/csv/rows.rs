//! Rows and cells of a table, one row at a time, and the names of its columns.

use std::borrow::Cow;
use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::delimiter;
use super::quotes::{Misquoted, Quotes};
use super::text::Text;
use crate::error::InputError;
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode, quoted};
use crate::table::{self, TableHints};
use crate::validate::StreamRules;

/// Rows among which the header is looked for where the declaration says that some stand before it.
const HEADER_WITHIN: usize = 100;

/// Splits bytes into rows and cells, holding one row at a time.
pub(crate) struct Rows<R> {
    pub(super) input: Text<R>,
    delimiter: u8,
    engine: Reader,
    limit: usize,
    quotes: Quotes,
    /// Line ends consumed so far.
    line_ends: u64,
    room: Vec<u8>,
    room_ends: [usize; 64],
    pub(super) text: Vec<u8>,
    ends: Vec<usize>,
}

/// A row that was read: where it began, whether its cells were too much to hold, and what is wrong with its quotes.
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) too_long: bool,
    pub(super) misquoted: Option<Misquoted>,
}

impl Row {
    /// Why it cannot be read, if it cannot.
    pub(super) fn rejection(&self) -> Option<Rejection> {
        if let Some(misquoted) = self.misquoted {
            return Some(misquoted.rejection());
        }
        let message = format!(
            "the row is longer than {} MiB; a quote may be left open",
            MAX_LINE_BYTES >> 20
        );
        self.too_long
            .then(|| Rejection::new(RejectionCode::LineTooLong, message))
    }
}

/// The texts of a row, or why it cannot be read.
type RowTexts = Result<Vec<String>, Rejection>;

impl<R: BufRead> Rows<R> {
    pub(super) fn new(
        reader: R,
        limit: usize,
        is_known: impl Fn(&str) -> bool,
    ) -> io::Result<Self> {
        let input = Text::begin(reader)?;
        let found = delimiter::find(input.head(), input.encoding, is_known);
        Ok(Self::split(input, limit, &found))
    }

    /// Splits by a delimiter that is known.
    pub(crate) fn with_delimiter(reader: R, limit: usize, delimiter: u8) -> io::Result<Self> {
        let input = Text::begin(reader)?;
        let mut found = delimiter::find(input.head(), input.encoding, |_| false);
        found.delimiter = delimiter;
        Ok(Self::split(input, limit, &found))
    }

    fn split(mut input: Text<R>, limit: usize, found: &delimiter::Found) -> Self {
        input.consume(found.said_in);
        let delimiter = found.delimiter;
        Self {
            input,
            delimiter,
            engine: ReaderBuilder::new().delimiter(delimiter).build(),
            limit,
            quotes: Quotes::new(delimiter),
            line_ends: u64::from(found.said_in > 0),
            room: vec![0; 16 * 1024],
            room_ends: [0; 64],
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The texts of the next row that can be read; nothing at the end.
    pub(crate) fn next_cells(&mut self) -> io::Result<Option<Vec<String>>> {
        while let Some((_, texts)) = self.next_texts()? {
            if let Ok(texts) = texts {
                return Ok(Some(texts));
            }
        }
        Ok(None)
    }

    /// The line of the next row, and its texts or why it cannot be read. Nothing at the end.
    pub(crate) fn next_texts(&mut self) -> io::Result<Option<(u64, RowTexts)>> {
        let Some(row) = self.read()? else {
            return Ok(None);
        };
        if let Some(rejection) = row.rejection() {
            return Ok(Some((row.line, Err(rejection))));
        }
        let encoding = self.input.encoding;
        let cells = self
            .cells()
            .map(|cell| encoding.decode(cell).unwrap_or_default());
        let texts = cells.map(Cow::into_owned).collect();
        Ok(Some((row.line, Ok(texts))))
    }

    /// The names in the first row; nothing if there is none.
    pub(super) fn first_names(&mut self) -> Result<Option<Vec<String>>, InputError> {
        match self.read()? {
            Some(row) => self.names(&row).map(Some),
            None => Ok(None),
        }
    }

    /// The names of the columns where the declaration says how they are found: the row that has most of the declared ones, or
    /// none, and then the declared ones in their order.
    pub(super) fn hinted_names(
        &mut self,
        hints: &TableHints,
        rules: &StreamRules<'_>,
    ) -> Result<Option<Vec<String>>, InputError> {
        let fields = rules.declaration.fields.iter();
        let declared: Vec<&str> = fields
            .map(|field| field.name.as_str())
            .filter(|name| hints.hashed.as_deref() != Some(name))
            .collect();
        if !hints.has_header {
            return Ok(Some(declared.into_iter().map(str::to_owned).collect()));
        }
        for before in 0..HEADER_WITHIN {
            let Some(cells) = self.next_cells()? else {
                if before == 0 {
                    return Ok(None);
                }
                break;
            };
            let names = table::unique_names(&cells);
            let known = names
                .iter()
                .filter(|name| declared.contains(&name.as_str()));
            if 2 * known.count() > declared.len() {
                return Ok(Some(names));
            }
        }
        let message =
            format!("is not among the first {HEADER_WITHIN} rows, or names other columns");
        Err(InputError::Header(message))
    }

    fn names(&self, header: &Row) -> Result<Vec<String>, InputError> {
        if header.too_long {
            return Err(InputError::Header("is too long".to_owned()));
        }
        if let Some(misquoted) = header.misquoted {
            return Err(InputError::Header(misquoted.in_header()));
        }
        let cells = self.cells().map(|cell| self.input.encoding.decode(cell));
        let names: Option<Vec<String>> = cells.map(|cell| cell.map(Cow::into_owned)).collect();
        names.ok_or_else(|| InputError::Header(format!("is not {}", self.input.encoding.name())))
    }

    /// How the table was read, so that a wrong guess can be noticed.
    pub(super) fn describe(&self, names: &[String]) -> String {
        const SHOWN: usize = 12;
        let mut columns: Vec<String> = names.iter().take(SHOWN).map(|name| quoted(name)).collect();
        if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            columns.push(format!("and {more} more"));
        }
        format!(
            "it was read as {} with {} between the cells, and its columns are {}",
            self.input.encoding.name(),
            delimiter::described(self.delimiter),
            columns.join(", ")
        )
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(self.ends.iter().copied())
            .map(|(start, end)| self.text.get(start..end).unwrap_or_default())
    }

    pub(super) fn read(&mut self) -> io::Result<Option<Row>> {
        self.skip_blank_lines()?;
        let line = self.line_ends + 1;
        self.quotes.begin_row();
        let mut too_long = false;
        let (mut written, mut fields) = (0, 0);
        self.text.clear();
        self.text.shrink_to(1024 * 1024);
        self.ends.clear();
        loop {
            let input = self.input.fill_buf()?;
            let (state, consumed, bytes, ends) =
                self.engine
                    .read_record(input, &mut self.room, &mut self.room_ends);
            let consumed_part = input.get(..consumed).unwrap_or_default();
            self.line_ends = self.quotes.follow(consumed_part, self.line_ends);
            self.input.consume(consumed);
            written += bytes;
            fields += ends;
            too_long |= written > self.limit || fields > self.limit / 8;
            if !too_long {
                self.text.extend(self.room.get(..bytes).unwrap_or_default());
                self.ends
                    .extend(self.room_ends.get(..ends).unwrap_or_default());
            }
            match state {
                ReadRecordResult::Record => {
                    // Of a row that is too long there is a part, which may end within a character.
                    if !too_long {
                        self.input.encoding = self.input.encoding.decided_by(&self.text);
                    }
                    return Ok(Some(Row {
                        line,
                        too_long,
                        misquoted: self.quotes.misquoted(self.line_ends),
                    }));
                }
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
            }
        }
    }

    /// Steps over line ends, so that a row is known to begin where the next byte is.
    fn skip_blank_lines(&mut self) -> io::Result<()> {
        loop {
            let input = self.input.fill_buf()?;
            match input.first() {
                Some(b'\n') => self.line_ends += 1,
                Some(b'\r') => {}
                _ => return Ok(()),
            }
            self.input.consume(1);
        }
    }
}
