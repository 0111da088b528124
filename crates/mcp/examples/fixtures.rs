//! What the protocol's conformance suite expects of a server, on our transport: `scripts/interop conformance` runs the
//! suite against this as well, because our own tools use only a part of what the transport must carry.
//!
//! Prints the address it listens on, and serves until it is ended.

use std::convert::Infallible;
use std::io::{self, Write as _};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp::{HttpSettings, serve_http};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequest, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Everything that is listed and answered, in the words of the wire.
#[derive(Clone)]
struct Fixtures(Value);

/// What a call that may ask back came with.
struct Given<'a> {
    responses: Option<&'a InputResponses>,
    state: Option<&'a str>,
    can: ClientCapabilities,
}

type Context = RequestContext<RoleServer>;

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl Fixtures {
    fn list<T: DeserializeOwned>(&self, of: &str) -> Result<Vec<T>, ErrorData> {
        typed(self.0[of].clone())
    }

    fn one(&self, of: &str, name: &str) -> Result<Value, ErrorData> {
        let found = self.0[of].get(name).cloned();
        let data = json!({"uri": name});
        found.ok_or_else(|| ErrorData::resource_not_found("there is no such fixture", Some(data)))
    }

    /// What a fixture still has to ask, by how far the answers have come. A state that was never given out is refused.
    fn to_ask(
        &self,
        name: &str,
        given: &Given<'_>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let Some(steps) = self.0["steps"].get(name) else {
            return Ok(None);
        };
        let steps: Vec<InputRequiredResult> = typed(steps.clone())?;
        let reached = match given.state {
            None => 0,
            Some(state) => steps
                .iter()
                .position(|step| step.request_state.as_deref() == Some(state))
                .ok_or_else(|| ErrorData::invalid_params("this state was not given out", None))?,
        };
        let is_answered = given.responses.is_some_and(|responses| {
            let asked = steps[reached].input_requests.iter().flatten();
            asked
                .map(|(key, _)| responses.get(key))
                .all(|answer| answer.is_some_and(Value::is_object))
        });
        let next = reached + usize::from(is_answered);
        let step = steps.into_iter().nth(next).map(|mut step| {
            if let Some(asked) = &mut step.input_requests {
                asked.retain(|_, request| may_be_asked(request, &given.can));
            }
            step
        });
        Ok(step)
    }
}

fn may_be_asked(request: &InputRequest, can: &ClientCapabilities) -> bool {
    let can = serde_json::to_value(can).unwrap_or_default();
    let method = serde_json::to_value(request).unwrap_or_default();
    let method = method["method"].as_str().unwrap_or_default();
    let needed = method.split('/').next().unwrap_or_default();
    can.get(needed).is_some()
}

/// Tells three times how far a call has come, where the caller wants to know.
async fn tell_progress(context: &Context) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    for done in [0.0, 50.0, 100.0] {
        let told = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        // Nobody listens any more: then nobody misses it.
        let _ = context.peer.notify_progress(told).await;
    }
}

/// Puts the arguments of a prompt where their names stand in braces.
fn filled(template: &Value, arguments: Option<&serde_json::Map<String, Value>>) -> Value {
    let mut text = template.to_string();
    for (name, value) in arguments.into_iter().flatten() {
        text = text.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
    }
    serde_json::from_str(&text).unwrap_or_default()
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let declared = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}});
        let capabilities: ServerCapabilities = serde_json::from_value(declared).unwrap_or_default();
        ServerConfig::new(capabilities)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list("tools")?))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools: Vec<Tool> = self.list("tools").ok()?;
        tools.into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "test_missing_capability" {
            let needed = typed(json!({"sampling": {}}))?;
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        let given = Given {
            responses: request.input_responses.as_ref(),
            state: request.request_state.as_deref(),
            can: context.client_capabilities().unwrap_or_default(),
        };
        if let Some(step) = self.to_ask(&request.name, &given)? {
            return Ok(step.into());
        }
        if request.name == "test_tool_with_progress" {
            tell_progress(&context).await;
        }
        let result: CallToolResult = typed(self.one("results", &request.name)?)?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.list("resources")?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.list("templates")?;
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = typed(self.one("contents", &request.uri)?)?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.list("prompts")?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = Given {
            responses: request.input_responses.as_ref(),
            state: request.request_state.as_deref(),
            can: context.client_capabilities().unwrap_or_default(),
        };
        if let Some(step) = self.to_ask(&request.name, &given)? {
            return Ok(step.into());
        }
        let template = self.one("messages", &request.name)?;
        let prompt: GetPromptResult = typed(filled(&template, request.arguments.as_ref()))?;
        Ok(prompt.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = json!({"values": ["paris", "park"], "total": 2, "hasMore": false});
        typed(json!({"resultType": "complete", "completion": values}))
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let fixtures = Fixtures(serde_json::from_str(include_str!("fixtures.json"))?);
    let own = ["localhost", "127.0.0.1"];
    let settings = HttpSettings::new(
        own.map(str::to_owned),
        own.map(|name| format!("http://{name}:*")),
        1024 * 1024,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (fixtures, settings) = (fixtures.clone(), settings.clone());
        let service = service_fn(move |request| {
            let (fixtures, settings) = (fixtures.clone(), settings.clone());
            async move { Ok::<_, Infallible>(serve_http(fixtures, &settings, request).await) }
        });
        // A client that leaves in the middle of a request is no concern of the others.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
