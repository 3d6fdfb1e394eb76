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
}

/// A source that says whether one node recovered.
#[async_trait]
pub trait Liveness: Send + Sync + std::fmt::Debug {
    /// The longest that a look takes.
    fn patience(&self) -> Duration;

    /// Asks now. May be dropped at any moment; nothing of it is left behind then.
    async fn look(&self) -> Look;
}
