//! One `pdpp mcp` process and the messages to it, one line each.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::client::is_success;
use super::process::{Running, command};
use crate::BenchError;

const PIPE: usize = 64 * 1024;

/// A started process that was not asked for anything but its tools.
pub(super) struct Session {
    pub(super) process: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl Session {
    pub(super) async fn start(program: &Path, args: &[String]) -> Result<Self, BenchError> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = command(program, &args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        let mut process = Running::start(command, "pdpp mcp")?;
        let pipes = (process.child.stdin.take(), process.child.stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else {
            return Err(process.failure("has no pipes"));
        };
        let mut session = Self {
            process,
            stdin,
            // Hosts take what a pipe holds at once.
            stdout: BufReader::with_capacity(PIPE, stdout),
            last_id: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        session.request("initialize", hello).await?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.send(&ready).await?;
        let tools = session.request("tools/list", json!({})).await?;
        if tools.contains(r#""name":"search""#) {
            Ok(session)
        } else {
            Err(refused("tools/list", &tools))
        }
    }

    pub(super) async fn call(&mut self, tool: &str, args: &Value) -> Result<String, BenchError> {
        let answer = self.call_any(tool, args).await?;
        if is_success(answer.as_bytes()) {
            Ok(answer)
        } else {
            Err(refused(tool, &answer))
        }
    }

    /// Calls a tool and takes its whole answer, also where it is a refusal.
    pub(super) async fn call_any(
        &mut self,
        tool: &str,
        args: &Value,
    ) -> Result<String, BenchError> {
        let params = json!({"name": tool, "arguments": args});
        self.request("tools/call", params).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<String, BenchError> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await?;
        let answer = self.process.line(&mut self.stdout).await?;
        if answer.contains(r#""result":"#) {
            Ok(answer)
        } else {
            Err(refused(method, &answer))
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), BenchError> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let sent = self.stdin.write_all(&line).await;
        sent.map_err(|error| self.process.failure(format!("takes no messages: {error}")))
    }
}

fn refused(question: &str, answer: &str) -> BenchError {
    BenchError::Refused {
        question: question.to_owned(),
        answer: answer.chars().take(300).collect(),
    }
}
