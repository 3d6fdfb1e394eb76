//! Drivers that are wrong on purpose: the simulated one, but for one thing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::{Identity, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::{Power, Reading};
use picket_core::time::BootTime;
use picket_driver::conformance::orders::Orders;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Refusal,
    Traits, Volumes,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::wrong_volumes::WrongVolumes;
use crate::wrongs::Wrong;

/// What the one that prints it prints.
pub const PASSWORD: &str = "hunter2-of-a-mutant";

/// How long the one waits that has no patience.
const IMPATIENT: Duration = Duration::from_millis(300);

/// The simulated driver with that wrong.
pub struct WrongDriver {
    inner: Arc<dyn PowerDriver>,
    volumes: Option<WrongVolumes>,
    wrong: Wrong,
    traits: Traits,
    own: Orders,
    first: Mutex<Option<Reading>>,
    identity: Mutex<Option<Identified>>,
    taken: AtomicBool,
    failed: AtomicBool,
    shut: AtomicBool,
}

impl std::fmt::Debug for WrongDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = if self.wrong == Wrong::PrintsItsPassword { PASSWORD } else { "" };
        write!(f, "{:?} {shown}", self.wrong)
    }
}

impl WrongDriver {
    /// `own`: orders of its own, with a permit that nobody ends.
    pub fn new(inner: Arc<dyn PowerDriver>, wrong: Wrong, own: Orders) -> Self {
        let mut traits = inner.traits().clone();
        if wrong == Wrong::DeclaresLess {
            traits.max_in_flight =
                MaxInFlight { off: Some(Duration::from_secs(1)), on: Some(Duration::from_secs(1)) };
        }
        Self {
            inner,
            volumes: None,
            wrong,
            traits,
            own,
            first: Mutex::default(),
            identity: Mutex::default(),
            taken: AtomicBool::default(),
            failed: AtomicBool::default(),
            shut: AtomicBool::default(),
        }
    }

    /// With such volumes.
    pub fn with(self, volumes: WrongVolumes) -> Self {
        Self { volumes: Some(volumes), ..self }
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == wrong
    }

    /// The call that the inner driver gets.
    fn passed_on(&self, call: &Call) -> Result<Call, DriverError> {
        if self.is(Wrong::AsksOnce) {
            call.may_send()?;
        }
        Ok(match self.wrong {
            Wrong::AsksNobody | Wrong::AsksOnce => self.unasked(call),
            Wrong::GoesInAnyLife => call.clone().in_life(None),
            _ => call.clone(),
        })
    }

    /// A call whose permit nobody ends.
    fn unasked(&self, call: &Call) -> Call {
        Call::control(call.deadline(), call.clock().clone(), self.own.permit())
    }

    fn error(kind: ErrorKind) -> DriverError {
        DriverError::new(kind, Effect::DidNotHappen, "a mutant says so")
    }

    fn accepted(call: &Call) -> Accepted {
        Accepted { asked_at: call.now(), answered_at: call.now(), epoch: None, already: false }
    }

    /// Before each call.
    async fn enter(&self, call: &Call) -> Result<(), DriverError> {
        let alone = self.is(Wrong::RefusesCompany) || self.is(Wrong::StaysShut);
        if alone && self.shut.swap(true, Ordering::SeqCst) {
            return Err(Self::error(ErrorKind::Throttled));
        }
        if self.is(Wrong::LocksItselfOut) && self.failed.load(Ordering::SeqCst) {
            return Err(Self::error(ErrorKind::Throttled));
        }
        if self.is(Wrong::ComesBackLate) {
            sleep_until(call.deadline() + Duration::from_secs(5)).await;
        }
        Ok(())
    }

    fn leave(&self) {
        self.shut.store(false, Ordering::SeqCst);
    }

