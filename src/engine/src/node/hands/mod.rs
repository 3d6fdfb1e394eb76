//! The calls to devices: each bounded, each under the permit, each reported with when it was asked.

mod beside;
mod reading;
mod sessions;
mod turns;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use picket_core::device::DeviceClass;
use picket_core::election::Leadership;
use picket_core::gate;
use picket_core::ground::Look;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::Reading;
use picket_core::record::Phase;
use picket_core::time::BootTime;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver,
};
use tokio::time::Instant;

use super::idling::Spoken;
use super::telling::{Asking, POWER, Teller};
use super::words;
use crate::hooks::Permits;
use crate::parents::CopyHosts;
use crate::parts::{NodePlan, Parts};
use crate::units::Rank;
use crate::work::Work;

/// What a call to a device came to.
#[derive(Debug)]
pub(super) enum Did {
    Identified { asked_at: BootTime, result: Result<Identified, DriverError> },
    Inspected { asked_at: BootTime, result: Result<HoldFound, DriverError> },
    Held { effect: EffectId, asked_at: BootTime, result: Result<HoldReport, DriverError> },
    Off { effect: EffectId, asked_at: BootTime, result: Result<Accepted, DriverError> },
    Read { asked_at: BootTime, result: Result<Reading, DriverError> },
    Unheld(EffectId, Result<HoldReport, DriverError>),
    On(EffectId, Result<Accepted, DriverError>),
    Quiesced(Result<(), DriverError>),
    Ended { session: String, result: Result<(), DriverError> },
}

impl Did {
    /// Why it came to nothing.
    pub(super) fn error(&self) -> Option<&DriverError> {
        match self {
            Did::Identified { result, .. } => result.as_ref().err(),
            Did::Inspected { result, .. } => result.as_ref().err(),
            Did::Held { result, .. } | Did::Unheld(_, result) => result.as_ref().err(),
            Did::Off { result, .. } | Did::On(_, result) => result.as_ref().err(),
            Did::Read { result, .. } => result.as_ref().err(),
            Did::Quiesced(result) | Did::Ended { result, .. } => result.as_ref().err(),
        }
    }

    /// What a reading showed; of another call, that nothing was read.
    pub(super) fn look(&self, device: &DeviceId) -> Look {
        let (asked_at, reading) = match self {
            Did::Read { asked_at, result } => (*asked_at, result.as_ref().ok().cloned()),
            _ => (BootTime::default(), None),
        };
        let asked_at = reading.as_ref().map_or(asked_at, |reading| reading.asked_at);
        Look { device: device.clone(), asked_at, reading }
    }

    /// Whether the device was reached, whatever it said.
    pub(super) fn reached(&self) -> bool {
        let is_unheard = |error: &DriverError| {
            matches!(error.kind, ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::NoTurn)
        };
        !self.error().is_some_and(is_unheard)
    }
}

/// What a hold would change is stored before it is changed (S11). No hold is engaged where that is more than a record bears: the fence
/// goes on without one, as with a device that knows none.
const LARGEST_FOUND: usize = 32 << 10;

fn storable(device: &DeviceId, found: HoldFound) -> HoldFound {
    let size: usize = found.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size <= LARGEST_FOUND {
        return found;
    }
    tracing::warn!(%device, size, "what a hold would change is too large to be stored: the device is not held");
    HoldFound::new()
}

/// A call under way.
pub(super) type Doing = BoxFuture<'static, (DeviceId, Did)>;

/// Makes calls to a node's devices.
#[derive(Clone, Debug)]
pub(crate) struct Hands {
    parts: Arc<Parts>,
    plan: Arc<NodePlan>,
    leadership: Arc<Leadership>,
    teller: Arc<Teller>,
    work: Work,
    spoken: Spoken,
    /// For a check: its calls may only read, and are not told one by one.
    unheard: bool,
    /// Somebody asked for that check.
    asked_for: bool,
    /// For what the node's calls are made, in the phase in which it is.
    rank: Arc<Mutex<Rank>>,
    /// The node serves nobody else until its calls have ended.
    urgent: bool,
    /// The devices whose last reading was not answered.
    unanswered: Arc<Mutex<BTreeSet<DeviceId>>>,
    /// Its calls have their turn already.
    in_turn: bool,
    /// By the device that tells of copies.
    copy_hosts: Arc<BTreeMap<DeviceId, CopyHosts>>,
}

