//! Cells as spreadsheets and banks write them: numbers with either decimal sign, separated thousands and a currency, dates in any
//! order. Each way to read a cell gives what the record then holds, or nothing.

use contract::time::Instant;
use jiff::civil::{Date, Time};

contract::names! {
    /// In which order day, month and year are written.
    pub(crate) enum DateOrder {
        DayMonthYear = "day-month-year",
        MonthDayYear = "month-day-year",
        YearMonthDay = "year-month-day",
    }
}

const CURRENCIES: [&str; 12] = [
    "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "NOK", "DKK", "PLN", "CZK", "CAD", "AUD",
];

/// A number with this sign before its fraction, as JSON writes it. `(12)` and `12-` are negative.
pub(crate) fn number(cell: &str, decimal: char) -> Option<String> {
    let mut text = cell.trim();
    for currency in CURRENCIES {
        text = text.strip_prefix(currency).unwrap_or(text);
        text = text.strip_suffix(currency).unwrap_or(text);
    }
    let is_sign = |c: char| c.is_whitespace() || matches!(c, '€' | '$' | '£' | '¥' | '%' | '+');
    let text = text.trim_matches(is_sign);
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let minus = |text: &str| text.starts_with(['-', '−']) || text.ends_with(['-', '−']);
    let is_negative = inner.is_some() || minus(text);
    let digits = inner
        .unwrap_or(text)
        .trim_matches(|c| is_sign(c) || matches!(c, '-' | '−'));
    let (whole, fraction) = digits.split_once(decimal).unwrap_or((digits, ""));
    let mut groups = whole.split(|c: char| {
        c.is_whitespace() || matches!(c, '\'' | '’') || (matches!(c, '.' | ',') && c != decimal)
    });
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    // In India thousands stand in a group of three, and what is above in groups of two.
    let is_grouped = rest.split_last().is_none_or(|(last, above)| {
        let by = |size: usize| first.len() <= size && above.iter().all(|group| group.len() == size);
        last.len() == 3 && (by(3) || by(2))
    });
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !first.is_empty()
        && is_grouped
        && all_digits(first)
        && rest.iter().all(|group| all_digits(group))
        && all_digits(fraction)
        && (digits.ends_with(decimal) == (fraction.is_empty() && digits.contains(decimal)));
    if !is_number || digits.ends_with(decimal) {
        return None;
    }
    let whole = format!("{first}{}", rest.concat());
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if is_negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// A day, or a day and a time of day behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) text: String,
    pub(crate) has_time: bool,
}

/// A day as ISO 8601 writes it, with a time if there is one.
pub(crate) fn iso(cell: &str) -> Option<Moment> {
    let text = cell.trim();
    let bytes = text.as_bytes();
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    if text.len() == 10 {
        let date: Date = text.parse().ok()?;
        let text = date.to_string();
        return Some(Moment {
            text,
            has_time: false,
        });
    }
    let text = text.replacen(' ', "T", 1);
    Instant::parse(&text)?;
    Some(Moment {
        text,
        has_time: true,
    })
}

/// A day with signs between its parts, in a known order, with a time if there is one.
pub(crate) fn date(cell: &str, order: DateOrder) -> Option<Moment> {
    let cell = cell.trim();
    let (day, time) = match cell.split_once([' ', 'T', ',']) {
        Some((day, time)) => (day, Some(time.trim_start_matches([',', ' ']))),
        None => (cell, None),
    };
    let Some(sign) = day.chars().find(|c| !c.is_ascii_digit()) else {
        return compact(cell).filter(|_| order == DateOrder::YearMonthDay);
    };
    if !matches!(sign, '.' | '/' | '-') {
        return None;
    }
    let parts: Vec<&str> = day.trim_end_matches('.').split(sign).collect();
    let [one, two, three] = parts.as_slice() else {
        return None;
    };
    let (year, month, day) = match order {
        DateOrder::DayMonthYear => (three, two, one),
        DateOrder::MonthDayYear => (three, one, two),
        DateOrder::YearMonthDay => (one, two, three),
    };
    if !matches!(year.len(), 2 | 4) || !matches!(month.len(), 1 | 2) || !matches!(day.len(), 1 | 2)
    {
        return None;
    }
    let mut whole: i16 = year.parse().ok()?;
    if year.len() == 2 {
        whole += if whole < 70 { 2000 } else { 1900 };
    }
    let date = Date::new(whole, month.parse().ok()?, day.parse().ok()?).ok()?;
    let Some(time) = time else {
        let text = date.to_string();
        return Some(Moment {
            text,
            has_time: false,
        });
    };
    let text = format!("{date}T{}", time_of_day(time)?);
    Some(Moment {
        text,
        has_time: true,
    })
}

