//! What an answer to a search says about itself: how much was counted, what was left out, and why.

use contract::page::{
    IndexMaintenance, Meta, Recall, ReportedCount, StreamCount, Warning, WarningCode,
};
use contract::search::SearchQuery;
use contract::wire::Nullable;
use store::search::{Building, SearchAnswer, SearchRequest};
use text::MAX_CLAUSES;

use super::Plan;
use crate::enforce::Row;
use crate::failure::percent;

/// How many records a ranking by meaning holds, of words and of meaning each.
const RANKED_BY_MEANING: u64 = 500;

pub(super) fn meta(
    query: &SearchQuery,
    plan: &Plan,
    request: &SearchRequest,
    answer: &SearchAnswer,
) -> Meta {
    let mut meta = Meta::default();
    let searched = !plan.searched.is_empty();
    let total = answer.total.filter(|_| searched);
    let by_stream = answer.by_stream.iter();
    meta.by_stream = by_stream
        .map(|(found, count)| StreamCount {
            connection_id: found.connection.clone(),
            stream: found.stream.clone(),
            count: *count,
        })
        .collect();
    meta.by_year.clone_from(&answer.by_year);
    meta.count = Nullable::or_null(total.map(ReportedCount::Number));
    let visible = plan.searched.iter().map(|one| one.row.stream_ref());
    let rebuilding = visible
        .filter(|stream| answer.rebuilding.contains(stream))
        .count();
    let is_behind = rebuilding > 0 || answer.building.is_some();
    let accuracy = match total {
        None => "not_counted",
        // What the index has not taken yet is not counted, and what has gone since may be.
        Some(_) if is_behind => "estimated",
        Some(_) => "exact",
    };
    meta.count_accuracy = Some(accuracy.to_owned());
    if total.is_some() && is_behind {
        let message = "The search index is behind, so the count is what it holds now. Ask again when index_maintenance is gone.";
        meta.warn(Warning::new(WarningCode::CountDowngraded, message).about("count"));
    }
    let number = |count: usize| u64::try_from(count).ok();
    meta.recall = Some(Recall {
        complete: searched && !is_behind && !answer.prefix_truncated,
        ranking_scope: if searched { "all_matches" } else { "unknown" }.to_owned(),
        truncated: answer.prefix_truncated,
        ranked_candidate_count: total,
        sources_searched_count: searched.then(|| number(plan.connections().len())).flatten(),
        ..Recall::default()
    });
    meta.index_maintenance = match answer.building {
        Some(Building { indexed, written }) => Some(IndexMaintenance {
            note: Some("the index is being built; hits may be missing until it is done".to_owned()),
            pending_scopes: number(plan.searched.len()),
            percent: Some(percent(indexed, written)),
        }),
        None if rebuilding > 0 => Some(IndexMaintenance {
            note: Some(
                "newly declared fields are still being indexed; their words may be missed"
                    .to_owned(),
            ),
            pending_scopes: number(rebuilding),
            percent: answer.reindexed.map(|(indexed, all)| percent(indexed, all)),
        }),
        None => None,
    };
    for warning in warnings(query, plan, request, answer) {
        meta.warn(warning);
    }
    meta
}

/// Says of a ranking by meaning that it knows the nearest only, and whether vectors are missing of what can be seen.
pub(super) fn ranked_by_meaning(meta: &mut Meta, is_behind: bool) {
    if let Some(recall) = &mut meta.recall {
        recall.complete &= !is_behind;
        "candidate_window".clone_into(&mut recall.ranking_scope);
        recall.candidate_window_limit = Some(RANKED_BY_MEANING);
    }
    if is_behind && meta.index_maintenance.is_none() {
        meta.index_maintenance = Some(IndexMaintenance {
            note: Some("what was written last is still being compared; it may be missed by meaning until that is done".to_owned()),
            ..IndexMaintenance::default()
        });
    }
}

fn warnings(
    query: &SearchQuery,
    plan: &Plan,
    request: &SearchRequest,
    answer: &SearchAnswer,
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = query.limit.warning("hits").into_iter().collect();
    if request.expression.truncated {
        let message = format!(
            "q asks for more than {MAX_CLAUSES} terms or for a very long phrase; what is beyond that was left out"
        );
        warnings.push(Warning::new(WarningCode::PartialResults, message).about("q"));
    }
    if answer.prefix_truncated {
        let message = "A phrase of q ends in a prefix* that stands for more words than are looked for; those last in the alphabet were left out. Write more letters before the *, or the whole word.";
        warnings.push(Warning::new(WarningCode::PrefixTruncated, message).about("q"));
    }
    if answer.ranking_changed {
        let message = "What is searched has changed since the previous page: hits may repeat or be missing. Search again for one consistent ranking.";
        warnings.push(Warning::new(WarningCode::RankingChanged, message).about("cursor"));
    }
    warnings.extend(plan.skipped.iter().map(skipped));
    warnings
}

fn skipped(row: &Row) -> Warning {
    let connection = row.connection();
    let (id, connector) = (connection.id.as_str(), connection.connector.as_str());
    let message = format!(
        "Connection '{id}' under connector '{connector}' is not applicable to this query and was skipped. /v1/schema?connection_id={id} tells what can be asked of it."
    );
    let mut warning = Warning::new(WarningCode::SourceSkippedNotApplicable, message);
    warning.detail = Some(serde_json::json!({"source": connector, "connection_id": id}));
    warning
}
