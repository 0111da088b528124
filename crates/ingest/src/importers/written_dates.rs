//! Days with their time as exports write them for people to read, in the language of the account or the device.

use jiff::civil::{Date, DateTime, Time};

/// What the names of the months begin with, in English, German, French, Spanish, Portuguese, Italian, Catalan, Romanian, Dutch, Danish, Norwegian,
/// Swedish, Finnish, Polish, Czech, Hungarian, Turkish, Indonesian, Russian, Ukrainian and Greek. Of several the longest counts.
const MONTHS: [&[&str]; 12] = [
    &[
        "jan", "jän", "ene", "gen", "sty", "led", "tammi", "oca", "ian", "янв", "січ", "ιαν",
    ],
    &[
        "feb", "fév", "fev", "lut", "úno", "helmi", "şub", "фев", "лют", "φεβ",
    ],
    &[
        "mar", "mär", "mrt", "maa", "már", "bře", "maalis", "мар", "бер", "μαρ", "μάρ",
    ],
    &[
        "apr", "avr", "abr", "kwi", "dub", "huhti", "ápr", "nis", "апр", "кві", "απρ",
    ],
    &[
        "may", "mai", "mag", "mei", "maj", "máj", "kvě", "touko", "мая", "май", "тра", "μαΐ",
        "μαϊ", "μάι",
    ],
    &[
        "jun", "juin", "giu", "juny", "cze", "čvn", "červn", "kesä", "jún", "haz", "iun", "июн",
        "чер", "ιουν", "ιούν",
    ],
    &[
        "jul", "juil", "lug", "lip", "čvc", "červenc", "heinä", "júl", "tem", "iul", "июл", "лип",
        "ιουλ", "ιούλ",
    ],
    &[
        "aug", "aoû", "aou", "ago", "sie", "srp", "elo", "ağu", "agu", "авг", "сер", "αυγ", "αύγ",
    ],
    &[
        "sep", "set", "wrz", "zář", "syys", "sze", "eyl", "сен", "вер", "σεπ",
    ],
    &[
        "oct", "okt", "ott", "out", "paź", "říj", "loka", "eki", "окт", "жов", "οκτ",
    ],
    &[
        "nov", "lis", "marras", "kas", "noi", "ноя", "лис", "νοε", "νοέ",
    ],
    &[
        "dec", "dez", "déc", "dic", "des", "gru", "pro", "joulu", "ara", "дек", "гру", "δεκ",
    ],
];
/// What stands for the first half of the day.
const MORNING: [&str; 6] = ["am", "a.m", "上午", "午前", "오전", "a. m"];
/// What stands for the second one.
const EVENING: [&str; 6] = ["pm", "p.m", "下午", "午後", "오후", "p. m"];

/// The day and the time that a line tells: `3 juin 2024, 10:00:00`, `June 3, 2024 10:00:00 AM`, `2024年6月3日 上午10:00:00`, `03.06.2024, 10:00`.
/// Numbers with slashes are read only if the year comes first: elsewhere day and month could be each other.
pub(crate) fn written(line: &str) -> Option<DateTime> {
    let line = line.to_lowercase();
    let line = line.replace(['\u{202f}', '\u{a0}', '\u{200e}', '\u{200f}'], " ");
    let (before, clock, behind) = clock(&line, ':').or_else(|| clock(&line, '.'))?;
    // A time may stand between the day and what follows, never before the day.
    let date = named_day(before).or_else(|| numbered_day(before))?;
    Some(date.to_datetime(halved(clock, before, behind)?))
}

/// The first `10:00` or `10:00:00`, and what stands around it. With dots, as Danes and Finns write it, all three numbers must stand there, the
/// last of which is no year.
fn clock(line: &str, sign: char) -> Option<(&str, Time, &str)> {
    let is_part = |c: char| c.is_ascii_digit() || c == sign;
    let mut rest = 0;
    loop {
        let from = rest + line.get(rest..)?.find(|c: char| c.is_ascii_digit())?;
        let word = line.get(from..)?;
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, behind) = word.split_at_checked(end)?;
        let is_dotted = word.len() >= 7 && word.rsplit('.').take(2).all(|part| part.len() == 2);
        let mut parts = word.split(sign).map(str::parse::<i8>);
        if let (Some(Ok(hour)), Some(Ok(minute))) = (parts.next(), parts.next())
            && (sign == ':' || is_dotted)
        {
            let second = parts.next().unwrap_or(Ok(0)).ok()?;
            let time = Time::new(hour, minute, second, 0).ok()?;
            return Some((line.get(..from)?, time, behind));
        }
        rest = from + end;
    }
}

/// The time of the whole day, where the line says which half of it is meant: right behind the time, or right before it as in Chinese.
fn halved(time: Time, before: &str, behind: &str) -> Option<Time> {
    let (before, behind) = (before.trim_end(), behind.trim_start());
    let says = |marks: &[&str]| {
        let mut marks = marks.iter();
        marks.any(|mark| behind.starts_with(mark) || (!mark.is_ascii() && before.ends_with(mark)))
    };
    let half = match (says(&MORNING), says(&EVENING)) {
        (true, _) => 0,
        (_, true) => 12,
        _ => return Some(time),
    };
    let hour = Some(time.hour()).filter(|hour| (1..=12).contains(hour))?;
    Time::new(hour % 12 + half, time.minute(), time.second(), 0).ok()
}

