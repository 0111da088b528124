//! Folding: what makes `Straße`, `STRASSE` and `strasse` one term. Case and accents go, compatibility forms become plain ones, and
//! composed and decomposed spellings meet in one canonical order of marks.

use unicode_normalization::char::{
    canonical_combining_class, decompose_compatible, is_combining_mark,
};

use crate::classes::{Entry, Folded, entry, is_accent};

/// Appends the folded form of a letter, digit or mark.
#[inline]
pub(crate) fn fold_into(c: char, out: &mut String) {
    match entry(c) {
        Some(entry) => fold_entry(c, entry, out),
        None => fold_slowly(c, out),
    }
}

/// [`fold_into`] for a character whose entry is at hand.
#[inline]
pub(crate) fn fold_entry(c: char, entry: &Entry, out: &mut String) {
    match entry.folded {
        Folded::Nothing => {}
        Folded::One(only) => out.push(only),
        Folded::Two(first, second) => {
            out.push(first);
            out.push(second);
        }
        Folded::Computed => fold_slowly(c, out),
    }
}

/// [`fold_into`] without the table, which is built from it.
pub(crate) fn fold_slowly(c: char, out: &mut String) {
    plain_scalars(c, |scalar| push_folded(scalar, out));
}

/// The characters a character stands for. One that stands for separators too (`½` is `1⁄2`) is kept whole, so that it never falls
/// apart inside a word, and so are Thai and Lao AM, which the dictionaries know only composed.
pub(crate) fn plain_scalars(c: char, mut each: impl FnMut(char)) {
    let mut whole = matches!(c, '\u{E33}' | '\u{EB3}');
    if !whole {
        decompose_compatible(c, |scalar| {
            whole |= !(scalar.is_alphanumeric() || is_combining_mark(scalar));
        });
    }
    if whole {
        each(c);
    } else {
        decompose_compatible(c, each);
    }
}

/// Appends one decomposed character: accents vanish, other marks take their canonical place, letters lose their case.
fn push_folded(scalar: char, out: &mut String) {
    if is_combining_mark(scalar) {
        if !is_accent(scalar) {
            push_mark(scalar, 0, out);
        }
        return;
    }
    push_caseless(scalar, out);
}

/// Appends a letter without its case. Upper case first: that is what brings `ς` to `σ` and `ı` to `i`.
pub(crate) fn push_caseless(letter: char, out: &mut String) {
    for upper in letter.to_uppercase() {
        for lower in upper.to_lowercase() {
            match without_stroke(lower) {
                Some(plain) => out.push_str(plain),
                None => out.push(lower),
            }
        }
    }
}

/// Puts a mark after the marks of lower or equal combining class, never before `floor`: canonical order, whatever order was written.
pub(crate) fn push_mark(mark: char, floor: usize, out: &mut String) {
    let class = canonical_combining_class(mark);
    let mut place = out.len();
    if class != 0 {
        for (at, before) in out.char_indices().rev() {
            if at < floor || canonical_combining_class(before) <= class {
                break;
            }
            place = at;
        }
    }
    out.insert(place, mark);
}

/// Latin letters that carry their accent as a stroke or ligature and so have no decomposition.
fn without_stroke(lower: char) -> Option<&'static str> {
    Some(match lower {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        'ø' | 'ɵ' => "o",
        'ł' | 'ƚ' => "l",
        'đ' | 'ð' | 'ɖ' | 'ɗ' => "d",
        'ħ' => "h",
        'ı' | 'ɨ' => "i",
        'ŧ' => "t",
        'ŋ' => "n",
        'ĸ' | 'ƙ' => "k",
        'ƀ' | 'ɓ' => "b",
        'ȼ' => "c",
        'ɇ' => "e",
        'ǥ' | 'ɠ' => "g",
        'ɉ' => "j",
        'ɍ' => "r",
        'ʉ' => "u",
        'ɏ' | 'ƴ' => "y",
        'ƶ' => "z",
        _ => return None,
    })
}
