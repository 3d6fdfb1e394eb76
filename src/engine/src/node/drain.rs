//! Waiting out open effects (S5).
//!
//! # Invariants
//!
//! - What this process sent to a device ends with its session there. What others sent in a session that can
//!   be ended by name ends with that session (`succession`). Everything else ends with its longest life.
//!   Shown by `a_stale_off_of_a_dead_gateway_is_waited_out_before_the_on`,
//!   `the_off_of_a_dead_gateway_ends_with_its_session`, `a_device_that_says_nothing_of_it_is_waited_out`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ids::{DeviceId, EffectId, ReleaseId};
use picket_core::ledger::{EffectKind, OpenEffect, describe};
use picket_core::outcome::Reason;

use super::hands::{Did, Doing};
use super::succession::Succession;
use super::{Fatal, NodeTask, quarantine, sleep_until};

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// Nothing of the kind is open any more.
    Yes,
    /// The node is elsewhere now: a caller or a person moved it, or nothing bounds an effect.
    Moved,
}

impl NodeTask {
    /// Waits until no effect of the kinds that `barring` names is open.
    pub(super) async fn drain(&mut self, barring: fn(&EffectKind) -> bool) -> Result<Drained, Fatal> {
        let drained = self.wait_out(barring).await;
        // From here on the sessions are used again.
        self.unclosed.clear();
        drained
    }

    /// While what others may have sent keeps an Off from counting, power is read as of a fenced node: a session in which
    /// nothing is asked ends by its idleness, and would be lost within the fence. What this process sent is left to a drain.
    pub(super) async fn keep_in_sight(&mut self) -> Result<Drained, Fatal> {
        let here = self.place();
        let mut succession = Succession::default();
        loop {
            self.close_expired(EffectKind::bars_proof).await?;
            self.succeed(&mut succession, EffectKind::bars_proof);
            let now = self.now();
            let foreign = |open: &&OpenEffect| open.kind.bars_proof() && !self.own.contains(&open.id);
            let open: Vec<&OpenEffect> = self.record().ledger.open().iter().filter(foreign).collect();
            let until = open.iter().filter_map(|open| self.expires_at(open)).max();
            let bounded = |open: &&OpenEffect| {
                self.life_of(open).is_some() || succession.may_end(open, &self.plan.paces)
            };
            if open.is_empty() || !open.iter().all(bounded) {
                // Whoever goes on asks the same devices.
                self.lingering.clear();
                return Ok(Drained::Yes);
            }
            // What nothing bounds is waited for as long as its session may be ended.
            let until = until.unwrap_or(now + self.parts.rules.watch);
            let words: Vec<String> = open.iter().map(|open| self.open_words(open)).collect();
            self.wait_for(format!("the end of {}", words.join(", ")), "ledger", Some(until.since(now)));
            // A session that is being ended is asked in, and nothing else is asked meanwhile: it would wait for that.
            if succession.is_under_way() {
                self.lingering.clear();
                tokio::select! {
                    biased;
                    (device, did) = succession.next() => self.succeeded(&mut succession, device, did).await?,
                    Some(command) = self.mailbox.recv() => {
                        succession.let_go_for(&command, self.asks(&command), now);
                        self.command(command).await?;
                    }
                }
                if self.place() != here {
                    return Ok(Drained::Moved);
                }
                continue;
            }
            let (hosts, every) = (self.hosts(), self.watched_every());
            // One that is silent keeps none of the others from being asked in time.
            if self.watch_for(&hosts, &[], every / 2).await?.is_none() {
                return Ok(Drained::Moved);
            }
            let again = succession.wake().map_or(until, |wake| wake.min(until));
            let next = (now + every).max(self.now() + every / 2).min(again);
            if self.pause(here, next.since(self.now())).await? {
                return Ok(Drained::Moved);
            }
        }
    }

