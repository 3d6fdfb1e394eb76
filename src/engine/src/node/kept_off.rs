//! Kept off while a person is waited for.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::ids::DeviceId;
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::record::{Cause, Fence, Phase};
use picket_core::time::BootTime;
use tokio::time::Instant;

use super::hands::{Did, Doing};
use super::looking::on;
use super::{Fatal, NodeTask, own_host};

impl NodeTask {
    /// Kept off while a person is waited for: what reads On, and was switched off by this fence, is switched off again.
    /// It is watched as closely as a fenced node: a BMC that restarts between two looks is noticed only while its session
    /// lives.
    pub(super) async fn needs_operator(&mut self, reason: Reason) -> Result<(), Fatal> {
        self.wait_for(format!("a decision ({})", reason.words()), "an operator", None);
        let watch = self.parts.rules.watch;
        let (mut pause, mut off_at, retry_at) = (watch, self.now(), self.now() + watch * 3);
        let mut ask_at = self.now() + self.plan.paces.liveness_watch;
        let (here, entered) = (self.place(), self.now());
        let fence = self.record().fence.as_ref().map(|fence| fence.id);
        if self.given_up_since.map(|(fence, _)| fence) != fence {
            self.given_up_since = fence.map(|fence| (fence, entered));
        }
        let mut began = entered;
        loop {
            self.withdraw_unproven();
            if self.pause_between_looks(here, began).await? {
                return Ok(());
            }
            if !self.office.held_by(&self.plan.id).is_empty() {
                // What is open no longer keeps the machine on which it runs off.
                self.close_expired(|kind| kind.bars_on() && kind.device().is_none()).await?;
            }
            self.drop_holds_of_the_gone().await?;
            let is_spent = matches!(reason, Reason::LevelsSpent | Reason::Deadline);
            if is_spent && self.now() >= ask_at {
                ask_at = self.now() + self.plan.paces.liveness_watch;
                if self.record().restored.is_none() && self.ends_recovered().await? {
                    return Ok(());
                }
            }
            began = self.now();
            // A device that reads On for good, and is none of these, does not hide what the others say.
            let decisive = if self.was_confirmed() {
                self.hosts().into_iter().chain(self.proving_beside()).collect()
            } else {
                Vec::new()
            };
            let longest = self.watched_every() / 2;
            let watched = self.kept_off();
            let Some(looks) = self.watch_for(&watched, &decisive, longest).await? else { return Ok(()) };
            let record = self.record();
            let Some(fence) = record.fence.as_ref().filter(|fence| fence.generation == record.generation)
            else {
                continue;
            };
            let (confirmed, breach) = (self.was_confirmed(), fence.cause == Cause::Breach);
            if confirmed && (self.found_on(&looks).await? || self.proof_is_gone(&looks).await?) {
                return Ok(());
            }
            let again = if breach && self.now() >= retry_at {
                Some("a breach is never given up")
            } else if self.may_be_tried_again(&looks, entered) {
                Some("it is on, and no off was sent to it")
            } else {
                None
            };
            if let Some(why) = again.filter(|_| is_spent) {
                self.persist(|| Event::TryAgain { why }).await?;
                return Ok(());
            }
            // Whose machine a device controls was found out to be wrong, or who manages it takes it away: nothing is sent to it.
            let is_let_be = matches!(reason, Reason::IdentityMismatch | Reason::BeingDeleted);
            if !is_let_be && self.now() >= off_at && self.off_again(&looks).await? {
                off_at = self.now() + pause;
                pause = (pause * 2).min(self.plan.paces.longest_off_pause);
            }
            if !is_let_be && self.place() == here {
                self.check_holds(&looks).await?;
            }
            if self.place() != here || self.record().phase != Phase::NeedsOperator(reason) {
                return Ok(());
            }
        }
    }