impl Hands {
    pub(super) fn new(
        parts: &Arc<Parts>,
        plan: &Arc<NodePlan>,
        leadership: Arc<Leadership>,
        teller: Arc<Teller>,
        work: Work,
        spoken: Spoken,
    ) -> Self {
        let (parts, plan) = (parts.clone(), plan.clone());
        let copy_hosts = plan.drivers.keys().map(|id| (id.clone(), CopyHosts::default())).collect();
        Self {
            parts,
            plan,
            leadership,
            teller,
            work,
            spoken,
            unheard: false,
            asked_for: false,
            rank: Arc::default(),
            urgent: false,
            unanswered: Arc::default(),
            in_turn: false,
            copy_hosts: Arc::new(copy_hosts),
        }
    }

    /// The same, for a check: one that somebody asked for, or not.
    pub(super) fn unheard(&self, asked_for: bool) -> Self {
        Self { unheard: true, asked_for, ..self.clone() }
    }

    /// The same, for calls that the node itself waits for: whoever asks it for anything waits behind them.
    pub(super) fn urgently(&self) -> Self {
        Self { urgent: true, ..self.clone() }
    }

    /// Calls are made for a node in this phase from now on.
    pub(super) fn work_in(&self, phase: &Phase) {
        let rank = match phase {
            Phase::Fencing => Rank::Fence,
            Phase::Fenced | Phase::Unfencing => Rank::Ground,
            _ => Rank::Watch,
        };
        *self.rank.lock() = rank;
    }

    fn rank(&self, device: &DeviceId) -> Rank {
        let rank = match self.unheard {
            true => Rank::Check,
            false => *self.rank.lock(),
        };
        if self.urgent {
            return rank.min(Rank::Ground);
        }
        let is_unanswered = || self.unanswered.lock().contains(device);
        if rank > Rank::Ground && is_unanswered() { Rank::Unanswered } else { rank }
    }

    pub(super) fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    /// What the device's On and Off speak of; `None`: the settings do not have it any more.
    pub(super) fn class(&self, device: &DeviceId) -> Option<DeviceClass> {
        self.plan.drivers.get(device).map(|driver| driver.traits().class)
    }

    fn ask(&self, device: &DeviceId, asked: &'static str) -> Asking {
        self.spoken.asks(device, self.parts.clock.boot());
        self.asking(device, asked)
    }

    fn asking(&self, device: &DeviceId, asked: &'static str) -> Asking {
        let asking = self.teller.ask(device, asked);
        if self.unheard { asking.unheard() } else { asking }
    }

    fn driver(&self, device: &DeviceId) -> Result<Arc<dyn PowerDriver>, DriverError> {
        self.plan.drivers.get(device).cloned().ok_or_else(|| {
            DriverError::new(
                ErrorKind::Settings,
                Effect::DidNotHappen,
                format!("device {device} is in the record of the fence and not in the settings any more"),
            )
        })
    }

    pub(super) fn time(&self, device: &DeviceId) -> Duration {
        self.plan.topology.device(device).map_or(self.parts.rules.device_call, |spec| spec.call)
    }

    fn call(&self, time: Duration) -> Call {
        let (until, clock) = (Instant::now() + time, self.parts.clock.clone());
        if self.unheard {
            Call::reading(until, clock)
        } else {
            Call::control(until, clock, self.leadership.clone())
        }
    }

    /// The call, before the hooks.
    fn told(&self, call: Call, point: &'static str) -> Call {
        call.before(Arc::new(Permits { hooks: self.parts.hooks.clone(), point }))
    }

    pub(super) fn identify(&self, device: &DeviceId) -> Doing {
        self.identify_within(device, self.time(device))
    }

