//! A client asks beyond its grant: what it is told, and what the owner has allowed once.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use contract::grant::{Authority, GrantedAuthority};
use contract::id::GrantId;
use contract::step_up::Beyond;
use grants::step_up::{self, OnceAllowed};
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;

/// The member of an error that says what a broader grant would have to give.
const MEMBER: &str = "needs_broader_grant";

fn failed(error: &store::StoreError) -> Problem {
    Problem::internal("what a grant may ask for could not be looked up", error)
}

/// What is allowed once and would let the call through.
pub(crate) async fn allowed_once(
    service: &Arc<Service>,
    caller: &Caller,
    beyond: &Beyond,
) -> Result<Option<OnceAllowed>, Problem> {
    let Authority::Granted(granted) = caller.authority().clone() else {
        return Ok(None);
    };
    let (beyond, call) = (beyond.clone(), caller.call().map(str::to_owned));
    blocking(Arc::clone(service), move |service| {
        let (store, now) = (&*service.store, service.now());
        let found = step_up::allowed_once(store, &granted, &beyond, call, now);
        found.map_err(|error| failed(&error))
    })
    .await
}

/// Uses up what was allowed once; `false` where another call was faster.
pub(crate) async fn consume(
    service: &Arc<Service>,
    used: Vec<OnceAllowed>,
) -> Result<bool, Problem> {
    blocking(Arc::clone(service), move |service| {
        let (store, now) = (&*service.store, service.now());
        let consumed = used.iter().map(|one| one.consume(store, now));
        let consumed: Result<Vec<bool>, _> = consumed.collect();
        let consumed = consumed.map_err(|error| failed(&error))?;
        Ok(consumed.into_iter().all(|one| one))
    })
    .await
}

/// Adds to a refusal what was asked for beyond the grant, and where the owner can allow it.
pub(crate) async fn with_address(
    service: &Arc<Service>,
    caller: &Caller,
    problem: Problem,
) -> Problem {
    let (Some(beyond), Authority::Granted(granted)) = (&problem.error.beyond, caller.authority())
    else {
        return problem;
    };
    let Some(grant) = grant_for(granted, beyond) else {
        return problem;
    };
    let (beyond, client) = ((**beyond).clone(), granted.client_id().clone());
    let asked = beyond.clone();
    let url = blocking(Arc::clone(service), move |service| {
        let ask = step_up::ask(&*service.store, &grant, &client, &asked, service.now());
        let ask = ask.map_err(|error| failed(&error))?;
        let console = service.console.origin();
        Ok(ask
            .filter(|_| service.listening)
            .map(|id| format!("{console}/asks/{id}")))
    });
    let url = match url.await {
        Ok(url) => url,
        Err(failure) => return failure,
    };
    let mut member = json!(beyond);
    let mut problem = problem;
    if let (Some(url), Value::Object(member)) = (url, &mut member) {
        problem.error.hint = Some(format!(
            "the owner can allow this at {url}; when that is done, repeat the same call"
        ));
        member.insert("url".to_owned(), url.into());
    }
    let problem = problem.with_member(MEMBER, member);
    // An unknown connection and one that is not granted are both not found.
    if problem.status() != StatusCode::FORBIDDEN {
        return problem;
    }
    let metadata = service.resource_metadata();
    let challenge =
        format!("Bearer error=\"insufficient_scope\", resource_metadata=\"{metadata}\"");
    problem.with_header(header::WWW_AUTHENTICATE, &challenge)
}

/// The grant that an ask belongs to: the one that has the stream, else the first.
fn grant_for(granted: &GrantedAuthority, beyond: &Beyond) -> Option<GrantId> {
    let named = beyond.connection_id.as_deref();
    let own = named.and_then(|connection| granted.row(connection, &beyond.stream));
    let own = own.or_else(|| granted.rows_of(&beyond.stream).next());
    let row = own.or_else(|| granted.rows().first())?;
    Some(row.grant_id.clone())
}
