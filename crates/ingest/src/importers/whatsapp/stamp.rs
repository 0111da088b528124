//! How a message of a `WhatsApp` export begins: with the moment it was sent, written as the phone's language has it.
//! iPhones put it in brackets, Android before a dash. Order and separators of the date, twelve or twenty-four hours,
//! words before and after the time, and the digits themselves differ.

use std::iter::Peekable;
use std::str::CharIndices;

use contract::time::Instant;

use super::halves::{half_of_day, is_of_clock};
use super::order::DateOrder;

/// Stands for the words for year and month that Korea, Japan and China write between the numbers of a date.
const YEAR: char = '年';
/// Words or marks around a time take no more characters than this.
const AROUND_CHARS: usize = 16;

/// How the moments of one export are written. It does not change within a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    bracketed: bool,
    separator: char,
    year_first: bool,
    time_first: bool,
}

/// The moment a message was sent, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Year, and then the other two in the order they are written.
    date: (u16, u16, u16),
    pub(super) style: Style,
    hour: u16,
    minute: u16,
    second: Option<u16>,
    american: bool,
    /// Whether a word stands before the time that may name a half of the day, in a language that is not known here.
    unknown_half: bool,
}

/// Whether the times of a file can be twelve hours early: words beside them are not known, and none is behind noon.
#[derive(Default)]
pub(super) struct Clock {
    has_unknown: bool,
    has_late: bool,
}

impl Clock {
    pub(super) fn add(&mut self, stamp: Stamp) {
        self.has_unknown |= stamp.unknown_half;
        self.has_late |= stamp.hour > 12;
    }

    pub(super) fn is_unsure(&self) -> bool {
        self.has_unknown && !self.has_late
    }
}

/// A moment in the local time of the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalTime {
    year: u16,
    month: u16,
    day: u16,
    hour: u16,
    minute: u16,
    second: Option<u16>,
}

/// Characters that steer the direction of writing and mean nothing else.
pub(super) fn is_mark(c: char) -> bool {
    matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

/// Reads the beginning of a line: the stamp, and what follows it. Nothing if the line does not begin with a stamp. Whether
/// there is such a moment is another question.
pub(super) fn read(line: &str) -> Option<(Stamp, &str)> {
    let mut scan = Scan::new(line);
    let bracketed = scan.eat('[');
    let start = scan.offset();
    // Vietnamese phones write the time before the day.
    let time_first = scan.begins_with_time();
    let (date, end, before, time) = if time_first {
        let time = scan.time()?;
        let between = scan.up_to_digit()?;
        (scan.date()?, scan.offset(), between, time)
    } else {
        let (date, end) = (scan.date()?, scan.offset());
        (date, end, scan.up_to_digit()?, scan.time()?)
    };
    let (separator, [first, second, third]) = date;
    // Korea leaves the century out, and nobody else who writes the year first. Others put no space behind each point if one stands at
    // the end too, or write the year in full.
    let written = line.get(start..end).unwrap_or_default();
    let is_spaced = written.contains(". ") && before.starts_with(". ");
    let is_korean = separator == '.' && (is_spaced || before.contains(['전', '후']));
    let (year_first, year, date) = match (first.digits, third.digits) {
        (4, 1 | 2) => (true, first, (second, third)),
        (2, 1 | 2) if is_korean => (true, first, (second, third)),
        (1 | 2, 2 | 4) => (false, third, (first, second)),
        _ => return None,
    };
    let (hour, minute, seconds) = time;
    let after = scan.up_to_end_of_stamp(bracketed)?;
    let half = half_of_day(before).or(half_of_day(after));
    let is_clean =
        after.chars().all(is_space_or_mark) || half_of_day(after).is_some() || is_of_clock(after);
    if !is_clean || before.contains([':', '[', ']']) {
        return None;
    }
    let stamp = Stamp {
        date: (full_year(year), date.0.value, date.1.value),
        style: Style {
            bracketed,
            separator,
            year_first,
            time_first,
        },
        hour: half.map_or(hour.value, |half| half.hour(hour.value)),
        minute,
        second: seconds,
        american: separator == '/'
            && !date.0.is_padded()
            && !date.1.is_padded()
            && after.contains(['A', 'P']),
        unknown_half: half.is_none()
            && (1..=12).contains(&hour.value)
            && before.chars().any(char::is_alphabetic)
            && !is_of_clock(before),
    };
    Some((stamp, scan.rest()))
}

impl Stamp {
    /// Whether it is written with seconds, as iPhones do.
    pub(super) fn has_seconds(&self) -> bool {
        self.second.is_some()
    }

    pub(super) fn is_bracketed(&self) -> bool {
        self.style.bracketed
    }

    /// Whether dashes stand between the parts of the day.
    pub(super) fn is_dashed(&self) -> bool {
        self.style.separator == '-'
    }

    pub(super) fn is_year_first(&self) -> bool {
        self.style.year_first
    }

    pub(super) fn has_slashes(&self) -> bool {
        self.style.separator == '/'
    }

    /// Whether it is written as in `1/2/24, 9:15 PM`: no zeros before the date, and capitals after the time.
    pub(super) fn is_american(&self) -> bool {
        self.american
    }

    /// Day and month, in the order they are written.
    pub(super) fn undecided(&self) -> (u16, u16) {
        let (_, first, second) = self.date;
        (first, second)
    }

    pub(super) fn read_as(&self, order: DateOrder) -> LocalTime {
        let (year, first, second) = self.date;
        let (month, day) = match order {
            DateOrder::DayMonthYear => (second, first),
            DateOrder::MonthDayYear | DateOrder::YearMonthDay => (first, second),
        };
        LocalTime {
            year,
            month,
            day,
            hour: self.hour,
            minute: self.minute,
            second: self.second,
        }
    }
}

impl LocalTime {
    pub(super) fn date(self) -> (u16, u16, u16) {
        (self.year, self.month, self.day)
    }

    pub(super) fn is_possible(self) -> bool {
        let has_second = self.second.is_none_or(|second| second < 60);
        has_second && Instant::parse(&self.to_minute()).is_some()
    }

    /// The moment to the minute: what an iPhone and an Android phone write of the same message.
    pub(super) fn to_minute(self) -> String {
        format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}",
            self.year, self.month, self.day, self.hour, self.minute
        )
    }

    /// The moment, with as many milliseconds as messages came before it at the same one.
    pub(super) fn with_place(self, place: u32) -> String {
        let second = self.second.unwrap_or_default();
        let minute = self.to_minute();
        match place.min(999) {
            0 => format!("{minute}:{second:02}"),
            place => format!("{minute}:{second:02}.{place:03}"),
        }
    }
}

