//! As much of a shell as the examples use: words, quotes, comments, and where one program's words end.

/// The words of each call of `pdpp` in a line, without its name.
pub(super) fn calls(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for words in programs(line) {
        let mut words = words.into_iter().peekable();
        // Settings of the environment may stand before the program.
        while words
            .next_if(|word| word == "$" || word.contains('=') && !word.starts_with('-'))
            .is_some()
        {}
        let words: Vec<String> = words.collect();
        let start = match words.first().map(String::as_str) {
            Some("pdpp" | "target/release/pdpp") => 1,
            // `cargo run -- …` is the program too, unless it runs another package.
            Some("cargo")
                if words.get(1).is_some_and(|word| word == "run")
                    && !words.contains(&"-p".to_owned()) =>
            {
                let Some(end) = words.iter().position(|word| word == "--") else {
                    continue;
                };
                end + 1
            }
            _ => continue,
        };
        found.push(words[start..].to_vec());
    }
    found
}

fn programs(line: &str) -> Vec<Vec<String>> {
    let mut programs = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars().peekable();
    let end = |word: &mut Option<String>, programs: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(words)) = (word.take(), programs.last_mut()) {
            words.push(word);
        }
    };
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&' | '>' | '<' | ')') => {
                end(&mut word, &mut programs);
                programs.push(Vec::new());
            }
            (None, '$') if letters.peek() == Some(&'(') => {
                letters.next();
                word = None;
                programs.push(Vec::new());
            }
            (None, ' ' | '\t' | '\n') => end(&mut word, &mut programs),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    end(&mut word, &mut programs);
    programs
}

#[test]
fn the_calls_of_a_line_are_found() {
    let words = |line| calls(line);
    assert_eq!(words("$ pdpp search 'a b' # c"), [["search", "a b"]]);
    assert_eq!(words("pdpp export x | head"), [["export", "x"]]);
    assert_eq!(words("PDPP_LOG=info pdpp serve &"), [["serve"]]);
    assert_eq!(
        words("t=$(pdpp grant show ID) && pdpp purge"),
        [vec!["grant", "show", "ID"], vec!["purge"]]
    );
    assert_eq!(words("cargo run --release -- serve"), [["serve"]]);
    assert_eq!(words("cargo run --release -p bench -- --mcp"), [[""; 0]; 0]);
    assert_eq!(words("claude mcp add pdpp URL"), [[""; 0]; 0]);
}
