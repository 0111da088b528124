//! The types of the table of routes. The router, the check of query parameters and the `OpenAPI` document are all made
//! from it, so none of them can know a route or a parameter that the others do not.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::auth::Caller;
use crate::console::SeenAs;
use crate::params::Params;
use crate::problem::Problem;
use crate::service::Service;

pub(crate) type HandlerResult = Result<Response, Problem>;

pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

pub(crate) struct Endpoint {
    pub(crate) verb: Verb,
    pub(crate) path: &'static str,
    /// Its name in documents, logs and metrics.
    pub(crate) operation: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) request_type: Option<&'static str>,
    pub(crate) success: SuccessResponse,
    pub(crate) handler: Handler,
}

/// HTTP methods. `HEAD` comes with `Get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Delete,
}

pub(crate) struct SuccessResponse {
    pub(crate) status: u16,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// JSON of this schema of the document.
    Json(&'static str),
    Text,
    /// Bytes of any kind.
    Bytes,
    Nothing,
}

/// The handler of a route, by who may call it.
pub(crate) enum Handler {
    Public(fn(RequestContext) -> HandlerFuture),
    /// Callers with a valid token.
    Reader(fn(RequestContext, Caller) -> HandlerFuture),
    Owner(fn(RequestContext) -> HandlerFuture),
    /// The operator: the owner, also by their browser, or somebody at the machine itself.
    Operator(fn(RequestContext) -> HandlerFuture),
    /// Anybody, by the rules of OAuth: unknown parameters are ignored, and errors have its format.
    OAuth(fn(RequestContext) -> HandlerFuture),
    /// Browsers: unknown parameters are ignored, and errors are pages.
    Page(fn(RequestContext) -> HandlerFuture),
}

pub(crate) struct RequestContext {
    pub(crate) service: Arc<Service>,
    pub(crate) target: String,
    /// The path parameters, decoded, in order.
    pub(crate) path: Vec<String>,
    pub(crate) params: Params,
    pub(crate) headers: HeaderMap,
    /// The client's address, as far as it is known.
    pub(crate) address: IpAddr,
    /// The grant through which a page is looked at, once that is known.
    pub(crate) seen_as: Arc<OnceLock<SeenAs>>,
    pub(crate) body: Body,
}

impl RequestContext {
    /// The same request once more, for one that has no body.
    pub(crate) fn without_body(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            target: self.target.clone(),
            path: self.path.clone(),
            params: self.params.clone(),
            headers: self.headers.clone(),
            address: self.address,
            seen_as: Arc::clone(&self.seen_as),
            body: Body::empty(),
        }
    }

    pub(crate) fn part(&self, at: usize) -> &str {
        self.path.get(at).map_or("", String::as_str)
    }

    pub(crate) fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) values: Values,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once, without brackets.
    One,
    /// Separated by commas, repeated, or as `name[]`.
    Many,
    /// As `name[key]=value`.
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Values {
    Text,
    Choice(&'static [&'static str]),
    /// A whole number within bounds.
    Integer(u32, u32),
    /// A whole number; anything else asks for the default, too large a number for the maximum.
    Size,
}

impl Param {
    pub(crate) const fn one(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            shape: Shape::One,
            values: Values::Text,
            required: false,
            about,
        }
    }

    pub(crate) const fn many(name: &'static str, about: &'static str) -> Self {
        let mut param = Self::one(name, about);
        param.shape = Shape::Many;
        param
    }

    pub(crate) const fn named(name: &'static str, about: &'static str) -> Self {
        let mut param = Self::one(name, about);
        param.shape = Shape::Named;
        param
    }

    pub(crate) const fn with_values(mut self, values: Values) -> Self {
        self.values = values;
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Endpoint {
    pub(crate) fn path_params(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}
