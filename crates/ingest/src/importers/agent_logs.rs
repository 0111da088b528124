//! Session logs of coding agents: Claude Code and Codex. A file is a session, a line of it an event; what was said and which
//! tools were called become messages.

use serde_json::{Value, json};

use super::json_members::{each_text, first_words, list, moment, some_list, some_text, text};
use super::pieces::{Converter, Cut, Made, parse_json};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::input::Input;
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const CLAUDE_CODE: Known = Known {
    name: "claude-code",
    title: "session logs of Claude Code (jsonl)",
    declaration: Declared::Shape(shape("claude-code", "Claude Code")),
    origin: "Nothing to export: name the folder ~/.claude/projects",
    contents: "sessions, and what was said and which tools were called in them",
    recognise: recognise_claude_code,
    importer: |input, acceptor, _| {
        let session = Session::new(&input);
        let converter = ClaudeCode(session);
        Cut::Lines.importer(input.into_reader(), acceptor, converter)
    },
};

pub(crate) const CODEX: Known = Known {
    name: "codex",
    title: "session logs of Codex (jsonl)",
    declaration: Declared::Shape(shape("codex", "Codex")),
    origin: "Nothing to export: name the folder ~/.codex/sessions",
    contents: "sessions, and what was said and which tools were called in them",
    recognise: recognise_codex,
    importer: |input, acceptor, _| {
        let session = Session::new(&input);
        let converter = Codex(session);
        Cut::Lines.importer(input.into_reader(), acceptor, converter)
    },
};

const fn shape(key: &'static str, name: &'static str) -> Shape {
    Shape {
        key,
        name,
        streams: STREAMS,
    }
}

const STREAMS: &[Stream] = &[
    Stream {
        name: "messages",
        label: "Messages",
        about: "What was said in sessions, and which tools were called.",
        time: Some("sent_at"),
        fields: &[
            shape::text("id"),
            shape::text("session_id").role("thread").grouped(),
            shape::text("project")
                .role("title")
                .searched()
                .grouped()
                .about("The folder the agent worked in."),
            shape::text("author")
                .role("author")
                .searched()
                .grouped()
                .about("user, assistant or tool."),
            shape::text("model").grouped(),
            shape::time("sent_at"),
            shape::integer("position")
                .role("order")
                .about("Its line in the log."),
            shape::text("text").role("body").searched(),
            shape::texts("tools").about("Tools that were called."),
            shape::boolean("is_subagent").grouped(),
        ],
        children: &[],
    },
    Stream {
        name: "sessions",
        label: "Sessions",
        about: "Sessions with the agent.",
        time: Some("started_at"),
        fields: &[
            shape::text("id"),
            shape::text("title").role("title").searched(),
            shape::text("project").searched().grouped(),
            shape::text("branch").grouped(),
            shape::time("started_at"),
            shape::time("ended_at"),
            shape::integer("message_count"),
        ],
        children: &[("messages", "session_id")],
    },
];

fn lines<'h>(file: &'h Candidate<'_>) -> impl Iterator<Item = Value> + 'h {
    let lines = file.head.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok())
}

/// What agents keep beside their sessions.
const NO_LOG: &str = "lists of what was asked of an agent, which stands in its sessions";

fn recognise_claude_code(file: &Candidate<'_>) -> Verdict {
    if !file.head.trim_ascii_start().starts_with(b"{\"") {
        return Verdict::Unlike;
    }
    let is_known = |line: Value| {
        let is_event = text(&line, "sessionId").is_some()
            && (line.get("parentUuid").is_some() || line.get("isSidechain").is_some());
        let is_summary = text(&line, "type") == Some("summary") && line.get("leafUuid").is_some();
        let is_snapshot = text(&line, "type") == Some("file-history-snapshot");
        is_event || is_summary || is_snapshot
    };
    // A first line may be longer than what was read of it.
    let head = String::from_utf8_lossy(file.head);
    let is_history =
        |line: Value| line.get("pastedContents").is_some() && line.get("display").is_some();
    let is_index = file.file_name() == "sessions-index.json" && head.contains("\"entries\"");
    if is_index || lines(file).take(1).any(is_history) {
        return Verdict::Leaves(NO_LOG);
    }
    let begins = head.contains("\"parentUuid\":") && head.contains("\"sessionId\":");
    (begins || lines(file).take(5).any(is_known)).into()
}

