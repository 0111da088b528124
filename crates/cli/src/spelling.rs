//! Suggestions for an unknown name.

use strsim::osa_distance;

use crate::output::visible;

const MAX_NAMES: usize = 12;

/// The known name nearest to a mistaken one, if it is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let reach = (wanted.chars().count() / 3).max(1);
    let distances = known
        .iter()
        .map(|known| (osa_distance(&wanted, &known.to_lowercase()), *known));
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

#[cfg(test)]
mod tests {
    use super::*;

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
