//! `pdpp mcp` as a process of its own, spoken to as hosts do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::Home;
use super::server::PATIENCE;

/// A started adapter, spoken to line by line.
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    /// The lines it says, read elsewhere so that one that never comes is not waited for.
    lines: Receiver<String>,
    asked: u64,
}

impl Agent {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Nobody may wait any more.
                let _ = send.send(line);
            }
        });
        Self {
            input: child.stdin.take(),
            lines,
            child,
            asked: 0,
        }
    }

    /// `pdpp` with these words, asked to begin.
    pub fn begin(home: &Home, line: impl AsRef<str>) -> Self {
        Self::begun(&mut home.command(line))
    }

    /// A started adapter, asked to begin.
    pub fn begun(command: &mut Command) -> Self {
        let mut agent = Self::start(command);
        agent.initialize();
        agent
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn ask(&mut self, method: &str, params: impl Into<Value>) -> Value {
        self.asked += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params.into()});
        self.send(&message);
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.ask("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    pub fn call(&mut self, tool: &str, arguments: impl Into<Value>) -> Value {
        let mut answer = self.ask(
            "tools/call",
            json!({"name": tool, "arguments": arguments.into()}),
        );
        answer["result"].take()
    }

    pub fn content(&mut self, tool: &str, arguments: impl Into<Value>) -> Value {
        let mut answer = self.call(tool, arguments);
        assert_ne!(answer["isError"], true, "{answer}");
        answer["structuredContent"].take()
    }

    pub fn refusal(&mut self, tool: &str, arguments: impl Into<Value>) -> Value {
        let mut answer = self.call(tool, arguments);
        assert_eq!(answer["isError"], true, "{answer}");
        answer["structuredContent"]["error"]["code"].take()
    }

    pub fn found(&mut self, query: &str) -> Vec<String> {
        let content = self.content("search", json!({ "query": query }));
        let ids = content["results"].as_array().unwrap().iter();
        let mut ids: Vec<String> = ids
            .map(|hit| hit["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Closes the input and gives the exit code.
    pub fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
