//! How texts of many scripts are cut and folded, as tables.

use text::{MAX_TERM_BYTES, TokenKind, Tokens, analyze, analyze_with};

fn terms(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    analyze_with(text, |token| out.push(token.term.to_owned()));
    out
}

fn sources(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    analyze(text, &mut |token| out.push(&text[token.start..token.end]));
    out
}

#[test]
fn words_of_alphabetic_scripts_are_cut_at_everything_else_and_folded() {
    let table: &[(&str, &[&str])] = &[
        ("Hello, World!", &["hello", "world"]),
        (
            "example.test gamma-delta can't",
            &["example", "test", "gamma", "delta", "can", "t"],
        ),
        ("can’t — “quoted”…", &["can", "t", "quoted"]),
        (
            "snake_case C3PO 3.14",
            &["snake", "case", "c3po", "3", "14"],
        ),
        ("Größe STRASSE Straße", &["grosse", "strasse", "strasse"]),
        (
            "L’élève naïf œuvre ÇA",
            &["l", "eleve", "naif", "oeuvre", "ca"],
        ),
        (
            "Người Việt Nam Đà Nẵng",
            &["nguoi", "viet", "nam", "da", "nang"],
        ),
        ("İstanbul ISPARTA ışık", &["istanbul", "isparta", "isik"]),
        ("Ὀδυσσεύς ΟΔΥΣΣΕΥΣ", &["οδυσσευσ", "οδυσσευσ"]),
        ("Ёлка ЁЛКА съешь їжак", &["елка", "елка", "съешь", "іжак"]),
        ("שָׁלוֹם עולם", &["שלום", "עולם"]),
        ("مُحَمَّد محمد محـــمد أحمد", &["محمد", "محمد", "محمد", "احمد"]),
        ("می‌خواهم", &["میخواهم"]),
        ("हिन्दी में लिखा", &["हिन्दी", "में", "लिखा"]),
        ("Łódź Ærø Þór Ħal", &["lodz", "aero", "thor", "hal"]),
        ("ＡＢＣ ﬁn x² 5㎏", &["abc", "fin", "x2", "5kg"]),
        ("co\u{AD}operate", &["cooperate"]),
        ("Acme™ ©2024", &["acme", "2024"]),
        ("", &[]),
        ("... --- !!!", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(terms(text), *expected, "{text}");
    }
}

#[test]
fn cjk_runs_become_pairs_with_a_tail() {
    let table: &[(&str, &[&str])] = &[
        ("北京大学", &["北京", "京大", "大学", "学"]),
        ("我", &["我"]),
        ("東京へ行く。", &["東京", "京へ", "へ行", "行く", "く"]),
        ("カタカナ", &["カタ", "タカ", "カナ", "ナ"]),
        ("한국어", &["한국", "국어", "어"]),
        ("iPhone手机", &["iphone", "手机", "机"]),
        ("2024年3月", &["2024", "年", "3", "月"]),
        ("手机。店", &["手机", "机", "店"]),
        ("㍿", &["株式", "式会", "会社", "社"]),
        ("ㅋㅋ", &["ㅋㅋ", "ㅋ"]),
    ];
    for (text, expected) in table {
        assert_eq!(terms(text), *expected, "{text}");
    }
}

#[test]
fn widths_and_compositions_meet() {
    for (one, other) in [
        ("ｶﾞｷﾞﾊﾟ", "ガギパ"),
        ("か\u{3099}く", "がく"),
        (
            "한국어",
            "\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}\u{110B}\u{1165}",
        ),
        ("\u{F900}國", "豈國"),
        ("葛\u{E0100}飾", "葛飾"),
        ("ﾡﾢ", "ㄱㄲ"),
        ("cafe\u{301}", "CAFÉ"),
        ("น้ำ", "น้\u{E4D}\u{E32}"),
        ("\u{1026}", "\u{1025}\u{102E}"),
        // Marks of two scripts on no letter.
        ("\u{EC8}\u{16FF0}a", "\u{16FF0}\u{EC8}a"),
    ] {
        assert_eq!(terms(one), terms(other), "{one} {other}");
    }
}

#[test]
fn a_pair_knows_where_its_first_character_ends() {
    let mut tokens = Tokens::new("か\u{3099}手");
    assert!(tokens.advance());
    let token = tokens.token();
    assert_eq!(token.term, "が手");
    assert_eq!(token.kind, TokenKind::Pair { head_end: 6 });
    assert_eq!((token.start, token.end, token.position), (0, 9, 0));
    assert!(tokens.advance());
    assert_eq!(tokens.token().kind, TokenKind::Tail);
    assert_eq!((tokens.token().start, tokens.token().position), (6, 1));
    assert!(!tokens.advance());
    assert!(!tokens.advance());
}

#[test]
fn scripts_without_spaces_are_divided_by_dictionary() {
    assert_eq!(terms("ภาษาไทยง่าย"), ["ภาษา", "ไทย", "ง่าย"]);
    assert_eq!(terms("ABCภาษา123"), ["abc", "ภาษา", "123"]);
    for text in ["ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာဘာသာ", "ᦅᧄᦺᦑ", "ᥖᥭᥰᥖᥬᥳ"]
    {
        assert_eq!(sources(text).concat(), text, "{text}");
    }
    assert!(terms("ខ្ញុំស្រលាញ់ភាសាខ្មែរ").len() > 1);
}

#[test]
fn pictographs_are_words_of_their_own() {
    let table: &[(&str, &[&str])] = &[
        ("ok👍🏽thanks", &["ok", "👍", "thanks"]),
        ("👨‍👩‍👧", &["👨", "👩", "👧"]),
        ("❤️ ❤", &["❤", "❤"]),
        ("🇩🇪🇫🇷", &["🇩🇪", "🇫🇷"]),
        ("1️⃣", &["1"]),
        ("☀️🌧", &["☀", "🌧"]),
        ("🏽", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(terms(text), *expected, "{text}");
    }
    assert_eq!(sources("x 👍🏽 y"), ["x", "👍🏽", "y"]);
    assert_eq!(sources("👨‍👩").concat(), "👨‍👩");
}

#[test]
fn a_word_covers_its_trailing_marks_but_not_invisible_formatting() {
    assert_eq!(sources("cafe\u{301}!"), ["cafe\u{301}"]);
    assert_eq!(sources("\u{202A}abc\u{202C}"), ["abc"]);
    assert_eq!(sources("a\u{202C}b"), ["a\u{202C}b"]);
}

#[test]
fn long_words_are_cut_alike_at_a_character() {
    for unit in ["a", "A", "é", "ж", "हि"] {
        let word = unit.repeat(5000);
        let found = terms(&word);
        assert_eq!(found.len(), 1, "{unit}");
        assert!(found[0].len() <= MAX_TERM_BYTES && found[0].len() > MAX_TERM_BYTES - 8);
        assert_eq!(sources(&word), [word.as_str()]);
    }
    assert_eq!(terms(&"ß".repeat(100))[0], "s".repeat(MAX_TERM_BYTES));
}

#[test]
fn alternating_scripts_without_any_space_are_read_once() {
    let text = "a我".repeat(100_000);
    assert_eq!(terms(&text).len(), 200_000);
}
