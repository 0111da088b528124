//! The MCP server: what it announces, and how a request finds its tool or resource.
//!
//! It keeps nothing between calls but one fact: whether the resource server called our credential an owner's. What is
//! not declared answers "method not found".

use std::borrow::Cow;
use std::sync::Arc;

use contract::error::ErrorCode as Code;
use contract::upstream::Upstream;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorData, Icon, Implementation,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, RequestMetaObject, ResourcesCapability, ServerCapabilities, ServerConfig,
    Tool, ToolsCapability,
};
use rmcp::service::{RequestContext, RoleServer};

use serde_json::Value;

use crate::call::{Call, OwnerSeen};
use crate::fault::Fault;
use crate::instructions::INSTRUCTIONS;
use crate::{resources, tools};

#[derive(Debug, Clone)]
pub struct Options {
    pub name: String,
    /// An address of an SVG icon, where one is served.
    pub icon_url: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "pdpp".to_owned(),
            icon_url: None,
        }
    }
}

/// The tools over one resource server, for one caller.
#[derive(Clone)]
pub struct Server {
    upstream: Arc<dyn Upstream>,
    owner: Arc<OwnerSeen>,
    options: Options,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("provider_url", &self.upstream.provider_url())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Server {
    pub fn new(upstream: Arc<dyn Upstream>, options: Options) -> Self {
        Self {
            upstream,
            owner: Arc::default(),
            options,
        }
    }

    pub fn tools() -> Vec<Tool> {
        tools::all().iter().map(|tool| tool.tool()).collect()
    }

    /// The tool without what this server cannot do.
    fn offered(&self, mut tool: Tool) -> Tool {
        if tool.name == "search" && !self.upstream.may_search_by_meaning() {
            let schema = Arc::make_mut(&mut tool.input_schema);
            if let Some(Value::Object(arguments)) = schema.get_mut("properties") {
                arguments.shift_remove("mode");
            }
        }
        tool
    }

    fn call(&self) -> Call<'_> {
        Call::new(self.upstream.as_ref(), &self.owner)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(false);
        let mut resources = ResourcesCapability::default();
        resources.list_changed = Some(false);
        capabilities.tools = Some(tools);
        capabilities.resources = Some(resources);
        let mut info = Implementation::new(&self.options.name, env!("CARGO_PKG_VERSION"));
        info.title = Some("PDPP: your own records".to_owned());
        info.icons = self.options.icon_url.as_ref().map(|url| {
            let icon = Icon::new(url).with_mime_type("image/svg+xml");
            vec![icon.with_sizes(vec!["any".to_owned()])]
        });
        ServerConfig::new(capabilities)
            .with_server_info(info)
            .with_instructions(INSTRUCTIONS.trim_end())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[
            ProtocolVersion::V_2025_03_26,
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
            ProtocolVersion::V_2026_07_28,
        ])
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Self::tools().into_iter().map(|tool| self.offered(tool));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = tools::find(name).map(tools::Definition::tool)?;
        Some(self.offered(tool))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let outcome = match tools::find(&request.name) {
            Some(tool) => (tool.run)(self.call(), request.arguments.unwrap_or_default()).await,
            None => Err(unknown_tool(&request.name)),
        };
        if let Err(fault) = &outcome
            && opens_addresses(&context)
            && let Some(error) = fault.elicitation()
        {
            return Err(error);
        }
        let result = outcome.map_or_else(Fault::into_result, crate::reply::Reply::into_result);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::default())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(
            resources::templates(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self.call(), &request.uri).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// What the library could not read: a method that is not there, or one of ours with parameters it does not take.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unreadable(&request.method, Some(&context.meta)))
    }
}

/// Whether the client leads its person to an address when a call needs that.
fn opens_addresses(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    elicitation.is_some_and(|elicitation| elicitation.url.is_some())
}

const PARAMETERS: [(&str, &str); 4] = [
    (
        "initialize",
        r#"{"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "…", "version": "…"}}"#,
    ),
    (
        "server/discover",
        r#"{"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", …}}"#,
    ),
    (
        "tools/call",
        r#"{"name": "schema", "arguments": {}}, with arguments an object"#,
    ),
    ("resources/read", r#"{"uri": "pdpp://…"}"#),
];

/// Told in the code that says which of the two it is: hosts stop using a method that was not found.
/// Where every request names its revision, none begins with `initialize`.
pub(crate) fn unreadable(method: &str, meta: Option<&RequestMetaObject>) -> ErrorData {
    let is_of_its_own = meta.is_some_and(|meta| meta.protocol_version().is_some());
    let mut known = PARAMETERS.iter().filter(|(known, _)| *known == method);
    let Some((_, takes)) = known.find(|_| !(is_of_its_own && method == "initialize")) else {
        let shown = crate::text::plain::quoted(method, 80);
        let message = format!("this server has no method {shown}");
        return ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, message, None);
    };
    let message = format!("the parameters of {method} cannot be read");
    let fault = Fault::refused(Code::InvalidArguments, "params", message.clone())
        .with_next(format!("pass {takes}"));
    ErrorData::invalid_params(message, serde_json::to_value(fault).ok())
}

/// Told as a tool result, because that is what a model sees.
fn unknown_tool(name: &str) -> Fault {
    let names: Vec<&str> = tools::all().iter().map(|tool| tool.name).collect();
    let shown = crate::text::plain::quoted(name, 80);
    let message = format!("there is no tool {shown}");
    Fault::refused(Code::InvalidArguments, "name", message)
        .with_next(format!("call one of {}", names.join(", ")))
}
