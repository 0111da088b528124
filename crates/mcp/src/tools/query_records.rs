//! `query_records`: the records of one stream, page by page.
//!
//! The server's page is kept as it is, but for two things: with `fields`, whatever was not asked for is taken out, also
//! when the server did not; and a row too large for its answer has first windows in place of its longest values.

mod text;

#[cfg(test)]
mod tests;

use contract::error::ErrorCode;
use contract::page::Page;
use contract::query::Count;
use contract::upstream::{Get, PageBytes};

use super::expand::{self, Relation, WayOn};
use super::paged::{Around, NOTE, OverBudget, PageSize, Shortened};
use super::{Definition, Running};
use crate::answer::{Answered, Record, Related, size};
use crate::args::{
    Arguments as _, Chosen, ExpandLimits, Filter, Limit, Names, Schema, Whole, arguments,
};
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::ladder::{Ladder, Longer, MoreRelated, Rung};
use crate::reply::{Reply, ToolResult};
use crate::text::plain;

arguments! {
    struct QueryArgs {
        stream: String = "";
        connection_id: Option<String> = "Needed if several have the stream.";
        filter: Option<Filter> = "{field: value} or {field: {gte|gt|lte|lt: value}}.";
        fields: Option<Names> = "Only these, to keep answers small.";
        view: Option<String> = "A named set, instead of fields.";
        sort: Option<String> = "A sortable field; -field for newest first.";
        order: Option<String> = "asc or desc, where sort has no sign.";
        limit: Option<Limit> = "Default 10.";
        cursor: Option<String> = "A next_cursor.";
        count: Option<Chosen<Count>> = "Of all that match.";
        expand: Option<Names> = "Relations to add.";
        expand_limit: Option<ExpandLimits> = "{relation: number}.";
        changes_since: Option<String> = "\"beginning\" or a next_changes_since.";
    }
}

pub(super) static TOOL: Definition = Definition {
    name: "query_records",
    title: "List records",
    description: include_str!("query_records.md"),
    input: QueryArgs::schema,
    output: || {
        vec![
            ("data", Schema::one_of(&["object", "array"])),
            ("content_ladder", Schema::new("object")),
            ("provider_url", Schema::new("string")),
        ]
    },
    run: |call, given| -> Running<'_> {
        Box::pin(async move { run(call, QueryArgs::read(given)?).await })
    },
};

/// Records the ladder lists; the others are in the envelope like them.
const RUNGS: usize = 10;
/// Shorter values stand whole in the page, so that they need no call.
const LONGER: Longer = Longer {
    than_chars: 1_024,
    than_bytes: budget::PREVIEW,
};

/// What the structured content has besides the page and what stands beside it.
const FRAME: usize = 128;

/// What was asked for, as far as reading the answer needs it.
struct ListRequest<'a> {
    args: &'a QueryArgs,
    /// The relations to add, as the schema tells of them.
    relations: Vec<Relation>,
    size: PageSize,
}

struct CutRelation<'a> {
    relation: &'a Relation,
    sent: usize,
    way_on: WayOn,
}

struct Listed<'a> {
    page: Page<Record<'a>>,
    shortened: Option<Shortened>,
    over_budget: Option<OverBudget>,
}

impl ListRequest<'_> {
    fn stream(&self) -> &str {
        &self.args.stream
    }

    fn connection(&self) -> Option<&str> {
        self.args.connection_id.as_deref()
    }

    /// The relations of a record that hold more than was sent, each with the way on.
    fn cut_relations(&self, record: &Record<'_>) -> Vec<CutRelation<'_>> {
        let cut = |related: &Related<'_>| {
            let mut known = self.relations.iter();
            let relation = known.find(|known| known.name == related.relation)?;
            let way_on = match &record.identity {
                Some(identity) => relation.way_on(identity, related),
                None => WayOn::None("no call names this record, so none shows more"),
            };
            Some(CutRelation {
                relation,
                sent: related.records.len(),
                way_on,
            })
        };
        let incomplete = record.related.iter().filter(|related| related.has_more);
        incomplete.filter_map(cut).collect()
    }
}

