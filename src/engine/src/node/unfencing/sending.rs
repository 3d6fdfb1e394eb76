//! Sending the on: the device's identity, power, and the store are asked right before it.
//!
//! # Invariants
//!
//! - An on goes in a session in which power was read before the store was asked for it. No session is
//!   opened for an on. Shown by `an_on_goes_in_no_session_that_is_younger_than_the_stores_word`,
//!   `an_on_goes_by_no_reading_of_before_a_stop`, `each_on_is_sent_right_after_the_store_was_asked`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::gate::{self, GateFault};
use picket_core::ids::DeviceId;
use picket_core::order::PendingOn;
use picket_core::store::StoreError;
use picket_core::time::BootTime;
use picket_driver::{DriverError, Effect, ErrorKind};

use super::Intended;
use super::letting::Clearance;
use super::vouching::Vouched;
use crate::node::hands::Did;
use crate::node::whose::Ours;
use crate::node::{Fatal, NodeTask};

/// Why an on was not sent after that reading, as its device's error. The store's and the record's faults stay what they are.
fn not_sent(looked: &Did, fault: GateFault) -> Result<DriverError, GateFault> {
    let kind = match (&fault, looked.error()) {
        (GateFault::Unread(_), Some(error)) => {
            return Ok(DriverError { effect: Effect::DidNotHappen, ..error.clone() });
        }
        (GateFault::Unread(_) | GateFault::OldLook(_), _) => ErrorKind::TimedOut,
        (GateFault::NewSession(_), _) => ErrorKind::Refused,
        _ => return Err(fault),
    };
    Ok(DriverError::new(kind, Effect::DidNotHappen, fault.to_string()))
}

impl NodeTask {
    /// Sends an on to each of the dark devices that says whose machine it controls. Answers when that is due again; `None`: the node was moved.
    pub(super) async fn send_vouched(
        &mut self,
        pending: &mut Intended,
        vouched: &mut Vouched,
        clearance: &mut Clearance,
        dark: &BTreeSet<DeviceId>,
    ) -> Result<Option<BootTime>, Fatal> {
        let here = self.place();
        self.follow_sessions(pending, dark).await?;
        if self.place() != here {
            return Ok(None);
        }
        let Some(ours) = self.vouched(vouched, dark).await? else { return Ok(None) };
        // The store, and the devices, may have taken their time.
        if !self.renew(clearance).await? || self.place() != here {
            return Ok(None);
        }
        if clearance.bar.is_some() {
            return Ok(Some(self.now() + self.plan.paces.clearance));
        }
        let of_ours = |on: &&PendingOn| ours.contains_key(on.device());
        let to_send = pending.ons.iter().filter(|on| dark.contains(on.device())).filter(of_ours);
        let again = self.send_on(to_send, &ours, vouched).await?;
        let unsaid = dark.iter().filter(|device| !ours.contains_key(*device));
        let pace = self.plan.paces.on_watch * 2;
        let whose = unsaid.map(|device| self.asked_again(device, true, pace));
        Ok(Some(self.now() + whose.chain([again]).min().unwrap_or(again)))
    }

    /// Sends each on once, right after power was read and the store was asked. Answers when it is to be sent again if nothing comes on.
    async fn send_on(
        &mut self,
        pending: impl Iterator<Item = &PendingOn>,
        ours: &Ours,
        vouched: &mut Vouched,
    ) -> Result<Duration, Fatal> {
        let life = |on: &PendingOn| ours.get(on.device()).copied().flatten();
        let is_asked = self.is_asked_before_an_on();
        let mut sending: FuturesUnordered<_> =
            pending.map(|on| self.send_one(on, life(on), is_asked)).collect();
        let (mut again, pace) = (self.plan.paces.on_repeat, self.plan.paces.on_watch);
        while let Some((device, looked, sent)) = sending.next().await {
            self.show(&device, &looked);
            let did = match sent {
                Ok(did) => did,
                Err(GateFault::Store(error @ (StoreError::Deposed(_) | StoreError::Conflict { .. }))) => {
                    return Err(Fatal(error));
                }
                Err(fault) => {
                    tracing::warn!(%fault, "the on is not sent now");
                    again = again.min(self.asked_again(&device, true, pace * 2));
                    continue;
                }
            };
            self.show(&device, &did);
            match did {
                Did::On(effect, Ok(taken)) => {
                    tracing::info!(%device, %effect, already = taken.already, "the on was taken");
                    vouched.refused.remove(&device);
                }
                Did::On(effect, Err(error)) => {
                    tracing::warn!(%device, %effect, %error, "the on was not seen to be taken");
                    vouched.refused.insert(device.clone(), error.to_string());
                    let pace = if error.effect == Effect::DidNotHappen { pace * 2 } else { pace * 4 };
                    again = again.min(self.asked_again(&device, true, pace));
                }
                _ => {}
            }
        }
        Ok(again)
    }

    /// Reads power, asks the store once more and sends at once: no other device's turn comes between. The on goes in the session of that
    /// reading, where the device said in it whose machine it controls (`life`). None is made for the on after the store's word: what comes
    /// between the two, also a stop of the whole machine that neither of its clocks sees, the device ends by its idle limit (S6, S8). Where the reading took
    /// longer than its call may, something stood still: what the far sides of the releases said (`is_asked`) is not of now any more, and it does not
    /// go (K7).
    fn send_one<'on>(
        &self,
        on: &'on PendingOn,
        life: Option<u64>,
        is_asked: bool,
    ) -> impl Future<Output = (DeviceId, Did, Result<Did, GateFault>)> + use<'on> {
        let (parts, hands, stored) = (self.parts.clone(), self.hands.clone(), self.stored.clone());
        let clearance_serves = self.plan.paces.clearance_serves;
        async move {
            // What is shared is waited for before power is read: nothing comes between the store's word and the on.
            let (_turns, hands) = match hands.in_turn(on.device()).await {
                Ok(ready) => ready,
                Err(error) => {
                    let asked_at = parts.clock.boot();
                    let looked = Did::Read { asked_at, result: Err(error.clone()) };
                    return (on.device().clone(), looked, Ok(Did::On(on.effect(), Err(error))));
                }
            };
            let until = parts.clock.boot() + hands.time(on.device()) + clearance_serves;
            let (device, looked) = hands.read(on.device()).await;
            let (look, session) = (looked.look(&device), hands.session(&device));
            let session = session.as_deref();
            let class = hands.class(&device);
            if gate::on_serves(&stored.record, on, &look, class, session, parts.clock.boot()).is_ok() {
                parts.hooks.reached("sending on").await;
                if is_asked && parts.clock.boot() > until {
                    let why = "the question whether it may go is too old: it is asked once more";
                    let late = DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, why);
                    return (device, looked, Ok(Did::On(on.effect(), Err(late))));
                }
            }
            let (store, leadership) = (&*parts.store, hands.leadership());
            let sent = match gate::on_order(store, leadership, &stored, on, &look, class, session).await {
                Ok(order) => Ok(hands.on(order, life).await.1),
                Err(fault) => not_sent(&looked, fault).map(|why| Did::On(on.effect(), Err(why))),
            };
            (device, looked, sent)
        }
    }
}
