//! What the checks share: one driver, its orders, and short ways to call it.

use std::sync::Arc;
use std::time::Duration;

use picket_answers::device::{Accepted, DriverError, HoldFound, HoldReport};
use picket_core::power::{Power, Reading};
use picket_core::time::{BootTime, Clock};
use tokio::time::{Instant, sleep};

use super::orders::Orders;
use super::{Subject, lateness};
use crate::call::Call;
use crate::driver::PowerDriver;

/// Ends a check with words unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
pub(super) use ensure;

/// How a check ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The driver conforms.
    Yes,
    /// The subject cannot be hurt that way.
    NotHere,
}

/// The calls of a check may be late by this much: the machine is busy, not the driver. By more where a subject asks for patience.
const SLACK: Duration = Duration::from_millis(500);
/// How long the end of a session is waited for on which nothing depends.
const LEAVING: Duration = Duration::from_secs(5);
const LONG_SLACK: Duration = Duration::from_secs(2);

pub(super) struct Rig<'a> {
    pub(super) subject: &'a dyn Subject,
    pub(super) driver: Arc<dyn PowerDriver>,
    pub(super) orders: Orders,
    pub(super) clock: Arc<dyn Clock>,
}

impl<'a> Rig<'a> {
    pub(super) async fn new(subject: &'a dyn Subject) -> Result<Self, String> {
        let (driver, clock) = (subject.driver(), subject.clock());
        let orders = Orders::new(driver.traits(), clock.clone()).await?;
        Ok(Self { subject, driver, orders, clock })
    }

    /// A call that may do everything.
    pub(super) fn call(&self) -> Call {
        self.call_of(self.life())
    }

    /// How long a call may take that is not about time.
    pub(super) fn life(&self) -> Duration {
        self.subject.patience().unwrap_or(self.driver.traits().call)
    }

    pub(super) fn call_of(&self, life: Duration) -> Call {
        Call::control(Instant::now() + life, self.clock.clone(), self.orders.permit())
    }

    /// A call that may only read.
    pub(super) fn reading_call(&self) -> Call {
        Call::reading(Instant::now() + self.life(), self.clock.clone())
    }

    pub(super) async fn read(&self) -> Result<Reading, DriverError> {
        self.driver.read_power(&self.reading_call()).await
    }

    /// A reading that must succeed, with right stamps.
    pub(super) async fn must_read(&self) -> Result<Reading, String> {
        let before = self.clock.boot();
        let reading = self.read().await.map_err(|error| format!("no reading: {error}"))?;
        self.stamped("reading", before, reading.asked_at, reading.answered_at)?;
        if reading.epoch.is_none() && self.driver.has_epochs() {
            return Err(format!("it tells its restarts, and the reading has no epoch: {reading:?}"));
        }
        Ok(reading)
    }

    /// What was asked and answered since `before` says so.
    fn stamped(
        &self,
        what: &str,
        before: BootTime,
        asked: BootTime,
        answered: BootTime,
    ) -> Result<(), String> {
        let after = self.clock.boot();
        if before <= asked && asked <= answered && answered <= after {
            return Ok(());
        }
        Err(format!(
            "the {what} was asked at {asked:?} and answered at {answered:?}, as it says, and came between {before:?} and {after:?}"
        ))
    }

    pub(super) async fn off(&self) -> Result<Accepted, String> {
        let order = self.orders.off().await?;
        let before = self.clock.boot();
        let accepted = self.driver.power_off(&order, &self.call()).await;
        let accepted = accepted.map_err(|error| format!("the off was not taken: {error}"))?;
        self.stamped("off", before, accepted.asked_at, accepted.answered_at)?;
        Ok(accepted)
    }

    pub(super) async fn on(&self) -> Result<Accepted, String> {
        // As its caller does it: no session is opened for an on.
        self.must_read().await?;
        let order = self.orders.on_in(self.driver.session()).await?;
        let before = self.clock.boot();
        let accepted = self.driver.power_on(order, &self.call()).await;
        let accepted = accepted.map_err(|error| format!("the on was not taken: {error}"))?;
        self.stamped("on", before, accepted.asked_at, accepted.answered_at)?;
        Ok(accepted)
    }

    /// What a hold would change, as the driver says.
    pub(super) async fn inspect(&self) -> Result<HoldFound, String> {
        let found = self.driver.inspect_hold(&self.reading_call()).await;
        found.map_err(|error| format!("the hold cannot be inspected: {error}"))
    }

    pub(super) async fn engage(&self, found: &HoldFound) -> Result<HoldReport, String> {
        let order = self.orders.hold(found).await?;
        let report = self.driver.engage_hold(&order, &self.call()).await;
        report.map_err(|error| format!("the hold failed: {error}"))
    }

    pub(super) async fn disengage(&self, found: &HoldFound) -> Result<HoldReport, String> {
        let order = self.orders.unhold(found).await?;
        let report = self.driver.disengage_hold(&order, &self.call()).await;
        report.map_err(|error| format!("the hold's undoing failed: {error}"))
    }

    pub(super) async fn quiesce(&self) -> Result<(), DriverError> {
        self.driver.quiesce(&self.call()).await
    }

    /// Ends its session if that can be ended soon. One whose end was not answered is open until its idle limit is over: nobody
    /// waits for that here.
    pub(super) async fn leave(&self) {
        let _ = self.driver.quiesce(&self.call_of(LEAVING.min(self.life()))).await;
    }

    /// Reads until it says `wanted`. An `Off` must be true when it is said: what was on before it was asked and is on after is a lie,
    /// and what was off before may have risen since.
    pub(super) async fn read_until(&self, wanted: Power, within: Duration) -> Result<Reading, String> {
        let deadline = Instant::now() + within;
        loop {
            let was_on = self.subject.is_on().await;
            let reading = self.must_read().await?;
            if reading.power == Power::Off && was_on && self.subject.is_on().await {
                return Err(format!("it is on, and the driver says {reading:?}"));
            }
            if reading.power == wanted {
                return Ok(reading);
            }
            if Instant::now() >= deadline {
                return Err(format!("after {within:?} it still does not say {wanted:?}, but {reading:?}"));
            }
            sleep(self.pace()).await;
        }
    }

    /// The pause between two looks. A peer that asks for patience computes for each of them.
    pub(super) fn pace(&self) -> Duration {
        Duration::from_millis(if self.subject.patience().is_some() { 250 } else { 50 })
    }

    /// Runs a call with a short life, which must come back in time.
    pub(super) async fn in_time<T>(
        &self,
        life: Duration,
        what: &str,
        work: impl AsyncFnOnce(Call) -> Result<T, DriverError>,
    ) -> Result<Result<T, DriverError>, String> {
        let call = self.call_of(life);
        let (result, late) = lateness::waited(call.deadline(), work(call)).await;
        let slack = if self.subject.patience().is_some() { LONG_SLACK } else { SLACK };
        if late > slack {
            return Err(format!("{what} came back {late:?} after its deadline"));
        }
        Ok(result)
    }
}
