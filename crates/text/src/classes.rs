//! What role a character plays in finding words: part of a word, a mark on one, a CJK character, a pictograph, or a separator.
//! Everything else in this crate asks here, so index, query and excerpt agree about every character.

use std::sync::OnceLock;

use unicode_normalization::char::{
    canonical_combining_class, decompose_compatible, is_combining_mark,
};

use crate::fold::fold_slowly;

/// The role of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Ends a word and belongs to none.
    Separator,
    /// Invisible formatting (soft hyphen, direction marks): does not end a word, is not shown as part of one.
    Invisible,
    /// Changes how the character before it looks (joiners, variation selectors, skin tones, tatweel): shown with it, never in a term.
    Extender,
    /// A combining mark: belongs to whatever it stands on.
    Mark,
    /// A letter or digit of a script that separates words.
    Word,
    /// A character of a script that is found by pairs of characters.
    Cjk,
    /// A letter or digit of a script that writes words without spaces and needs a dictionary.
    Complex,
    /// A symbol that is a word of its own.
    Pictograph,
    /// One half of a flag.
    Flag,
}

/// Class and folded form of one character.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) class: Class,
    pub(crate) folded: Folded,
}

/// The folded form of a letter or mark, where it is short and needs no reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folded {
    Nothing,
    One(char),
    Two(char, char),
    /// Longer, or a mark whose place depends on those before it.
    Computed,
}

impl Entry {
    fn compute(c: char) -> Self {
        let class = classify(c);
        let mut folded = String::new();
        if matches!(class, Class::Word | Class::Mark) {
            fold_slowly(c, &mut folded);
        }
        let mut chars = folded.chars();
        let folded = match (chars.next(), chars.next(), chars.next()) {
            (None, ..) => Folded::Nothing,
            (Some(first), ..) if canonical_combining_class(first) != 0 => Folded::Computed,
            (Some(first), None, _) => Folded::One(first),
            (Some(first), Some(second), None) => Folded::Two(first, second),
            _ => Folded::Computed,
        };
        Self { class, folded }
    }
}

const PAGE_CHARS: u32 = 256;

/// Entries of the alphabets and symbols below the CJK blocks, computed page by page when a page is first needed.
static PAGES: [OnceLock<Vec<Entry>>; 0x30] = [const { OnceLock::new() }; 0x30];

fn page_of(number: u32) -> Vec<Entry> {
    let first = number * PAGE_CHARS;
    (first..first + PAGE_CHARS)
        .filter_map(char::from_u32)
        .map(Entry::compute)
        .collect()
}

/// The precomputed entry of a character, when it has one.
#[inline]
pub(crate) fn entry(c: char) -> Option<&'static Entry> {
    let code = u32::from(c);
    let number = code / PAGE_CHARS;
    let page = PAGES.get(number as usize)?;
    page.get_or_init(|| page_of(number))
        .get((code % PAGE_CHARS) as usize)
}

/// Whether a term has nothing but letters and the marks that stand on them, which many scripts write words with.
pub fn is_letters(term: &str) -> bool {
    term.chars()
        .all(|c| c.is_alphabetic() || is_combining_mark(c))
}

/// The role of a character.
pub(crate) fn class_of(c: char) -> Class {
    match c {
        '\u{2010}'..='\u{2029}' | '\u{3000}'..='\u{3002}' => Class::Separator,
        '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' => Class::Cjk,
        _ => entry(c).map_or_else(|| classify(c), |entry| entry.class),
    }
}

fn classify(c: char) -> Class {
    if is_invisible(c) {
        Class::Invisible
    } else if is_extender(c) {
        Class::Extender
    } else if is_combining_mark(c) || matches!(c, '\u{FF9E}' | '\u{FF9F}') {
        Class::Mark
    } else if matches!(c, '\u{1F1E6}'..='\u{1F1FF}') {
        Class::Flag
    } else if matches!(c, '\u{3200}'..='\u{33FF}') {
        class_of_square(c)
    } else if is_cjk(c) {
        Class::Cjk
    } else if c.is_alphanumeric() {
        if is_complex_block(c) {
            Class::Complex
        } else {
            Class::Word
        }
    } else if is_pictograph(c) {
        Class::Pictograph
    } else {
        Class::Separator
    }
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180E}' | '\u{200E}' | '\u{200F}'
            | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206F}'
            | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
    )
}

fn is_extender(c: char) -> bool {
    matches!(
        c,
        '\u{640}' | '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}'
    )
}

/// Han, kana, Hangul, bopomofo and their old relatives, in every width.
fn is_cjk(c: char) -> bool {
    matches!(
        c,
        '\u{1100}'..='\u{11FF}' | '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}'
            | '\u{3031}'..='\u{3035}' | '\u{3038}'..='\u{303C}' | '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}'
            | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{3105}'..='\u{312F}' | '\u{3131}'..='\u{318E}'
            | '\u{31A0}'..='\u{31BF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
            | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9D}'
            | '\u{FFA1}'..='\u{FFDC}' | '\u{16FE0}'..='\u{18DFF}' | '\u{1AFF0}'..='\u{1B2FF}' | '\u{20000}'..='\u{3FFFD}'
    )
}

