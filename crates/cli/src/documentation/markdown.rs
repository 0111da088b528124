//! As much of Markdown as the tests read: code blocks, code in the line, tables.

/// The lines inside fences.
pub(super) fn blocks(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            found.push(line);
        }
    }
    found
}

/// The lines outside fences.
pub(super) fn prose(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            found.push(line);
        }
    }
    found
}

/// What stands between backticks in prose. A bar inside a table is written `\|`.
pub(super) fn code_spans(text: &str) -> Vec<String> {
    let prose = prose(text).join("\n");
    let spans = prose.split('`').skip(1).step_by(2);
    spans.map(|span| span.replace("\\|", "|")).collect()
}

/// The code of the first column of each table whose first column has this heading.
pub(super) fn first_column(text: &str, heading: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in prose(text) {
        let Some(cells) = line.strip_prefix('|') else {
            inside = false;
            continue;
        };
        let first = cells.split('|').next().unwrap_or_default().trim();
        if first == heading {
            inside = true;
        } else if inside {
            found.extend(code_spans(first));
        }
    }
    found
}

#[test]
fn code_and_tables_are_found() {
    let text = "A `b c` `d\\|e`\n\n| Code | Means |\n|---|---|\n| `x`, `y` | `z` |\n\n| `q` |\n```\nrun `me`\n```\n";
    assert_eq!(blocks(text), ["run `me`"]);
    assert_eq!(code_spans(text), ["b c", "d|e", "x", "y", "z", "q"]);
    assert_eq!(first_column(text, "Code"), ["x", "y"]);
}
