//! A random question on one of the surfaces, followed to its last page; what differs by chance is blotted out.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use testkit::Dice;

use super::Side;
use super::scene::{FIELDS, KEYS, SENDERS, WORDS};
use crate::fixture::{Answer, encoded};
use crate::seen_as::{answered, linked};

/// No question has more pages than this.
const PAGES: usize = 40;

#[derive(Debug)]
pub(super) enum Question {
    /// The target of a GET.
    Rest(String),
    /// A tool and its arguments.
    Tool(&'static str, Value),
    /// A page, without what makes it the grant's.
    Page(String),
}

fn field(dice: &mut Dice) -> &'static str {
    if dice.once_in(12) {
        "nowhere"
    } else {
        dice.pick(&FIELDS)
    }
}

fn words(dice: &mut Dice) -> String {
    let word = dice.pick(&WORDS);
    match dice.below(6) {
        0 => format!("{word} {}", dice.pick(&WORDS)),
        1 => format!("{word} -{}", dice.pick(&WORDS)),
        2 => format!("\"{word} {}\"", dice.pick(&WORDS)),
        3 => format!("{}*", word.get(..3).unwrap_or(word)),
        4 => format!("{}x", word.get(..word.len() - 1).unwrap_or(word)),
        _ => word.to_owned(),
    }
}

/// A condition, by name and value.
fn filter(dice: &mut Dice) -> (String, String) {
    let field = field(dice);
    let value = match field {
        "from_email" => dice.pick(&SENDERS).to_owned(),
        "received_at" => "2026-03-12".to_owned(),
        "size_bytes" => dice.below(5).to_string(),
        "seen" => "true".to_owned(),
        "id" => dice.pick(&KEYS).to_owned(),
        _ => dice.pick(&WORDS).to_owned(),
    };
    let name = match field {
        "received_at" | "size_bytes" if dice.once_in(2) => format!("filter[{field}][gte]"),
        _ => format!("filter[{field}]"),
    };
    (name, value)
}

/// Which letters, by name and value of the parameters of a list.
fn listing(dice: &mut Dice) -> Vec<(String, String)> {
    let mut pairs = vec![(
        "limit".to_owned(),
        dice.pick(&["1", "2", "3", "50"]).to_owned(),
    )];
    if dice.once_in(3) {
        pairs.push(filter(dice));
    }
    if dice.once_in(3) {
        pairs.push(("fields".to_owned(), format!("id,{}", field(dice))));
    }
    if dice.once_in(3) {
        pairs.push(("order".to_owned(), dice.pick(&["asc", "desc"]).to_owned()));
    }
    if dice.once_in(3) {
        pairs.push(("count".to_owned(), "exact".to_owned()));
    }
    pairs
}

fn figures(dice: &mut Dice) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut pairs = match dice.below(4) {
        0 => vec![pair("metric", "count")],
        1 => vec![pair("metric", "sum"), pair("field", field(dice))],
        2 => vec![pair("metric", "max"), pair("field", field(dice))],
        _ => vec![pair("metric", "count_distinct"), pair("field", field(dice))],
    };
    if dice.once_in(2) {
        pairs.push(pair("group_by", field(dice)));
    }
    if dice.once_in(3) {
        pairs.push(filter(dice));
    }
    pairs
}

fn target(path: &str, pairs: &[(String, String)]) -> String {
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    format!("{path}?{}", encoded(&pairs))
}

/// The same parameters as arguments of a tool.
fn arguments(pairs: Vec<(String, String)>) -> Value {
    let mut arguments = json!({});
    for (name, value) in pairs {
        let value = match name.as_str() {
            "limit" => json!(value.parse::<u32>().unwrap()),
            "fields" => value.split(',').collect(),
            _ => json!(value),
        };
        match name
            .strip_prefix("filter[")
            .map(|rest| rest.trim_end_matches(']'))
        {
            None => arguments[name] = value,
            Some(path) => match path.split_once("][") {
                None => arguments["filter"] = json!({path: value}),
                Some((field, operator)) => arguments["filter"] = json!({field: {operator: value}}),
            },
        }
    }
    arguments
}

