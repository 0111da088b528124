//! The HTTP side of the authorization server. The rules stand in `grants::oauth`; here requests become parameters, and
//! what comes back becomes an answer that nobody keeps.

mod arrivals;
mod documents;
mod metadata;
mod unseen;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use contract::error::ErrorCode;
use grants::oauth::{AuthorizeError, Client, Lookup, OAuthError};
use grants::sign_in::Lane;
use serde_json::{Value, json};

use self::arrivals::Arrival;
pub(crate) use self::arrivals::Arrivals;
pub use self::documents::{ClientDocuments, Fetched, Fetching};
pub(crate) use self::metadata::{authorization_server, mcp_resource, resource};

use crate::console::{self, see_other};
use crate::form::{self, Form};
use crate::owner::blocking;
use crate::problem::{self, Problem};
use crate::service::Service;
use crate::table::{Ask, Outcome};

/// The largest description of a client.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// How soon documents that are being fetched now are there or given up.
const FETCHED_SOON: Duration = Duration::from_secs(5);
/// Where a person types the code of a device.
pub(crate) const DEVICE_PAGE: &str = "/device";

/// `POST /oauth/register` (RFC 7591).
pub(crate) async fn register(mut ask: Ask) -> Outcome {
    let mut admitted = admit(&ask).await?;
    let metadata = form::text(&mut ask, MAX_METADATA_BYTES).await?;
    let registered = blocking(Arc::clone(&ask.service), move |service| {
        Ok(service.issuer().register(&metadata)?)
    });
    let registered = registered.await?;
    admitted.arrival.accept();
    let mut answer = json!(registered);
    let uri = client_uri(&ask.service, registered.client_id.as_str());
    answer["registration_client_uri"] = uri.into();
    Ok(unkept(problem::json(StatusCode::CREATED, &answer)?))
}

/// `GET /oauth/register/{client_id}`: what was registered, all of which is public.
pub(crate) async fn registered(ask: Ask) -> Outcome {
    let id = ask.part(0).to_owned();
    let uri = client_uri(&ask.service, &id);
    let client = blocking(ask.service, move |service| {
        match service.issuer().client(&id)? {
            Lookup::Known(client) => Ok(client),
            Lookup::NeedsDocument(_) => Err(OAuthError::invalid_client(
                "this client is described by its own document, not here",
            )
            .into()),
        }
    });
    let client = client.await?;
    let mut answer = json!({
        "client_id": client.client_id,
        "redirect_uris": client.redirect_uris,
        "grant_types": client.grant_types,
        "token_endpoint_auth_method": "none",
        "registration_client_uri": uri,
    });
    if let Some(name) = client.client_name {
        answer["client_name"] = Value::from(name);
    }
    Ok(unkept(problem::json(StatusCode::OK, &answer)?))
}

/// `GET /oauth/authorize`: the request is taken and kept before anybody signs in, so that what is wrong with it is told
/// at once, and the owner is shown only what can be decided.
pub(crate) async fn authorize(ask: Ask) -> Outcome {
    let mut admitted = admit(&ask).await?;
    let parameters = Form::of_query(ask.query())?.into_parameters();
    let client_id = parameters.required("client_id")?.to_owned();
    let client = client(&ask.service, client_id, &mut admitted).await;
    // On a page there is nothing to authenticate with.
    let client = client.map_err(|problem| match problem.status() {
        StatusCode::UNAUTHORIZED => problem.with_status(StatusCode::BAD_REQUEST),
        _ => problem,
    })?;
    let service = Arc::clone(&ask.service);
    let taken = blocking(service, move |service| {
        Ok(service.issuer().authorize(&client, &parameters))
    });
    match taken.await? {
        Ok(request) => {
            admitted.arrival.accept();
            Ok(see_other(&console::consent_path(&request)))
        }
        Err(AuthorizeError {
            error,
            back: Some(back),
        }) => Ok(see_other(&back.with_error(&error, &ask.service.public_url))),
        Err(AuthorizeError { error, back: None }) => Err(error.into()),
    }
}

/// `POST /oauth/token`.
pub(crate) async fn token(mut ask: Ask) -> Outcome {
    let parameters = Form::read(&mut ask).await?.into_parameters();
    let answer = blocking(ask.service, move |service| {
        Ok(service.issuer().token(&parameters)?)
    });
    Ok(unkept(problem::json(StatusCode::OK, &answer.await?)?))
}

