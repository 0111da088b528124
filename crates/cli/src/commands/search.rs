//! `pdpp search`: records of all streams by words, each with the evidence and the command that reads on from it.

use std::cell::Cell;

use clap::Args;
use contract::handle::RecordHandle;
use contract::page::Page;
use contract::search::{EvidenceExcerpt, FieldWindowRead, Passage, SearchHit, SearchMode};
use contract::upstream::Get;
use contract::words::WordsFound;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::moment;
use crate::output::visible;
use crate::reading::{CommandLine, Reading, Source};
use crate::render::{
    Lines as _, Marked, PageEnd, excerpt, explain_missing_handle, handle_of, heading, list_command,
    one_line, wrap_hanging,
};
use crate::style::Style;

/// As many words of a search that found nothing are told.
const SHOWN_WORDS: usize = 12;

/// Search all streams by words
///
/// Ask in your own words: any of them may occur, in any form, and hits with more and rarer ones come first. "phrases",
/// +required, prefix* and -excluded are strict. Each hit shows where the words stand and the command that reads on from there.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp search 'bridge vendor' --streams messages --limit 5")]
pub(crate) struct Options {
    /// The words; put -- before a query that starts with -
    #[arg(required = true, num_args = 1..)]
    query: Vec<String>,
    /// Only in these streams
    #[arg(long, value_name = "A,B", alias = "stream")]
    streams: Vec<String>,
    /// Only in this connection
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// Only where this holds; needs exactly one stream
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<String>,
    /// Only records from then on: RFC 3339 or a date
    #[arg(long, value_name = "T")]
    since: Option<String>,
    /// Only records before then: RFC 3339 or a date
    #[arg(long, value_name = "T")]
    until: Option<String>,
    /// Which words a hit has: any, in any form, or all as written
    #[arg(long, value_name = "HOW")]
    r#match: Option<String>,
    /// Which hits come first: relevance, newest or oldest
    #[arg(long, value_name = "HOW")]
    order: Option<String>,
    /// By what: lexical (words, the default), semantic (meaning) or hybrid (both); needs `pdpp model add`
    #[arg(long, value_name = "HOW", value_parser = ["lexical", "semantic", "hybrid"])]
    mode: Option<String>,
    /// Count all hits: none, estimated or exact
    #[arg(long, value_name = "HOW")]
    count: Option<String>,
    /// Hits per page: 25 unless said, at most 100
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
    /// Continue where a page ended
    #[arg(long, allow_hyphen_values = true)]
    cursor: Option<String>,
    #[command(flatten)]
    source: Source,
}