async fn run(call: Call<'_>, args: QueryArgs) -> ToolResult {
    if let Err(why) = contract::segment::guard(&args.stream) {
        let shown = plain::quoted(&args.stream, budget::LABEL);
        let message = format!("the stream {shown} {why}");
        return Err(Fault::refused(ErrorCode::InvalidStream, "stream", message)
            .with_next("call schema to see the streams of this grant"));
    }
    let connection = args.connection_id.as_deref();
    let wanted = Names::given(args.expand.as_ref());
    let mut asked = ListRequest {
        relations: expand::gate(call, &args.stream, connection, &wanted).await?,
        size: PageSize::new(args.limit.map(|limit| limit.0)),
        args: &args,
    };
    let fields = Names::given(args.fields.as_ref());
    let ask = |size: PageSize| question(&asked, size.rows);
    let (mut answered, mut is_asked_again) = asked.size.ask(call, ask).await?;
    answered.prepare_records(&fields);
    learn_relations(call, &mut asked, &answered).await;
    let provider = call.provider_url();
    loop {
        let page = answered.records(asked.stream(), asked.connection());
        let beside = Around {
            content_ladder: ladder(&asked, &page.data),
            provider_url: provider.as_deref(),
            ..Around::default()
        };
        let whole = answered.structured_size(&beside) + NOTE;
        // Most pages fit, and then their rows need not be measured.
        if whole > asked.size.bytes
            && !is_asked_again
            && let Some(rows) = rows_that_fit(asked.size, &answered, &page.data, &beside, whole)
            // A server that fails now has answered before: that answer stands.
            && let Ok(mut shorter) = call.get(question(&asked, rows)).await
        {
            shorter.prepare_records(&fields);
            answered = shorter;
            is_asked_again = true;
            continue;
        }
        // Asked again, it is shorter than was asked for; a server that ends pages by bytes may have made it so.
        let goes_on = page.has_more() && page.next_cursor().is_some();
        let is_shortened = is_asked_again || (call.pages_by_bytes() && goes_on);
        let rows = page.data.len();
        let listed = Listed {
            shortened: asked.size.shortened(rows).filter(|_| is_shortened),
            // A row that is too large alone is shortened below, so that only what a server sent that heeds no limit stays over.
            over_budget: asked.size.over(whole).filter(|_| rows > 1),
            page,
        };
        let text = text::write(&asked, &listed);
        let beside = Around {
            page_shortened: listed.shortened,
            over_budget: listed.over_budget,
            ..beside
        };
        return reply(&asked, text, answered, rows, beside);
    }
}

/// Learns how the relations that hold more than was sent are read on.
async fn learn_relations(call: Call<'_>, asked: &mut ListRequest<'_>, answered: &Answered) {
    if asked.relations.is_empty() {
        return;
    }
    let page = answered.records(asked.stream(), asked.connection());
    let related = page.data.iter().flat_map(|record| &record.related);
    let cut: Vec<&str> = related
        .filter(|related| related.has_more)
        .map(|related| related.relation)
        .collect();
    let relations = asked.relations.iter_mut();
    let cut = relations.filter(|relation| cut.contains(&relation.name.as_str()));
    expand::learn_filters(call, asked.args.connection_id.as_deref(), cut).await;
}

fn question(asked: &ListRequest<'_>, rows: u64) -> Get {
    let mut question = Get::v1(["streams", asked.stream(), "records"]);
    let mut args = asked.args.clone();
    args.limit = Some(Whole(rows));
    // A cursor goes on with the page it came from. Beside a bookmark some servers pass over it and begin anew.
    if args.cursor.is_some() {
        args.changes_since = None;
    }
    args.write(&mut question, &["stream"]);
    question.within_bytes(PageBytes {
        all: asked.size.bytes * 3 / 4,
        beside_each: 0,
        handles: 0,
        clear: 0,
    })
}

fn reply(
    asked: &ListRequest<'_>,
    text: String,
    mut answered: Answered,
    rows: usize,
    mut beside: Around<'_>,
) -> ToolResult {
    let most = if rows == 1 {
        asked.size.bytes
    } else {
        budget::RESULT / 2
    };
    if answered.structured_size(&beside) > most {
        let room = most.saturating_sub(size(&beside) + FRAME);
        answered.shrink_records(asked.stream(), asked.connection(), room);
        beside.over_budget = asked.size.over(answered.structured_size(&beside));
    }
    Reply::around(text, answered, &beside)
}

fn ladder(asked: &ListRequest<'_>, records: &[Record<'_>]) -> Option<Ladder> {
    let listed = records.iter().take(RUNGS);
    let rungs: Vec<Rung> = listed.filter_map(|record| rung(asked, record)).collect();
    if rungs.is_empty() {
        return None;
    }
    let mut ladder = Ladder::new("record_set", rungs);
    let others = records.len().saturating_sub(RUNGS);
    ladder.records_not_listed = (others > 0).then_some(others);
    Some(ladder)
}

/// Whether a call names the record, and reads something of it.
fn has_rung(record: &Record<'_>) -> bool {
    !record.deleted && record.identity.is_some() && record.fields.is_some()
}

fn rung(asked: &ListRequest<'_>, record: &Record<'_>) -> Option<Rung> {
    let identity = record.identity.as_ref().filter(|_| has_rung(record))?;
    let mut rung = Rung::of_fields(identity, record.fields.as_ref()?, LONGER)?;
    let cut = asked.cut_relations(record).into_iter();
    rung.expanded = cut
        .map(|cut| {
            let more = MoreRelated {
                has_more: true,
                next: cut.way_on.into_next(),
            };
            (cut.relation.name.clone(), more)
        })
        .collect();
    Some(rung)
}

fn rows_that_fit(
    size: PageSize,
    answered: &Answered,
    records: &[Record<'_>],
    beside: &Around<'_>,
    whole: usize,
) -> Option<u64> {
    let rungs = beside
        .content_ladder
        .iter()
        .flat_map(|ladder| &ladder.records);
    let mut rungs = rungs.map(crate::answer::size).peekable();
    let sent = answered.record_sizes().into_iter().zip(records);
    let rows = sent.map(|(sent, record)| sent + rungs.next_if(|_| has_rung(record)).unwrap_or(0));
    size.rows_that_fit(whole, &rows.collect::<Vec<_>>())
}
