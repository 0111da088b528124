//! Every row of `docs/requirements.md` is held by tests, and says by which. A test names the rows it holds in a comment inside
//! it or right above it; `UPDATE=1 cargo test -p testkit --test requirements` writes the lists of tests anew.
#![expect(clippy::unwrap_used, reason = "a broken tree is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The tests that hold a row: of each file, their names.
type Holders = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `AB-01`, at the beginning of a text.
fn row_id(text: &str) -> Option<&str> {
    let id = text.get(..5)?;
    let bytes = id.as_bytes();
    let letters = bytes[..2].iter().all(u8::is_ascii_uppercase);
    let digits = bytes[3..].iter().all(u8::is_ascii_digit);
    let ends = !text[5..].starts_with(|next: char| next.is_alphanumeric());
    (letters && bytes[2] == b'-' && digits && ends).then_some(id)
}

/// The rows that a comment names; `AB-01 to AB-04` are four.
fn named(comment: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut last: Option<(&str, usize)> = None;
    for (at, _) in comment.char_indices() {
        let begins = !comment[..at].ends_with(|before: char| before.is_alphanumeric());
        let Some(id) = row_id(&comment[at..]).filter(|_| begins) else {
            continue;
        };
        let number = |id: &str| id[3..].parse::<u8>().unwrap();
        if let Some((first, end)) = last
            && comment[end..at].trim() == "to"
        {
            let between = number(first) + 1..number(id);
            found.extend(between.map(|n| format!("{}-{n:02}", &id[..2])));
        }
        found.push(id.to_owned());
        last = Some((id, at + 5));
    }
    found
}

/// The rows that the tests of a file name, each with the test.
fn held(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = Vec::new();
    let mut is_test = false;
    let mut inside: Option<(usize, String)> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if inside.as_ref().is_some_and(|(outer, _)| *outer >= indent) && !code.is_empty() {
            inside = None;
        }
        let comment = code.find("// ").map_or("", |at| &code[at..]);
        let rows = named(comment);
        if let Some((_, name)) = &inside {
            found.extend(rows.into_iter().map(|row| (row, name.clone())));
            continue;
        }
        waiting.extend(rows);
        if code == "#[test]" || code.starts_with("#[tokio::test") {
            is_test = true;
        }
        let function = code.trim_start_matches("async ").strip_prefix("fn ");
        // A case that is run on every surface.
        let case = code.strip_prefix("pub(crate) fn ");
        let case = case.filter(|case| case.contains("(surface: Surface)"));
        if let Some(function) = function.filter(|_| is_test).or(case) {
            let name = function.split('(').next().unwrap_or_default().to_owned();
            found.extend(waiting.drain(..).map(|row| (row, name.clone())));
            inside = Some((indent, name));
            is_test = false;
        } else if !is_test && !code.starts_with("//") && !code.is_empty() {
            waiting.clear();
        }
    }
    found
}

/// Every row that some test names.
fn all_held() -> BTreeMap<String, Holders> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut all: BTreeMap<String, Holders> = BTreeMap::new();
    for file in files {
        // This file speaks of rows that are none.
        if file.ends_with("testkit/tests/requirements.rs") {
            continue;
        }
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        for (row, test) in held(&fs::read_to_string(&file).unwrap()) {
            let holders = all.entry(row).or_default();
            holders.entry(name.clone()).or_default().insert(test);
        }
    }
    all
}

fn stated(line: &str) -> Option<&str> {
    row_id(line.strip_prefix("- **")?)
}

fn render(document: &str, all: &BTreeMap<String, Holders>) -> String {
    let mut text = String::new();
    for line in document.lines().filter(|line| !line.starts_with("  - ")) {
        text.push_str(line);
        text.push('\n');
        let Some(row) = stated(line) else {
            continue;
        };
        for (file, tests) in all.get(row).into_iter().flatten() {
            let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
            let short = file.strip_prefix("crates/").unwrap_or(file);
            writeln!(text, "  - [{short}](../{file}): {}", tests.join(", ")).unwrap();
        }
    }
    text
}

#[test]
fn every_row_is_held_by_a_test() {
    let document = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let rows: Vec<&str> = document.lines().filter_map(stated).collect();
    assert!(rows.len() >= 189, "rows are added, and never taken away");
    let unique: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(unique.len(), rows.len(), "a row stands twice");
    let all = all_held();
    let bare: Vec<&str> = rows
        .into_iter()
        .filter(|row| !all.contains_key(*row))
        .collect();
    assert!(bare.is_empty(), "no test names {bare:?}");
    let unknown: Vec<&String> = all
        .keys()
        .filter(|row| !unique.contains(row.as_str()))
        .collect();
    assert!(
        unknown.is_empty(),
        "tests name rows that are none: {unknown:?}"
    );
}

#[test]
fn the_document_names_the_tests_of_every_row() {
    let path = root().join("docs/requirements.md");
    let document = fs::read_to_string(&path).unwrap();
    let wanted = render(&document, &all_held());
    if document == wanted {
        return;
    }
    assert!(
        std::env::var_os("UPDATE").is_some(),
        "docs/requirements.md is out of date; UPDATE=1 cargo test -p testkit --test requirements writes it anew"
    );
    fs::write(path, wanted).unwrap();
}

#[test]
fn a_comment_in_a_test_or_right_above_it_names_its_rows() {
    let text = "\
// AA-01, AA-02 to AA-04: why
#[test]
fn above() {
    if true {
        check(); // BB-01
    }
}

/// CC-01 is only spoken of.
fn no_test() {
    // DD-01
}

mod tests {
    #[tokio::test]
    async fn within() {
        // EE-01 and XEE-02, EE-033, é-EE-04
    }
}
";
    let found: Vec<(String, String)> = held(text);
    let found: Vec<String> = found
        .iter()
        .map(|(row, test)| format!("{row} {test}"))
        .collect();
    assert_eq!(
        found,
        [
            "AA-01 above",
            "AA-02 above",
            "AA-03 above",
            "AA-04 above",
            "BB-01 above",
            "EE-01 within",
            "EE-04 within"
        ]
    );
}
