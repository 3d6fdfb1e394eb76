//! The order in which the controller's one task takes what comes to it.

use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use super::TICK;
use crate::fence_request::RequestProgress;
use crate::watch::WatchEvent;

/// One thing that the task takes.
#[derive(Debug)]
pub(super) enum Next {
    /// A request came to something.
    Progress(Box<RequestProgress>),
    /// It is time to decide.
    Tick,
    /// Something was seen.
    Seen(WatchEvent),
}

/// Where things come from: requests that ended, the clock, the cluster.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) said: mpsc::Receiver<RequestProgress>,
    seen: mpsc::Receiver<WatchEvent>,
    ticks: Interval,
}

impl Inbox {
    pub(super) fn new(said: mpsc::Receiver<RequestProgress>, seen: mpsc::Receiver<WatchEvent>) -> Self {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { said, seen, ticks }
    }

    /// A tick goes before what was seen: what changes in the cluster without a pause must not keep the controller from deciding. It comes once a second,
    /// so that what was seen has its time between two of them.
    pub(super) async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(one) = self.said.recv() => Next::Progress(Box::new(one)),
            _ = self.ticks.tick() => Next::Tick,
            Some(one) = self.seen.recv() => Next::Seen(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S14: whoever changes objects of the cluster all the time has nobody spared for it.
    #[tokio::test(start_paused = true)]
    async fn what_is_seen_without_a_pause_keeps_no_tick_waiting() {
        let (_say, said) = mpsc::channel(1);
        let (see, seen) = mpsc::channel(8);
        let mut inbox = Inbox::new(said, seen);
        for _ in 0..8 {
            see.send(WatchEvent::Looked).await.expect("there is room");
        }
        assert!(matches!(inbox.next().await, Next::Tick), "the first one is due");
        for _ in 0..2 {
            assert!(matches!(inbox.next().await, Next::Seen(WatchEvent::Looked)));
            assert!(matches!(inbox.next().await, Next::Seen(WatchEvent::Looked)));
            tokio::time::advance(TICK).await;
            assert!(matches!(inbox.next().await, Next::Tick));
        }
    }
}
