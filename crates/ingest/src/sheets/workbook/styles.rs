//! How cells of a workbook are shown, which alone tells a date from a number.

use std::collections::HashMap;

use jiff::civil::{Date, Time, date};
use jiff::{SignedDuration, ToSpan};

use crate::importers::xml::Node;
use crate::sheets::Cell;

/// What a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Shown {
    #[default]
    Number,
    Day,
    Moment,
    /// A time of day.
    Clock,
    /// Hours that may be more than a day has.
    Elapsed,
}

#[derive(Debug, Default)]
pub(super) struct Styles {
    /// By the number that cells have.
    shown: Vec<Shown>,
    /// Whether days are counted from 1904.
    from_1904: bool,
}

impl Styles {
    /// Of formats that cannot be read, every cell is what it holds.
    pub(super) fn parse(xml: &[u8], from_1904: bool) -> Self {
        let Ok(root) = Node::parse(xml) else {
            return Self {
                from_1904,
                ..Self::default()
            };
        };
        let formats = root.child("numFmts").into_iter().flat_map(Node::children);
        let formats: HashMap<&str, &str> = formats
            .filter_map(|one| Some((one.attribute("numFmtId")?, one.attribute("formatCode")?)))
            .collect();
        let cells = root.child("cellXfs").into_iter().flat_map(Node::children);
        let shown = cells.map(|cell| {
            let id = cell.attribute("numFmtId").unwrap_or("0");
            match formats.get(id) {
                Some(code) => Shown::from_code(code),
                None => Shown::from_id(id.parse().unwrap_or_default()),
            }
        });
        Self {
            shown: shown.collect(),
            from_1904,
        }
    }

    /// What a cell that holds a number says.
    pub(super) fn cell(&self, value: &str, style: usize) -> Cell {
        let shown = self.shown.get(style).copied().unwrap_or_default();
        let Ok(number) = value.parse::<f64>() else {
            let text = value.to_owned();
            return Cell {
                text,
                is_number: false,
            };
        };
        match self.time(number, shown) {
            Some(text) => Cell {
                text,
                is_number: false,
            },
            None => Cell {
                text: plain_number(value, number),
                is_number: number.is_finite(),
            },
        }
    }

    fn time(&self, number: f64, shown: Shown) -> Option<String> {
        // Until the end of 9999.
        if shown == Shown::Number || !(0.0..2_958_466.0).contains(&number) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is within a few millions of days"
        )]
        let seconds = (number * 86_400.0).round() as i64;
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        if shown == Shown::Elapsed {
            let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
            return Some(format!("{hours}:{minutes:02}:{:02}", seconds % 60));
        }
        let clock = Time::midnight()
            .checked_add(SignedDuration::from_secs(of_day))
            .ok()?;
        if shown == Shown::Clock && days == 0 {
            return Some(clock.to_string());
        }
        let day = self.day(days)?;
        if shown == Shown::Day && of_day == 0 {
            return Some(day.to_string());
        }
        Some(format!("{day}T{clock}"))
    }

    fn day(&self, days: i64) -> Option<Date> {
        let first = if self.from_1904 {
            date(1904, 1, 1)
        } else if days < 60 {
            date(1899, 12, 31)
        } else {
            // The 29th of February 1900 is counted, though there was none.
            date(1899, 12, 30)
        };
        first.checked_add(days.days()).ok()
    }
}

/// A number without an exponent, with the fifteen digits that are true.
fn plain_number(value: &str, number: f64) -> String {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_plain = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    if !number.is_finite() || (is_plain && digits <= 15 && !value.ends_with('.')) {
        return value.to_owned();
    }
    let rounded = format!("{number:.14e}").parse::<f64>();
    rounded.unwrap_or(number).to_string()
}

impl Shown {
    /// The formats that need not be written down.
    fn from_id(id: u32) -> Self {
        match id {
            14..=17 | 27..=31 | 36 | 50..=54 | 57 | 58 => Self::Day,
            18..=21 | 32..=35 | 45 | 47 | 55 | 56 => Self::Clock,
            22 => Self::Moment,
            46 => Self::Elapsed,
            _ => Self::Number,
        }
    }

    fn from_code(code: &str) -> Self {
        let (mut day, mut month, mut clock, mut elapsed) = (false, false, false, false);
        let mut characters = code.chars();
        while let Some(character) = characters.next() {
            match character.to_ascii_lowercase() {
                ';' => break,
                '"' => drop(characters.by_ref().find(|c| *c == '"')),
                '\\' | '_' | '*' => drop(characters.next()),
                '[' => {
                    let inside: String = characters.by_ref().take_while(|c| *c != ']').collect();
                    let mut letters = inside.chars();
                    let first = letters.next().map(|c| c.to_ascii_lowercase());
                    let is_one = inside
                        .chars()
                        .all(|c| Some(c.to_ascii_lowercase()) == first);
                    elapsed |= is_one && matches!(first, Some('h' | 'm' | 's'));
                }
                'y' | 'd' => day = true,
                'm' => month = true,
                'h' | 's' => clock = true,
                // `General` is no date, and neither is what has digits.
                'g' | '0' | '#' | '?' if !clock && !day && !month => return Self::Number,
                _ => {}
            }
        }
        match (day || (month && !clock), clock) {
            _ if elapsed => Self::Elapsed,
            (true, true) => Self::Moment,
            (true, false) => Self::Day,
            (false, true) => Self::Clock,
            (false, false) => Self::Number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_number_stands_for_is_told_by_its_format() {
        for (code, shown) in [
            ("yyyy\\-mm\\-dd", Shown::Day),
            ("[$-407]d. mmmm yyyy;@", Shown::Day),
            ("mmm", Shown::Day),
            ("dd/mm/yy hh:mm", Shown::Moment),
            ("h:mm AM/PM", Shown::Clock),
            ("[h]:mm", Shown::Elapsed),
            ("General", Shown::Number),
            ("#,##0.00 \"days\"", Shown::Number),
            ("0.00E+00", Shown::Number),
            ("[Red]-0.0", Shown::Number),
            ("\"day\" 0", Shown::Number),
            ("", Shown::Number),
        ] {
            assert_eq!(Shown::from_code(code), shown, "{code}");
        }
    }

    #[test]
    fn numbers_are_days_times_or_numbers() {
        let all = [
            Shown::Number,
            Shown::Day,
            Shown::Moment,
            Shown::Clock,
            Shown::Elapsed,
        ];
        let styles = |from_1904| Styles {
            shown: all.to_vec(),
            from_1904,
        };
        for (value, style, text) in [
            ("45322", 1, "2024-01-31"),
            ("45322.5", 1, "2024-01-31T12:00:00"),
            ("45322", 2, "2024-01-31T00:00:00"),
            ("1", 1, "1900-01-01"),
            ("61", 1, "1900-03-01"),
            ("0.75", 3, "18:00:00"),
            ("1.0625", 4, "25:30:00"),
            ("0.99999999", 3, "1900-01-01T00:00:00"),
            ("-1", 1, "-1"),
            ("9999999", 1, "9999999"),
            ("0.30000000000000004", 0, "0.3"),
            ("1.5E-3", 0, "0.0015"),
            ("1e400", 0, "1e400"),
            ("12.50", 0, "12.50"),
            ("soon", 1, "soon"),
        ] {
            assert_eq!(styles(false).cell(value, style).text, text, "{value}");
        }
        assert_eq!(styles(true).cell("0", 1).text, "1904-01-01");
        assert_eq!(Styles::default().cell("45322", 7).text, "45322");
    }
}