    fn blame(&self, error: DriverError) -> DriverError {
        self.failed.store(true, Ordering::SeqCst);
        match (self.wrong, error.kind) {
            (Wrong::TakesSilenceForNothing, _) => DriverError { effect: Effect::DidNotHappen, ..error },
            (Wrong::CallsWrongCredentialsSilence, ErrorKind::Authentication) => {
                DriverError { kind: ErrorKind::TimedOut, ..error }
            }
            _ => error,
        }
    }

    async fn reading(&self, call: &Call) -> Result<Reading, DriverError> {
        if self.is(Wrong::OpensForEachQuestion) {
            self.inner.quiesce(call).await?;
        }
        let first = self.first.lock().clone();
        if let (Wrong::CachesReadings, Some(first)) = (self.wrong, &first) {
            let (asked_at, answered_at) = (call.now(), call.now());
            return Ok(Reading { asked_at, answered_at, ..first.clone() });
        }
        let patience = if self.is(Wrong::HasNoPatience) { IMPATIENT } else { Duration::MAX };
        let read = timeout(patience, self.inner.read_power(call)).await;
        let read = read.unwrap_or_else(|_| Err(Self::error(ErrorKind::TimedOut)));
        let mut reading = match (read, self.wrong) {
            (Err(_), Wrong::TakesSilenceForOff) => {
                let epoch = first.as_ref().and_then(|first| first.epoch);
                let (asked_at, answered_at, said) = (call.now(), call.now(), String::new());
                Reading { power: Power::Off, asked_at, answered_at, epoch, said, lowered_by: None }
            }
            (read, _) => read?,
        };
        let unknown = reading.power == Power::Unknown;
        match self.wrong {
            Wrong::TakesUnknownForOff if unknown => reading.power = Power::Off,
            Wrong::TakesUnknownForOn if unknown => reading.power = Power::On,
            Wrong::DoubtsAfterRefusals if self.failed.load(Ordering::SeqCst) => {
                reading.power = Power::Unknown
            }
            Wrong::BelievesItself if self.taken.load(Ordering::SeqCst) => reading.power = Power::Off,
            Wrong::HidesLosses => {
                reading.epoch = first.as_ref().and_then(|first| first.epoch).or(reading.epoch);
            }
            Wrong::RenewsItsQuestion => reading.asked_at = reading.answered_at,
            _ => {}
        }
        self.first.lock().get_or_insert_with(|| reading.clone());
        Ok(reading)
    }

    async fn off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        let inner = self.passed_on(call)?;
        if self.is(Wrong::SendsNoOff) {
            let epoch = self.inner.read_power(call).await?.epoch;
            return Ok(Accepted { epoch, ..Self::accepted(call) });
        }
        if self.is(Wrong::Toggles) && self.inner.read_power(call).await?.power == Power::Off {
            let on = self.own.on().await.map_err(|_| Self::error(ErrorKind::Protocol))?;
            return self.inner.power_on(on, &inner).await;
        }
        if self.is(Wrong::LooksForItself) {
            self.inner.read_power(call).await?;
        }
        let mut accepted = match (self.inner.power_off(order, &inner).await, self.wrong) {
            (Ok(accepted), Wrong::TakesAlreadyForAnError) if accepted.already => {
                return Err(Self::error(ErrorKind::Refused));
            }
            (Err(error), Wrong::TakesRefusals) if error.kind == ErrorKind::Refused => Self::accepted(call),
            (Err(error), Wrong::MisdatesRefusals) => {
                let asked_at = BootTime::default();
                let refusal = error.refusal.map(|refusal| Refusal { asked_at, ..refusal });
                return Err(DriverError { refusal, ..error });
            }
            (Err(error), Wrong::HidesRefusals) => return Err(DriverError { refusal: None, ..error }),
            (accepted, _) => accepted?,
        };
        if self.is(Wrong::SendsAnotherOff) {
            self.inner.power_off(order, &inner).await?;
        }
        if self.is(Wrong::RenewsItsQuestion) {
            accepted.asked_at = accepted.answered_at;
        }
        self.taken.store(true, Ordering::SeqCst);
        Ok(accepted)
    }
}