/// A day in digits only: `20240603`.
fn compact(cell: &str) -> Option<Moment> {
    let digits = Some(cell).filter(|cell| cell.len() == 8 && cell.is_ascii())?;
    let date: Date = digits.parse().ok()?;
    (1900..2100).contains(&date.year()).then(|| Moment {
        text: date.to_string(),
        has_time: false,
    })
}

fn time_of_day(text: &str) -> Option<Time> {
    let lower = text.trim().to_ascii_lowercase();
    let (clock, half) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
        (Some(clock), _) => (clock.trim(), Some(0)),
        (_, Some(clock)) => (clock.trim(), Some(12)),
        _ => (lower.as_str(), None),
    };
    // Fractions of a second are left.
    let clock = clock.split_once('.').map_or(clock, |(whole, fraction)| {
        let is_fraction = fraction.bytes().all(|byte| byte.is_ascii_digit());
        if is_fraction { whole } else { clock }
    });
    let mut parts = clock.split(':').map(str::parse::<i8>);
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().unwrap_or(Ok(0)).ok()?;
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Time::new(hour, minute, second, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_decimal_sign_or_not_at_all() {
        for (cell, decimal, expected) in [
            ("1.234,56 €", ',', Some("1234.56")),
            ("-1.234.567,00", ',', Some("-1234567.00")),
            ("EUR 12,5", ',', Some("12.5")),
            ("$1,234.5", '.', Some("1234.5")),
            ("(1,234.50)", '.', Some("-1234.50")),
            ("12,00-", ',', Some("-12.00")),
            ("1'000.25", '.', Some("1000.25")),
            ("1,23,456.50", '.', Some("123456.50")),
            ("1,2,345", '.', None),
            ("12,345,67", '.', None),
            ("007", '.', Some("7")),
            ("0,00", ',', Some("0.00")),
            ("12.34", ',', None),
            ("1.23,4", ',', None),
            ("12,", ',', None),
            (",5", ',', None),
            ("abc", ',', None),
            ("", ',', None),
            ("1-2", '.', None),
        ] {
            assert_eq!(number(cell, decimal).as_deref(), expected, "{cell}");
        }
    }

    #[test]
    fn dates_are_read_in_their_order_or_not_at_all() {
        use DateOrder::{DayMonthYear, MonthDayYear, YearMonthDay};
        for (cell, order, expected) in [
            ("31.12.2023", DayMonthYear, Some("2023-12-31")),
            ("1/2/24", MonthDayYear, Some("2024-01-02")),
            ("1/2/24", DayMonthYear, Some("2024-02-01")),
            ("2024/02/29", YearMonthDay, Some("2024-02-29")),
            (
                "12/31/2023 9:15 PM",
                MonthDayYear,
                Some("2023-12-31T21:15:00"),
            ),
            (
                "31.12.99 12:00 am",
                DayMonthYear,
                Some("1999-12-31T00:00:00"),
            ),
            (
                "03-06-2024 10:00:00.123",
                DayMonthYear,
                Some("2024-06-03T10:00:00"),
            ),
            ("20240603", YearMonthDay, Some("2024-06-03")),
            ("20240603", DayMonthYear, None),
            ("20241303", YearMonthDay, None),
            ("12345678", YearMonthDay, None),
            ("30.02.2024", DayMonthYear, None),
            ("12/31/2023", DayMonthYear, None),
            ("31.12.2023 25:00", DayMonthYear, None),
            ("soon", DayMonthYear, None),
            ("", DayMonthYear, None),
        ] {
            assert_eq!(
                date(cell, order).map(|moment| moment.text).as_deref(),
                expected,
                "{cell}"
            );
        }
        assert_eq!(iso("2024-02-30"), None);
        assert!(iso("2024-02-28 10:00").unwrap().has_time);
    }
}
