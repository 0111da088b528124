//! How queries are read (decisions 19 and 45).

use text::{Clause, Expression, MAX_CLAUSES, MAX_PHRASE_TERMS};

/// Clauses as text: terms joined by spaces, a prefix with a star.
fn shape(clauses: &[Clause]) -> Vec<String> {
    clauses
        .iter()
        .map(|clause| clause.terms.join(" ") + if clause.prefix { "*" } else { "" })
        .collect()
}

fn read(query: &str) -> (Vec<String>, Vec<String>) {
    let expression = Expression::parse_all(query);
    (shape(&expression.wanted), shape(&expression.none))
}

// FI-01: any word may occur, function words are left out unless there is nothing else, signs and quotes stay strict.
#[test]
fn a_question_is_read_as_words_of_which_any_may_occur() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("What is Lina allergic to?", &["lina", "allergic"], &[]),
        ("Caroline's self-care", &["caroline", "self", "care"], &[]),
        ("Caroline’s", &["caroline"], &[]),
        ("to be or not to be", &["to", "be", "or", "not"], &[]),
        (
            "when +was the \"bridge to\" vend*",
            &["+was", "+bridge to", "+vend*"],
            &[],
        ),
        (
            "bridge -the -\"old port\"",
            &["bridge"],
            &["the", "old port"],
        ),
        ("Welche Brücke ist für den Hafen", &["brucke", "hafen"], &[]),
        ("fur coat", &["fur", "coat"], &[]),
        ("Why DON'T they start, why won’t he", &["start"], &[]),
        (
            "Don won't say who won: Don or Won",
            &["don", "say", "won"],
            &[],
        ),
        (
            "我在北京大学学习",
            &["我在", "在北", "北京", "京大", "大学", "学学", "学习"],
            &[],
        ),
        ("手", &["手*"], &[]),
        ("ภาษาไทย", &["ภาษา", "ไทย"], &[]),
        ("+ alpha -", &["alpha"], &[]),
        ("", &[], &[]),
    ];
    for (query, wanted, none) in table {
        let expression = Expression::parse(query);
        let strict = |clause: &Clause| if clause.required { "+" } else { "" };
        let found: Vec<String> = std::iter::zip(&expression.wanted, shape(&expression.wanted))
            .map(|(clause, shape)| format!("{}{shape}", strict(clause)))
            .collect();
        assert_eq!(found, *wanted, "{query}");
        assert_eq!(shape(&expression.none), *none, "{query}");
    }
}

#[test]
fn words_phrases_prefixes_and_exclusions_are_read() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("alpha Beta", &["alpha", "beta"], &[]),
        ("\"alpha beta\" gamma", &["alpha beta", "gamma"], &[]),
        ("“alpha beta”", &["alpha beta"], &[]),
        ("pre*", &["pre*"], &[]),
        ("\"two wor\"*", &["two wor*"], &[]),
        ("\"two wor*\"", &["two wor*"], &[]),
        ("alpha -beta", &["alpha"], &["beta"]),
        (
            "alpha -\"beta gamma\" -de*",
            &["alpha"],
            &["beta gamma", "de*"],
        ),
        ("gamma-delta", &["gamma delta"], &[]),
        ("example.test", &["example test"], &[]),
        ("gamma-del*", &["gamma del*"], &[]),
        ("alpha alpha ALPHA", &["alpha"], &[]),
        ("\"x\"y", &["x", "y"], &[]),
    ];
    for (query, all, none) in table {
        let (found_all, found_none) = read(query);
        assert_eq!(
            (found_all.as_slice(), found_none.as_slice()),
            (&all.map_owned()[..], &none.map_owned()[..]),
            "{query}"
        );
    }
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for &[&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|text| (*text).to_owned()).collect()
    }
}

#[test]
fn bad_syntax_is_read_as_plain_words() {
    let table: &[(&str, &[&str])] = &[
        ("\"open phrase", &["open", "phrase"]),
        ("-\"open phrase", &["open", "phrase"]),
        ("- alpha", &["alpha"]),
        ("* alpha **", &["alpha"]),
        ("--help", &["help"]),
        ("foo*bar", &["foo bar"]),
        ("foo-*", &["foo"]),
        (
            "cats AND dogs OR NEAR(mice, 5)",
            &["cats", "and", "dogs", "or", "near mice", "5"],
        ),
        ("title:alpha", &["title alpha"]),
        ("27\" screen 32\" stand", &["27", "screen", "32", "stand"]),
        ("(a {b} ^c", &["a", "b", "c"]),
        ("\"\" \" \" '", &[]),
        ("", &[]),
    ];
    for (query, expected) in table {
        assert_eq!(read(query), (expected.map_owned(), Vec::new()), "{query}");
    }
}

#[test]
fn cjk_queries_ask_for_pairs_and_a_single_character_is_a_prefix() {
    for (query, expected) in [
        ("手机", "手机"),
        ("手机店", "手机 机店"),
        ("手", "手*"),
        ("手机*", "手机"),
        ("\"手机 phone\"", "手机 机 phone"),
        ("iPhone手", "iphone 手*"),
        ("2024年", "2024 年*"),
        ("\"手 phone\"", "手 phone"),
    ] {
        assert_eq!(read(query).0, [expected], "{query}");
    }
}

#[test]
fn negatives_alone_match_nothing() {
    assert!(Expression::parse("-alpha -\"beta gamma\"").matches_nothing());
    assert!(Expression::parse("!!! -- \"\"").matches_nothing());
    assert!(!Expression::parse("alpha -beta").matches_nothing());
}

#[test]
fn everything_is_bounded() {
    let many = (0..100)
        .map(|n| format!("w{n} -x{n}"))
        .collect::<Vec<_>>()
        .join(" ");
    for expression in [Expression::parse(&many), Expression::parse_all(&many)] {
        assert_eq!(expression.wanted.len() + expression.none.len(), MAX_CLAUSES);
        assert!(expression.truncated);
    }

    let long = format!("\"{}\"*", "word ".repeat(100).trim_end());
    let expression = Expression::parse(&long);
    assert_eq!(expression.wanted[0].terms.len(), MAX_PHRASE_TERMS);
    assert!(expression.truncated && !expression.wanted[0].prefix);

    // Exactly full: the tail that is dropped anyway does not count.
    let han: String = ('\u{4E00}'..).take(MAX_PHRASE_TERMS + 1).collect();
    let expression = Expression::parse_all(&han);
    assert_eq!(expression.wanted[0].terms.len(), MAX_PHRASE_TERMS);
    assert!(!expression.truncated);
}