fn recognise_codex(file: &Candidate<'_>) -> Verdict {
    let head = file.head.trim_ascii_start();
    if !head.starts_with(b"{\"") {
        return Verdict::Unlike;
    }
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let parsed = serde_json::from_slice::<Value>(first).unwrap_or_default();
    if text(&parsed, "type") == Some("session_meta") && parsed.get("payload").is_some() {
        return Verdict::Takes;
    }
    let first = String::from_utf8_lossy(first.get(..first.len().min(2_000)).unwrap_or_default());
    let is_current = first.contains("\"type\":\"session_meta\"");
    let said = |name: &str| text(&parsed, name).is_some();
    if said("session_id") && said("text") && parsed.get("ts").is_some() {
        return Verdict::Leaves(NO_LOG);
    }
    let begins_older = said("id") && said("timestamp") && parsed.get("instructions").is_some();
    let is_older = file.file_name().starts_with("rollout-")
        && first.contains("\"timestamp\"")
        && first.contains("\"id\"");
    (is_current || begins_older || is_older).into()
}

/// What is known of the session so far.
#[derive(Default)]
struct Session {
    id: String,
    title: Option<String>,
    summary: Option<String>,
    project: Option<String>,
    branch: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    messages: u64,
    /// Whether anything was said outside of what the agent handed to others.
    is_own: bool,
    lines: u64,
}

/// What a line says.
#[derive(Default)]
struct Said {
    id: Option<String>,
    author: Option<String>,
    model: Option<String>,
    sent_at: Option<String>,
    text: String,
    tools: Vec<String>,
    is_subagent: bool,
}

impl Session {
    /// Until a line tells otherwise, the file's name is the session's.
    fn new(input: &Input) -> Self {
        Self {
            id: input.stem().to_owned(),
            ..Self::default()
        }
    }

    fn learn(&mut self, line: &Value, cwd: &str, branch: Option<&str>) {
        if self.project.is_none() {
            self.project = text(line, cwd).map(str::to_owned);
        }
        if self.branch.is_none() {
            self.branch = branch.map(str::to_owned);
        }
    }

    fn add(&mut self, said: Said, made: &mut Made) {
        if said.text.trim().is_empty() && said.tools.is_empty() {
            return;
        }
        self.messages += 1;
        self.is_own |= !said.is_subagent;
        if self.started_at.is_none() {
            self.started_at.clone_from(&said.sent_at);
        }
        self.ended_at = said.sent_at.clone().or(self.ended_at.take());
        if self.title.is_none() && said.author.as_deref() == Some("user") {
            self.title = some_text(first_words(&said.text));
        }
        // Codex gives no ids; a log only grows, so the line is one.
        let id = said
            .id
            .unwrap_or_else(|| format!("{}-{}", self.id, self.lines));
        made.add(
            "messages",
            json!({
                "id": readable_key(&id),
                "session_id": readable_key(&self.id),
                "project": self.project,
                "author": said.author,
                "model": said.model,
                "sent_at": said.sent_at,
                "position": self.lines,
                "text": some_text(said.text),
                "tools": some_list(said.tools),
                "is_subagent": said.is_subagent.then_some(true),
            }),
        );
    }

    fn finish(&self, made: &mut Made) {
        // A file of what was handed on names the session that it is part of, and is none itself.
        if !self.is_own {
            return;
        }
        made.add(
            "sessions",
            json!({
                "id": readable_key(&self.id),
                "title": self.summary.as_ref().or(self.title.as_ref()),
                "project": self.project,
                "branch": self.branch,
                "started_at": self.started_at,
                "ended_at": self.ended_at,
                "message_count": self.messages,
            }),
        );
    }
}

struct ClaudeCode(Session);

impl Converter for ClaudeCode {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let session = &mut self.0;
        session.lines += 1;
        let line = parse_json(piece)?;
        if let Some(id) = text(&line, "sessionId") {
            id.clone_into(&mut session.id);
        }
        session.learn(&line, "cwd", text(&line, "gitBranch"));
        let kind = text(&line, "type");
        let title = match kind {
            Some("summary") => text(&line, "summary"),
            Some("custom-title") => text(&line, "customTitle"),
            _ => None,
        };
        if let Some(title) = title {
            session.summary = Some(title.to_owned());
        }
        let is_meta = line.get("isMeta").and_then(Value::as_bool) == Some(true);
        let (Some("user" | "assistant"), Some(message), false) =
            (kind, line.get("message"), is_meta)
        else {
            return Ok(());
        };
        let mut said = Said {
            id: text(&line, "uuid").map(str::to_owned),
            author: text(message, "role").or(kind).map(str::to_owned),
            model: text(message, "model").map(str::to_owned),
            sent_at: moment(&line, "timestamp"),
            is_subagent: line.get("isSidechain").and_then(Value::as_bool) == Some(true),
            ..Said::default()
        };
        said.read_blocks(message);
        session.add(said, made);
        Ok(())
    }

    fn finish(&mut self, made: &mut Made) {
        self.0.finish(made);
    }
}