impl Question {
    pub(super) fn random(dice: &mut Dice) -> Self {
        match dice.below(3) {
            0 => Self::rest(dice),
            1 => Self::tool(dice),
            _ => Self::page(dice),
        }
    }

    fn rest(dice: &mut Dice) -> Self {
        let records = "/v1/streams/messages/records";
        let key = dice.pick(&KEYS);
        Self::Rest(match dice.below(9) {
            0 => "/v1/schema".to_owned(),
            1 => "/v1/streams".to_owned(),
            2 => format!("{records}?changes_since=beginning&limit=2"),
            3 => target("/v1/streams/messages/aggregate", &figures(dice)),
            4 => format!(
                "{records}/{key}?connection_id={}",
                dice.pick(&["work", "work", "home"])
            ),
            5 => format!(
                "{records}/{key}/field-window?connection_id=work&field={}&limit_chars=6",
                field(dice)
            ),
            6 | 7 => {
                let mut pairs = vec![("q".to_owned(), words(dice))];
                pairs.push(("limit".to_owned(), dice.pick(&["1", "3", "20"]).to_owned()));
                pairs.push((
                    "order".to_owned(),
                    dice.pick(&["relevance", "newest", "oldest"]).to_owned(),
                ));
                if dice.once_in(2) {
                    pairs.push(("count".to_owned(), "exact".to_owned()));
                }
                target("/v1/search", &pairs)
            }
            _ => target(records, &listing(dice)),
        })
    }

    fn tool(dice: &mut Dice) -> Self {
        let id = format!("work/messages:{}", dice.pick(&KEYS));
        match dice.below(6) {
            0 => Self::Tool("schema", json!({})),
            1 => {
                let mut arguments = arguments(listing(dice));
                arguments["stream"] = "messages".into();
                Self::Tool("query_records", arguments)
            }
            2 => {
                let mut arguments = arguments(figures(dice));
                arguments["stream"] = "messages".into();
                Self::Tool("aggregate", arguments)
            }
            3 => Self::Tool(
                "search",
                json!({"query": words(dice), "limit": dice.pick(&[1, 3, 20])}),
            ),
            4 => Self::Tool("fetch", json!({"id": id})),
            _ => Self::Tool(
                "read_record_field",
                json!({"id": id, "field_path": field(dice)}),
            ),
        }
    }

    fn page(dice: &mut Dice) -> Self {
        let stream = "/browse/work/messages";
        Self::Page(match dice.below(8) {
            0 => "/?x=1".to_owned(),
            1 => format!("/timeline?day=2026-03-{:02}", dice.below(27) + 1),
            2 => format!("/records/work/messages/{}?x=1", dice.pick(&KEYS)),
            3 => {
                let format = dice.pick(&["csv", "jsonl"]);
                format!("{stream}/download?format={format}")
            }
            4 => target(stream, &[filter(dice)]),
            5 => "/browse?x=1".to_owned(),
            6 => target(
                stream,
                &[("order".to_owned(), dice.pick(&["asc", "desc"]).to_owned())],
            ),
            _ => {
                let mut pairs = vec![("q".to_owned(), words(dice))];
                if dice.once_in(2) {
                    pairs.push(("connection".to_owned(), "work".to_owned()));
                    pairs.push(("stream".to_owned(), "messages".to_owned()));
                }
                target("/search", &pairs)
            }
        })
    }

