//! Suggestions for an unknown name.

use crate::output::visible;

/// Names in a hint.
const MAX_NAMES: usize = 12;

/// The known name nearest to a mistaken one, if it is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let reach = (wanted.len() / 3).max(1);
    let distances = known
        .iter()
        .map(|known| (distance(&wanted, &known.to_lowercase()), *known));
    let (least, found) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= reach).then_some(found)
}

/// The question to ask about a mistaken name, if a known one is near.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    let near = nearest(name, known)?;
    Some(format!("did you mean '{}'?", visible(near)))
}

/// The first dozen of some names, and how many are left.
pub(crate) fn join_names(names: &[&str]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| visible(name))
        .collect();
    let more = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// How many characters must be added, taken away, exchanged, or swapped with their neighbour.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let first: Vec<usize> = (0..=to.len()).collect();
    let mut rows = vec![first];
    for (line, wanted) in from.iter().enumerate() {
        let mut row = vec![line + 1];
        for (column, known) in to.iter().enumerate() {
            let above = &rows[line];
            let changed = above[column] + usize::from(wanted != known);
            let mut best = changed.min(above[column + 1] + 1).min(row[column] + 1);
            let swapped =
                line > 0 && column > 0 && from[line - 1] == *known && to[column - 1] == *wanted;
            if swapped {
                best = best.min(rows[line - 1][column - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_changes() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("recieved_at", "received_at", 1),
            ("mesages", "messages", 1),
            ("kitten", "sitting", 3),
        ] {
            let from: Vec<char> = from.chars().collect();
            assert_eq!(distance(&from, to), expected, "{to}");
        }
    }

    #[test]
    fn only_what_could_be_meant_is_suggested() {
        let known = ["received_at", "subject", "body"];
        assert_eq!(nearest("recieved_at", &known), Some("received_at"));
        assert_eq!(nearest("Subject", &known), Some("subject"));
        assert_eq!(nearest("price", &known), None);
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(
            nearest("connection", &["connection-id"]),
            Some("connection-id")
        );
    }

    #[test]
    fn a_suggestion_cannot_steer_the_terminal() {
        let asked = did_you_mean("bodi", &["bod\u{1b}"]);
        assert_eq!(asked.as_deref(), Some("did you mean 'bod\\u{1b}'?"));
    }
}
