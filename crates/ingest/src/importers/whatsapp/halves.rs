//! The words that phones write beside a time: which half of the day it is in, or only that it is a time.

use super::stamp::is_space_or_mark;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Morning,
    Afternoon,
}

impl Half {
    pub(super) fn hour(self, hour: u16) -> u16 {
        match (self, hour) {
            (Self::Morning, 12) => 0,
            (Self::Afternoon, 1..12) => hour + 12,
            (_, hour) => hour,
        }
    }
}

/// A word around a time, without spaces and points.
fn word_of(around: &str) -> String {
    around
        .chars()
        .filter(|c| !is_space_or_mark(*c) && !matches!(c, '.' | ',' | '،'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Whether a word around a time says only that it is one.
pub(super) fn is_of_clock(around: &str) -> bool {
    matches!(
        word_of(around).as_str(),
        "à" | "klo" | "kl" | "um" | "om" | "ore" | "alle" | "alas" | "г" | "ч" | "h" | "uhr"
    )
}

/// Words for the halves of the day, without spaces and points.
const MORNING: [&str; 33] = [
    "am",
    "a",
    "vorm",
    "πμ",
    "ص",
    "дп",
    "de",
    "fm",
    "sa",
    "öö",
    "오전",
    "上午",
    "凌晨",
    "清晨",
    "早上",
    "午前",
    "pg",
    "पूर्वाह्न",
    "পূর্বাহ্ণ",
    "முற்பகல்",
    "ಪೂರ್ವಾಹ್ನ",
    "damanhã",
    "eparadites",
    "проб",
    "претпладне",
    "prepodne",
    "priekšpusdienā",
    "priešpiet",
    "dop",
    "ap",
    "vm",
    "לפנה״צ",
    "قظ",
];
const AFTERNOON: [&str; 34] = [
    "pm",
    "p",
    "nachm",
    "μμ",
    "م",
    "пп",
    "du",
    "em",
    "ch",
    "ös",
    "오후",
    "下午",
    "傍晚",
    "晚上",
    "中午",
    "午後",
    "ptg",
    "अपराह्न",
    "অপরাহ্ণ",
    "பிற்பகல்",
    "ಅಪರಾಹ್ನ",
    "datarde",
    "epasdites",
    "слоб",
    "попладне",
    "popodne",
    "pēcpusdienā",
    "popiet",
    "odp",
    "pop",
    "ip",
    "nm",
    "אחה״צ",
    "بظ",
];

/// The half of the day that a word around a time names, in the languages whose phones write one.
pub(super) fn half_of_day(around: &str) -> Option<Half> {
    let word = word_of(around);
    let is_one = |words: &[&str]| words.contains(&word.as_str());
    if is_one(&MORNING) {
        return Some(Half::Morning);
    }
    is_one(&AFTERNOON).then_some(Half::Afternoon)
}