    /// All pages of the answer.
    pub(super) async fn answer(&self, side: &mut Side<'_>) -> String {
        let mut pages = Vec::new();
        let mut next = None;
        for _ in 0..PAGES {
            let (answer, onward) = match self {
                Self::Rest(first) => {
                    let target = next.take().unwrap_or_else(|| first.clone());
                    let answer = side.world.read(&side.token, &target).await;
                    let cursor = cursor_in(&answer.text);
                    (answer, cursor.map(|cursor| with_cursor(first, &cursor)))
                }
                Self::Tool(name, arguments) => {
                    let mut arguments = arguments.clone();
                    if let Some(cursor) = next.take() {
                        arguments["cursor"] = cursor.into();
                    }
                    let answer = call(side, name, &arguments).await;
                    let cursor = cursor_in(&answer.text);
                    (answer, cursor)
                }
                Self::Page(first) => {
                    let target = next
                        .take()
                        .unwrap_or_else(|| format!("{first}&as={}", side.grant));
                    let answer = side.browser.get(&target).await;
                    if pages.is_empty() {
                        is_what_the_client_gets(side, first, &answer).await;
                    }
                    let onward = next_link(&answer.text);
                    (answer, onward)
                }
            };
            pages.push(comparable(&answer, &side.grant));
            next = onward;
            if next.is_none() {
                break;
            }
        }
        pages.join("\n")
    }
}

/// Asks for the same as the client, as far as it may: a page of records has those, in their order.
async fn is_what_the_client_gets(side: &Side<'_>, page: &str, shown: &Answer) {
    // A day on a page is one of the zone there; over /v1 it is one of UTC.
    if shown.status != 200 || page.contains("/download") || page.contains("received_at") {
        return;
    }
    let asked = match page.split_once('?') {
        Some(("/search", asked)) => {
            let asked = asked.replace("stream=", "streams=");
            let asked = asked.replace("connection=", "connection_id=");
            format!("/v1/search?limit=20&{asked}")
        }
        Some(("/browse/work/messages", asked)) => {
            format!("/v1/streams/messages/records?connection_id=work&limit=50&{asked}")
        }
        _ => return,
    };
    let given = side.world.read(&side.token, &asked).await;
    // What its budget refuses, its owner can still look at.
    if given.status != 429 {
        assert_eq!(given.status, 200, "{asked}: {}", given.text);
        assert_eq!(linked(shown), answered(&given.json()), "{page} and {asked}");
    }
}

async fn call(side: &Side<'_>, name: &str, arguments: &Value) -> Answer {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let request = Request::post("/mcp")
        .header("authorization", format!("Bearer {}", side.token))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(call.to_string()));
    side.world.send(request.unwrap()).await
}

fn with_cursor(target: &str, cursor: &str) -> String {
    // A page of changes goes on by its cursor alone.
    match target.split_once("?changes_since") {
        Some((path, _)) => format!("{path}?cursor={cursor}"),
        None => format!("{target}&cursor={cursor}"),
    }
}

fn cursor_in(text: &str) -> Option<String> {
    let (_, after) = text.split_once("\"next_cursor\":\"")?;
    Some(after.split('"').next()?.to_owned())
}

/// Where the next page of a table or of hits is; other days of the timeline are other pages.
fn next_link(page: &str) -> Option<String> {
    let link = page
        .split("<a ")
        .find(|link| link.contains("cursor=") && link.contains("rel=\"next\""))?;
    let (_, after) = link.split_once("href=\"")?;
    Some(
        after
            .split('"')
            .next()?
            .replace("&#38;", "&")
            .replace("&amp;", "&"),
    )
}

/// The answer without the id of the grant and of the request, and with the length of each random token in its place.
fn comparable(answer: &Answer, grant: &str) -> String {
    let text = answer.text.replace(grant, "GRANT");
    let text = text.replace(answer.header("request-id"), "REQUEST");
    let mut blotted = format!("{} ", answer.status);
    let mut run = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            run.push(c);
            continue;
        }
        // Names of ours are in lower case.
        let is_token = run.len() >= 14 && run.bytes().any(|byte| byte.is_ascii_uppercase())
            || run.len() >= 20 && run.bytes().any(|byte| byte.is_ascii_digit());
        if is_token {
            let _ = write!(blotted, "({} random)", run.len());
        } else {
            blotted.push_str(&run);
        }
        run.clear();
        blotted.push(c);
    }
    blotted
}
