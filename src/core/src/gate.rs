//! The last gate before a power-on and before each release attempt: the store is asked once more (S6).

use crate::election::Leadership;
use crate::ground::{ATTEMPT_LIFE, Look, LookFault, ReleaseGround, ReleasePermit};
use crate::order::{OnOrder, PendingOn};
use crate::record::Phase;
use crate::store::{Store, StoreError, Stored};
use crate::time::Clock;

/// Why the gate stays closed. Nothing was sent.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateFault {
    /// The store does not confirm leadership and version.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Leadership has ended.
    #[error("{0}")]
    Ended(String),
    /// The look does not permit it.
    #[error(transparent)]
    Look(#[from] LookFault),
    /// The record does not permit it.
    #[error("not permitted in this state: {0}")]
    State(String),
}

/// Asks the store once more and makes the order for *one* sending of an on. The only maker of [`OnOrder`].
pub async fn on_order(
    store: &dyn Store,
    leadership: &Leadership,
    stored: &Stored,
    pending: &PendingOn,
) -> Result<OnOrder, GateFault> {
    let record = &stored.record;
    let open =
        record.ledger.get(pending.effect()).is_some_and(|effect| effect.generation == record.generation);
    if record.phase != Phase::Unfencing || !open || record.ledger.bars_on() || *pending.node() != record.node
    {
        return Err(GateFault::State(format!("{} in phase {}", record.node, record.phase.label())));
    }
    store.check(leadership.guard(), &record.node, stored.version).await?;
    leadership.check().map_err(|ended| GateFault::Ended(ended.to_string()))?;
    let order = &pending.0;
    Ok(OnOrder(crate::order::Order {
        node: order.node.clone(),
        effect: order.effect,
        generation: order.generation,
        device: order.device.clone(),
    }))
}

/// Asks the store once more and makes the permit for *one* release attempt. The only maker of [`ReleasePermit`].
///
/// `looks` are readings asked for after the settle time; they must be fresh still after the store has answered.
pub async fn release_permit<'ground>(
    store: &dyn Store,
    leadership: &Leadership,
    clock: &dyn Clock,
    stored: &Stored,
    ground: &'ground ReleaseGround,
    looks: &[Look],
) -> Result<ReleasePermit<'ground>, GateFault> {
    let record = &stored.record;
    let same_fence = record.fence.as_ref().is_some_and(|fence| {
        fence.id == ground.fence() && fence.generation == record.generation && record.node == *ground.node()
    });
    if record.phase != Phase::Fenced || !same_fence {
        return Err(GateFault::State(format!("{} in phase {}", record.node, record.phase.label())));
    }
    if ground.term() != leadership.term() {
        return Err(GateFault::Ended("the ground was found under another leadership".to_owned()));
    }
    store.check(leadership.guard(), &record.node, stored.version).await?;
    leadership.check().map_err(|ended| GateFault::Ended(ended.to_string()))?;
    ground.examine(looks, clock.boot())?;
    Ok(ReleasePermit { ground, generation: record.generation, not_after: clock.wall().after(ATTEMPT_LIFE) })
}
