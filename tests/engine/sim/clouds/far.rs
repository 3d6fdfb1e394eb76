//! What stands for a provider's interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::MaxInFlight;
use picket_core::ground::ReleasePermit;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, ReleaseOrder, UnholdOrder};
use picket_core::power::{Power, Reading};
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Standing,
    Traits, Volume, VolumeAt, Volumes,
};
use tokio::time::Instant;

/// A device that is one.
#[derive(Debug)]
pub struct Cloud {
    pub of: Arc<dyn PowerDriver>,
    /// Its off ends its machine.
    pub is_final: bool,
    pub far: Arc<Far>,
}

/// What a provider says.
#[derive(Debug, Default)]
pub struct Far {
    /// The machine is gone for good.
    pub gone: AtomicBool,
    /// No detach goes before that.
    pub turn: Mutex<Option<Instant>>,
    /// The call of the next detach does not end, whatever its time is.
    pub overruns: AtomicBool,
    /// What it is sent bears a token, which lives so long.
    pub life: Mutex<Option<MaxInFlight>>,
    /// That is a guess.
    pub guesses: AtomicBool,
    /// No hold leaves this process.
    pub takes_no_hold: AtomicBool,
    /// Another machine is in its place, and each answer shows it.
    pub exchanged: AtomicBool,
    /// What lowers the grade of what it says.
    pub lowered_by: Mutex<Option<String>>,
    /// What is left changed beside its machine.
    pub left: Mutex<Option<String>>,
}

#[async_trait]
impl PowerDriver for Cloud {
    fn traits(&self) -> &Traits {
        self.of.traits()
    }

    fn off_again(&self, power: Power) -> Option<Duration> {
        (power == Power::On).then_some(Duration::ZERO)
    }

    fn off_is_final(&self) -> Option<&str> {
        self.is_final.then_some("terminate = true")
    }

    fn gone_for_good(&self) -> Option<String> {
        self.far.gone.load(Ordering::SeqCst).then(|| "it was terminated".to_owned())
    }

    fn holds_late(&self) -> bool {
        true
    }

    fn epoch_is_a_session(&self) -> bool {
        self.far.life.lock().is_none()
    }

    fn longest_life(&self) -> MaxInFlight {
        let life = *self.far.life.lock();
        life.unwrap_or(self.traits().max_in_flight)
    }

    fn guesses_life(&self) -> bool {
        self.far.guesses.load(Ordering::SeqCst)
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        self.of.identify(call).await
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        if self.far.exchanged.load(Ordering::SeqCst) {
            let detail = "another machine is in its place";
            return Err(DriverError::new(ErrorKind::IdentityMismatch, Effect::DidNotHappen, detail));
        }
        let reading = self.of.read_power(call).await?;
        Ok(Reading { lowered_by: self.far.lowered_by.lock().clone(), ..reading })
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        let taken = self.of.power_off(order, call).await?;
        self.far.gone.fetch_or(self.is_final, Ordering::SeqCst);
        Ok(taken)
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.of.power_on(order, call).await
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        self.of.inspect_hold(call).await
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        self.of.volumes().map(|_| self as &dyn Volumes)
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        self.of.engaged(now)
    }

    fn outlives(&self, engaged: &str) -> bool {
        self.of.outlives(engaged)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        if self.far.takes_no_hold.load(Ordering::SeqCst) {
            return Err(DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, "no way to it"));
        }
        if !order.is_late() {
            return Ok(HoldReport { engaged: Vec::new(), detail: "once all is released".to_owned() });
        }
        self.of.engage_hold(order, call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.of.disengage_hold(order, call).await
    }

    fn changes_beside(&self, _found: &HoldFound) -> bool {
        self.far.left.lock().is_some()
    }

    async fn left_beside(&self, _found: &HoldFound, _call: &Call) -> Result<Option<String>, DriverError> {
        Ok(self.far.left.lock().clone())
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.of.quiesce(call).await
    }
}

impl Cloud {
    fn disks(&self) -> &dyn Volumes {
        self.of.volumes().expect("it was asked before")
    }
}

#[async_trait]
impl Volumes for Cloud {
    fn max_in_flight(&self) -> Option<Duration> {
        self.disks().max_in_flight()
    }

    fn turn(&self) -> Option<Duration> {
        let until = (*self.far.turn.lock())?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        self.disks().attached(call).await
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        assert_eq!(self.turn(), None, "not before its turn");
        let told = self.disks().detach(order, permit, volume, forced, call).await;
        if self.far.overruns.swap(false, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        told
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        self.disks().standing(volume, call).await
    }
}
