//! Processes that share the records: who they are, how far the index of each is, and whether it may be asked.
//!
//! A store that one process has alone is no node: it has nobody to list and nothing to tend, and is as ready as it can be read.

use contract::time::Instant;
use serde::{Deserialize, Serialize};

use crate::{Result, StoreError};

/// What is known of a process that shares the records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// The release that it runs.
    pub build: String,
    pub state: NodeState,
    /// When it was heard of last, by the clock of the database.
    pub seen_at: Instant,
    /// How many changes its index lacks on its disk.
    pub behind: u64,
    /// Whether its disk may still hold bytes of what was erased.
    pub holds_erased: bool,
    /// Whether it is the one that answers.
    pub is_this: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Running,
    /// It said that it leaves.
    Stopped,
    /// It was not heard of for a while, and did not say why.
    Away,
}

pub trait Nodes {
    /// Everybody who shares the records, by name.
    fn nodes(&self) -> Result<Vec<Node>> {
        Ok(Vec::new())
    }

    /// Counts on a node no longer: what was erased need not be gone from its disk. Should it come back, it is a new one.
    fn forget_node(&self, name: &str) -> Result<()> {
        Err(StoreError::UnknownNode(name.to_owned()))
    }

    /// Says that this node lives, and does what all of them have to do. To be called again and again.
    fn tend_node(&self) -> Result<()> {
        Ok(())
    }

    /// Tells other nodes of calls that were counted here, by who made them, and answers those that they have told since.
    fn exchange_calls(&self, made: &[(String, u64)]) -> Result<Vec<(String, u64)>> {
        let _ = made;
        Ok(Vec::new())
    }

    /// Keeps a copy of the index for nodes that are new, if that is due. To be called again and again.
    fn share_index(&self) -> Result<()> {
        Ok(())
    }

    /// Says that this node is about to end.
    fn leave(&self) -> Result<()> {
        Ok(())
    }

    /// Why requests had better go to another node, if so.
    fn check_ready(&self) -> Result<()> {
        Ok(())
    }
}