impl Options {
    fn line(&self) -> CommandLine {
        CommandLine::new("search")
            .argument(self.query.join(" "))
            .options("streams", &self.streams)
            .option("connection-id", self.connection_id.as_ref())
            .options("filter", &self.filter)
            .option("since", self.since.as_ref())
            .option("until", self.until.as_ref())
            .option("match", self.r#match.as_ref())
            .option("order", self.order.as_ref())
            .option("mode", self.mode.as_ref())
            .option("count", self.count.as_ref())
            .option("limit", self.limit)
            .option("cursor", self.cursor.as_ref())
    }
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let line = options.line();
    let mode = options.mode.as_deref().and_then(SearchMode::named);
    let route = mode.unwrap_or_default().route().split('/').skip(2);
    let question = Get::v1(route).with("q", Some(options.query.join(" ")));
    let question = line.add_params_to(question)?;
    let reading = Reading::open(&options.source, "pdpp search", line, context)?;
    let style = context.output.style();
    let is_empty = Cell::new(false);
    reading.show(question, |page: &Page<SearchHit>| {
        is_empty.set(page.data.is_empty());
        show(page, &reading.line, style)
    })?;
    if is_empty.get() {
        reading.warn_unknown_streams();
        reading.print_first_steps();
    }
    Ok(())
}

fn show(page: &Page<SearchHit>, line: &CommandLine, style: Style) -> String {
    let mut text = String::new();
    for one in &page.data {
        text.push_str(&hit(one, line, style));
        text.push('\n');
    }
    let end = PageEnd::of(page, "hit", |one| one.connection_id.as_deref());
    text.push_str(&end.lines(line, style));
    let words = page.meta.as_ref().and_then(|meta| meta.words.as_ref());
    let told = match words {
        Some(words) if page.data.is_empty() => words.summary(SHOWN_WORDS),
        words => words.and_then(WordsFound::remarks),
    };
    if let Some(told) = told.map(|told| visible(&told)) {
        text.push_line(format_args!("{}", wrap_hanging(&told, 0, 2, style)));
    }
    let maintained = page
        .meta
        .as_ref()
        .and_then(|meta| meta.index_maintenance.as_ref());
    if let Some(maintained) = maintained {
        let done = maintained.percent;
        let done = done.map_or(String::new(), |percent| format!(", {percent} % are done"));
        text.push_line(format_args!(
            "The index is being rebuilt{done}: hits may be missing until it is done."
        ));
    }
    text
}

/// A hit: what it is called, whose it is, and the evidence.
fn hit(hit: &SearchHit, line: &CommandLine, style: Style) -> String {
    let handle = handle_of(
        hit.connection_id.as_deref(),
        hit.stream.as_deref(),
        hit.record_key.as_deref(),
    );
    let shown = |when: &str| moment::to_local(when).unwrap_or_else(|| one_line(when));
    let emitted = || {
        Some(format!(
            "(emitted or imported {})",
            shown(hit.emitted_at.as_deref()?)
        ))
    };
    let when = hit.authored_at.as_deref().map(shown).or_else(emitted);
    let named = hit
        .title
        .as_deref()
        .map(one_line)
        .filter(|title| !title.is_empty());
    let title = named.unwrap_or_else(|| one_line(hit.stream.as_deref().unwrap_or("record")));
    let label = hit.display_name.as_deref().or(hit.connection_id.as_deref());
    let beside: Vec<String> = label.map(one_line).into_iter().chain(when).collect();
    let mut text = heading(&title, &beside, style);
    let excerpts = hit.evidence_excerpts.iter().flatten();
    let mut proven = false;
    for one in excerpts {
        if let Some((shown, marked)) = excerpt(one, style) {
            proven = true;
            let shown = format!("{}: {shown}", one_line(&one.field_path));
            text.push_line(format_args!("  {}", wrap_hanging(&shown, 2, 4, style)));
            if let Some(read) = handle
                .as_ref()
                .map(|id| window(line.for_record("read", id), one, &marked))
            {
                text.push_command("    ", &read, style);
            }
        }
    }
    if let Some(words) = other_words(hit) {
        text.push_line(format_args!("  {}", wrap_hanging(&words, 2, 4, style)));
    }
    if let Some(passage) = hit.passage.as_ref().filter(|passage| passage.is_meant()) {
        text.push_str(&meant(passage, handle.as_ref(), line, style));
    } else if let Some(near) = &hit.near {
        let shown = beside_a_match(near, hit.passage.as_ref());
        text.push_line(format_args!("  {}", wrap_hanging(&shown, 2, 4, style)));
    } else if let (false, Some(snippet)) = (proven, &hit.snippet) {
        // Where the server proves nothing, neither its marks nor its field are repeated.
        let words = Marked::from_tags(&snippet.text).unmarked();
        let line = format!("preview, no proven match: {words}");
        text.push_line(format_args!("  {}", wrap_hanging(&line, 2, 4, style)));
    }
    if let Some(handle) = &handle {
        text.push_command("  ", &line.for_record("fetch", handle), style);
    } else if let (Some(stream), Some(key)) = (&hit.stream, &hit.record_key) {
        let list = list_command(line, hit.connection_id.as_deref(), stream, None);
        text.push_str(&explain_missing_handle(key, &list, style));
    }
    text
}

/// Which words of the question it has in another form, and which it has not.
fn other_words(hit: &SearchHit) -> Option<String> {
    let terms = hit.matched_terms.iter().flatten();
    let forms = terms.filter_map(|one| Some(format!("{} as {}", one.term, one.found.as_ref()?)));
    let missing = hit.missing_terms.iter().flatten();
    let lists = [
        ("found ", forms.collect::<Vec<_>>()),
        ("without ", missing.cloned().collect()),
    ];
    let told = lists.into_iter().filter(|(_, words)| !words.is_empty());
    let told: Vec<String> = told
        .map(|(what, words)| format!("{what}{}", words.join(", ")))
        .collect();
    (!told.is_empty()).then(|| visible(&told.join("; ")))
}

/// What only stands next to a match in its conversation, with its beginning.
fn beside_a_match(near: &str, passage: Option<&Passage>) -> String {
    let beginning = passage.map(|passage| {
        let (field, words) = (one_line(&passage.field_path), one_line(&passage.text));
        let more = if passage.truncated { " \u{2026}" } else { "" };
        format!(": {field}: {words}{more}")
    });
    let near = one_line(near);
    format!(
        "next to {near}, no word matched{}",
        beginning.unwrap_or_default()
    )
}

/// What was found by its meaning, which no word proves.
fn meant(
    passage: &Passage,
    handle: Option<&RecordHandle>,
    line: &CommandLine,
    style: Style,
) -> String {
    let (field, words) = (one_line(&passage.field_path), one_line(&passage.text));
    let more = if passage.truncated { " \u{2026}" } else { "" };
    let shown = format!("by meaning, no word matched: {field}: {words}{more}");
    let mut text = format!("  {}\n", wrap_hanging(&shown, 2, 4, style));
    let read = passage
        .read
        .as_ref()
        .map(|read: &FieldWindowRead| (read.offset_chars, read.limit_chars));
    if let (Some(handle), Some((offset, limit))) = (handle, read) {
        let read = line
            .for_record("read", handle)
            .argument(&passage.field_path);
        let read = read
            .option("offset-chars", offset)
            .option("limit-chars", limit);
        text.push_command("    ", &read, style);
    }
    text
}

/// The command that reads the field around an excerpt. A server that gives no offset is asked for the words themselves.
fn window(read: CommandLine, excerpt: &EvidenceExcerpt, marked: &Marked) -> CommandLine {
    let named = excerpt.read.as_ref();
    let field = named
        .and_then(|read| read.field.as_deref())
        .unwrap_or(&excerpt.field_path);
    let read = read.argument(field);
    match named.and_then(|read| read.offset_chars) {
        Some(offset) => read
            .option("offset-chars", Some(offset))
            .option("limit-chars", named.and_then(|read| read.limit_chars)),
        None => read.option("q", marked.first_found()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let hit_of: SearchHit = serde_json::from_str(text).unwrap();
        hit(&hit_of, &CommandLine::new("search"), Style::new(false))
    }

    #[test]
    fn another_server_without_offsets_is_asked_for_the_words() {
        let text = r#"{"stream":"notes","record_key":"n 1","connection_id":"c1","title":"A\u001b[2J\nB","evidence_excerpts":[
            {"field_path":"body","preview_text":"an <mark>old bridge</mark> here","truncated":true}]}"#;
        assert_eq!(
            shown(text),
            "A\\u{1b}[2J B  c1
  body: an [old bridge] here \u{2026}
    pdpp read 'c1/notes:n 1' body --q 'old bridge'
  pdpp fetch 'c1/notes:n 1'
"
        );
    }

