//! The end of the agent before this one.

/// How an agent ended, and its containers with it.
#[derive(Debug, Clone)]
pub struct LastEnd {
    /// When it was asked to end.
    pub at: jiff::Timestamp,
    /// What made it end, as a sentence.
    pub cause: String,
}
