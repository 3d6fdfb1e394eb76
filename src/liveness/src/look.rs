//! The trait, and what a look came to.

use std::time::Duration;

use async_trait::async_trait;

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

/// A source that says whether one node recovered.
#[async_trait]
pub trait Liveness: Send + Sync + std::fmt::Debug {
    /// The longest that a look takes.
    fn patience(&self) -> Duration;

    /// What it is taken for that no answer came within that time.
    fn late(&self) -> Look {
        Look::Unanswered(format!("no answer within {:?}", self.patience()))
    }

    /// Asks now. May be dropped at any moment; nothing of it is left behind then.
    async fn look(&self) -> Look;
}
