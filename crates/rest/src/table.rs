//! The one table of routes. The router, the check of query parameters and the `OpenAPI` document are all made from it, so
//! none of them can know a route or a parameter that the others do not.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::auth::Caller;
use crate::params::Params;
use crate::problem::Problem;
use crate::service::Service;

/// How a request ends.
pub(crate) type Outcome = Result<Response, Problem>;

/// A request being answered.
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One route.
pub(crate) struct Endpoint {
    pub(crate) verb: Verb,
    pub(crate) path: &'static str,
    /// Its name in documents, logs and figures.
    pub(crate) operation: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: &'static [Param],
    /// The media type of the body it takes, if it takes one.
    pub(crate) takes: Option<&'static str>,
    pub(crate) answers: Answers,
    pub(crate) run: Run,
}

/// The methods there are. `HEAD` comes with `Get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Delete,
}

/// What a successful answer is.
pub(crate) struct Answers {
    pub(crate) status: u16,
    pub(crate) content: Content,
}

/// What the body of an answer is.
pub(crate) enum Content {
    /// JSON of this schema of the document.
    Json(&'static str),
    /// Plain text.
    Text,
    /// Bytes of any kind.
    Bytes,
    /// None.
    Nothing,
}

/// Who may call a route, and what answers it.
pub(crate) enum Run {
    /// Anybody.
    Anybody(fn(Ask) -> Running),
    /// Whoever holds a token.
    Reader(fn(Ask, Caller) -> Running),
    /// The owner.
    Owner(fn(Ask) -> Running),
    /// Whoever runs the server: the owner, also by their browser, or somebody at the machine itself.
    Operator(fn(Ask) -> Running),
    /// Anybody, by the rules of OAuth: unknown parameters are ignored, and what fails is told in its form.
    OAuth(fn(Ask) -> Running),
    /// Anybody's browser: unknown parameters are ignored, and what fails is told on a page.
    Page(fn(Ask) -> Running),
}

/// One request.
pub(crate) struct Ask {
    pub(crate) service: Arc<Service>,
    /// The request target as sent.
    pub(crate) target: String,
    /// The variable parts of the path, decoded, in order.
    pub(crate) path: Vec<String>,
    pub(crate) params: Params,
    pub(crate) headers: HeaderMap,
    /// From where it was sent, as far as that is known.
    pub(crate) address: IpAddr,
    pub(crate) body: Body,
}

impl Ask {
    /// A variable part of the path.
    pub(crate) fn part(&self, at: usize) -> &str {
        self.path.get(at).map_or("", String::as_str)
    }

    /// The query as sent.
    pub(crate) fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// A query parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) values: Values,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// How often, and with what in brackets, a parameter comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once, without brackets.
    One,
    /// Separated by commas, repeated, or as `name[]`.
    Many,
    /// As `name[key]=value`.
    Named,
}

/// What a parameter may say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Values {
    /// Any text.
    Text,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A whole number within bounds.
    Integer(u32, u32),
    /// A whole number; anything else asks for the default, too much for the most there is.
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

    pub(crate) const fn of(mut self, values: Values) -> Self {
        self.values = values;
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Endpoint {
    /// The names of the variable parts of its path.
    pub(crate) fn path_params(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}
