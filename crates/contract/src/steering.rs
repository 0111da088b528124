//! Characters that are invisible and change how the text around them is shown.
//!
//! Every surface that shows text from elsewhere, to a model, at a terminal or on a page, makes these visible instead of
//! passing them on, so that what is shown is what is there.

/// Whether a character controls a display or hides in it: control characters, line ends, direction marks, and whatever
/// Unicode says may be shown as nothing at all (`Default_Ignorable_Code_Point`), such as joiners, fillers, variation
/// selectors and tags.
pub fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_or_turns_text_around_is_known() {
        for hidden in [
            '\0',
            '\n',
            '\u{1b}',
            '\u{9b}',
            '\u{ad}',
            '\u{200d}',
            '\u{2029}',
            '\u{202e}',
            '\u{2066}',
            '\u{206a}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            assert!(is_steering(hidden), "{hidden:?}");
        }
        for shown in [
            ' ', 'a', '\u{a0}', 'é', 'ß', '日', '한', 'ʼ', '👧', '\u{fffd}',
        ] {
            assert!(!is_steering(shown), "{shown:?}");
        }
    }
}
