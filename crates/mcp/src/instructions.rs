//! What a host tells its model about this server as a whole. The first 512 characters stand alone: some hosts show no
//! more.

pub(crate) const INSTRUCTIONS: &str = include_str!("instructions.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_512_characters_stand_alone() {
        // UP-06
        let first: String = INSTRUCTIONS.chars().take(512).collect();
        for word in [
            "schema",
            "connection_id",
            "filter",
            "cursor",
            "search",
            "grant",
        ] {
            assert!(first.contains(word), "{word} is missing in: {first}");
        }
        let end = first.rfind('\n').unwrap_or_default();
        assert!(
            end > 300,
            "a paragraph ends within the first 512 characters"
        );
        for word in ["owner", "bearer"] {
            assert!(!first.contains(word), "{word}");
        }
    }
}
