//! The calls to devices: each bounded, each under the permit, each reported with when it was asked.

mod reading;
mod sessions;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use picket_core::device::{DeviceClass, Identity};
use picket_core::election::Leadership;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::Reading;
use picket_core::record::Phase;
use picket_core::time::BootTime;
use picket_driver::{Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, PowerDriver};
use tokio::time::Instant;

use super::idling::Spoken;
use super::telling::{Asking, POWER, Teller};
use super::words;
use crate::hooks::Permits;
use crate::logins::{self, LoginTurn};
use crate::parts::{NodePlan, Parts};
use crate::units::{Rank, Turn};
use crate::work::Work;

/// What a call to a device came to.
#[derive(Debug)]
pub(super) enum Did {
    Identified(Result<Identity, DriverError>),
    Inspected(Result<HoldFound, DriverError>),
    Held(EffectId, Result<HoldReport, DriverError>),
    Off(EffectId, Result<Accepted, DriverError>),
    Read { asked_at: BootTime, result: Result<Reading, DriverError> },
    Unheld(EffectId, Result<HoldReport, DriverError>),
    On(EffectId, Result<Accepted, DriverError>),
    Quiesced(Result<(), DriverError>),
    Ended { session: String, result: Result<(), DriverError> },
}

impl Did {
    /// Whether the device was reached, whatever it said.
    pub(super) fn reached(&self) -> bool {
        let error = match self {
            Did::Identified(result) => result.as_ref().err(),
            Did::Inspected(result) => result.as_ref().err(),
            Did::Held(_, result) | Did::Unheld(_, result) => result.as_ref().err(),
            Did::Off(_, result) | Did::On(_, result) => result.as_ref().err(),
            Did::Read { result, .. } => result.as_ref().err(),
            Did::Quiesced(result) | Did::Ended { result, .. } => result.as_ref().err(),
        };
        !error.is_some_and(|error| matches!(error.kind, ErrorKind::Unreachable | ErrorKind::TimedOut))
    }
}

/// A call under way.
pub(super) type Doing = BoxFuture<'static, (DeviceId, Did)>;

/// What a call holds while it is under way: its turn at what several devices share, and its turn to log in.
struct Turns<P> {
    _shared: P,
    login: Option<LoginTurn>,
}

impl<P> Turns<P> {
    /// The call, in these turns, with a net under it.
    async fn bounded<T>(
        self,
        time: Duration,
        call: impl Future<Output = Result<T, DriverError>>,
    ) -> Result<T, DriverError> {
        let login = self.login;
        let call = async {
            match login {
                Some(turn) => turn.within(call).await,
                None => call.await,
            }
        };
        bounded(time, call).await
    }
}