    async fn wait_out(&mut self, barring: fn(&EffectKind) -> bool) -> Result<Drained, Fatal> {
        let here = self.place();
        let mut closing: FuturesUnordered<Doing> = FuturesUnordered::new();
        let mut asked: BTreeSet<DeviceId> = BTreeSet::new();
        let mut closed_by = self.now();
        let mut succession = Succession::default();
        let patience = self.now() + self.longest_release();
        loop {
            self.close_expired(barring).await?;
            // What a task told may have come while the store was away.
            self.withdraw_unproven();
            self.succeed(&mut succession, barring);
            let open: Vec<OpenEffect> =
                self.record().ledger.open().iter().filter(|open| barring(&open.kind)).cloned().collect();
            if open.is_empty() {
                self.set_wait(None);
                return Ok(Drained::Yes);
            }
            for device in
                open.iter().filter(|open| self.own.contains(&open.id)).filter_map(|o| o.kind.device())
            {
                if asked.insert(device.clone()) {
                    let time = self.longest_life(&open, device) + self.plan.paces.session_close;
                    closing.push(self.hands.quiesce(device, time));
                    closed_by = closed_by.max(self.now() + time);
                }
            }
            // What stands ends by our own doing, and a task does it.
            let standing = open.iter().find_map(|open| open.stands().filter(|one| self.takes_away(one)));
            if let Some(release) = standing
                && self.now() >= patience
            {
                let detail = format!(
                    "what release {release} set up cannot be taken away: nothing is switched on while it stands"
                );
                self.give_up(Reason::ReleaseDeadline, detail).await?;
                return Ok(Drained::Moved);
            }
            let is_taken_away = |open: &OpenEffect| open.stands().is_some_and(|one| self.takes_away(one));
            let unbounded = open.iter().find(|open| {
                self.life_of(open).is_none()
                    && !succession.may_end(open, &self.plan.paces)
                    && !is_taken_away(open)
            });
            if let Some(unbounded) = unbounded
                && closing.is_empty()
            {
                let exit = match (unbounded.kind.device(), unbounded.stands()) {
                    (Some(_), _) => "a retry says that it has surely ended",
                    (None, Some(_)) => quarantine::BY_ITS_SETTINGS,
                    (None, None) => "abandon it by name",
                };
                let detail = format!("{} is open and nothing bounds it: {exit}", describe(&unbounded.kind));
                self.give_up(Reason::UnboundedEffect, detail).await?;
                return Ok(Drained::Moved);
            }
            let now = self.now();
            let expiry = open.iter().filter_map(|open| self.expires_at(open)).min();
            let words: Vec<String> = open.iter().map(|open| self.open_words(open)).collect();
            let until = expiry.unwrap_or(closed_by);
            let patience = standing.map(|_| patience);
            self.wait_for(format!("the end of {}", words.join(", ")), "ledger", Some(until.since(now)));
            let wake = [expiry, succession.wake(), patience].into_iter().flatten().min();
            let timer = async {
                match wake {
                    Some(at) => sleep_until(now, at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((device, did)) = closing.next() => self.closed(&device, did, barring).await?,
                (device, did) = succession.next() => self.succeeded(&mut succession, device, did).await?,
                Some(command) = self.mailbox.recv() => {
                    succession.let_go_for(&command, self.asks(&command), now);
                    let began = self.now();
                    self.command(command).await?;
                    if self.place() != here {
                        return Ok(Drained::Moved);
                    }
                    // Who asked no device, and be it again and again, renews no wait.
                    if !self.spoken.since(began) {
                        continue;
                    }
                    let now = self.now();
                    // What the session bears is renewed with it; what carries a token is not.
                    let plan = &self.plan;
                    let renewed = |device: &DeviceId| {
                        plan.drivers.get(device).is_none_or(|driver| driver.epoch_is_a_session())
                    };
                    let looked_at = self.unclosed.iter_mut().filter(|(device, _)| renewed(device));
                    looked_at.for_each(|(_, since)| *since = now);
                }
                () = timer => {}
            }
        }
    }

    /// What is open, and which setting of its device bounds how long it may be so.
    fn open_words(&self, open: &OpenEffect) -> String {
        let driver = open.kind.device().and_then(|device| self.plan.drivers.get(device));
        let setting =
            driver.filter(|_| self.life_of(open).is_some()).and_then(|driver| driver.life_setting());
        let words = describe(&open.kind);
        setting.map(|setting| format!("{words} ({setting})")).unwrap_or(words)
    }

    /// Whether the settings know how to take away what it set up.
    fn takes_away(&self, release: &ReleaseId) -> bool {
        self.quarantine_of(release).is_some()
    }

    /// What stands is taken away in that time, or a person is told.
    fn longest_release(&self) -> Duration {
        self.plan.releases.iter().map(|plan| plan.releaser.deadline()).max().unwrap_or_default()
    }

    fn longest_life(&self, open: &[OpenEffect], device: &DeviceId) -> Duration {
        open.iter()
            .filter(|open| open.kind.device() == Some(device))
            .filter_map(|open| self.life_of(open))
            .max()
            .unwrap_or(self.parts.rules.device_call)
    }

    /// The session's end is the end of what *we* sent in it.
    async fn closed(
        &mut self,
        device: &DeviceId,
        did: Did,
        barring: fn(&EffectKind) -> bool,
    ) -> Result<(), Fatal> {
        self.show(device, &did);
        match did {
            Did::Quiesced(Ok(())) => {
                let ended: Vec<EffectId> = self
                    .record()
                    .ledger
                    .open()
                    .iter()
                    .filter(|o| {
                        barring(&o.kind) && o.kind.device() == Some(device) && self.own.contains(&o.id)
                    })
                    .map(|open| open.id)
                    .collect();
                if !ended.is_empty() {
                    self.persist(|| Event::Closed { effects: ended.clone(), why: "its session was closed" })
                        .await?;
                }
            }
            Did::Quiesced(Err(error)) => {
                tracing::warn!(%device, %error, "the session was not seen to close; waiting out what it carried");
                self.unclosed.insert(device.clone(), self.now());
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes what has outlived its longest life.
    pub(super) async fn close_expired(&mut self, barring: fn(&EffectKind) -> bool) -> Result<(), Fatal> {
        let now = self.now();
        let over: Vec<EffectId> = self
            .record()
            .ledger
            .open()
            .iter()
            .filter(|open| barring(&open.kind) && self.expires_at(open).is_some_and(|at| at <= now))
            .map(|open| open.id)
            .collect();
        if !over.is_empty() {
            self.persist(|| Event::Closed { effects: over.clone(), why: "its longest life has passed" })
                .await?;
        }
        Ok(())
    }
}
