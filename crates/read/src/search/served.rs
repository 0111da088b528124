//! What one hit says: who it is, and what proves it.

use contract::handle::RecordHandle;
use contract::json::RecordBody;
use contract::search::{Score, SearchHit, SearchMode};
use contract::wire::{ObjectTag, Other};
use store::search::{Hit, Rank};

use super::{Asked, Searched, meaning};
use crate::ambiguity::label;
use crate::citation::Citable;
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::evidence;
use crate::failure::Result;
use crate::project::admitted;
use crate::reader::Session;
use crate::route;
use crate::visible_history;
use crate::words;

/// One hit, unless its record has left the row since the index was read.
pub(super) fn served(
    session: &Session,
    searched: &Searched,
    asked: &Asked<'_>,
    mut hit: Hit,
    shown: &mut Shown,
) -> Result<Option<SearchHit>> {
    let body = std::mem::take(&mut hit.record.body);
    let (row, key) = (&searched.row, &hit.record.key);
    let body = admitted(row, key, body)?;
    let Some(body) = body.filter(|body| searched.admits(body)) else {
        return Ok(None);
    };
    let (connection, stream) = (row.connection(), &row.stream().name);
    let title = evidence::title(row, &body);
    let authored = evidence::authored_at(row, &body);
    let author = evidence::author(row, &body);
    let public_url = &session.settings.public_url;
    let mut served = SearchHit {
        object: ObjectTag::SEARCH_RESULT,
        stream: Some(stream.to_string()),
        record_key: Some(key.to_string()),
        connector_id: Some(connection.connector.to_string()),
        connector_key: Some(connection.connector.to_string()),
        connection_id: Some(connection.id.to_string()),
        display_name: label(connection),
        citation_url: Some(route::citation(public_url, &connection.id, stream, key)),
        emitted_at: Some(visible_history::emitted_at(session, row, &hit.record)?),
        authored_at: authored.as_ref().map(|(_, text)| text.clone()),
        author: author.as_ref().map(|(_, text)| text.clone()),
        title: title.as_ref().map(|(_, text)| text.clone()),
        score: score(row, asked.mode, hit.position.rank),
        retrieval_mode: (asked.mode != SearchMode::Lexical).then(|| asked.mode.as_str().to_owned()),
        ..SearchHit::default()
    };
    let nearest = hit.window.as_ref();
    let nearest = nearest.and_then(|window| meaning::passage(window, &body));
    if let Some(near) = &hit.near {
        let (id, near) = (connection.id.as_str(), near.to_string());
        let neighbour = RecordHandle::new(Some(id), stream.as_str(), &near);
        served.near = neighbour.ok().map(|neighbour| neighbour.to_string());
        served.matched_fields = Some(Vec::new());
        let beginning = || evidence::passage(row, &searched.fields, &body);
        served.passage = nearest.or_else(beginning);
        shown.fields(served.passage.as_ref().map(|passage| &passage.field_path));
    } else if nearest.is_some() {
        served.matched_fields = Some(Vec::new());
        shown.fields(nearest.as_ref().map(|passage| &passage.field_path));
        served.passage = nearest;
    } else {
        let wanted = evidence::Wanted {
            fields: &searched.fields,
            expression: asked.expression,
            title_field: title.as_ref().map(|(name, _)| name.as_str()),
            excerpts: asked.excerpts,
        };
        prove(&mut served, &body, &wanted);
        shown.fields(served.matched_fields.iter().flatten());
    }
    cite_all(&Citable { session, row, key }, &body, &mut served);
    shown.record(row, key);
    let named = [title, authored, author].into_iter().flatten();
    shown.fields(named.map(|(name, _)| name));
    Ok(Some(served))
}

/// Cites every text that a hit shows.
fn cite_all(citable: &Citable<'_>, body: &RecordBody, hit: &mut SearchHit) {
    for excerpt in hit.evidence_excerpts.iter_mut().flatten() {
        citable.cite_excerpt(body, excerpt);
    }
    if let Some(passage) = &mut hit.passage {
        citable.cite_passage(body, passage);
    }
}

/// How well a hit matches, for the owner. A client learns which words matched; the figure itself says nothing it could use.
fn score(row: &Row, mode: SearchMode, rank: Rank) -> Option<Score> {
    let kind = match mode {
        SearchMode::Lexical => "bm25",
        SearchMode::Semantic => "cosine",
        SearchMode::Hybrid => "hybrid",
    };
    match rank {
        Rank::Score(score) if row.is_owner() => Some(Score {
            kind: kind.to_owned(),
            value: f64::from(score),
            order: "higher_is_better".to_owned(),
            other: Other::new(),
        }),
        Rank::Score(_) | Rank::Time(_) => None,
    }
}

/// Adds what proves a hit, and which words of the question it has.
fn prove(served: &mut SearchHit, body: &RecordBody, wanted: &evidence::Wanted<'_>) {
    let evidence = evidence::prove(body, wanted);
    let (matched, missing) = words::of_hit(wanted.expression, &evidence.seen);
    // Where every word stands as it was asked for, the excerpts say it all.
    let is_plain = missing.is_empty() && matched.iter().all(|one| one.found.is_none());
    served.matched_terms = (!is_plain).then_some(matched);
    served.missing_terms = (!missing.is_empty()).then_some(missing);
    served.matched_fields = Some(evidence.matched_fields);
    served.evidence_excerpts = evidence.excerpts;
}
