//! Evidence: which fields of a found record prove the match, and where.

use contract::id::FieldName;
use contract::json::RecordBody;
use text::{Excerpt, ExcerptLimits, Expression};

#[derive(Debug, Clone, PartialEq)]
pub struct FieldExcerpt {
    pub field: FieldName,
    /// The characters and where the matches stand.
    pub excerpt: Excerpt,
}

/// Excerpts that prove a match, from the given fields only, in their order; at most `limits.max_excerpts` in all.
pub fn excerpts(
    body: &RecordBody,
    fields: &[FieldName],
    expression: &Expression,
    limits: ExcerptLimits,
) -> Vec<FieldExcerpt> {
    let mut found = Vec::new();
    for field in fields {
        let Some(text) = body.searched_text(field.as_str()) else {
            continue;
        };
        let left = limits.max_excerpts.saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let limits = ExcerptLimits {
            max_excerpts: left,
            ..limits
        };
        found.extend(
            text::excerpts(&text, expression, limits)
                .into_iter()
                .map(|excerpt| FieldExcerpt {
                    field: field.clone(),
                    excerpt,
                }),
        );
    }
    found
}
