//! The surfaces, and how a question is put to each of them.

use std::borrow::Borrow;

use contract::error::ErrorCode;
use contract::handle::RecordHandle;
use contract::upstream::{Get, MAX_TARGET_BYTES};
use serde_json::{Map, Value, json};

use crate::agent::call_hosted;
use crate::answer::{Figures, Found, Id, Page, Record, Stream, SurfaceResult, Window};
use crate::ask::rest_of;
pub(crate) use crate::ask::{Ask, plain};
use crate::harness::server::{connect, raw_exchange, status_in};
use crate::tool::Reply;
use crate::world::Grant;
use crate::{body, tool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/v1`, with the token of the grant.
    Rest,
    /// `pdpp mcp --grant`.
    Mcp,
    /// `pdpp mcp --provider-url`, with a stored credential.
    McpFar,
    /// `/mcp`, with the token.
    McpHosted,
    /// The commands with `--grant` and `--json`.
    Cli,
    /// The commands as on another machine, with a stored credential.
    CliFar,
}

impl Surface {
    pub(crate) const ALL: [Self; 6] = [
        Self::Rest,
        Self::Mcp,
        Self::McpFar,
        Self::McpHosted,
        Self::Cli,
        Self::CliFar,
    ];
}

#[derive(Debug, Clone)]
pub(crate) enum Step<'a> {
    Schema,
    Query(&'a str),
    Aggregate(&'a str, &'a str),
    Search(&'a str),
    Fetch(Named<'a>),
    Read(Named<'a>, &'a str),
    /// Checks a citation of a field.
    Verify(Named<'a>, &'a str, &'a str),
}

/// How a record is named: by its parts, or by an id as somebody wrote it.
#[derive(Debug, Clone)]
pub(crate) enum Named<'a> {
    Parts(&'a Id),
    Written(&'a str),
}

/// A value in a URL or on a command line.
fn param_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(param_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn handle(named: &Named<'_>) -> (String, Option<String>) {
    match named {
        Named::Written(text) => ((*text).to_owned(), None),
        Named::Parts(id) => {
            let handle = RecordHandle::new(id.connection.as_deref(), &id.stream, &id.record);
            let handle = handle.unwrap();
            let beside = handle.connection().filter(|_| !handle.embeds_connection());
            (handle.to_string(), beside.map(str::to_owned))
        }
    }
}

fn request(step: &Step<'_>, ask: &Ask) -> String {
    let of = |named: &Named<'_>| match named {
        Named::Parts(id) => (*id).clone(),
        Named::Written(text) => tool::named(&json!({"id": text})),
    };
    let record;
    let mut question = match step {
        Step::Schema => Get::v1(["schema"]),
        Step::Query(stream) => Get::v1(["streams", stream, "records"]),
        Step::Aggregate(stream, metric) => {
            Get::v1(["streams", stream, "aggregate"]).with("metric", Some(*metric))
        }
        Step::Search(words) => Get::v1(["search"]).with("q", Some(*words)),
        Step::Fetch(named) => {
            record = of(named);
            Get::v1(["streams", &record.stream, "records", &record.record])
                .with("connection_id", record.connection.as_deref())
        }
        Step::Read(named, field) => {
            record = of(named);
            let path = ["streams", &record.stream, "records", &record.record];
            Get::v1(path.into_iter().chain(["field-window"]))
                .with("connection_id", record.connection.as_deref())
                .with("field", Some(*field))
        }
        Step::Verify(named, field, cite) => {
            record = of(named);
            let path = ["streams", &record.stream, "records", &record.record];
            Get::v1(path.into_iter().chain(["verify"]))
                .with("connection_id", record.connection.as_deref())
                .with("field", Some(*field))
                .with("cite", Some(*cite))
        }
    };
    for (name, value) in &ask.args {
        question.push(*name, param_text(value));
    }
    for (field, operator, value) in &ask.filters {
        let operator = match *operator {
            "" => String::new(),
            operator => format!("[{operator}]"),
        };
        question.push(format!("filter[{field}]{operator}"), param_text(value));
    }
    question.target()
}

pub(crate) fn get(who: &Grant, target: &str) -> SurfaceResult<Value> {
    let (host, token) = (&who.world.address, &who.token);
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let (head, text) = raw_exchange(connect(host), &request);
    let status = status_in(&head);
    let body: Value = serde_json::from_str(&text).unwrap();
    if status == 200 {
        return Ok(body);
    }
    let refusal = body::refusal(&body["error"]);
    let code = ErrorCode::from_code(&refusal.code).unwrap();
    let too_long = target.len() > MAX_TARGET_BYTES && code == ErrorCode::InvalidRequest;
    let expected = if too_long { 414 } else { code.http_status() };
    assert_eq!(status, expected, "{body}");
    Err(refusal)
}

pub(crate) fn words(step: &Step<'_>, ask: &Ask) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last: Vec<String> = vec!["--".to_owned()];
    let mut about = |command: &str, named: &Named<'_>, field: Option<&str>| {
        let (id, beside) = handle(named);
        last.push(id);
        last.extend(field.map(str::to_owned));
        let beside = beside.map(|connection| format!("--connection-id={connection}"));
        [command.to_owned()].into_iter().chain(beside).collect()
    };
    let own: Vec<String> = match step {
        Step::Schema => vec!["schema".to_owned()],
        Step::Query(stream) => vec!["query".to_owned(), (*stream).to_owned()],
        Step::Aggregate(stream, metric) => {
            ["aggregate", stream, metric].map(str::to_owned).to_vec()
        }
        Step::Search(words) => {
            last.push((*words).to_owned());
            vec!["search".to_owned()]
        }
        Step::Fetch(named) => about("fetch", named, None),
        Step::Read(named, field) => about("read", named, Some(*field)),
        Step::Verify(named, _, cite) => about("verify", named, Some(*cite)),
    };
    words.extend(own);
    for (name, value) in &ask.args {
        words.push(format!(
            "--{}={}",
            name.replace('_', "-"),
            param_text(value)
        ));
    }
    for (field, operator, value) in &ask.filters {
        let sign = match *operator {
            "" => "=",
            "gte" => ">=",
            "gt" => ">",
            "lte" => "<=",
            "lt" => "<",
            "contains" => "~=",
            other => unreachable!("{other}"),
        };
        words.push(format!("--filter={field}{sign}{}", param_text(value)));
    }
    if last.len() > 1 {
        words.extend(last);
    }
    words
}

/// Runs a command for its body.
fn print(who: &Grant, place: &[String], step: &Step<'_>, ask: &Ask) -> SurfaceResult<Value> {
    let words = words(step, ask);
    let fixed = ["--json".to_owned()];
    let all: Vec<&str> = fixed
        .iter()
        .chain(&words[..1])
        .chain(place)
        .chain(&words[1..])
        .map(String::as_str)
        .collect();
    let ran = who.world.run(&all);
    let body: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {all:?} {ran:?}"));
    if ran.code == Some(0) {
        return Ok(body);
    }
    let refusal = body::refusal(&body["error"]);
    let code = ErrorCode::from_code(&refusal.code).unwrap();
    assert_eq!(ran.code, Some(i32::from(code.exit_code())), "{ran:?}");
    // People are told in words.
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    Err(refusal)
}

fn tool_call(step: &Step<'_>, ask: &Ask) -> (&'static str, Value) {
    let mut args = Map::new();
    let mut about = |named: &Named<'_>| {
        let (id, beside) = handle(named);
        args.insert("id".to_owned(), id.into());
        if let Some(connection) = beside {
            args.insert("connection_id".to_owned(), connection.into());
        }
    };
    let name = match step {
        Step::Schema => "schema",
        Step::Query(stream) => {
            args.insert("stream".to_owned(), (*stream).into());
            "query_records"
        }
        Step::Aggregate(stream, metric) => {
            args.insert("stream".to_owned(), (*stream).into());
            args.insert("metric".to_owned(), (*metric).into());
            "aggregate"
        }
        Step::Search(words) => {
            args.insert("query".to_owned(), (*words).into());
            "search"
        }
        Step::Fetch(named) => {
            about(named);
            "fetch"
        }
        Step::Read(named, field) => {
            about(named);
            args.insert("field_path".to_owned(), (*field).into());
            "read_record_field"
        }
        Step::Verify(named, field, cite) => {
            about(named);
            args.insert("field_path".to_owned(), (*field).into());
            args.insert("cite".to_owned(), (*cite).into());
            "read_record_field"
        }
    };
    for (name, value) in &ask.args {
        args.insert((*name).to_owned(), value.clone());
    }
    let mut filter = Map::new();
    for (field, operator, value) in &ask.filters {
        if operator.is_empty() {
            filter.insert((*field).to_owned(), value.clone());
        } else {
            let ranges = filter.entry(*field).or_insert_with(|| json!({}));
            ranges[*operator] = value.clone();
        }
    }
    if !filter.is_empty() {
        args.insert("filter".to_owned(), filter.into());
    }
    (name, args.into())
}

impl Surface {
    /// Whether it is one of the three ways to the tools.
    pub(crate) fn is_tools(self) -> bool {
        matches!(self, Self::Mcp | Self::McpFar | Self::McpHosted)
    }

    /// Calls a tool; `hosted` over HTTP.
    pub(crate) fn call(self, who: &Grant, name: &str, args: &Value) -> SurfaceResult<Reply> {
        let result = if self == Self::McpHosted {
            call_hosted(who, name, args)?
        } else {
            let agent = who.world.agent(who, self == Self::McpFar);
            let mut agent = agent.lock().unwrap();
            agent.call(name, args.clone())
        };
        let reply = Reply::from_result(&result);
        if result["isError"] != true {
            return Ok(reply);
        }
        let refusal = body::refusal(&reply.structured["error"]);
        let first = format!("error {}", refusal.code);
        assert!(reply.text.starts_with(&first), "{}", reply.text);
        if let Some(status) = reply.structured["http_status"].as_u64() {
            let code = ErrorCode::from_code(&refusal.code).unwrap();
            assert_eq!(u64::from(code.http_status()), status, "{}", reply.text);
        }
        Err(refusal)
    }

    /// The body a step is answered with, where the surface gives bodies; else what the tool says.
    fn put(self, who: &Grant, step: &Step<'_>, ask: &Ask) -> SurfaceResult<Answer> {
        match self {
            Self::Rest => get(who, &request(step, ask)).map(Answer::Body),
            Self::Cli => {
                let place = ["--grant".to_owned(), who.id.clone()];
                print(who, &place, step, ask).map(Answer::Body)
            }
            Self::CliFar => print(who, &who.world.place_afar(who), step, ask).map(Answer::Body),
            Self::Mcp | Self::McpFar | Self::McpHosted => {
                let (name, args) = tool_call(step, ask);
                self.call(who, name, &args).map(Answer::Reply)
            }
        }
    }

    /// Everything that is shown for a step, as one text: nothing may leak through any of it.
    pub(crate) fn shown(self, who: &Grant, step: &Step<'_>, ask: &Ask) -> SurfaceResult<String> {
        self.put(who, step, ask).map(|answer| match answer {
            Answer::Body(body) => body.to_string(),
            Answer::Reply(reply) => format!("{}{}", reply.text, reply.structured),
        })
    }

    /// The streams with what their fields accept; without a stream an index.
    pub(crate) fn schema(self, who: &Grant, ask: Ask) -> SurfaceResult<Vec<Stream>> {
        // The tool's own form is the short one.
        let bodies = !self.is_tools();
        let full = ask.args.iter().any(|(name, _)| *name == "detail");
        let ask = if bodies && !full {
            ask.with("view", "compact")
        } else {
            ask
        };
        Ok(match self.put(who, &Step::Schema, &ask)? {
            Answer::Body(body) => body::streams(&body),
            Answer::Reply(reply) => body::streams(&reply.structured["data"]),
        })
    }

    pub(crate) fn query(
        self,
        who: &Grant,
        stream: &str,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Page> {
        Ok(match self.put(who, &Step::Query(stream), ask.borrow())? {
            Answer::Body(body) => body::page(&body),
            Answer::Reply(reply) => {
                let mut page = tool::page(&reply);
                let mut rest = rest_of(ask.borrow(), &reply, page.cursor.as_deref());
                while let Some(ask) = rest {
                    let Answer::Reply(reply) = self.put(who, &Step::Query(stream), &ask)? else {
                        unreachable!("a tool answers as before");
                    };
                    let more = tool::page(&reply);
                    rest = rest_of(&ask, &reply, more.cursor.as_deref());
                    page.records.extend(more.records);
                    (page.cursor, page.bookmark) = (more.cursor, more.bookmark);
                }
                page
            }
        })
    }

    pub(crate) fn aggregate(
        self,
        who: &Grant,
        stream: &str,
        metric: &str,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Figures> {
        Ok(
            match self.put(who, &Step::Aggregate(stream, metric), ask.borrow())? {
                Answer::Body(body) => body::figures(&body),
                Answer::Reply(reply) => body::figures(&reply.structured["data"]),
            },
        )
    }

    pub(crate) fn search(
        self,
        who: &Grant,
        words: &str,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Found> {
        Ok(match self.put(who, &Step::Search(words), ask.borrow())? {
            Answer::Body(body) => body::hits(&body),
            Answer::Reply(reply) => {
                let mut found = tool::hits(&reply);
                let mut rest = rest_of(ask.borrow(), &reply, found.cursor.as_deref());
                while let Some(ask) = rest {
                    let Answer::Reply(reply) = self.put(who, &Step::Search(words), &ask)? else {
                        unreachable!("a tool answers as before");
                    };
                    let more = tool::hits(&reply);
                    rest = rest_of(&ask, &reply, more.cursor.as_deref());
                    found.hits.extend(more.hits);
                    found.cursor = more.cursor;
                }
                found
            }
        })
    }

    pub(crate) fn fetch(
        self,
        who: &Grant,
        id: &Id,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Record> {
        self.fetch_named(who, Named::Parts(id), ask)
    }

    pub(crate) fn streams(self, who: &Grant, ask: Ask) -> Vec<Stream> {
        self.schema(who, ask).unwrap()
    }

    pub(crate) fn page(self, who: &Grant, stream: &str, ask: impl Borrow<Ask>) -> Page {
        self.query(who, stream, ask).unwrap()
    }

    pub(crate) fn figures(
        self,
        who: &Grant,
        stream: &str,
        metric: &str,
        ask: impl Borrow<Ask>,
    ) -> Figures {
        self.aggregate(who, stream, metric, ask).unwrap()
    }

    pub(crate) fn found(self, who: &Grant, words: &str, ask: impl Borrow<Ask>) -> Found {
        self.search(who, words, ask).unwrap()
    }

    pub(crate) fn record(self, who: &Grant, id: &Id, ask: impl Borrow<Ask>) -> Record {
        self.fetch(who, id, ask).unwrap()
    }

    pub(crate) fn window(self, who: &Grant, id: &Id, field: &str, ask: impl Borrow<Ask>) -> Window {
        self.read(who, id, field, ask).unwrap()
    }

    pub(crate) fn fetch_named(
        self,
        who: &Grant,
        named: Named<'_>,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Record> {
        Ok(match self.put(who, &Step::Fetch(named), ask.borrow())? {
            Answer::Body(body) => body::record(&body),
            Answer::Reply(reply) => tool::record(&reply),
        })
    }

    pub(crate) fn read(
        self,
        who: &Grant,
        id: &Id,
        field: &str,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Window> {
        self.read_named(who, Named::Parts(id), field, ask)
    }

    pub(crate) fn read_named(
        self,
        who: &Grant,
        named: Named<'_>,
        field: &str,
        ask: impl Borrow<Ask>,
    ) -> SurfaceResult<Window> {
        Ok(
            match self.put(who, &Step::Read(named, field), ask.borrow())? {
                Answer::Body(body) => body::window(&body),
                Answer::Reply(reply) => tool::window(&reply),
            },
        )
    }
}

enum Answer {
    Body(Value),
    Reply(Reply),
}