pub(super) fn is_space_or_mark(c: char) -> bool {
    c.is_whitespace() || is_mark(c)
}

/// Two digits are of this century. Thailand counts from 543 years earlier.
fn full_year(year: Number) -> u16 {
    match year.value {
        value if year.digits == 2 => 2000 + value,
        value @ 2543.. => value - 543,
        value => value,
    }
}

#[derive(Clone, Copy)]
struct Number {
    value: u16,
    digits: usize,
}

impl Number {
    fn is_padded(self) -> bool {
        self.digits == 2 && self.value < 10
    }
}

/// A position in a line. Marks are stepped over wherever something is looked for.
struct Scan<'l> {
    line: &'l str,
    chars: Peekable<CharIndices<'l>>,
}

impl<'l> Scan<'l> {
    fn new(line: &'l str) -> Self {
        Self {
            line,
            chars: line.char_indices().peekable(),
        }
    }

    fn peek(&mut self) -> Option<char> {
        while self.chars.next_if(|(_, c)| is_mark(*c)).is_some() {}
        self.chars.peek().map(|(_, c)| *c)
    }

    fn offset(&mut self) -> usize {
        self.chars.peek().map_or(self.line.len(), |(at, _)| *at)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.chars.next();
        }
        found
    }

    fn number(&mut self, most: usize) -> Option<Number> {
        let (mut value, mut digits) = (0, 0);
        while let Some(digit) = self.peek().and_then(digit) {
            self.chars.next();
            digits += 1;
            if digits > most {
                return None;
            }
            value = value * 10 + digit;
        }
        (digits > 0).then_some(Number { value, digits })
    }

    /// What stands between the numbers of a date; some languages put a space after it. The words for year and month count as one sign.
    fn separator(&mut self) -> Option<char> {
        let found = self.peek().and_then(|c| match c {
            '/' | '.' | '-' => Some(c),
            '년' | '월' | '年' | '月' => Some(YEAR),
            _ => None,
        })?;
        self.chars.next();
        while self.eat(' ') {}
        Some(found)
    }

    /// What separates the numbers of a date, and the numbers as they are written.
    fn date(&mut self) -> Option<(char, [Number; 3])> {
        let (first, separator) = (self.number(4)?, self.separator()?);
        let second = self
            .number(2)
            .filter(|_| self.separator() == Some(separator))?;
        let third = self.number(4)?;
        let is_whole = separator != YEAR || self.eat('일') || self.eat('日');
        is_whole.then_some((separator, [first, second, third]))
    }

    fn begins_with_time(&self) -> bool {
        let mut ahead = self.chars.clone().map(|(_, c)| c);
        let behind = ahead.by_ref().find(|c| digit(*c).is_none() && !is_mark(*c));
        behind == Some(':')
    }

    /// Hour, minute and, as iPhones have it, second.
    fn time(&mut self) -> Option<(Number, u16, Option<u16>)> {
        let hour = self.number(2)?;
        if let Some(minute) = self.after(&[':', '.']) {
            return Some((hour, minute, self.after(&[':', '.'])));
        }
        // Canadian French: `21 h 15 min 30 s`.
        self.word("h")?;
        let minute = self.number(2)?.value;
        let second = match self.word("min") {
            Some(()) => Some(self.number(2)?.value),
            None => None,
        };
        if second.is_some() {
            self.word("s")?;
        }
        Some((hour, minute, second))
    }

    /// Steps over a word, and the spaces around it.
    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.line.get(self.offset()..)?;
        let spaces = |text: &str| text.len() - text.trim_start().len();
        let before = spaces(rest);
        let behind = rest.get(before..)?.strip_prefix(word)?;
        let end = self.line.len() - behind.len() + if word == "s" { 0 } else { spaces(behind) };
        while self.chars.next_if(|(at, _)| *at < end).is_some() {}
        Some(())
    }

    /// Two digits after one of these.
    fn after(&mut self, wanted: &[char]) -> Option<u16> {
        let next = self.peek().filter(|c| wanted.contains(c))?;
        self.eat(next);
        self.number(2)
            .filter(|number| number.digits == 2)
            .map(|number| number.value)
    }

    /// What stands between date and time: at least something.
    fn up_to_digit(&mut self) -> Option<&'l str> {
        let start = self.offset();
        for _ in 0..AROUND_CHARS {
            match self.peek()? {
                c if digit(c).is_some() => {
                    let end = self.offset();
                    return self
                        .line
                        .get(start..end)
                        .filter(|around| !around.is_empty());
                }
                _ => self.chars.next()?,
            };
        }
        None
    }

    /// What stands between time and the end of the stamp, which is consumed.
    fn up_to_end_of_stamp(&mut self, bracketed: bool) -> Option<&'l str> {
        let start = self.offset();
        for _ in 0..AROUND_CHARS {
            let at = self.offset();
            let rest = self.line.get(at..)?;
            let ends: &[&str] = if bracketed { &["]"] } else { &[" - ", " – "] };
            if let Some(left) = ends.iter().find_map(|end| rest.strip_prefix(end)) {
                self.chars = self.line.char_indices().peekable();
                let consumed = self.line.len() - left.len();
                while self.chars.next_if(|(at, _)| *at < consumed).is_some() {}
                return self.line.get(start..at);
            }
            self.chars.next()?;
        }
        None
    }

    fn rest(mut self) -> &'l str {
        let at = self.offset();
        let rest = self.line.get(at..).unwrap_or_default();
        rest.strip_prefix(' ').unwrap_or(rest)
    }
}

