//! A process that can be stopped at any moment or at a named point, like one that got SIGSTOP or like one
//! whose whole machine is stopped; and that dies at a point, or with the machine on which it stands.
//!
//! # Invariants
//!
//! - While it is stopped none of its tasks is polled, and what it sent before still arrives: the network is
//!   not behind the gate.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::time::BootTime;
use picket_driver_sim::SimClock;
use picket_engine::{Gate, Hooks};

use crate::scene::Scene;
use crate::trace::{GatewayId, What};

/// What is about to leave a process, or has just come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Off,
    On,
    Hold,
    Release,
    /// A write to the store.
    Write,
    /// Not out of it, but into it: the store's word that it leads.
    Word,
}

/// What is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The process: its machine's clocks go on.
    Process,
    /// Its whole machine, with both clocks. `set_right`: once it goes on its host sets the wall clock right.
    Machine { set_right: bool },
}

/// One process.
#[derive(Debug)]
pub(crate) struct Process {
    scene: Arc<Scene>,
    gateway: GatewayId,
    clock: Arc<SimClock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    wakers: Vec<Waker>,
    /// So many points from now on.
    dies_in: Option<u32>,
    stops_in: Option<(u32, Duration, Stop)>,
    /// When the next of its kind was permitted, and before it leaves.
    stops_before: Option<(Leaving, Duration, Stop)>,
    /// How it is stopped, while it is shut.
    stopped: Option<Stop>,
    dead: bool,
    /// When it last went on.
    thawed: BootTime,
}

impl Process {
    pub(crate) fn new(scene: Arc<Scene>, gateway: GatewayId, clock: Arc<SimClock>) -> Arc<Self> {
        Arc::new(Self { scene, gateway, clock, state: Mutex::default() })
    }

    /// Stops it for so long; one that is stopped already stays as it is.
    pub(crate) fn stop(self: &Arc<Self>, time: Duration, how: Stop) {
        {
            let mut state = self.state.lock();
            if std::mem::replace(&mut state.shut, true) {
                return;
            }
            state.stopped = Some(how);
        }
        let machine = matches!(how, Stop::Machine { .. });
        if machine {
            self.clock.stand_still();
        }
        let until = self.scene.now() + time;
        self.scene.note(What::Stopped { gateway: self.gateway, until, machine });
        let process = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            process.go_on();
        });
    }

    /// Goes on, unless it died.
    pub(crate) fn go_on(&self) {
        let (wakers, how) = {
            let mut state = self.state.lock();
            if state.dead || !state.shut {
                return;
            }
            state.shut = false;
            state.thawed = self.scene.now();
            (std::mem::take(&mut state.wakers), state.stopped.take())
        };
        self.clock.go_on();
        if how == Some(Stop::Machine { set_right: true }) {
            self.clock.set_right();
            self.scene.note(What::Jumped { gateway: self.gateway });
        }
        self.scene.note(What::WentOn { gateway: self.gateway });
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().shut
    }

    /// It reached its point of death.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.lock().dead
    }

    /// When it last went on after a stop.
    pub(crate) fn thawed(&self) -> BootTime {
        self.state.lock().thawed
    }

    pub(crate) fn die_in(&self, points: u32) {
        self.state.lock().dies_in = Some(points);
    }

    pub(crate) fn stop_in(&self, points: u32, time: Duration, how: Stop) {
        self.state.lock().stops_in = Some((points, time, how));
    }

    pub(crate) fn stop_before(&self, what: Leaving, time: Duration, how: Stop) {
        self.state.lock().stops_before = Some((what, time, how));
    }

    /// Nothing is planned any more.
    pub(crate) fn calm(&self) {
        let mut state = self.state.lock();
        (state.dies_in, state.stops_in, state.stops_before) = (None, None, None);
    }

    /// Something was permitted and is about to leave. Whoever awaits this goes on once the process does.
    pub(crate) async fn leaves(self: &Arc<Self>, what: Leaving) {
        let planned = self.state.lock().stops_before.take_if(|(kind, _, _)| *kind == what);
        if let Some((_, time, how)) = planned {
            self.scene.say(|| format!("g{} is stopped before a {what:?} leaves: {how:?}", self.gateway));
            self.stop(time, how);
            tokio::task::yield_now().await;
        }
    }

    /// It is gone, wherever it stood, and what was to become of it does not any more.
    pub(crate) fn die(&self) {
        let mut state = self.state.lock();
        (state.dead, state.shut) = (true, true);
        // Its machine begins anew some day.
        self.clock.go_on();
    }

    /// It dies in the moment in which the machine under it goes off.
    fn stands(&self) -> bool {
        let Some(machine) = self.scene.shape.stands_on(self.gateway) else { return true };
        let stands = self.scene.is_on(machine);
        if !stands && !self.state.lock().dead {
            self.scene.say(|| format!("g{} dies with {machine}", self.gateway));
            self.die();
        }
        stands
    }
}

fn countdown(planned: &mut Option<(u32, Duration, Stop)>) -> Option<(Duration, Stop)> {
    let (left, time, how) = planned.as_mut()?;
    *left = left.saturating_sub(1);
    if *left > 0 {
        return None;
    }
    let stop = (*time, *how);
    *planned = None;
    Some(stop)
}

impl Gate for Process {
    fn poll_open(&self, context: &mut Context<'_>) -> Poll<()> {
        if !self.stands() {
            return Poll::Pending;
        }
        let mut state = self.state.lock();
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
        // Between a permit and what it permits `leaves` stops it, once the scene has seen the permit.
        if point.starts_with("permitted ") {
            return;
        }
        let (dies, stops) = {
            let mut state = self.0.state.lock();
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
        if let Some((time, how)) = stops {
            self.0.scene.say(|| format!("g{} is stopped at {point:?}: {how:?}", self.0.gateway));
            self.0.stop(time, how);
            tokio::task::yield_now().await;
        }
    }

    fn gate(&self) -> Option<Arc<dyn Gate>> {
        Some(self.0.clone())
    }
}
