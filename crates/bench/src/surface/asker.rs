//! A question put to a server again and again.

use serde_json::Value;

use super::Ground;
use super::ask::Ask;
use super::client::Client;
use super::place::Place;
use super::process::Server;
use crate::BenchError;

/// Pages in turn, because a page is as long as what happens to be on it.
const PAGES: usize = 20;

/// One question on a connection of its own. What is found is looked at once: a client's parsing is not the server's time.
pub(super) struct Asker {
    client: Client,
    ask: Ask,
    targets: Vec<String>,
    turn: usize,
    found: Option<u64>,
}

impl Asker {
    pub(super) fn new(
        ground: &Ground<'_>,
        (server, place): (&Server, &Place),
        ask: Ask,
    ) -> Result<Self, BenchError> {
        let connected = Client::connect(server.address, &place.token);
        Ok(Self {
            client: ground.runtime.block_on(connected)?,
            targets: vec![ask.target()],
            ask,
            turn: 0,
            found: None,
        })
    }

    /// Learns the pages that follow, which are then asked for in turn.
    pub(super) fn walk(&mut self, ground: &Ground<'_>) -> Result<(), BenchError> {
        let mut ask = self.ask.clone();
        while self.targets.len() < PAGES {
            let body = ground.runtime.block_on(self.client.get(&ask.target()))?;
            let page: Value = serde_json::from_slice(&body)?;
            let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else {
                break;
            };
            ask = ask.continued(cursor);
            self.targets.push(ask.target());
        }
        Ok(())
    }

    pub(super) fn work(&mut self, ground: &Ground<'_>) -> Result<u64, BenchError> {
        let target = &self.targets[self.turn % self.targets.len()];
        self.turn += 1;
        let body = ground.runtime.block_on(self.client.get(target))?;
        if let Some(found) = self.found {
            return Ok(found);
        }
        let found = self.ask.found(&body)?;
        self.found = Some(found);
        Ok(found)
    }
}