/// Squared and circled characters mean the characters inside them: `㍿` is Han, `㎏` is Latin.
fn class_of_square(c: char) -> Class {
    let mut holds_cjk = false;
    decompose_compatible(c, |inner| holds_cjk |= inner != c && is_cjk(inner));
    if holds_cjk { Class::Cjk } else { Class::Word }
}

/// Thai, Lao, Myanmar, Khmer and the Tai scripts: the blocks whose words are not separated by spaces.
pub(crate) fn is_complex_block(c: char) -> bool {
    matches!(
        c,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{1950}'..='\u{19DF}'
            | '\u{1A20}'..='\u{1AAF}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AADF}' | '\u{11700}'..='\u{1174F}'
    )
}

/// Emoji and the symbols people use like them; `©`, `™` and plain arrows stay separators, because they cling to words.
fn is_pictograph(c: char) -> bool {
    matches!(
        c,
        '\u{231A}' | '\u{231B}' | '\u{2328}' | '\u{23CF}' | '\u{23E9}'..='\u{23FA}' | '\u{25B6}' | '\u{25C0}'
            | '\u{2600}'..='\u{2767}' | '\u{2776}'..='\u{27BF}' | '\u{2934}' | '\u{2935}' | '\u{2B05}'..='\u{2B07}'
            | '\u{2B1B}' | '\u{2B1C}' | '\u{2B50}' | '\u{2B55}' | '\u{1F000}'..='\u{1FAFF}'
    )
}

/// Whether a combining mark is an accent or point that folding removes. Marks of other scripts carry the vowels of their words and stay.
pub(crate) fn is_accent(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5C7}' | '\u{610}'..='\u{61A}'
            | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6ED}' | '\u{8CA}'..='\u{8FF}' | '\u{1AB0}'..='\u{1AFF}'
            | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{302A}'..='\u{302F}' | '\u{FE20}'..='\u{FE2F}'
    )
}

/// Whether the text may be cut between two neighbouring characters without tearing apart what a reader sees as one.
/// `flags_before` counts the flag halves that end with `before`.
pub(crate) fn may_cut_between(before: char, after: char, flags_before: usize) -> bool {
    let tears = match class_of(after) {
        Class::Mark | Class::Extender => true,
        Class::Flag => flags_before % 2 == 1,
        Class::Cjk => is_joining_jamo(after) && class_of(before) == Class::Cjk,
        Class::Word | Class::Complex => {
            // After a virama the next consonant belongs to the same cluster; Thai and Lao AM stand on the letter before.
            canonical_combining_class(before) == 9 || matches!(after, '\u{E33}' | '\u{EB3}')
        }
        _ => false,
    };
    !(tears || before == '\u{200D}' || (before == '\r' && after == '\n'))
}

/// Vowel and final jamo, which compose with the jamo or syllable before them.
pub(crate) fn is_joining_jamo(c: char) -> bool {
    matches!(c, '\u{1161}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_entry_equals_the_slow_answer() {
        for code in 0x80..0x3000 {
            let c = char::from_u32(code).unwrap();
            let mut slow = String::new();
            if matches!(classify(c), Class::Word | Class::Mark) {
                fold_slowly(c, &mut slow);
                let mut fast = String::new();
                crate::fold::fold_into(c, &mut fast);
                assert_eq!(fast, slow, "{code:x}");
            }
            assert_eq!(class_of(c), classify(c), "{code:x}");
        }
    }

    #[test]
    fn the_shortcuts_of_class_of_agree_with_the_rules() {
        for code in 0x600..0x20000 {
            if let Some(c) = char::from_u32(code) {
                assert_eq!(class_of(c), classify(c), "{code:x}");
            }
        }
    }

    #[test]
    fn nothing_is_cut_from_its_base() {
        assert!(!may_cut_between('e', '\u{301}', 0));
        assert!(!may_cut_between('👍', '🏽', 0));
        assert!(!may_cut_between('❤', '\u{FE0F}', 0));
        assert!(!may_cut_between('👨', '\u{200D}', 0));
        assert!(!may_cut_between('\u{200D}', '👩', 0));
        assert!(!may_cut_between('🇩', '🇪', 1));
        assert!(may_cut_between('🇪', '🇫', 2));
        assert!(!may_cut_between('\u{1100}', '\u{1161}', 0));
        assert!(!may_cut_between('\u{94D}', 'ष', 0));
        assert!(!may_cut_between('\r', '\n', 0));
        assert!(may_cut_between('手', '机', 0));
    }
}
