//! A process that can be stopped like one that got SIGSTOP, at any moment or at a named point; and that dies at one.
//!
//! **Invariant.** While it is stopped none of its tasks is polled, and what it sent before still arrives: the network is
//! not behind the gate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::time::BootTime;
use picket_engine::{Gate, Hooks};

use crate::scene::Scene;
use crate::trace::{GatewayId, What};

/// What is about to leave a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Off,
    On,
    Hold,
    Release,
    /// A write to the store.
    Write,
}

/// One process.
#[derive(Debug)]
pub(crate) struct Process {
    scene: Arc<Scene>,
    gateway: GatewayId,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    wakers: Vec<Waker>,
    /// So many points from now on.
    dies_in: Option<u32>,
    stops_in: Option<(u32, Duration)>,
    /// When the next of its kind was permitted, and before it leaves.
    stops_before: Option<(Leaving, Duration)>,
    dead: bool,
    /// When it last went on.
    thawed: BootTime,
}

impl Process {
    pub(crate) fn new(scene: Arc<Scene>, gateway: GatewayId) -> Arc<Self> {
        Arc::new(Self { scene, gateway, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops it for so long; one that is stopped already stays as it is.
    pub(crate) fn stop(self: &Arc<Self>, time: Duration) {
        if std::mem::replace(&mut self.state().shut, true) {
            return;
        }
        let until = self.scene.now() + time;
        self.scene.note(What::Stopped { gateway: self.gateway, until });
        let process = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            process.go_on();
        });
    }

    /// Goes on, unless it died.
    pub(crate) fn go_on(&self) {
        let wakers = {
            let mut state = self.state();
            if state.dead || !state.shut {
                return;
            }
            state.shut = false;
            state.thawed = self.scene.now();
            std::mem::take(&mut state.wakers)
        };
        self.scene.say(|| format!("g{} goes on", self.gateway));
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().shut
    }

    /// It reached its point of death.
    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// When it last went on after a stop.
    pub(crate) fn thawed(&self) -> BootTime {
        self.state().thawed
    }

    pub(crate) fn die_in(&self, points: u32) {
        self.state().dies_in = Some(points);
    }

    pub(crate) fn stop_in(&self, points: u32, time: Duration) {
        self.state().stops_in = Some((points, time));
    }

    pub(crate) fn stop_before(&self, what: Leaving, time: Duration) {
        self.state().stops_before = Some((what, time));
    }

    /// Nothing is planned any more.
    pub(crate) fn calm(&self) {
        let mut state = self.state();
        (state.dies_in, state.stops_in, state.stops_before) = (None, None, None);
    }

    /// Something was permitted and is about to leave. Whoever awaits this goes on once the process does.
    pub(crate) async fn leaves(self: &Arc<Self>, what: Leaving) {
        let planned = self.state().stops_before.take_if(|(kind, _)| *kind == what);
        if let Some((_, time)) = planned {
            self.scene.say(|| format!("g{} is stopped before a {what:?} leaves", self.gateway));
            self.stop(time);
            tokio::task::yield_now().await;
        }
    }

    fn die(&self) {
        let mut state = self.state();
        (state.dead, state.shut) = (true, true);
    }
}

fn countdown(planned: &mut Option<(u32, Duration)>) -> Option<Duration> {
    let (left, time) = planned.as_mut()?;
    *left = left.saturating_sub(1);
    if *left > 0 {
        return None;
    }
    let time = *time;
    *planned = None;
    Some(time)
}

impl Gate for Process {
    fn poll_open(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if !state.shut {
            return Poll::Ready(());
        }
        state.wakers.push(context.waker().clone());
        Poll::Pending
    }
}

/// The engine's points.
#[derive(Debug)]
pub(crate) struct Points(pub(crate) Arc<Process>);

#[async_trait]
impl Hooks for Points {
    async fn reached(&self, point: &str) {
        let (dies, stops) = {
            let mut state = self.0.state();
            let dies = state.dies_in.as_mut().is_some_and(|left| {
                *left = left.saturating_sub(1);
                *left == 0
            });
            (dies, countdown(&mut state.stops_in))
        };
        if dies {
            self.0.scene.say(|| format!("g{} dies at {point:?}", self.0.gateway));
            self.0.die();
            std::future::pending::<()>().await;
        }
        if let Some(time) = stops {
            self.0.scene.say(|| format!("g{} is stopped at {point:?}", self.0.gateway));
            self.0.stop(time);
            tokio::task::yield_now().await;
        }
    }

    fn gate(&self) -> Option<Arc<dyn Gate>> {
        Some(self.0.clone())
    }
}
