//! The end of the previous agent.

/// The end of an agent and its containers.
#[derive(Debug, Clone)]
pub struct LastEnd {
    /// The time at which the agent was asked to stop.
    pub at: jiff::Timestamp,
    /// The reason for the stop, as a sentence.
    pub cause: String,
}
