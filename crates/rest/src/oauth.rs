//! The HTTP side of the authorization server. The rules are in `grants::oauth`; this module parses requests and writes
//! responses, which are never cached.

mod cross_site;
mod documents;
mod metadata;
mod registration_limit;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use contract::error::ErrorCode;
use grants::oauth::{AuthorizeError, Client, Lookup, OAuthError};
use grants::sign_in::Lane;
use serde_json::{Value, json};

pub use self::documents::{ClientDocuments, Fetched, Fetching};
pub(crate) use self::metadata::{authorization_server, mcp_resource, resource};
pub(crate) use self::registration_limit::RegistrationLimit;
use self::registration_limit::Reservation;

use crate::console::{self, see_other};
use crate::form::{self, Form};
use crate::notify::Event;
use crate::owner::blocking;
use crate::problem::{self, Problem};
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const MAX_METADATA_BYTES: usize = 64 * 1024;
/// How soon a client may try again when too many documents are being fetched.
const FETCH_RETRY: Duration = Duration::from_secs(5);
pub(crate) const DEVICE_PAGE: &str = "/device";

/// `POST /oauth/register` (RFC 7591).
pub(crate) async fn register(mut context: RequestContext) -> HandlerResult {
    let mut admitted = admit(&context).await?;
    let metadata = form::read_text(&mut context, MAX_METADATA_BYTES).await?;
    let registered = blocking(Arc::clone(&context.service), move |service| {
        Ok(service.issuer().register(&metadata)?)
    });
    let registered = registered.await?;
    admitted.commit(&context.service).await;
    context.service.notices.tell(&Event::NewClient {
        client_id: registered.client_id.clone(),
        client_name: registered.client_name.clone(),
    });
    let mut answer = json!(registered);
    let uri = client_uri(&context.service, registered.client_id.as_str());
    answer["registration_client_uri"] = uri.into();
    Ok(uncached(problem::json(StatusCode::CREATED, &answer)?))
}

/// `GET /oauth/register/{client_id}`: the registration, all of which is public.
pub(crate) async fn registered(context: RequestContext) -> HandlerResult {
    let id = context.part(0).to_owned();
    let uri = client_uri(&context.service, &id);
    let client = blocking(context.service, move |service| {
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
    Ok(uncached(problem::json(StatusCode::OK, &answer)?))
}

/// `GET /oauth/authorize`: the request is validated and stored before anybody signs in, so that errors are reported at
/// once and the owner sees only requests that can be decided.
pub(crate) async fn authorize(context: RequestContext) -> HandlerResult {
    let mut admitted = admit(&context).await?;
    let parameters = Form::from_query(context.query())?.into_parameters();
    let client_id = parameters.required("client_id")?.to_owned();
    let client = client(&context.service, client_id, &mut admitted).await;
    // A page has no way to authenticate a client.
    let client = client.map_err(|problem| match problem.status() {
        StatusCode::UNAUTHORIZED => problem.with_status(StatusCode::BAD_REQUEST),
        _ => problem,
    })?;
    let service = Arc::clone(&context.service);
    let taken = blocking(service, move |service| {
        Ok(service.issuer().authorize(&client, &parameters))
    });
    match taken.await? {
        Ok(request) => {
            admitted.commit(&context.service).await;
            Ok(see_other(&console::consent_path(&request)))
        }
        Err(AuthorizeError {
            error,
            back: Some(back),
        }) => Ok(see_other(
            &back.with_error(&error, &context.service.public_url),
        )),
        Err(AuthorizeError { error, back: None }) => Err(error.into()),
    }
}

/// `POST /oauth/token`.
pub(crate) async fn token(mut context: RequestContext) -> HandlerResult {
    let parameters = Form::read(&mut context).await?.into_parameters();
    let answer = blocking(context.service, move |service| {
        Ok(service.issuer().token(&parameters)?)
    });
    Ok(uncached(problem::json(StatusCode::OK, &answer.await?)?))
}

/// `POST /oauth/device_authorization` (RFC 8628).
pub(crate) async fn device_authorization(mut context: RequestContext) -> HandlerResult {
    let mut admitted = admit(&context).await?;
    let parameters = Form::read(&mut context).await?.into_parameters();
    let client_id = parameters.required("client_id")?.to_owned();
    let client = client(&context.service, client_id, &mut admitted).await?;
    let started = blocking(Arc::clone(&context.service), move |service| {
        let issuer = service.issuer();
        Ok(issuer.start_device(&client, &parameters, DEVICE_PAGE)?)
    });
    let started = started.await?;
    admitted.commit(&context.service).await;
    Ok(uncached(problem::json(StatusCode::OK, &started)?))
}

/// `POST /oauth/revoke` (RFC 7009).
pub(crate) async fn revoke(mut context: RequestContext) -> HandlerResult {
    let parameters = Form::read(&mut context).await?.into_parameters();
    blocking(context.service, move |service| {
        Ok(service.issuer().revoke(&parameters)?)
    })
    .await?;
    Ok(uncached(StatusCode::OK.into_response()))
}

/// `POST /oauth/introspect` (RFC 7662), for owner tokens.
pub(crate) async fn introspect(mut context: RequestContext) -> HandlerResult {
    let parameters = Form::read(&mut context).await?.into_parameters();
    let introspection = blocking(context.service, move |service| {
        let token = parameters.required("token")?;
        Ok(service.issuer().introspect(token)?)
    });
    let introspection = introspection.await.map_err(Problem::into_oauth)?;
    Ok(uncached(problem::json(StatusCode::OK, &introspection)?))
}

/// Finds a client, fetching its metadata document if its id is a URL.
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
    let fetch_permit = service.registrations.start_fetch(&admitted.lane);
    let fetch_permit = fetch_permit.ok_or_else(|| too_many(FETCH_RETRY))?;
    let fetched = documents.fetch(&address).await.map_err(|reason| {
        OAuthError::invalid_client(format!(
            "the client's metadata document cannot be used: {reason}"
        ))
    })?;
    drop(fetch_permit);
    let client = blocking(Arc::clone(service), move |service| {
        let issuer = service.issuer();
        Ok(issuer.accept_document(&address, &fetched.body, fetched.max_age)?)
    });
    let client = client.await?;
    // The client is stored, whatever becomes of the request.
    admitted.commit(service).await;
    Ok(client)
}

/// An admitted request, which may store something.
struct Admitted {
    lane: Lane,
    reservation: Reservation,
}

impl Admitted {
    /// The request stored something, so it counts.
    async fn commit(&mut self, service: &Arc<Service>) {
        if let Some(accepted) = self.reservation.commit() {
            let counted = blocking(Arc::clone(service), move |service| {
                Ok(accepted.count(service.now()))
            });
            // What was stored is not refused because it could not be counted.
            let _ = counted.await;
        }
    }
}

/// Admits a request that stores something, unless it comes from a page in the background or there are too many. The
/// future borrows nothing of the request, whose body is not `Sync`.
fn admit(
    context: &RequestContext,
) -> impl Future<Output = Result<Admitted, Problem>> + Send + use<> {
    let seen = cross_site::refuse_background_requests(&context.headers);
    let (service, lane) = (Arc::clone(&context.service), console::lane(context));
    async move {
        seen?;
        let lane = lane.await?;
        let counted = lane.clone();
        let reservation = blocking(service, move |service| {
            let admitted = service.registrations.admit(&counted, service.now());
            admitted.map_err(|error| Problem::internal("a request could not be counted", &error))
        });
        let reservation = reservation.await?.map_err(too_many)?;
        Ok(Admitted { lane, reservation })
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

fn uncached(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}
