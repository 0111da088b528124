//! A question put to a server again and again.

use serde_json::Value;

use super::Setup;
use super::client::Client;
use super::directory::GrantedDirectory;
use super::process::Server;
use super::request::BenchRequest;
use crate::BenchError;

/// Pages in turn, because a page is as long as what happens to be on it.
const PAGES: usize = 20;

/// One question on a connection of its own. What is found is looked at once: a client's parsing is not the server's time.
pub(super) struct Worker {
    client: Client,
    ask: BenchRequest,
    targets: Vec<String>,
    turn: usize,
    found: Option<u64>,
}

impl Worker {
    pub(super) fn new(
        setup: &Setup<'_>,
        server: &Server,
        directory: &GrantedDirectory,
        ask: BenchRequest,
    ) -> Result<Self, BenchError> {
        let connected = Client::connect(server.address, &directory.token);
        Ok(Self {
            client: setup.runtime.block_on(connected)?,
            targets: vec![ask.target()],
            ask,
            turn: 0,
            found: None,
        })
    }

    /// Learns the pages that follow, which are then asked for in turn.
    pub(super) fn walk(&mut self, setup: &Setup<'_>) -> Result<(), BenchError> {
        let mut ask = self.ask.clone();
        while self.targets.len() < PAGES {
            let body = setup.runtime.block_on(self.client.get(&ask.target()))?;
            let page: Value = serde_json::from_slice(&body)?;
            let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else {
                break;
            };
            ask = ask.continued(cursor);
            self.targets.push(ask.target());
        }
        Ok(())
    }

    pub(super) fn work(&mut self, setup: &Setup<'_>) -> Result<u64, BenchError> {
        let target = &self.targets[self.turn % self.targets.len()];
        self.turn += 1;
        let body = setup.runtime.block_on(self.client.get(target))?;
        if let Some(found) = self.found {
            return Ok(found);
        }
        let found = self.ask.found(&body)?;
        self.found = Some(found);
        Ok(found)
    }
}
