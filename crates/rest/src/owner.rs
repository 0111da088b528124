//! The owner's routes: on the socket in the data directory, or in process, where every caller is the owner. They are
//! never on TCP and not in the public document, because no token would be enough for them.
//!
//! The commands of `pdpp` use them. The rules are in the crates below; a route parses the request and words the errors
//! for the owner, including those of the store.

mod asks;
mod budgets;
mod export;
pub(crate) mod grants;
mod import;
pub(crate) mod maintenance;
mod model;
mod nodes;
mod progress;
pub(crate) mod records;
mod sign_in;
pub(crate) mod sources;
mod templates;
mod upload_frames;
pub mod wire;

use std::sync::Arc;

use axum::http::StatusCode;
use contract::declaration::DeclarationErrors;
use contract::error::{ErrorCode, ReadError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::StoreError;

pub(crate) use export::export_line;
pub use import::{ImportFiles, import_files};
pub(crate) use progress::stream_bytes;
pub use upload_frames::{FileName, UploadFrame};

use crate::problem::{self, Problem};
use crate::service::Service;
use crate::table::{
    Content, Endpoint, Handler, HandlerResult, Param, RequestContext, SuccessResponse, Verb,
};
use wire::Refusal;

/// The largest request body other than an import.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

const CONNECTION: Param = Param::one("connection_id", "The connection.");
const STREAM: Param = Param::one("stream", "The stream.");
const ID: Param = Param::one(
    "id",
    "A grant, a package or a token; any text, for people mistype.",
);

macro_rules! route {
    ($verb:ident $path:literal, $operation:literal, $params:expr, $handler:path) => {
        Endpoint {
            verb: Verb::$verb,
            path: $path,
            operation: $operation,
            summary: "",
            params: $params,
            request_type: None,
            success: SuccessResponse {
                status: 200,
                content: Content::Bytes,
            },
            handler: Handler::Owner(|context| Box::pin($handler(context))),
        }
    };
}

pub(crate) static OWNER_ENDPOINTS: &[Endpoint] = &[
    route!(Get "/owner/sources", "ownerSources", &[], sources::list),
    route!(Post "/owner/declarations", "ownerDeclare", &[], sources::declare),
    route!(Post "/owner/exports/{export}", "ownerConnectExport", &[], sources::connect_export),
    route!(Post "/owner/connections", "ownerAddConnection", &[], sources::add),
    route!(Post "/owner/connections/{connection_id}", "ownerRenameConnection", &[], sources::rename),
    route!(Delete "/owner/connections/{connection_id}", "ownerRemoveConnection", &[], sources::remove),
    route!(
        Post "/owner/import",
        "ownerImport",
        &[
            CONNECTION,
            STREAM,
            Param::one("export", "In a dry run, instead of a connection: the known export that would get one."),
            Param::one("dry_run", "Whether to write nothing."),
            Param::one("revive", "Whether to bring back records that the owner deleted."),
            Param::one("prune", "Whether to delete what is there and does not come."),
            Param::one("pictures", "Whether to keep the pictures of photos."),
            Param::one("batch_lines", "Lines per durable batch."),
            Param::one("name_files", "Whether rejections name their file."),
        ],
        import::import
    ),
    route!(
        Get "/owner/export",
        "ownerExport",
        &[
            CONNECTION,
            STREAM.required(),
            Param::one("record_id", "Only this record, by its canonical key."),
            Param::one("grant", "What this grant or package sees."),
        ],
        export::export
    ),
    route!(Post "/owner/delete", "ownerDelete", &[], records::delete),
    route!(
        Get "/owner/backup",
        "ownerBackup",
        &[Param::one("beside", "The folder that the backup is written to, for a copy that is needed meanwhile.")],
        maintenance::backup
    ),
    route!(
        Get "/owner/backup/damage",
        "ownerBackupDamage",
        &[Param::one("number", "The backup, as its header says.")],
        maintenance::backup_damage
    ),
    route!(Post "/owner/index", "ownerRebuildIndex", &[], maintenance::rebuild_index),
    route!(Get "/owner/model", "ownerModel", &[], model::show),
    route!(Post "/owner/model", "ownerAddModel", &[], model::add),
    route!(Delete "/owner/model", "ownerRemoveModel", &[], model::remove),
    route!(Post "/owner/model/embed", "ownerEmbed", &[], model::embed),
    route!(Get "/owner/nodes", "ownerNodes", &[], nodes::list),
    route!(Delete "/owner/nodes/{node}", "ownerForgetNode", &[], nodes::forget),
    route!(Post "/owner/purge", "ownerPurge", &[], maintenance::purge),
    route!(
        Get "/owner/inspection",
        "ownerInspect",
        &[Param::one("thorough", "Whether to read everything.")],
        maintenance::inspect
    ),
    route!(Post "/owner/rollback", "ownerAcceptRollback", &[], maintenance::accept_rollback),
    route!(Get "/owner/grown", "ownerGrown", &[], maintenance::grown),
    route!(Get "/owner/time", "ownerTime", &[], maintenance::time),
    route!(Post "/owner/time", "ownerResetTime", &[], maintenance::reset_time),
    route!(Get "/owner/grants", "ownerGrants", &[], grants::list),
    route!(Post "/owner/grants", "ownerGrant", &[], grants::create),
    route!(
        Get "/owner/grant",
        "ownerShowGrant",
        &[ID, Param::one("calls", "How many of its last calls.")],
        grants::show
    ),
    route!(Delete "/owner/grant", "ownerRevoke", &[ID], grants::revoke),
    route!(Get "/owner/templates", "ownerTemplates", &[], templates::list),
    route!(Post "/owner/templates", "ownerSaveTemplate", &[], templates::save),
    route!(
        Delete "/owner/templates",
        "ownerRemoveTemplate",
        &[Param::one("name", "The name of the template.")],
        templates::remove
    ),
    route!(Get "/owner/asks", "ownerAsks", &[], asks::list),
    route!(Post "/owner/asks", "ownerDecideAsk", &[], asks::decide),
    route!(Post "/owner/asking", "ownerAsking", &[], asks::change),
    route!(Post "/owner/budget", "ownerBudget", &[], budgets::change),
    route!(Post "/owner/pause", "ownerPause", &[], budgets::pause),
    route!(Get "/owner/tokens", "ownerTokens", &[], grants::tokens),
    route!(Post "/owner/tokens", "ownerToken", &[], grants::token),
    route!(Post "/owner/password", "ownerPassword", &[], sign_in::password),
    route!(Post "/owner/sign-in", "ownerSignIn", &[], sign_in::link),
    route!(Get "/owner/server", "ownerServer", &[], sign_in::server),
    route!(Get "/owner/disclosures/check", "ownerVerify", &[], grants::verify),
    route!(Get "/owner/receipts", "ownerReceipts", &[ID], grants::receipts),
];

/// Runs blocking work on its own thread.
pub(crate) async fn blocking<T: Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&service)).await;
    done.map_err(|error| Problem::internal("the work did not come to its end", &error))?
}

