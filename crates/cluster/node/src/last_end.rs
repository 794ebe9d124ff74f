//! How the previous agent ended.

/// How an agent and its containers ended.
#[derive(Debug, Clone)]
pub struct LastEnd {
    /// When the agent was asked to stop.
    pub at: jiff::Timestamp,
    /// Why the agent stopped, as a sentence.
    pub cause: String,
}
