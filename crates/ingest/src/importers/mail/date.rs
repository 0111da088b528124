//! Dates as mailboxes and old programs write them: `Mar  4 10:11:12 2024`, `4 Mar 24 10:11 EST`.

use contract::time::Instant;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// The zones that mail knows by name; others are as good as none.
const ZONES: [(&str, &str); 8] = [
    ("EST", "-05:00"),
    ("EDT", "-04:00"),
    ("CST", "-06:00"),
    ("CDT", "-05:00"),
    ("MST", "-07:00"),
    ("MDT", "-06:00"),
    ("PST", "-08:00"),
    ("PDT", "-07:00"),
];

/// Whether it is the name of a day of the week, as a date begins with it.
pub(super) fn is_weekday(word: &str) -> bool {
    let word = word.trim_end_matches(',');
    let mut days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].into_iter();
    days.any(|day| day.eq_ignore_ascii_case(word))
}

/// Reads a date in RFC 3339. Words around it are let be; without an offset it is taken to be in UTC.
pub(in crate::importers) fn read(words: &[&str]) -> Option<String> {
    let month = words.iter().position(|word| month_of(word).is_some())?;
    let after: &[&str] = words.get(month + 1..)?;
    let before = month.checked_sub(1).and_then(|at| words.get(at));
    let (day, time, year) = match before.and_then(|word| number(word, 2)) {
        Some(day) => (day, *after.get(1)?, year_of(after.first()?)?),
        None => (
            number(after.first()?, 2)?,
            *after.get(1)?,
            after
                .iter()
                .find_map(|word| number(word, 4).filter(|_| word.len() == 4))?,
        ),
    };
    let offset = after.iter().find_map(|word| offset_of(word));
    let offset = offset.unwrap_or_else(|| "Z".to_owned());
    let mut parts = time.split(':').map(|part| number(part, 2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let month = month_of(words.get(month)?)?;
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{offset}");
    Instant::parse(&date).map(|_| date)
}

fn month_of(word: &str) -> Option<usize> {
    let found = MONTHS
        .iter()
        .position(|month| month.eq_ignore_ascii_case(word));
    found.map(|index| index + 1)
}

fn number(word: &str, most: usize) -> Option<u16> {
    let is_number = word.len() <= most && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_number)
}

/// A year; of two digits, as RFC 5322 has it.
fn year_of(word: &str) -> Option<u16> {
    let year = number(word, 4)?;
    match word.len() {
        4 => Some(year),
        2 if year < 50 => Some(2000 + year),
        2 | 3 => Some(1900 + year),
        _ => None,
    }
}

fn offset_of(word: &str) -> Option<String> {
    if let Some((_, offset)) = ZONES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
    {
        return Some((*offset).to_owned());
    }
    let digits = word.strip_prefix(['+', '-'])?;
    number(digits, 4).filter(|_| digits.len() == 4)?;
    let (hours, minutes) = word.split_at(3);
    Some(format!("{hours}:{minutes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_programs_have_written_them() {
        for (text, expected) in [
            ("Mar  4 10:11:12 2024", Some("2024-03-04T10:11:12Z")),
            (
                "Mar 04 10:11:12 +0100 2024",
                Some("2024-03-04T10:11:12+01:00"),
            ),
            (
                "Mar 04 10:11:12 PST 2024",
                Some("2024-03-04T10:11:12-08:00"),
            ),
            ("Mar 4 9:11 2024 -0330", Some("2024-03-04T09:11:00-03:30")),
            ("Mon, 4 Mar 24 10:11 GMT", Some("2024-03-04T10:11:00Z")),
            ("4 mar 1999 10:11:12 (CET)", Some("1999-03-04T10:11:12Z")),
            ("4 Mar 99 10:11:12", Some("1999-03-04T10:11:12Z")),
            ("31 Feb 2024 10:11:12", None),
            ("Mar 4 25:11:12 2024", None),
            ("Mar 4 2024", None),
            ("Mar", None),
            ("", None),
        ] {
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            assert_eq!(read(&words).as_deref(), expected, "{text}");
        }
    }
}