/// An error of the owner's routes. What the store says becomes one in its own words: only the owner can read it here.
struct OwnerProblem(Problem);

/// What blocking work of the owner's routes returns.
type OwnerResult<T> = Result<T, OwnerProblem>;

impl From<Problem> for OwnerProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<StoreError> for OwnerProblem {
    fn from(error: StoreError) -> Self {
        Self(store_problem(&error))
    }
}

/// Runs blocking work, and answers with its result.
async fn answer<T: Serialize + Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> OwnerResult<T> + Send + 'static,
) -> HandlerResult {
    let done = owner_blocking(service, work).await?;
    problem::json(StatusCode::OK, &done)
}

async fn owner_blocking<T: Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> OwnerResult<T> + Send + 'static,
) -> Result<T, Problem> {
    blocking(service, |service| {
        work(service).map_err(|problem| problem.0)
    })
    .await
}

async fn json_body<T: DeserializeOwned>(context: &mut RequestContext) -> Result<T, Problem> {
    let text = body_text(context).await?;
    serde_json::from_str(&text).map_err(|error| invalid_request(error.to_string()))
}

async fn body_text(context: &mut RequestContext) -> Result<String, Problem> {
    let body = std::mem::take(&mut context.body);
    let bytes = axum::body::to_bytes(body, MAX_BODY_BYTES).await;
    let bytes = bytes.map_err(|_| invalid_request("the question did not arrive whole"))?;
    String::from_utf8(bytes.into()).map_err(|_| invalid_request("the question is not UTF-8"))
}

fn invalid_request(message: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, message)
}

/// An error of the store, in its own words: only the owner can read it here.
fn store_problem(error: &StoreError) -> Problem {
    let code = match error {
        StoreError::UnknownConnection(_) => ErrorCode::ConnectionNotFound,
        StoreError::UnknownStream { .. } => ErrorCode::StreamNotDeclared,
        StoreError::UnknownConnector(_) | StoreError::UnknownBlob(_) | StoreError::NoModel => {
            ErrorCode::NotFound
        }
        StoreError::Model(_) | StoreError::Declaration(_) | StoreError::ConnectionExists(_) => {
            ErrorCode::InvalidRequest
        }
        error if error.is_transient() => ErrorCode::StorageUnavailable,
        _ => {
            tracing::error!(cause = %error, "the store could not do what the owner asked");
            ErrorCode::InternalError
        }
    };
    Problem::new(code, error.to_string())
}

/// The mistakes in a declaration or a selection, one by one.
impl From<DeclarationErrors> for OwnerProblem {
    fn from(mistakes: DeclarationErrors) -> Self {
        let problem = invalid_request(mistakes.to_string());
        let each: Vec<String> = mistakes.0.iter().map(ToString::to_string).collect();
        Self(problem.with_member("mistakes", each))
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        tracing::error!(cause = %error, "the store could not do what the owner asked");
        Self {
            message: error.to_string(),
            hints: Vec::new(),
        }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Self {
            message: error.message,
            hints: error.hint.into_iter().collect(),
        }
    }
}
