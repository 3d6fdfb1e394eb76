//! Callers are told when the store is away.
//!
//! While the store is away, or hangs, power is still read where something stands or is being let go.
//!
//! # Invariants
//!
//! - A store that is away keeps nothing standing for as long as this leadership lasts: taking it away needs
//!   no store (K3), and neither does cutting an attempt off. Shown by
//!   `a_store_that_is_away_does_not_keep_the_taint_on_a_machine_that_is_on`,
//!   `nor_does_one_that_neither_takes_nor_refuses_anything`.
//! - What was seen meanwhile is stored once the store is back. Shown by
//!   `what_was_seen_while_it_was_away_binds_the_next_run`,
//!   `what_is_found_while_nothing_can_be_stored_is_not_forgotten`.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, Look, LookFault};
use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_core::record::Phase;
use picket_core::step::{self, Saved, Step};
use picket_core::store::StoreError;
use picket_core::time::written;
use tokio::time::Instant;

use super::command::Command;
use super::inbox::Inbox;
use super::looking::on;
use super::{Fatal, NodeTask};
use crate::paces::Paces;
use crate::view::Wait;

/// What spoke against the proof while the store was away: it is stored once that is back.
#[derive(Debug)]
pub(super) struct Doubt {
    looks: Vec<Look>,
    why: String,
}

/// One wait for the store.
#[derive(Debug)]
pub(super) struct Waiting {
    pause: Duration,
    /// Where something stands on the proof power is read then.
    watch_at: Option<Instant>,
}

impl Waiting {
    pub(super) fn watching(paces: &Paces) -> Self {
        Self { pause: paces.store.first, watch_at: Some(Instant::now() + paces.power_watch) }
    }

    /// With what is to be stored the proof ends anyhow: no reading is needed for that.
    pub(super) fn unproven(paces: &Paces) -> Self {
        Self { watch_at: None, ..Self::watching(paces) }
    }
}

/// How long one answer of the store is waited for, and what was waited for before that was told.
struct Hanging {
    since: Instant,
    told_at: Instant,
    /// A request waits no longer than this.
    patience: Duration,
    before: Option<Option<Wait>>,
}

impl Hanging {
    fn begin(paces: &Paces) -> Self {
        let since = Instant::now();
        let (told_at, patience) = (since + paces.store_hangs, paces.store_patience);
        Self { since, told_at, patience, before: None }
    }

    /// The next request that has waited for long enough.
    async fn next(&self, mailbox: &mut Inbox) -> Command {
        tokio::time::sleep_until(self.since + self.patience).await;
        match mailbox.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }
}

impl NodeTask {
    /// Hands a step to the store.
    pub(super) async fn save(&mut self, step: &Step) -> Result<Saved, StoreError> {
        let (store, leadership) = (self.parts.store.clone(), self.hands.leadership().clone());
        self.of_store(step::save(&*store, &leadership, step)).await
    }

    /// Waits for the store's answer. One that does not come for long (a disk that hangs) keeps nobody from reading power where something stands on it;
    /// it is told, and whoever asks for anything meanwhile is told so, too.
    pub(super) async fn of_store<T>(&mut self, asking: impl Future<Output = T>) -> T {
        let mut asking = Box::pin(asking);
        let (mut waiting, mut hanging) =
            (Waiting::watching(&self.plan.paces), Hanging::begin(&self.plan.paces));
        let answer = loop {
            let watch_at = waiting.watch_at.filter(|_| self.stands_on_its_proof());
            tokio::select! {
                biased;
                answer = &mut asking => break answer,
                () = tokio::time::sleep_until(hanging.told_at) => self.tell_hanging(&mut hanging),
                // Its answer is not kept waiting for a device.
                () = tokio::time::sleep_until(watch_at.unwrap_or_else(Instant::now)), if watch_at.is_some() => tokio::select! {
                    biased;
                    answer = &mut asking => {
                        self.heard_on();
                        break answer;
                    }
                    () = self.watch_what_stands(&mut waiting) => {}
                },
                command = hanging.next(&mut self.mailbox) => {
                    self.turned_away(command, "no answer to what was asked before");
                }
            }
        };
        if let Some(before) = hanging.before {
            self.set_wait(before);
        }
        answer
    }

    fn tell_hanging(&mut self, hanging: &mut Hanging) {
        let now = Instant::now();
        let since = written(Duration::from_secs((now - hanging.since).as_secs()));
        tracing::error!(
            since,
            "the store does not answer: nothing is stored or sent for the node until it does"
        );
        hanging.told_at = now + (now - hanging.since);
        let before = self.live.wait.clone();
        hanging.before.get_or_insert(before);
        self.wait_for(format!("the store (no answer for {since})"), "store", None);
    }

