//! What only the owner can ask, and only where every caller is the owner: on the socket in the data directory, or in
//! process. These routes are never on TCP and not in the public document, because no token could be enough for them.
//!
//! The commands of `pdpp` are their clients. Rules stand in the crates below; a route translates, and tells what was
//! refused in the words the owner is to read, the store's own included.

mod export;
mod grants;
mod import;
mod parcels;
mod records;
mod sign_in;
mod sources;
mod telling;
mod upkeep;
pub mod wire;

use std::sync::Arc;

use contract::error::{ErrorCode, ReadError};
use serde::de::DeserializeOwned;
use store::StoreError;

pub use parcels::{FileName, Heading};

use crate::problem::Problem;
use crate::service::Service;
use crate::table::{Answers, Ask, Content, Endpoint, Param, Run, Verb};
use wire::Refusal;

/// The largest question that is not an import: a declaration, or authorization details.
const MAX_QUESTION_BYTES: usize = 64 * 1024 * 1024;

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
            takes: None,
            answers: Answers {
                status: 200,
                content: Content::Bytes,
            },
            run: Run::Owner(|ask| Box::pin($handler(ask))),
        }
    };
}

/// The routes.
pub(crate) static OWNER_ENDPOINTS: &[Endpoint] = &[
    route!(Get "/owner/sources", "ownerSources", &[], sources::list),
    route!(Post "/owner/declarations", "ownerDeclare", &[], sources::declare),
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
        upkeep::backup
    ),
    route!(Post "/owner/index", "ownerRebuildIndex", &[], upkeep::rebuild_index),
    route!(Post "/owner/purge", "ownerPurge", &[], upkeep::purge),
    route!(
        Get "/owner/inspection",
        "ownerInspect",
        &[Param::one("thorough", "Whether to read everything.")],
        upkeep::inspect
    ),
    route!(Post "/owner/rollback", "ownerAcceptRollback", &[], upkeep::accept_rollback),
    route!(Get "/owner/grown", "ownerGrown", &[], upkeep::grown),
    route!(Get "/owner/time", "ownerTime", &[], upkeep::time),
    route!(Post "/owner/time", "ownerResetTime", &[], upkeep::reset_time),
    route!(Get "/owner/grants", "ownerGrants", &[], grants::list),
    route!(Post "/owner/grants", "ownerGrant", &[], grants::create),
    route!(
        Get "/owner/grant",
        "ownerShowGrant",
        &[ID, Param::one("calls", "How many of its last calls.")],
        grants::show
    ),
    route!(Delete "/owner/grant", "ownerRevoke", &[ID], grants::revoke),
    route!(Get "/owner/tokens", "ownerTokens", &[], grants::tokens),
    route!(Post "/owner/tokens", "ownerToken", &[], grants::token),
    route!(Post "/owner/password", "ownerPassword", &[], sign_in::password),
    route!(Post "/owner/sign-in", "ownerSignIn", &[], sign_in::link),
    route!(Get "/owner/server", "ownerServer", &[], sign_in::server),
    route!(Get "/owner/disclosures/check", "ownerVerify", &[], grants::verify),
];

/// Runs work that may block, and tells what was refused.
pub(crate) async fn blocking<T: Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&service)).await;
    done.map_err(|error| Problem::internal("the work did not come to its end", &error))?
}

/// The question of a request, a JSON document.
async fn question<T: DeserializeOwned>(ask: &mut Ask) -> Result<T, Problem> {
    let text = text(ask).await?;
    serde_json::from_str(&text).map_err(|error| refused(error.to_string()))
}

async fn text(ask: &mut Ask) -> Result<String, Problem> {
    let body = std::mem::take(&mut ask.body);
    let bytes = axum::body::to_bytes(body, MAX_QUESTION_BYTES).await;
    let bytes = bytes.map_err(|_| refused("the question did not arrive whole"))?;
    String::from_utf8(bytes.into()).map_err(|_| refused("the question is not UTF-8"))
}

fn refused(message: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, message)
}

/// What the store refused or failed at. Its words are made for the owner, and here nobody else can be listening.
fn store_problem(error: &StoreError) -> Problem {
    let code = match error {
        StoreError::UnknownConnection(_) => ErrorCode::ConnectionNotFound,
        StoreError::UnknownStream { .. } => ErrorCode::StreamNotDeclared,
        StoreError::UnknownConnector(_) | StoreError::UnknownBlob(_) => ErrorCode::NotFound,
        StoreError::Declaration(_) | StoreError::ConnectionExists(_) => ErrorCode::InvalidRequest,
        _ => {
            tracing::error!(cause = %error, "the store could not do what the owner asked");
            ErrorCode::InternalError
        }
    };
    Problem::new(code, error.to_string())
}

/// Every mistake on its own, for whoever shows them line by line.
fn with_mistakes(problem: Problem, mistakes: impl Iterator<Item = String>) -> Problem {
    problem.with("mistakes", mistakes.collect::<Vec<_>>())
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
