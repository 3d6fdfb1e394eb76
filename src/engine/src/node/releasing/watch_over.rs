//! A call to a releaser under way, and what goes on beside it: power is watched, and callers are answered.
//!
//! # Invariants
//!
//! - The call does not stand still: what it was permitted is sent by the look that permitted it, or not at
//!   all (S4). Shown by `an_attempt_goes_on_while_a_caller_is_answered`.
//! - The call is cut off once something is seen against the proof, before that is stored. Shown by
//!   `an_attempt_is_cut_off_before_what_ends_its_proof_is_stored`.

use futures::future::BoxFuture;
use picket_core::ground::{Look, LookFault};
use picket_core::record::Phase;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::node::looking::on;
use crate::node::{Fatal, NodeTask};

/// A call to a releaser under way.
pub(super) type Asking<T> = BoxFuture<'static, T>;

impl NodeTask {
    /// Watches power and answers callers while a releaser is asked. `None`: the node was moved, by a breach or a person, or something
    /// speaks against its proof, and the call was cut off; what an attempt may still do stands in the ledger.
    pub(in crate::node) async fn watch_over<T: Send + 'static>(
        &mut self,
        asking: Asking<T>,
    ) -> Result<Option<T>, Fatal> {
        let stop = CancellationToken::new();
        let outer = self.asking.replace(stop.clone());
        let answer = self.watch_until(until_stopped(stop, asking)).await;
        self.asking = outer;
        answer
    }

    async fn watch_until<T>(&mut self, mut asking: Asking<Option<T>>) -> Result<Option<T>, Fatal> {
        let here = self.place();
        let (mut watch_at, mut heard) = (Instant::now() + self.plan.paces.power_watch, None);
        loop {
            tokio::select! {
                biased;
                answer = &mut asking => return Ok(answer),
                // Callers, however many, do not keep power from being watched.
                () = tokio::time::sleep_until(watch_at) => {
                    // What was permitted a moment ago goes on at once, whatever a device takes for its answer.
                    let looks = tokio::select! {
                        biased;
                        answer = &mut asking => {
                            self.heard_on();
                            let moved = self.store_doubt().await?;
                            return Ok(answer.filter(|_| !moved));
                        }
                        looks = self.glance() => looks,
                    };
                    beside(self.watched(&looks), &mut asking, &mut heard).await?;
                    watch_at = Instant::now() + self.plan.paces.power_watch;
                }
                Some((device, did)) = self.lingering.next() => {
                    if self.is_heard_late(device, did) {
                        watch_at = Instant::now();
                    }
                }
                Some(command) = self.mailbox.recv() => {
                    beside(self.command(command), &mut asking, &mut heard).await?;
                    if self.lingering.hears_on() {
                        watch_at = Instant::now();
                    }
                }
            }
            if self.store_doubt().await? || self.place() != here {
                return Ok(None);
            }
            if let Some(answer) = heard.take() {
                return Ok(answer);
            }
        }
    }

    /// What these looks say of the proof.
    async fn watched(&mut self, looks: &[Look]) -> Result<(), Fatal> {
        self.store_sessions().await?;
        if self.found_on(looks).await? {
            return Ok(());
        }
        // Its Off says nothing any more, whatever is under way.
        if self.gives_up_what_restarted().await?.is_some() {
            return Ok(());
        }
        let fault = self.weigh(looks);
        // A supply that is on again is no breach, and its node may run; so may that of a device in a new life (S4).
        if let Some(fault @ (LookFault::On(_) | LookFault::NewEpoch(_))) = fault
            && self.record().phase == Phase::Fenced
        {
            self.lose_proof(fault.to_string()).await?;
        }
        if self.unseen >= self.plan.paces.looks_without_off || on(looks).next().is_some() {
            self.withdraw_unseen().await?;
        }
        Ok(())
    }

    /// Something speaks against the proof: nothing more is sent by a call that is under way.
    pub(in crate::node) fn cut_off(&self) {
        if let Some(stop) = &self.asking {
            stop.cancel();
        }
    }
}

/// The call, unless it is stopped first: it goes no further then, whatever it could do next.
fn until_stopped<T: Send + 'static>(stop: CancellationToken, asking: Asking<T>) -> Asking<Option<T>> {
    Box::pin(async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            answer = asking => Some(answer),
        }
    })
}

/// Does some work to its end while the call goes on. What the work sees goes first: it may stop the call.
async fn beside<W, T>(work: impl Future<Output = W>, asking: &mut Asking<T>, heard: &mut Option<T>) -> W {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            answer = &mut *asking, if heard.is_none() => *heard = Some(answer),
        }
    }
}
