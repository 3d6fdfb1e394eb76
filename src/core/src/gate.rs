//! The last gates: what is asked right before an off, a power-on or a release attempt goes out.
//!
//! # Invariants
//!
//! - Before a power-on and before each attempt the store is asked once more (S6). Shown by
//!   `s6_the_model_sees_a_deposed_leader_that_acts`.
//! - A permit for an attempt wants a ground, the leadership, and a look of at most two seconds ago (S4).
//!   Shown by `a_look_older_than_two_seconds_does_not`,
//!   `a_ground_that_is_not_the_stored_one_permits_nothing`,
//!   `a_look_that_grows_too_old_while_the_store_is_asked_does_not`.
//! - No packet of an attempt goes out once its leadership has ended or its look is old. Shown by
//!   `of_an_attempt_s_packets_none_goes_out_once_its_leadership_has_ended_or_its_look_is_old`.

use crate::device::DeviceClass;
use crate::election::Leadership;
use crate::ground::{ATTEMPT_LIFE, LOOK_LIFE, Look, LookFault, PermitCheck, ReleaseGround, ReleasePermit};
use crate::ids::DeviceId;
use crate::ledger::EffectKind;
use crate::machine;
use crate::order::{OffOrder, OnOrder, PendingOn};
use crate::record::{NodeRecord, Phase};
use crate::store::{Store, StoreError, Stored};
use crate::time::{BootTime, Clock};

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
    /// The device did not answer the reading that comes right before its on.
    #[error("{0} was not read")]
    Unread(DeviceId),
    /// The device was looked at too long ago.
    #[error("the look before it is too old: it is looked at again first")]
    OldLook(DeviceId),
    /// The reading made a session that does not stand in the ledger.
    #[error("its session began just now: the on is stored with it first")]
    NewSession(DeviceId),
}

/// Whether an off may go out at `now`. The look before it serves
/// [`until`](crate::confirm::Judge::look_serves_until) a moment, that moment included. Later a foreign power cycle may have begun, and
/// what the device says of the off could not be believed.
///
/// # Errors
/// [`GateFault::OldLook`]: nothing is sent, and the device is looked at again.
pub fn off_serves(order: &OffOrder, until: BootTime, now: BootTime) -> Result<(), GateFault> {
    if now > until { Err(GateFault::OldLook(order.device().clone())) } else { Ok(()) }
}

/// Whether an on may go out at `now` after that look at its device, which was made in a `session` of that name.
///
/// The device has answered, whatever it said. That answer is at most as old as one call of the device may take, or two
/// seconds where a call takes less. The session is the one that stands in the ledger with the on (S8); `None`: the
/// device's sessions have no names. A parent lets go also of a machine whose whereabouts nobody tells, so its answer is
/// not asked for: where the record has a parent, and the settings of now do too (`class`). They may have made a host of it.
///
/// # Errors
/// [`GateFault::Unread`], [`GateFault::OldLook`] or [`GateFault::NewSession`]: nothing is sent.
pub fn on_serves(
    record: &NodeRecord,
    pending: &PendingOn,
    look: &Look,
    class: Option<DeviceClass>,
    session: Option<&str>,
    now: BootTime,
) -> Result<(), GateFault> {
    let device = pending.device();
    let spec = record.fence.as_ref().and_then(|fence| fence.topology.device(device));
    let is_parent = |class: Option<DeviceClass>| class == Some(DeviceClass::Parent);
    if !(is_parent(spec.map(|spec| spec.class)) && is_parent(class)) {
        let of_it = look.reading.as_ref().filter(|_| look.device == *device);
        let reading = of_it.ok_or_else(|| GateFault::Unread(device.clone()))?;
        let life = spec.map_or(LOOK_LIFE, |spec| spec.call.max(LOOK_LIFE));
        if now.since(reading.answered_at) > life {
            return Err(GateFault::OldLook(device.clone()));
        }
    }
    if session != pending.session() {
        return Err(GateFault::NewSession(device.clone()));
    }
    Ok(())
}

/// Asks the store once more and makes the order for *one* sending of an on. The only maker of [`OnOrder`].
///
/// `look` is the reading right before it, made in `session` of a device that is of `class` now ([`on_serves`]).
///
/// # Errors
/// A [`GateFault`]: nothing is sent.
pub async fn on_order(
    store: &dyn Store,
    leadership: &Leadership,
    stored: &Stored,
    pending: &PendingOn,
    look: &Look,
    class: Option<DeviceClass>,
    session: Option<&str>,
) -> Result<OnOrder, GateFault> {
    let record = &stored.record;
    let checked_at = leadership.now();
    on_serves(record, pending, look, class, session, checked_at)?;
    let ours = record.ledger.get(pending.effect()).is_some_and(|effect| {
        effect.kind == EffectKind::On(pending.device().clone())
            && effect.generation == record.generation
            && effect.term == leadership.term()
    });
    if !ours || *pending.node() != record.node {
        let device = pending.device();
        return Err(GateFault::State(format!(
            "the on of {device} does not stand in the ledger of {}",
            record.node
        )));
    }
    machine::may_switch_on(record).map_err(|refused| GateFault::State(refused.to_string()))?;
    store.check(leadership.guard(), &record.node, stored.version).await?;
    leadership.check().map_err(|ended| GateFault::Ended(ended.to_string()))?;
    let order = &pending.0;
    let order = crate::order::Order {
        node: order.node.clone(),
        effect: order.effect,
        generation: order.generation,
        device: order.device.clone(),
        session: order.session.clone(),
        life: order.life,
    };
    Ok(OnOrder { order, checked_at })
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
    let current = record.fence.as_ref().filter(|fence| {
        fence.id == ground.fence() && fence.generation == record.generation && record.node == *ground.node()
    });
    let Some(fence) = current.filter(|_| record.phase == Phase::Fenced) else {
        return Err(GateFault::State(format!("{} in phase {}", record.node, record.phase.label())));
    };
    // What was proven or vouched for before the evidence began from zero is not the ground that is stored now.
    let word = match ground {
        ReleaseGround::Confirmed(_) => None,
        ReleaseGround::Attested(word) => Some(word.attestation()),
    };
    if fence.evidence.as_ref() != Some(ground.evidence()) || fence.attestation.as_ref() != word {
        return Err(GateFault::State(format!("the ground is not the one that is stored of {}", record.node)));
    }
    if ground.term() != leadership.term() {
        return Err(GateFault::Ended("the ground was found under another leadership".to_owned()));
    }
    let proving = ground.evidence().level.checked_sub(1).and_then(|level| fence.topology.level(level));
    let by_parent = matches!(ground, ReleaseGround::Confirmed(_))
        && proving.is_some_and(|level| level.devices.iter().all(|spec| spec.class == DeviceClass::Parent));
    let checked_at = clock.boot();
    store.check(leadership.guard(), &record.node, stored.version).await?;
    leadership.check().map_err(|ended| GateFault::Ended(ended.to_string()))?;
    ground.examine(looks, clock.boot())?;
    let not_after = clock.wall().after(ATTEMPT_LIFE);
    let generation = record.generation;
    let identities = record.identities(&fence.topology);
    let fresh_until = ground.fresh_until(looks, clock.boot());
    let check = PermitCheck { tenure: leadership.tenure().clone(), fresh_until };
    Ok(ReleasePermit { ground, generation, not_after, checked_at, by_parent, check, identities })
}

#[cfg(test)]
mod tests;