/// `POST /oauth/device_authorization` (RFC 8628).
pub(crate) async fn device_authorization(mut ask: Ask) -> Outcome {
    let mut admitted = admit(&ask).await?;
    let parameters = Form::read(&mut ask).await?.into_parameters();
    let client_id = parameters.required("client_id")?.to_owned();
    let client = client(&ask.service, client_id, &mut admitted).await?;
    let started = blocking(ask.service, move |service| {
        let issuer = service.issuer();
        Ok(issuer.start_device(&client, &parameters, DEVICE_PAGE)?)
    });
    let started = started.await?;
    admitted.arrival.accept();
    Ok(unkept(problem::json(StatusCode::OK, &started)?))
}

/// `POST /oauth/revoke` (RFC 7009).
pub(crate) async fn revoke(mut ask: Ask) -> Outcome {
    let parameters = Form::read(&mut ask).await?.into_parameters();
    blocking(ask.service, move |service| {
        Ok(service.issuer().revoke(&parameters)?)
    })
    .await?;
    Ok(unkept(StatusCode::OK.into_response()))
}

/// `POST /oauth/introspect` (RFC 7662), for who presents an owner token.
pub(crate) async fn introspect(mut ask: Ask) -> Outcome {
    let parameters = Form::read(&mut ask).await?.into_parameters();
    let told = blocking(ask.service, move |service| {
        let token = parameters.required("token")?;
        Ok(service.issuer().introspect(token)?)
    });
    let told = told.await.map_err(Problem::in_oauth)?;
    Ok(unkept(problem::json(StatusCode::OK, &told)?))
}

/// Finds a client, and fetches its document where its id is the address of one.
async fn client(
    service: &Arc<Service>,
    id: String,
    admitted: &mut Admitted,
) -> Result<Client, Problem> {
    let look_up = move |service: &Service| Ok(service.issuer().client(&id)?);
    let address = match blocking(Arc::clone(service), look_up).await? {
        Lookup::Known(client) => return Ok(client),
        Lookup::NeedsDocument(address) => address,
    };
    let Some(documents) = &service.documents else {
        let message = "client ids that are addresses are not taken here; register the client";
        return Err(OAuthError::invalid_client(message).into());
    };
    let under_way = service.arrivals.fetch(&admitted.lane);
    let under_way = under_way.ok_or_else(|| too_many(FETCHED_SOON))?;
    let fetched = documents.fetch(&address).await.map_err(|reason| {
        OAuthError::invalid_client(format!(
            "the client's metadata document cannot be used: {reason}"
        ))
    })?;
    drop(under_way);
    let client = blocking(Arc::clone(service), move |service| {
        let issuer = service.issuer();
        Ok(issuer.accept_document(&address, &fetched.body, fetched.max_age)?)
    });
    let client = client.await?;
    // It is remembered, whatever becomes of the request.
    admitted.arrival.accept();
    Ok(client)
}

/// A request that may leave something behind.
struct Admitted {
    lane: Lane,
    arrival: Arrival,
}

/// Lets a request in that leaves something behind, unless nobody sees it or too many came. It keeps nothing of the
/// request, whose body cannot be shared between threads.
fn admit(ask: &Ask) -> impl Future<Output = Result<Admitted, Problem>> + Send + use<> {
    let seen = unseen::refuse_unseen(&ask.headers);
    let (service, lane) = (Arc::clone(&ask.service), console::lane(ask));
    async move {
        seen?;
        let lane = lane.await?;
        let arrival = service.arrivals.admit(&lane, service.now());
        let arrival = arrival.map_err(too_many)?;
        Ok(Admitted { lane, arrival })
    }
}

fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_secs().max(1);
    let message = format!("too many requests; try again in {seconds} seconds");
    Problem::new(ErrorCode::RateLimitExceeded, message)
        .with_header(header::RETRY_AFTER, &seconds.to_string())
}

fn client_uri(service: &Service, id: &str) -> String {
    format!("{}/oauth/register/{id}", service.public_url)
}

/// Marks an answer that nobody may keep.
fn unkept(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}
