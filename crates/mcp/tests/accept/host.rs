//! A host over one resource server.

use std::sync::Arc;
use std::time::Duration;

use client::{HttpServer, Limits, ProviderUrl, Secret};
use mcp::{Options, Server};
use serde_json::{Value, json};
use testkit::fake::{Call, FakeServer, State};

use crate::answer::Answer;
use crate::wire::{CURRENT, Wire};

pub(crate) struct Caller {
    pub(crate) rs: FakeServer,
    wire: Wire,
}

/// Long enough for the slowest honest answer on a loaded machine, short enough for a server that never answers.
const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    total: Duration::from_secs(20),
    body_bytes: 48 * 1024 * 1024,
};

/// Runs a row over the pipe and over HTTP, each in another era, each with a server of its own.
pub(crate) fn each_way(state: &State, row: impl Fn(&Caller)) {
    row(&Caller::piped(state.clone(), "2025-06-18"));
    row(&Caller::posting(state.clone(), CURRENT));
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments are written where they are passed"
)]
impl Caller {
    pub(crate) fn piped(state: State, revision: &'static str) -> Caller {
        Caller::over(state, |server| Wire::pipe(server, revision))
    }

    pub(crate) fn posting(state: State, revision: &'static str) -> Caller {
        Caller::over(state, |server| Wire::http(server, revision))
    }

    fn over(state: State, wire: impl FnOnce(Server) -> Wire) -> Caller {
        let rs = FakeServer::start(state);
        let provider = ProviderUrl::parse(rs.url()).unwrap();
        let asked = HttpServer::with_token(provider, Secret::new(rs.token()).unwrap(), LIMITS);
        let server = Server::new(Arc::new(asked), Options::default());
        Caller {
            wire: wire(server),
            rs,
        }
    }

    pub(crate) fn request(&self, method: &str, params: Value) -> Value {
        let response = self.wire.request(method, params);
        crate::answer::keeps_the_secret(&response);
        response
    }

    pub(crate) fn introduction(&self) -> Value {
        self.wire.introduction()
    }

    /// The answer of a tool, held against all that every answer must be.
    pub(crate) fn call(&self, tool: &str, args: Value) -> Answer {
        let params = json!({"name": tool, "arguments": args});
        let response = self.request("tools/call", params);
        Answer::read(tool, &args, response)
    }

    pub(crate) fn ok(&self, tool: &str, args: Value) -> Answer {
        let answer = self.call(tool, args.clone());
        assert!(!answer.is_error, "{tool} {args}: {}", answer.text);
        answer
    }

    /// The error of a tool: typed, and told in both channels.
    pub(crate) fn refused(&self, tool: &str, args: Value) -> Answer {
        let answer = self.call(tool, args.clone());
        assert!(answer.is_error, "{tool} {args}: {}", answer.text);
        answer
    }

    /// The error of a tool that nothing was asked for.
    pub(crate) fn refused_unasked(&self, tool: &str, args: Value) -> Answer {
        self.rs.clear_calls();
        let answer = self.refused(tool, args.clone());
        assert_eq!(self.rs.calls(), [], "{tool} {args}");
        answer
    }

    /// What the resource server was asked by this call.
    pub(crate) fn asked(&self, tool: &str, args: Value) -> (Answer, Vec<Call>) {
        self.rs.clear_calls();
        let answer = self.call(tool, args);
        (answer, self.rs.calls())
    }

    /// The text of a resource, or the error of reading it.
    pub(crate) fn resource(&self, uri: &str) -> Result<String, Value> {
        let response = self.request("resources/read", json!({"uri": uri}));
        match response["result"]["contents"][0]["text"].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(response["error"].clone()),
        }
    }
}
