//! What a liveness source answers.

/// What a look came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The node recovered: what said so, in words.
    Recovered(String),
    /// It did not: what said so, in words.
    NotRecovered(String),
    /// The source could not be asked, or its answer means nothing: why. The fence goes on, and this is told.
    Unanswered(String),
    /// What decides about the node cannot be reached: why. The fence of a program waits for its word, that of a person asks for none
    /// (K9).
    Away(String),
}