/// `3 de junio de 2024` or `June 3, 2024`: the day stands right beside the name of the month.
fn named_day(line: &str) -> Option<Date> {
    let is_part = |c: char| c.is_alphanumeric();
    let words = line.split(|c| !is_part(c));
    let small = ["", "de", "del", "d", "of", "den"];
    let words: Vec<&str> = words.filter(|word| !small.contains(word)).collect();
    let number = |at: usize, digits: std::ops::RangeInclusive<usize>| {
        // `1er` is the first in French.
        let word = words.get(at)?;
        let word = word.strip_suffix("er").unwrap_or(word);
        let number = word.parse::<i16>().ok()?;
        digits.contains(&word.len()).then_some(number)
    };
    words.iter().enumerate().find_map(|(at, word)| {
        let month = month(word)?;
        let before = |digits| number(at.checked_sub(1)?, digits);
        let (day, year) = if let Some(day) = before(1..=2) {
            (day, number(at + 1, 4..=4))
        } else {
            // The year stands first in Hungarian.
            let year = number(at + 2, 4..=4).or_else(|| before(4..=4));
            (number(at + 1, 1..=2)?, year)
        };
        let year = year?;
        Date::new(year, month, i8::try_from(day).ok()?).ok()
    })
}

/// Whether a word may be the name of a month.
pub(crate) fn is_month(word: &str) -> bool {
    month(&word.to_lowercase()).is_some()
}

fn month(word: &str) -> Option<i8> {
    let found = (1..).zip(MONTHS).flat_map(|(month, begins)| {
        let fitting = begins.iter().filter(|begin| word.starts_with(**begin));
        fitting.map(move |begin| (begin.chars().count(), month))
    });
    found.max().map(|(_, month)| month)
}

/// `2024年6月3日`, `2024/06/03`, `2024. 6. 3.`, `2024-06-03` or `03.06.2024`.
fn numbered_day(line: &str) -> Option<Date> {
    let at = line.find(|c: char| c.is_ascii_digit())?;
    let line = line.get(at..)?;
    let mut numbers = line
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    let (first, second, third) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let (year, month, day) = match (first.len(), third.len()) {
        (4, 1..=2) => (first, second, third),
        (1..=2, 4) if line.get(first.len()..)?.starts_with('.') => (third, second, first),
        _ => return None,
    };
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_the_languages_of_accounts_and_devices() {
        for line in [
            "Jun 3, 2024, 10:00:00\u{202f}AM",
            "3 Jun 2024, 10:00:00",
            "Added on Monday, June 3, 2024 10:00:00 AM",
            "Hinzugefügt am Montag, 3. Juni 2024 10:00:00",
            "03.06.2024, 10:00:00",
            "3 juin 2024, 10:00:00",
            "Ajouté le lundi 3 juin 2024 10:00:00",
            "Añadido el lunes, 3 de junio de 2024 10:00:00",
            "3 jun 2024, 10:00:00",
            "Aggiunto in data lunedì 3 giugno 2024 10:00:00",
            "3 de jun. de 2024, 10:00:00",
            "Toegevoegd op maandag 3 juni 2024 10:00:00",
            "3 cze 2024, 10:00:00",
            "3. 6. 2024 10:00:00",
            "3 июн. 2024 г., 10:00:00",
            "3 Haz 2024 10:00:00",
            "作成日: 2024年6月3日月曜日 10:00:00",
            "添加于 2024年6月3日星期一 上午10:00:00",
            "2024/06/03 10:00:00",
            "2024. 6. 3. 오전 10:00:00",
            "3. jun. 2024 10.00.00",
            "3.6.2024 klo 10.00.00",
            "2024. jún. 3. 10:00:00",
        ] {
            let expected = jiff::civil::date(2024, 6, 3).at(10, 0, 0, 0);
            assert_eq!(written(line), Some(expected), "{line}");
        }
        let at = |line: &str| written(line).map(|at| at.to_string());
        let told = |line: &str, day: &str| assert_eq!(at(line).as_deref(), Some(day), "{line}");
        // A weekday may begin like a month, and a month like another.
        told("le mardi 1er mai 2018 0:05:09", "2018-05-01T00:05:09");
        told("martedì 2 luglio 2019 23:00:00", "2019-07-02T23:00:00");
        told("3 marraskuuta 2020 10:00", "2020-11-03T10:00:00");
        told("2020年1月2日 下午12:30:00", "2020-01-02T12:30:00");
        told("3 juil. 2020, 12:00:00", "2020-07-03T12:00:00");
        for line in [
            "3/6/2024, 10:00:00",
            "3 Juni 2024",
            "3. jun. 2024 10.00",
            "3 Juni 2024 03.06.2024",
            "31 June 2024 10:00:00",
            "June 3, 2024 13:00:00 PM",
            "10:00:00 3 June 2024",
            "99999999999999999999年1月2日 10:00",
            "3 junio 10:00",
            "",
            "::",
        ] {
            assert_eq!(written(line), None, "{line}");
        }
    }
}
