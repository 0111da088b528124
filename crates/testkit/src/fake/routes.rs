//! From a question to its answer: trouble first, then the caller, then hooks, then the routes.

use serde_json::Value;

use super::call::Call;
use super::reply::{Failure, Reply};
use super::state::State;
use super::{aggregate, records, schema, search, window};

pub(crate) fn answer(state: &State, call: &Call, request_id: &str) -> Reply {
    let at = |prefix: &String| call.path.starts_with(prefix.as_str());
    if let Some((_, how)) = state.trouble.iter().rev().find(|(prefix, _)| at(prefix)) {
        return how.reply(request_id);
    }
    if let Some(issuer) = &state.issuer
        && let Some(reply) = issuer.answer(call)
    {
        return reply;
    }
    let refused = |failure: &Failure| failure.reply(state.error_shape, request_id);
    if let Err(failure) = admitted(state, call) {
        let reply = refused(&failure);
        return if failure.status == 401 && state.issuer.is_none() {
            reply.header("www-authenticate", "Bearer error=\"invalid_token\"")
        } else {
            reply
        };
    }
    let hooks = state.hooks.iter().rev().filter(|(prefix, _)| at(prefix));
    if let Some(reply) = hooks.map(|(_, hook)| hook(call)).find_map(|reply| reply) {
        return reply;
    }
    match routed(state, call) {
        Ok(body) => Reply::json(200, &body),
        Err(failure) => refused(&failure),
    }
}

fn admitted(state: &State, call: &Call) -> Result<(), Failure> {
    if let Some(issuer) = &state.issuer {
        issuer.admit(call.authorization.as_deref())?;
    } else if let Some(token) = &state.access.token {
        let expected = format!("Bearer {token}");
        match call.authorization.as_deref() {
            Some(found) if found == expected => {}
            found => {
                let message = if found.is_some() {
                    "Invalid Bearer token"
                } else {
                    "Missing Bearer token"
                };
                return Err(Failure::new(401, "authentication_error", message));
            }
        }
    }
    match &state.access.refusal {
        Some(refusal) => Err(refusal.clone()),
        None => Ok(()),
    }
}

fn routed(state: &State, call: &Call) -> Result<Value, Failure> {
    if call.method != "GET" {
        return Err(Failure::new(
            405,
            "method_not_allowed",
            "Only GET is served",
        ));
    }
    let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["v1", "schema"] => schema::answer(state, call),
        ["v1", "search"] => search::answer(state, call),
        ["v1", "streams"] => schema::streams(state, call),
        ["v1", "streams", stream] => schema::stream(state, call, stream),
        ["v1", "streams", stream, "records"] => records::list(state, call, stream),
        ["v1", "streams", stream, "aggregate"] => aggregate::answer(state, call, stream),
        ["v1", "streams", stream, "records", key] => records::one(state, call, stream, key),
        ["v1", "streams", stream, "records", key, "field-window"] => {
            window::answer(state, call, stream, key)
        }
        _ => Err(Failure::new(404, "not_found", "There is no such route")),
    }
}
