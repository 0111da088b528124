//! Refusals of a server: its message, with hints that are commands of this program.

use contract::error::{AvailableConnection, ErrorCode, ReadError};
use contract::upstream::Answer;
use serde_json::Value;

use super::Reading;
use super::advice::help_hint;
use crate::failure::Failure;
use crate::output::visible;

struct Refusal {
    /// A row of the table, unless the server is another's with codes of its own.
    code: Option<ErrorCode>,
    message: String,
    next: Option<String>,
    error: Value,
}

impl Reading<'_> {
    /// Why there is no answer, and what to do about it.
    pub(super) fn refusal(&self, answer: &Answer) -> Failure {
        let refusal = read(answer);
        if let (401, Some(grant)) = (answer.status, self.line.grant()) {
            let message = format!("there is no live grant '{}'", visible(grant));
            let list = self.context.command("grants");
            let list = format!("`{list}` lists the grants and their state");
            let error = ReadError::new(ErrorCode::AuthenticationError, message);
            return Failure::from(error).hints(self.similar_grant(grant).into_iter().chain([list]));
        }
        let exit = match (refusal.code, answer.status) {
            (Some(code), _) => code.exit_code(),
            (None, 401) => ErrorCode::AuthenticationError.exit_code(),
            (None, _) => 1,
        };
        let mut message = refusal.message.clone();
        if refusal.code == Some(ErrorCode::InternalError)
            && let Some(id) = &answer.request_id
        {
            message = format!("{message} ({})", visible(id));
        }
        let mut hints = self.hints(&refusal, answer.status);
        if hints.is_empty() {
            hints.extend(refusal.next.as_deref().map(visible));
        }
        if hints.is_empty() && answer.status == 400 {
            hints.push(help_hint(&self.line));
        }
        Failure::Message {
            exit,
            message,
            hints,
            // A page of some proxy is no answer of the contract.
            body: (!refusal.error.is_null()).then(|| answer.body.trim_end().to_owned()),
        }
    }

    fn hints(&self, refusal: &Refusal, status: u16) -> Vec<String> {
        if let (401, Some(url)) = (status, self.remote_url()) {
            return vec![format!("run `{}`", self.line.connect_command(url))];
        }
        match refusal.code {
            Some(ErrorCode::AmbiguousConnection | ErrorCode::AmbiguousSchemaDetail) => {
                self.choices(refusal)
            }
            Some(code) => {
                let names = self.suggestions(code);
                if names.is_empty() {
                    let param = refusal.error.get("param").and_then(Value::as_str);
                    return self.advice(code, param);
                }
                names
            }
            None => Vec::new(),
        }
    }

    /// The same command once for each connection it could mean.
    fn choices(&self, refusal: &Refusal) -> Vec<String> {
        let listed = refusal.error.get("available_connections");
        let listed = listed.and_then(Value::as_array).into_iter().flatten();
        let known: Vec<AvailableConnection> = listed
            .filter_map(|one| serde_json::from_value(one.clone()).ok())
            .collect();
        let command = |one: &AvailableConnection| {
            let line = self.line.with("connection-id", &one.connection_id);
            let label = one.display_name.as_deref().map(visible);
            let label = label
                .map(|label| format!("  # {label}"))
                .unwrap_or_default();
            format!("\n  {line}{label}")
        };
        if known.is_empty() {
            return Vec::new();
        }
        let commands: String = known.iter().map(command).collect();
        let mut hints = vec![format!("name one of them:{commands}")];
        let omitted = refusal.error.get("available_connections_omitted");
        if let Some(omitted) = omitted.and_then(Value::as_u64) {
            let schema = self.line.another("schema");
            hints.push(format!("`{schema}` lists the other {omitted} too"));
        }
        hints
    }
}

fn read(answer: &Answer) -> Refusal {
    let mut body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let error = body.get_mut("error").map(Value::take).unwrap_or_default();
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let code = text("code").and_then(ErrorCode::from_code);
    let message = text("message").map_or_else(
        || format!("the server answered with status {}", answer.status),
        visible,
    );
    Refusal {
        code,
        message,
        next: text("next").or(text("next_step")).map(str::to_owned),
        error,
    }
}