    /// Waits for the store; whoever asks for anything meanwhile is told that it is away.
    pub(super) async fn turn_away(&mut self, waiting: &mut Waiting, why: &str) {
        let until = Instant::now() + waiting.pause;
        waiting.pause = self.plan.paces.store.after(waiting.pause);
        loop {
            let watch_at = waiting.watch_at.filter(|_| self.stands_on_its_proof());
            tokio::select! {
                biased;
                // Callers, however many, do not keep power from being watched.
                () = tokio::time::sleep_until(watch_at.unwrap_or(until)), if watch_at.is_some() => {
                    self.watch_what_stands(waiting).await;
                }
                () = tokio::time::sleep_until(until) => return,
                Some(command) = self.mailbox.recv() => self.turned_away(command, why),
            }
        }
    }

    /// Whoever asks is told that the store is away.
    fn turned_away(&mut self, command: Command, why: &str) {
        if let Command::Announced(of, release, told) = command {
            return self.note_cordoned(of, release, told);
        }
        if let Some(asked) = command.asked() {
            let became = Err(format!("the store is away: {why}"));
            self.teller.request(asked, &self.stored.record, became, false);
        }
        command.turn_away(&self.stored.record, why);
    }

    /// Something stands that is to be taken away once the node is not proven off any more, or is under way that is to be cut off then.
    pub(super) fn lets_go(&self) -> bool {
        let goes_on = self.asking.is_some() || self.record().ledger.standing().next().is_some();
        self.record().phase == Phase::Fenced && self.ground.is_some() && goes_on
    }

    /// Something is let go by the proof, rests on it (a receipt, a child), or is to be taken away once the node is not proven off any more; or the
    /// proof itself is being stored. Its devices are asked on while the store is away, as one that restarted unseen then would be believed after that.
    fn stands_on_its_proof(&self) -> bool {
        let is_proven =
            matches!(self.record().phase, Phase::Fenced | Phase::Released) && self.ground.is_some();
        is_proven || self.is_being_confirmed()
    }

    /// One look. Where the proof does not hold by it, it is none from now on, and what stands is taken away at once.
    async fn watch_what_stands(&mut self, waiting: &mut Waiting) {
        let looks = self.glance_within(LOOK_LIFE * 3 / 4, true).await;
        waiting.watch_at = Some(Instant::now() + self.plan.paces.power_watch);
        if self.is_being_confirmed() {
            return self.readings.heard.extend(looks);
        }
        let Some(fault) = self.weigh(&looks) else { return };
        let is_doubted = match fault {
            LookFault::On(_) => true,
            // Of one that is released nothing but an On says more than that nothing is to be issued now.
            _ if self.record().phase == Phase::Released => false,
            LookFault::NewEpoch(_) => true,
            LookFault::NotOff(_) | LookFault::Stale(_) => self.unseen >= self.plan.paces.looks_without_off,
        };
        if is_doubted {
            self.doubts(looks, &fault);
        }
    }

    /// The proof is stored. What read On meanwhile speaks against it, whatever that reads by now. True if something did.
    pub(super) fn was_found_on(&mut self, heard: Vec<Look>) -> bool {
        let Some(fault) = on(&heard).next().cloned().map(LookFault::On) else { return false };
        self.doubts(heard, &fault);
        true
    }

    /// A look that was cut off is judged by what it had heard by then: what read On may read Off when it is asked next.
    pub(super) fn heard_on(&mut self) {
        let Some(since) = self.ground.as_ref().map(|held| held.dark_since) else { return };
        let asked: BTreeSet<DeviceId> = self.hosts().into_iter().chain(self.needed()).collect();
        let on = asked.into_iter().filter_map(|device| {
            let reading = self.live.devices.get(&device)?.reading.clone()?;
            let is_on = reading.power == Power::On && reading.asked_at >= since;
            is_on.then_some(Look { device, asked_at: reading.asked_at, reading: Some(reading) })
        });
        let on: Vec<Look> = on.collect();
        if let Some(fault) = on.first().map(|look| LookFault::On(look.device.clone())) {
            self.doubts(on, &fault);
        }
    }

    /// The proof is none from now on, and what stands is taken away at once; that is stored later.
    fn doubts(&mut self, looks: Vec<Look>, fault: &LookFault) {
        tracing::error!(%fault, "the node is not proven off any more, which is not stored yet");
        self.cut_off();
        self.doubt = Some(Doubt { looks, why: fault.to_string() });
        self.ground = None;
        self.live_mut().proven = false;
        self.publish();
        self.take_away_all_but(&[]);
    }

    /// What was seen while the store was away is stored. True if the node was moved by it.
    pub(super) async fn store_doubt(&mut self) -> Result<bool, Fatal> {
        let Some(doubt) = self.doubt.take() else { return Ok(false) };
        if self.found_on(&doubt.looks).await? {
            return Ok(true);
        }
        // Silence is no reason to go on without the person who is asked.
        if self.record().phase != Phase::Fenced {
            return self.proof_is_gone(&doubt.looks).await;
        }
        let gone = self.withdraw_now().await;
        self.persist_unproven(gone, || Event::Unproven { why: doubt.why.clone(), seen: true }).await?;
        Ok(true)
    }
}