impl Said {
    /// Blocks of a message: words, calls of tools, and what these gave back.
    fn read_blocks(&mut self, message: &Value) {
        if let Some(words) = text(message, "content") {
            words.clone_into(&mut self.text);
        }
        let mut parts = Vec::new();
        for block in list(message, "content") {
            match text(block, "type") {
                Some("text" | "input_text" | "output_text") => {
                    parts.extend(text(block, "text").map(str::to_owned));
                }
                Some("tool_use") => {
                    self.tools.extend(text(block, "name").map(str::to_owned));
                    parts.extend(block.get("input").map(ToString::to_string));
                }
                Some("tool_result") => {
                    self.author = Some("tool".to_owned());
                    parts.extend(text(block, "content").map(str::to_owned));
                    let inner = list(block, "content").iter();
                    parts.extend(inner.filter_map(|one| text(one, "text")).map(str::to_owned));
                }
                _ => {}
            }
        }
        if !parts.is_empty() {
            self.text = parts.join("\n");
        }
    }
}

/// What Codex puts before a conversation in the name of the user.
const OF_CODEX: [&str; 3] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
];

impl Said {
    /// A call of a tool, as Codex notes it.
    fn read_call(&mut self, kind: &str, item: &Value) {
        let action = item.get("action").unwrap_or(&Value::Null);
        let (name, given) = match kind {
            "web_search_call" => (Some("web_search"), text(action, "query").map(str::to_owned)),
            "local_shell_call" => {
                let command = list(action, "command").iter().filter_map(Value::as_str);
                (Some("shell"), Some(command.collect::<Vec<_>>().join(" ")))
            }
            _ => {
                let given = text(item, "arguments").or_else(|| text(item, "input"));
                (text(item, "name"), given.map(str::to_owned))
            }
        };
        self.author = Some("assistant".to_owned());
        self.tools.extend(name.map(str::to_owned));
        self.text = given.unwrap_or_default();
    }

    /// Whether the program itself put it before the conversation.
    fn is_of_the_program(&self) -> bool {
        match self.author.as_deref() {
            Some("developer" | "system") => true,
            Some("user") => OF_CODEX.iter().any(|begin| self.text.starts_with(begin)),
            _ => false,
        }
    }
}

struct Codex(Session);

impl Converter for Codex {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let session = &mut self.0;
        session.lines += 1;
        let line = parse_json(piece)?;
        let sent_at = moment(&line, "timestamp");
        // Older logs have what is the payload now as the line itself.
        let item = line.get("payload").unwrap_or(&line);
        let is_meta = text(&line, "type") == Some("session_meta")
            || (session.lines == 1 && text(&line, "type").is_none());
        if is_meta {
            if let Some(id) = text(item, "id") {
                id.clone_into(&mut session.id);
            }
            let branch = item.get("git").and_then(|git| text(git, "branch"));
            session.learn(item, "cwd", branch);
            session.started_at = moment(item, "timestamp").or(sent_at);
            return Ok(());
        }
        // Events repeat what items say.
        if line.get("payload").is_some() && text(&line, "type") != Some("response_item") {
            return Ok(());
        }
        let mut said = Said {
            sent_at: sent_at.or_else(|| session.started_at.clone()),
            ..Said::default()
        };
        match text(item, "type") {
            Some("message") => {
                said.author = text(item, "role").map(str::to_owned);
                said.read_blocks(item);
            }
            Some(
                kind @ ("function_call" | "custom_tool_call" | "local_shell_call"
                | "web_search_call"),
            ) => {
                said.read_call(kind, item);
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                said.author = Some("tool".to_owned());
                let parts = each_text(list(item, "output"), "text").join("\n");
                said.text = text(item, "output").map_or(parts, str::to_owned);
            }
            _ => {}
        }
        if said.is_of_the_program() {
            return Ok(());
        }
        session.add(said, made);
        Ok(())
    }

    fn finish(&mut self, made: &mut Made) {
        self.0.finish(made);
    }
}