/// The zeros of the scripts that phones write numbers in: Latin, Arabic, Persian, those of India, and Burmese.
const ZEROS: [char; 12] = [
    '0', '\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{be6}', '\u{c66}',
    '\u{ce6}', '\u{d66}', '\u{1040}',
];

/// The value of a decimal digit.
fn digit(c: char) -> Option<u16> {
    let value = |zero: &char| u32::from(c).checked_sub(u32::from(*zero));
    let value = ZEROS.iter().filter_map(value).find(|value| *value < 10)?;
    u16::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(line: &str, order: DateOrder) -> Option<(String, &str)> {
        let (stamp, rest) = read(line)?;
        Some((stamp.read_as(order).with_place(0), rest))
    }

    #[test]
    fn phones_of_many_languages_write_one_moment() {
        let (day, month) = (DateOrder::DayMonthYear, DateOrder::MonthDayYear);
        let year = DateOrder::YearMonthDay;
        for (line, order) in [
            ("12/31/23, 9:15 PM - A: b", month),
            ("12/31/23, 9:15\u{202f}PM - A: b", month),
            ("31/12/2023, 21:15 - A: b", day),
            ("31/12/2023 21:15 - A: b", day),
            ("31/12/2023 à 21:15 - A: b", day),
            ("31/12/23, 9:15 p. m. - A: b", day),
            ("31/12/23, 9:15 pm - A: b", day),
            ("31.12.23, 21:15 - A: b", day),
            ("2023-12-31, 21:15 - A: b", year),
            ("2023/12/31 21:15 - A: b", year),
            ("2023/12/31 下午9:15 - A: b", year),
            ("2023. 12. 31. 오후 9:15 - A: b", year),
            ("31/12/2566 21:15 - A: b", day),
            ("2023년 12월 31일 오후 9:15 - A: b", year),
            ("2023년 12월 31일 21:15 - A: b", year),
            ("2023年12月31日 下午9:15 - A: b", year),
            ("23. 12. 31. 오후 9:15 - A: b", DateOrder::YearMonthDay),
            ("23. 12. 31. 21:15 - A: b", DateOrder::YearMonthDay),
            ("31.12.23. 21:15 - A: b", day),
            ("31. 12. 2023. 21:15 - A: b", day),
            ("21:15, 31/12/2023 - A: b", day),
            ("21:15 31/12/2023 - A: b", day),
            ("৩১/১২/২৩, ৯:১৫ PM - A: b", day),
            ("[31.12.23, 21:15] A: b", day),
            ("31/12/23, பிற்பகல் 9:15 - A: b", day),
            ("31/12/23 9:15 da tarde - A: b", day),
            ("31.12.23, 9:15 e pasdites - A: b", day),
            ("31.12.23 г., 21:15 ч. - A: b", day),
            ("2023-12-31 21 h 15 - A: b", year),
            ("2023-12-31 à 21\u{a0}h\u{a0}15 - A: b", year),
        ] {
            let moment = "2023-12-31T21:15:00".to_owned();
            assert_eq!(time(line, order), Some((moment, "A: b")), "{line}");
        }
        for (line, order) in [
            ("[31.12.23, 21:15:07] A: b", day),
            ("\u{200e}[31.12.23, 21:15:07] A: b", day),
            ("[31.12.2023 klo 21.15.07] A: b", day),
            ("[12/31/23, 9:15:07\u{202f}PM] A: b", month),
            ("[21:15:07, 31/12/2023] A: b", day),
            ("[2023-12-31, 21 h 15 min 07 s] A: b", year),
            ("[31.12.23 г., 21:15:07 ч.] A: b", day),
            ("[\u{200f}٣١\u{200f}/١٢\u{200f}/٢٠٢٣، ٩:١٥:٠٧ م] A: b", day),
        ] {
            let moment = "2023-12-31T21:15:07".to_owned();
            assert_eq!(time(line, order), Some((moment, "A: b")), "{line}");
        }
    }

    #[test]
    fn midnight_and_noon_are_where_they_belong() {
        for (line, moment) in [
            ("1/2/24, 12:05 AM - x", "2024-01-02T00:05:00"),
            ("1/2/24, 12:05 PM - x", "2024-01-02T12:05:00"),
            ("1/2/24, 1:05 AM - x", "2024-01-02T01:05:00"),
            ("1/2/24, 0:05 - x", "2024-01-02T00:05:00"),
        ] {
            let read = time(line, DateOrder::MonthDayYear);
            assert_eq!(read, Some((moment.to_owned(), "x")), "{line}");
        }
    }

    #[test]
    fn times_beside_unknown_words_may_be_twelve_hours_early() {
        for (lines, unsure) in [
            (&["1/2/24, xyz 9:15 - x"][..], true),
            (&["1/2/24, xyz 9:15 - x", "1/2/24, xyz 21:15 - x"], false),
            (&["1/2/24, பிற்பகல் 9:15 - x"], false),
            (&["1.2.2024 klo 9.15 - x"], false),
            (&["1/2/24, 9:15 - x"], false),
        ] {
            let mut clock = Clock::default();
            for line in lines {
                clock.add(read(line).unwrap().0);
            }
            assert_eq!(clock.is_unsure(), unsure, "{lines:?}");
        }
    }

    #[test]
    fn other_lines_are_no_beginnings() {
        for line in [
            "",
            "hello",
            "12/31/23",
            "12/31/23, 9:15 PM",
            "12/31/23, 9:15 PM: Anna",
            "12/31, 9:15 PM - Anna: x",
            "1.2.3 is a version, 10:20 - x",
            "[see 12/31/23, 9:15 PM] x",
            "2023-12-31 21:15:07,123 - INFO - x",
            "21:15 - Anna: x",
            "21:15:07.123 31/12/2023 - x",
            "2023년 12월 31, 21:15 - x",
            "12/31/23, 9:15 whenever - x",
            "123/31/23, 9:15 PM - x",
            "2023-12-31, 21 h - x",
            "2023-12-31, 21 h 15 min 07 - x",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
