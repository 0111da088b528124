//! Searching by meaning: when it can be asked for, what is asked of the store, and what a hit without a matching word shows.

use std::collections::HashMap;

use contract::error::{ErrorCode, ReadError};
use contract::json::RecordBody;
use contract::query::Count;
use contract::search::{
    FieldWindowRead, Matching, Passage, SEMANTIC_MATCH, SearchMode, SearchOrder, SearchQuery,
};
use store::meaning::{MeaningQuestion, NearestWindow};
use store::search::{SearchAnswer, SearchRequest};

use super::Plan;
use crate::evidence::PASSAGE_CHARS;
use crate::failure::Result;
use crate::reader::Session;
use crate::visible_history;

/// Refuses a mode that cannot be had, and options that it does not have. Names the model, which a cursor belongs to.
pub(super) fn check(session: &Session, query: &SearchQuery) -> Result<String, ReadError> {
    if query.mode == SearchMode::Lexical {
        return Ok(String::new());
    }
    let mode = query.mode.as_str();
    let Some(model) = session.store.model() else {
        let message =
            format!("{mode} search is not available here: this server has no sentence model");
        return Err(ReadError::new(ErrorCode::ModeNotSupported, message)
            .with_param("mode")
            .with_hint("search by words instead, without mode; the owner can add a model with `pdpp model add FOLDER`"));
    };
    let others = [
        ("order", query.order != SearchOrder::Relevance),
        ("match", query.matching != Matching::Any),
        ("count", query.count != Count::None),
    ];
    if let Some((name, _)) = others.iter().find(|(_, is_asked)| *is_asked) {
        let message =
            format!("{mode} search has no {name}: every record is more or less near to a question");
        return Err(ReadError::new(ErrorCode::InvalidRequest, message)
            .with_param(*name)
            .with_hint(format!(
                "leave {name} out, or search by words with it, without mode"
            )));
    }
    Ok(format!("{mode} {}", model.fingerprint))
}

/// What is asked beside the words; nothing in a search by words.
pub(super) fn question(query: &SearchQuery, plan: &Plan) -> Option<MeaningQuestion> {
    let fields = plan
        .searched
        .iter()
        .map(|one| (one.row.stream_ref(), one.row.semantic_fields()));
    (query.mode != SearchMode::Lexical).then(|| MeaningQuestion {
        text: query.q.clone(),
        with_words: query.mode == SearchMode::Hybrid,
        fields: fields.collect(),
    })
}

pub(super) fn ask(
    session: &Session,
    request: &SearchRequest,
    meaning: Option<&MeaningQuestion>,
) -> Result<SearchAnswer> {
    Ok(match meaning {
        Some(question) => session.store.search_by_meaning(request, question)?,
        None => session.store.search(request)?,
    })
}

/// The oldest version since which something that can be seen has changed and has no vectors yet. Nothing else tells a client
/// that vectors are missing.
pub(super) fn behind(session: &Session, plan: &Plan, answer: &SearchAnswer) -> Result<Option<u64>> {
    let made: HashMap<_, u64> = answer.behind.iter().cloned().collect();
    let mut oldest: Option<u64> = None;
    for searched in &plan.searched {
        let Some(version) = made.get(&searched.row.stream_ref()) else {
            continue;
        };
        if visible_history::changed_since(session, std::iter::once(&searched.row), *version)? {
            oldest = Some(oldest.map_or(*version, |oldest| oldest.min(*version)));
        }
    }
    Ok(oldest)
}

/// How the nearest part of a record begins, unless the record has changed so much that there is none.
pub(super) fn passage(window: &NearestWindow, body: &RecordBody) -> Option<Passage> {
    let text = body.text(window.field.as_str())?;
    let start = usize::try_from(window.start_chars).ok()?;
    let length = usize::try_from(window.end_chars.checked_sub(window.start_chars)?).ok()?;
    let shown: String = text
        .chars()
        .skip(start)
        .take(length.min(PASSAGE_CHARS))
        .collect();
    let count = shown.chars().count();
    (count > 0).then(|| Passage {
        field_path: window.field.to_string(),
        truncated: start > 0 || text.chars().nth(start + count).is_some(),
        text: shown,
        text_start_chars: Some(window.start_chars),
        text_end_chars: Some(window.start_chars + count as u64),
        cite: None,
        provenance: Some(SEMANTIC_MATCH.to_owned()),
        read: Some(FieldWindowRead {
            offset_chars: Some(window.start_chars),
            limit_chars: Some(length as u64),
            ..FieldWindowRead::default()
        }),
    })
}