    pub(super) fn identify_within(&self, device: &DeviceId, time: Duration) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            let asking = hands.ask(&device, "what machine is it");
            let ready = hands.ready(&device, time).await;
            let asked_at = hands.parts.clock.boot();
            let result = match ready {
                Ok((driver, call, turns)) => turns.bounded(time, driver.identify(&call)).await,
                Err(error) => Err(error),
            };
            asking.answered(&result, words::identity);
            (device, Did::Identified { asked_at, result })
        })
    }

    /// Asks what a hold would change: in that life of the device and in no other, as it is put back later.
    pub(super) fn inspect(&self, device: &DeviceId, life: Option<u64>) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            let time = hands.time(&device);
            let asking = hands.ask(&device, "what would a hold change");
            let ready = hands.ready(&device, time).await;
            let asked_at = hands.parts.clock.boot();
            let result = match ready {
                Ok((driver, call, turns)) => {
                    let call = call.in_life(life);
                    turns
                        .bounded(time, driver.inspect_hold(&call))
                        .await
                        .map(|found| storable(&device, found))
                }
                Err(error) => Err(error),
            };
            asking.answered(&result, words::found);
            (device, Did::Inspected { asked_at, result })
        })
    }

    /// Engages a hold, in that life of the device.
    pub(super) fn hold(&self, order: HoldOrder, life: Option<u64>) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        Box::pin(async move {
            let _piece = hands.work.begin().await;
            hands.parts.hooks.reached("sending hold").await;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "stay off");
            let ready = hands.ready(&device, time).await;
            let asked_at = hands.parts.clock.boot();
            let result = match ready {
                Ok((driver, call, turns)) => {
                    let call = call.in_life(life);
                    turns.bounded(time, driver.engage_hold(&order, &call)).await
                }
                Err(error) => Err(error),
            };
            asking.answered(&result, words::hold);
            hands.parts.hooks.reached("sent hold").await;
            (device, Did::Held { effect: order.effect(), asked_at, result })
        })
    }

    /// Sends an off in that life of the device, unless the look before it has become too old meanwhile.
    pub(super) fn off(&self, order: Arc<OffOrder>, life: Option<u64>, look_serves_until: BootTime) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        Box::pin(async move {
            let _piece = hands.work.begin().await;
            hands.parts.hooks.reached("sending off").await;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "power off, hard");
            let ready = hands.ready_to_run(&device, time).await;
            let asked_at = hands.parts.clock.boot();
            let result = match (ready, gate::off_serves(&order, look_serves_until, asked_at)) {
                (Ok((driver, call, turns)), Ok(())) => {
                    let call = hands.told(call, "permitted off").in_life(life);
                    turns.bounded(time, driver.power_off(&order, &call)).await
                }
                (Ok(_), Err(old)) => {
                    Err(DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, old.to_string()))
                }
                (Err(error), _) => Err(error),
            };
            asking.answered(&result, words::accepted);
            hands.parts.hooks.reached("sent off").await;
            (device, Did::Off { effect: order.effect(), asked_at, result })
        })
    }

    /// Undoes a hold, in that life of the device.
    pub(super) fn unhold(&self, order: Arc<UnholdOrder>, life: Option<u64>) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        Box::pin(async move {
            let _piece = hands.work.begin().await;
            hands.parts.hooks.reached("sending unhold").await;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "put back what the hold changed");
            let result = match hands.ready(&device, time).await {
                Ok((driver, call, turns)) => {
                    let call = call.in_life(life);
                    turns.bounded(time, driver.disengage_hold(&order, &call)).await
                }
                Err(error) => Err(error),
            };
            asking.answered(&result, words::hold);
            hands.parts.hooks.reached("sent unhold").await;
            (device, Did::Unheld(order.effect(), result))
        })
    }

    /// Sends an on at once, in that life of the device: nothing may come between the store's answer and this.
    pub(super) fn on(&self, order: OnOrder, life: Option<u64>) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        let effect = order.effect();
        // The store was asked a moment ago: this goes on at once, also at the gateway's end.
        let piece = self.work.go_on();
        Box::pin(async move {
            let _piece = piece;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "power on");
            let result = match hands.ready_in_session(&device, time).await {
                Ok((driver, call, turns)) => {
                    let call = hands.told(call, "permitted on").in_life(life);
                    turns.bounded(time, driver.power_on(order, &call)).await
                }
                Err(error) => Err(error),
            };
            asking.answered(&result, words::accepted);
            hands.parts.hooks.reached("sent on").await;
            (device, Did::On(effect, result))
        })
    }

    /// Ends the session in the time of one call.
    pub(super) fn quiesce_within_call(&self, device: &DeviceId) -> Doing {
        self.quiesce(device, self.time(device))
    }

    pub(super) fn quiesce(&self, device: &DeviceId, time: Duration) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            hands.parts.hooks.reached("sending close").await;
            let began = hands.parts.clock.boot();
            let asking = hands.asking(&device, "end the session");
            let result = match hands.ready_in_session(&device, time).await {
                Ok((driver, call, turns)) => turns.bounded(time, driver.quiesce(&call)).await,
                // A device that left the settings: this process has no session there, and never sent it anything.
                Err(error) if error.kind == ErrorKind::Settings => Ok(()),
                // Nobody asked it to close: what was sent in the session may be on its way.
                Err(error) => Err(DriverError { effect: Effect::Unknown, ..error }),
            };
            hands.spoken.closed(&device, began);
            asking.answered(&result, |()| "ended".to_owned());
            hands.parts.hooks.reached("sent close").await;
            (device, Did::Quiesced(result))
        })
    }
}
