//! Every link between documents leads somewhere: to a file that is there, and to a heading that it has. So does every place in the
//! code that a document names: a file, or `file::function`.
#![expect(clippy::unwrap_used, reason = "a broken tree is a failed test")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what others wrote, or nothing to read.
const SKIPPED: &[&str] = &["target", ".git", "node_modules"];

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !SKIPPED.iter().any(|name| path.ends_with(name)) {
                documents(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// What a heading is called in an address: small letters, dashes for blanks, no other marks; a second one is numbered.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let name: String = heading.chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        let again = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(again);
        let free = free.into_iter().find(|name| !found.contains(name)).unwrap();
        found.insert(free);
    }
    found
}

/// The targets of links in a text; code shows what is not meant as one.
fn targets(text: &str) -> Vec<String> {
    let prose: Vec<&str> = prose(text).collect();
    let prose = prose.join("\n");
    let words: Vec<&str> = prose.split('`').collect();
    let no_code: Vec<&str> = words
        .iter()
        .enumerate()
        .map(|(at, words)| if at % 2 == 0 { *words } else { "code" })
        .collect();
    let links = no_code.concat();
    let target = |rest: &str| rest.split(')').next().unwrap_or_default().to_owned();
    links.split("](").skip(1).map(target).collect()
}

/// Why a link leads nowhere.
fn objection(document: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let linked = match file {
        "" => document.to_owned(),
        file => document.parent().unwrap().join(file),
    };
    if !linked.exists() {
        return Some(format!("there is no {file}"));
    }
    let heading = || anchors(&fs::read_to_string(&linked).unwrap()).contains(anchor);
    (!anchor.is_empty() && !heading()).then(|| format!("no heading of it is #{anchor}"))
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut all = Vec::new();
    documents(&root(), &mut all);
    let mut seen = 0;
    for document in all {
        for target in targets(&fs::read_to_string(&document).unwrap()) {
            seen += 1;
            if let Some(objection) = objection(&document, &target) {
                panic!("{} links to {target}: {objection}", document.display());
            }
        }
    }
    assert!(seen > 20, "only {seen} links were found");
}

/// Why a place in the code is not there. Paths begin at a crate.
fn missing(place: &str) -> Option<String> {
    let (file, function) = place.split_once("::").unwrap_or((place, ""));
    let path = root().join("crates").join(file);
    if !path.exists() {
        return Some(format!("there is no {file}"));
    }
    let text = || fs::read_to_string(&path).unwrap();
    let begins = [format!("fn {function}("), format!("fn {function}<")];
    let is_there = || begins.iter().any(|begin| text().contains(begin));
    (!function.is_empty() && !is_there()).then(|| format!("{file} has no function {function}"))
}

#[test]
fn places_in_the_code_that_the_architecture_names_are_there() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let prose: Vec<&str> = prose(&document).collect();
    let prose = prose.join("\n");
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates: Vec<String> = crates
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut functions = 0;
    for place in prose.split('`').skip(1).step_by(2) {
        let is_place = crates.iter().any(|name| {
            let rest = place.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with("/src/") || rest.starts_with("/tests/"))
        });
        if is_place {
            functions += usize::from(place.contains("::"));
            assert_eq!(missing(place), None, "{place}");
        }
    }
    assert!(functions > 40, "only {functions} functions are named");
    assert!(missing("testkit/tests/links.rs::missing").is_none());
    assert!(missing("testkit/tests/links.rs::absent").is_some());
    assert!(missing("testkit/src/absent.rs").is_some());
}

#[test]
fn a_link_to_nothing_is_noticed() {
    let readme = root().join("README.md");
    assert_eq!(objection(&readme, "docs/mcp.md#the-six-tools"), None);
    assert_eq!(objection(&readme, "https://example.org/#x"), None);
    assert!(objection(&readme, "docs/mcp.md#the-seven-tools").is_some());
    assert!(objection(&readme, "docs/none.md").is_some());
    assert!(objection(&readme, "#none").is_some());
    assert_eq!(targets("[a](b#c) `[d](e)`\n```\n[f](g)\n```\n"), ["b#c"]);
    let found = anchors("# What's `x` for?\n## A\n## A\n```\n# no\n```\n");
    assert_eq!(found, ["whats-x-for", "a", "a-1"].map(str::to_owned).into());
}