    /// Whether the node reads On, and its first off may be sent still: to a device that refuses each one until a person changes that, as seldom as the
    /// off of a fence that sent one is repeated.
    fn may_be_tried_again(&self, looks: &[Look], since: BootTime) -> bool {
        let refuses =
            |device: &DeviceId| self.live.devices.get(device).is_some_and(|live| live.refused.is_some());
        let is_due = !on(looks).any(refuses) || self.now().since(since) >= self.plan.paces.longest_off_pause;
        is_due && on(looks).next().is_some() && self.may_send_a_first_off()
    }

    /// Whether a fence that sent no off is younger than its deadline (S16).
    fn may_send_a_first_off(&self) -> bool {
        // A clock that was set back, or is another gateway's, makes no deadline longer.
        let here = self.given_up_since.map_or(Duration::ZERO, |(_, since)| self.now().since(since));
        let wall = self.wall();
        let is_young = |fence: &Fence| {
            let until = fence.opened_at.after(fence.deadline);
            (fence.opened_at..until).contains(&wall) && here < fence.deadline
        };
        self.is_unsent() && self.record().fence.as_ref().is_some_and(is_young)
    }

    /// Whether the node was held to be off, or something of it let go: found on it is in breach.
    fn was_confirmed(&self) -> bool {
        self.record().fence.as_ref().is_some_and(Fence::was_held_off)
    }

    /// What is watched while a person is waited for: the host devices, and everything else that was switched off.
    fn kept_off(&self) -> Vec<DeviceId> {
        let mut devices = self.hosts();
        let switched_off = self.record().fence.iter().flat_map(|fence| &fence.switched_off);
        let more: Vec<DeviceId> = switched_off.filter(|device| !devices.contains(device)).cloned().collect();
        devices.extend(more);
        devices
    }

    /// True if an off was sent.
    async fn off_again(&mut self, looks: &[Look]) -> Result<bool, Fatal> {
        let Some(fence) = &self.record().fence else { return Ok(false) };
        let devices: Vec<DeviceId> =
            on(looks).filter(|device| fence.switched_off.contains(device)).cloned().collect();
        if devices.is_empty() {
            return Ok(false);
        }
        if self.is_own_host() {
            if self.has_successor() {
                return Err(own_host::left("it is on"));
            }
            tracing::error!("it is on, and this gateway stands on it: nothing is sent");
            return Ok(false);
        }
        let Some(ours) = self.still_ours(&devices, looks).await? else { return Ok(false) };
        if ours.is_empty() {
            return Ok(false);
        }
        let devices: Vec<DeviceId> = ours.keys().cloned().collect();
        let (said, before) = (self.now(), self.open_now());
        let off = || Event::OffIntent { devices: devices.clone(), identified: Vec::new() };
        let opened = self.persist_in_sessions(off).await?;
        if self.is_old(said) {
            self.leave_unsent(&opened, &before).await?;
            return Ok(false);
        }
        let mut doing: FuturesUnordered<Doing> = FuturesUnordered::new();
        for one in opened {
            if let Opened::Off(order) = one {
                // Here nothing is proven by it: it may be as late as it likes.
                let life = ours.get(order.device()).copied().flatten();
                doing.push(self.hands.off(Arc::new(order), life, BootTime::from_boot(Duration::MAX)));
            }
        }
        // The others are watched meanwhile: an agent's call may last for a minute, and a session that nobody uses ends (S2).
        let others: Vec<DeviceId> =
            self.kept_off().into_iter().filter(|device| !devices.contains(device)).collect();
        let mut due = Instant::now();
        loop {
            let next = tokio::select! {
                biased;
                next = doing.next() => next,
                Some((device, did)) = self.lingering.next() => {
                    self.is_heard_late(device, did);
                    continue;
                }
                () = tokio::time::sleep_until(due) => {
                    self.go_on_with(&others);
                    due += self.watched_every() / 2;
                    continue;
                }
            };
            let Some((device, did)) = next else { break };
            self.show(&device, &did);
            if let Did::Off { effect, result, .. } = did {
                self.counted_from.insert(effect, self.now());
                tracing::warn!(%device, ?result, "the node read On while a person is waited for; the off was sent again");
            }
        }
        Ok(true)
    }
}
