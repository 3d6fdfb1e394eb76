//! Releasers: how volumes are let go, once a node is proven off.
//!
//! **Purpose.** One attempt under a permit, and seeing it through.
//! **Non-goals.** No decision whether a release is due: the permit is that decision.
//! **Invariants.** Every attempt takes a [`ReleasePermit`] (S4) and is idempotent;
//! accepted and complete are told apart; an error says whether the effect did not happen or is unknown (S10).

use std::time::Duration;

use async_trait::async_trait;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use tokio::time::Instant;

/// How far the far side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It took the request and works on it; ask [`Releaser::observe`].
    Accepted(String),
    /// It was seen to have finished.
    Complete(String),
    /// It knows nothing of the request: a new attempt is due.
    NotThere(String),
}

/// Why an attempt or a look did not succeed. The text never holds a secret.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReleaseError {
    /// Nothing happened: refused, not reached, not started.
    #[error("{0}")]
    DidNotHappen(String),
    /// It may have happened, or may yet.
    #[error("{0} (the effect is unknown)")]
    Unknown(String),
}

/// One way to let volumes go.
#[async_trait]
pub trait Releaser: Send + Sync + std::fmt::Debug {
    /// How long an attempt may still take effect after its sender stopped (S8); `None`: nothing bounds it.
    fn max_in_flight(&self) -> Option<Duration>;

    /// How long the whole release may take before a person is asked.
    fn deadline(&self) -> Duration;

    /// Least time between the confirmed Off and the first attempt (S23).
    fn settle(&self) -> Duration;

    /// One attempt. Returns before `until`.
    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError>;

    /// Looks how far an accepted attempt is; changes nothing. Returns before `until`.
    async fn observe(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError>;
}

/// What an accepted release is looked up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The node.
    pub node: picket_core::ids::NodeId,
    /// The fence.
    pub fence: picket_core::ids::FenceId,
    /// The generation.
    pub generation: picket_core::ids::Generation,
    /// The release.
    pub release: picket_core::ids::ReleaseId,
    /// What the far side said when it accepted (a status URL).
    pub accepted: String,
}
