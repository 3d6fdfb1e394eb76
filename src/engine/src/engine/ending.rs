//! The orderly end of a gateway: what must not be cut is let end, nothing new is begun, and sessions are
//! closed.
//!
//! # Invariants
//!
//! - Once the end has begun no effect enters the ledger. What ends is stored. Shown by
//!   `at_the_end_nothing_begins_and_what_began_is_waited_for`,
//!   `a_release_that_was_sent_ends_and_its_end_is_stored`.
//! - What lets volumes go for as long as it stands is taken away first. Shown by
//!   `what_lets_volumes_go_does_not_stand_after_an_orderly_end`.

use std::sync::Arc;
use std::time::Duration;

use picket_driver::Call;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Engine, Reign};
use crate::hooks::gated;

/// How long commands that were sent, and writes, may take to end.
const UNDER_WAY: Duration = Duration::from_secs(10);
/// What ended is to be stored: work that comes within this moment belongs to it.
const MOMENT: Duration = Duration::from_millis(250);
/// How long closing all sessions may take.
const CLOSING: Duration = Duration::from_secs(3);
/// The same where another gateway waits to take over.
const HANDING_OVER: Duration = Duration::from_millis(150);
/// Sessions that are closed side by side.
const SIDE_BY_SIDE: usize = 256;

impl Engine {
    /// Lets what was sent end, and its end be stored; then the tasks end, and sessions are closed. `hurry` cuts it short.
    pub(super) async fn wind_down(&self, reign: &mut Reign, hurry: &CancellationToken) {
        let work = &self.shared.work;
        work.close();
        let under_way = work.under_way();
        if under_way > 0 {
            tracing::info!(under_way, "what was sent is let end before the gateway does");
        }
        let by = Instant::now() + UNDER_WAY;
        let idle = async {
            loop {
                work.idle().await;
                // A task that was told of the end of a command stores it next.
                tokio::time::sleep(MOMENT).await;
                if work.under_way() == 0 {
                    break;
                }
            }
        };
        tokio::select! {
            biased;
            () = hurry.cancelled() => tracing::warn!("told twice to stop: what is under way is cut off"),
            ended = timeout_at(by, idle) => if ended.is_err() {
                tracing::warn!(
                    under_way = work.under_way(),
                    "what is under way did not end in time and is cut off; the next start goes on with it"
                );
            }
        }
        reign.over.cancel();
        while reign.tasks.join_next().await.is_some() {}
        tokio::select! {
            biased;
            () = hurry.cancelled() => {}
            _ = timeout(CLOSING, self.close_sessions(reign)) => {}
        }
    }

    /// Another gateway goes on, and at once: what was sent stands in the ledger, and who goes on waits it out where it must. Sessions
    /// that do not close in a moment end by idleness.
    pub(super) async fn hand_over(&self, reign: &mut Reign) {
        tracing::info!(under_way = self.shared.work.under_way(), "another gateway takes over");
        self.shared.work.close();
        reign.over.cancel();
        while reign.tasks.join_next().await.is_some() {}
        let _ = timeout(HANDING_OVER, self.close_sessions(reign)).await;
    }

    /// A BMC has few sessions: none is left to its idle limit that can be closed.
    async fn close_sessions(&self, reign: &Reign) {
        let slots: Vec<_> = self.fleet().slots.values().cloned().collect();
        let turns = Arc::new(Semaphore::new(SIDE_BY_SIDE));
        let mut closing = JoinSet::new();
        for driver in slots.iter().flat_map(|slot| slot.plan.drivers.values().cloned()) {
            let (clock, leadership) = (self.shared.parts.clock.clone(), reign.leadership.clone());
            let turns = turns.clone();
            let close = async move {
                let _turn = turns.acquire_owned().await;
                let _ = driver.quiesce(&Call::control(Instant::now() + CLOSING, clock, leadership)).await;
            };
            closing.spawn(gated(self.shared.parts.hooks.gate(), close));
        }
        while closing.join_next().await.is_some() {}
    }
}
