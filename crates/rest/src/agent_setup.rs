//! How agents are connected. The words are those that `pdpp setup` prints, so the program that serves brings them.

pub trait AgentSetup: Send + Sync {
    /// The agents that are known, by their names.
    fn agents(&self) -> Vec<&'static str>;
    /// How an agent comes to read under a grant; `None` for one that is not known.
    fn lines(&self, agent: &str, grant: &SetupGrant) -> Option<SetupLines>;
}

/// The grant that an agent is to read under.
#[derive(Debug, Clone)]
pub struct SetupGrant {
    pub id: String,
    /// When it ends, RFC 3339.
    pub ends: String,
    /// What it allows, in words.
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupLines {
    pub recommended: String,
    pub others: String,
}