#[async_trait]
impl PowerDriver for WrongDriver {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn shortest_idle(&self) -> Option<Duration> {
        self.inner.shortest_idle()
    }

    fn max_in_flight(&self, call: Duration) -> MaxInFlight {
        let less = |life: Option<Duration>| life.map(|life| life.saturating_sub(call));
        let own = self.traits.max_in_flight;
        if self.is(Wrong::DeclaresLessForMore) {
            return MaxInFlight { off: less(own.off), on: less(own.on) };
        }
        own
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        self.enter(call).await?;
        let read = self.reading(call).await;
        self.leave();
        read.map_err(|error| self.blame(error))
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.enter(call).await?;
        let off = self.off(order, call).await;
        self.leave();
        off.map_err(|error| self.blame(error))
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        if self.is(Wrong::OpensForAnOn) {
            self.inner.read_power(call).await?;
        }
        self.taken.store(false, Ordering::SeqCst);
        let on = self.inner.power_on(order, &self.passed_on(call)?).await;
        on.map_err(|error| self.blame(error))
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        self.enter(call).await?;
        let known = self.identity.lock().clone();
        let said = match (self.wrong, known) {
            (Wrong::MakesUpIdentity, _) => {
                let uuid = Some("00112233445566778899aabbccddeeff".to_owned());
                let epoch = self.inner.identify(call).await?.epoch;
                Ok(Identified { identity: Identity { uuid, serial: None }, epoch })
            }
            (Wrong::CachesIdentity, Some(known)) => Ok(known),
            (Wrong::TellsNoLife, _) => {
                self.inner.identify(call).await.map(|said| Identified { epoch: None, ..said })
            }
            _ => self.inner.identify(call).await,
        };
        self.leave();
        if let Ok(said) = &said {
            self.identity.lock().get_or_insert_with(|| said.clone());
        }
        said
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        let found = self.inner.inspect_hold(call).await?;
        if self.is(Wrong::HoldsWhereItLooks) {
            let order = self.own.hold(&found).await.map_err(|_| Self::error(ErrorKind::Protocol))?;
            self.inner.engage_hold(&order, &self.unasked(call)).await?;
        }
        Ok(found)
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        if self.is(Wrong::SeesNoHold) { Vec::new() } else { self.inner.engaged(now) }
    }

    fn outlives(&self, engaged: &str) -> bool {
        self.inner.outlives(engaged)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        if self.is(Wrong::ClaimsAHold) {
            call.may_send()?;
            let engaged = vec!["watchdog stopped".to_owned()];
            return Ok(HoldReport { engaged, detail: String::new() });
        }
        self.inner.engage_hold(order, &self.passed_on(call)?).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        if self.is(Wrong::PutsNothingBack) {
            call.may_send()?;
            return Ok(HoldReport::default());
        }
        self.inner.disengage_hold(order, &self.passed_on(call)?).await
    }

    fn names_sessions(&self) -> bool {
        self.inner.names_sessions()
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        self.volumes.as_ref().map(|volumes| volumes as &dyn Volumes)
    }

    fn session(&self) -> Option<String> {
        self.inner.session().filter(|_| !self.is(Wrong::NamesNoSession))
    }

    async fn end_session(&self, name: &str, call: &Call) -> Result<(), DriverError> {
        if self.is(Wrong::EndsNobodysSession) {
            return Ok(());
        }
        self.inner.end_session(name, call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.taken.store(false, Ordering::SeqCst);
        if self.is(Wrong::EndsNoSession) {
            return Ok(());
        }
        match self.inner.quiesce(call).await {
            Err(_) if self.is(Wrong::TakesSilenceForAnEnd) => {
                // Not so early that it would have to be a lie of another kind.
                sleep(call.deadline().saturating_duration_since(Instant::now()) / 2).await;
                Ok(())
            }
            ended => ended,
        }
    }
}