    #[test]
    fn what_is_not_proven_is_no_evidence_but_can_be_fetched() {
        // EV-07 and EV-08, at the terminal
        let text = r#"{"stream":"notes","record_key":"n1","connection_id":"c1","emitted_at":"then",
            "snippet":{"field":"body","text":"<mark>x</mark> y"}}"#;
        assert_eq!(
            shown(text),
            "notes  c1  (emitted or imported then)\n  preview, no proven match: x y\n  pdpp fetch c1/notes:n1\n"
        );
        assert_eq!(shown(r#"{"title":"T"}"#), "T\n");
    }

    #[test]
    fn a_hit_tells_which_words_it_has_otherwise_and_what_it_only_stands_next_to() {
        // FI-03, FI-05, FI-20
        let text = r#"{"stream":"chat","record_key":"n1","connection_id":"c1","title":"T",
            "matched_terms":[{"term":"vendors","found":"vendor","kind":"form"},{"term":"agree","kind":"exact"}],
            "missing_terms":["price","deck"]}"#;
        assert_eq!(
            shown(text),
            "T  c1\n  found vendors as vendor; without price, deck\n  pdpp fetch c1/chat:n1\n"
        );
        let text = r#"{"stream":"chat","record_key":"n2","connection_id":"c1","title":"T","matched_fields":[],
            "near":"c1/chat:n1","passage":{"field_path":"text","text":"sounds\ngood","truncated":true}}"#;
        assert_eq!(
            shown(text),
            "T  c1\n  next to c1/chat:n1, no word matched: text: sounds good \u{2026}\n  pdpp fetch c1/chat:n2\n"
        );
    }

    #[test]
    fn a_key_that_can_be_no_part_of_an_id_is_told_with_what_lists_it() {
        let text = r#"{"stream":"notes","record_key":"..","connection_id":"c1","title":"T"}"#;
        assert_eq!(
            shown(text),
            "T  c1
  there is no id for the key '..', so fetch and read cannot name it; it is listed in its stream, and by a filter on its key field:
    pdpp query notes --connection-id c1
"
        );
    }
}