/// A driver, a call that begins now, and the turns in which it goes.
type Ready<P> = (Arc<dyn PowerDriver>, Call, Turns<P>);

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
    /// Its calls have their turn already.
    in_turn: bool,
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
        let (parts, plan, rank) = (parts.clone(), plan.clone(), Arc::default());
        Self {
            parts,
            plan,
            leadership,
            teller,
            work,
            spoken,
            unheard: false,
            asked_for: false,
            rank,
            in_turn: false,
        }
    }

    /// The same, for a check: one that somebody asked for, or not.
    pub(super) fn unheard(&self, asked_for: bool) -> Self {
        Self { unheard: true, asked_for, ..self.clone() }
    }

    /// Calls are made for a node in this phase from now on.
    pub(super) fn work_in(&self, phase: &Phase) {
        let rank = match phase {
            Phase::Fencing => Rank::Fence,
            Phase::Fenced | Phase::Unfencing => Rank::Ground,
            _ => Rank::Watch,
        };
        *self.rank.lock().unwrap_or_else(PoisonError::into_inner) = rank;
    }

    fn rank(&self) -> Rank {
        match self.unheard {
            true => Rank::Check,
            false => *self.rank.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The device's turn at what it shares, where it shares anything; and the same hands, whose calls to it need none.
    pub(super) async fn in_turn(&self, device: &DeviceId) -> Result<(Option<Turn>, Self), DriverError> {
        // A reading, the store's word, and an on.
        let turn = self.turn(device, self.time(device) * 3).await?;
        Ok((turn, Self { in_turn: true, ..self.clone() }))
    }

    async fn turn(&self, device: &DeviceId, life: Duration) -> Result<Option<Turn>, DriverError> {
        let Some(unit) = self.plan.units.get(device).filter(|_| !self.in_turn) else { return Ok(None) };
        unit.turn(self.rank(), life).await.map(Some)
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

    fn time(&self, device: &DeviceId) -> Duration {
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

    /// A turn to log in, where that is what the device is asked first. It is waited for before the time of the call runs.
    async fn login(&self, device: &DeviceId) -> Option<LoginTurn> {
        let is_cold = self.plan.drivers.get(device).is_some_and(|driver| driver.is_cold());
        let rank = match (self.unheard, self.asked_for) {
            (false, _) => logins::Rank::Fence,
            (true, false) => logins::Rank::Check,
            (true, true) => logins::Rank::Status,
        };
        if is_cold { Some(self.parts.logins.take(rank).await) } else { None }
    }

    /// The driver, a call of so long, which begins now, and the turns in which it goes.
    async fn ready(&self, device: &DeviceId, time: Duration) -> Result<Ready<Option<Turn>>, DriverError> {
        let driver = self.driver(device)?;
        let shared = self.turn(device, time).await?;
        let login = self.login(device).await;
        Ok((driver, self.call(time), Turns { _shared: shared, login }))
    }

    /// The same, of what is said in a session that is open, or not at all.
    async fn ready_in_session(
        &self,
        device: &DeviceId,
        time: Duration,
    ) -> Result<Ready<Option<Turn>>, DriverError> {
        let driver = self.driver(device)?;
        let shared = self.turn(device, time).await?;
        Ok((driver, self.call(time), Turns { _shared: shared, login: None }))
    }

    /// The call, before the hooks.
    fn told(&self, call: Call, point: &'static str) -> Call {
        call.before(Arc::new(Permits { hooks: self.parts.hooks.clone(), point }))
    }

    pub(super) fn identify(&self, device: &DeviceId) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            let time = hands.time(&device);
            let asking = hands.ask(&device, "what machine is it");
            let result = match hands.ready(&device, time).await {
                Ok((driver, call, turns)) => turns.bounded(time, driver.identify(&call)).await,
                Err(error) => Err(error),
            };
            asking.answered(&result, words::identity);
            (device, Did::Identified(result))
        })
    }

    pub(super) fn inspect(&self, device: &DeviceId) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            let time = hands.time(&device);
            let asking = hands.ask(&device, "what would a hold change");
            let result = match hands.ready(&device, time).await {
                Ok((driver, call, turns)) => turns.bounded(time, driver.inspect_hold(&call)).await,
                Err(error) => Err(error),
            };
            asking.answered(&result, words::found);
            (device, Did::Inspected(result))
        })
    }

    pub(super) fn hold(&self, order: HoldOrder) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        Box::pin(async move {
            let _piece = hands.work.begin().await;
            hands.parts.hooks.reached("sending hold").await;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "stay off");
            let result = match hands.ready(&device, time).await {
                Ok((driver, call, turns)) => turns.bounded(time, driver.engage_hold(&order, &call)).await,
                Err(error) => Err(error),
            };
            asking.answered(&result, words::hold);
            hands.parts.hooks.reached("sent hold").await;
            (device, Did::Held(order.effect(), result))
        })
    }

    /// Sends an off, unless the look before it has become too old meanwhile.
    pub(super) fn off(&self, order: Arc<OffOrder>, look_serves_until: BootTime) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        Box::pin(async move {
            let _piece = hands.work.begin().await;
            hands.parts.hooks.reached("sending off").await;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "power off, hard");
            let result = match hands.ready(&device, time).await {
                Ok(_) if hands.parts.clock.boot() > look_serves_until => Err(DriverError::new(
                    ErrorKind::TimedOut,
                    Effect::DidNotHappen,
                    "the look before it is too old: it is looked at again first".to_owned(),
                )),
                Ok((driver, call, turns)) => {
                    let call = hands.told(call, "permitted off");
                    turns.bounded(time, driver.power_off(&order, &call)).await
                }
                Err(error) => Err(error),
            };
            asking.answered(&result, words::accepted);
            hands.parts.hooks.reached("sent off").await;
            (device, Did::Off(order.effect(), result))
        })
    }

    pub(super) fn unhold(&self, order: Arc<UnholdOrder>) -> Doing {
        let hands = self.clone();
        let device = order.device().clone();
        Box::pin(async move {
            let _piece = hands.work.begin().await;
            hands.parts.hooks.reached("sending unhold").await;
            let time = hands.time(&device);
            let asking = hands.ask(&device, "put back what the hold changed");
            let result = match hands.ready(&device, time).await {
                Ok((driver, call, turns)) => turns.bounded(time, driver.disengage_hold(&order, &call)).await,
                Err(error) => Err(error),
            };
            asking.answered(&result, words::hold);
            hands.parts.hooks.reached("sent unhold").await;
            (device, Did::Unheld(order.effect(), result))
        })
    }

    /// Sends an on at once: nothing may come between the store's answer and this.
    pub(super) fn on(&self, order: OnOrder) -> Doing {
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
                    let call = hands.told(call, "permitted on");
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

/// Runs a call with a net under it: a driver that overruns its deadline does not hold the node's task. The last part of
/// the net begins when the rest is over: after a stop of the process a call ends by itself first, with what it heard.
async fn bounded<T>(
    time: Duration,
    call: impl Future<Output = Result<T, DriverError>>,
) -> Result<T, DriverError> {
    let half = Duration::from_millis(500);
    tokio::pin!(call);
    if let Ok(ended) = tokio::time::timeout(time + half, &mut call).await {
        return ended;
    }
    tokio::time::timeout(half, call).await.unwrap_or_else(|_| {
        let net = time + half * 2;
        Err(DriverError::new(ErrorKind::TimedOut, Effect::Unknown, format!("no end after {net:?}")))
    })
}
