//! Civil dates in UTC: what the corpus needs to write `sent_at`, and the raw engines to read it
//! back and to cut it into months.

pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

/// Days since 1970-01-01 of a civil date.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Writes seconds since the epoch as `2019-03-04T05:06:07Z`.
pub(crate) fn push_rfc3339(out: &mut String, seconds: i64) {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    push_digits(out, year, 4);
    for (separator, value) in [
        ('-', month),
        ('-', day),
        ('T', second / 3_600),
        (':', second / 60 % 60),
        (':', second % 60),
    ] {
        out.push(separator);
        push_digits(out, value, 2);
    }
    out.push('Z');
}

/// Reads what [`push_rfc3339`] writes, as microseconds since the epoch.
pub(crate) fn micros_of(text: &str) -> Option<i64> {
    if text.len() != 20 {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
    Some(days * DAY_MICROS + seconds * 1_000_000)
}

fn push_digits(out: &mut String, value: i64, digits: u32) {
    for position in (0..digits).rev() {
        let digit = value / 10_i64.pow(position) % 10;
        out.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip_over_many_years() {
        for days in (-200_000..200_000).step_by(37) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn times_are_written_and_read_the_same() {
        let mut text = String::new();
        push_rfc3339(&mut text, 1_709_210_096);
        assert_eq!(text, "2024-02-29T12:34:56Z");
        assert_eq!(micros_of(&text), Some(1_709_210_096_000_000));
        assert_eq!(micros_of("yesterday"), None);
    }
}
