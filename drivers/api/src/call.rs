//! What every call to a device carries: its deadline, the permit, the clocks.

use std::sync::Arc;
use std::time::Duration;

use picket_answers::device::{DriverError, Effect, ErrorKind};
use picket_core::election::Leadership;
use picket_core::ground::PermitCheck;
use picket_core::power::Epoch;
use picket_core::time::{BootTime, Clock, WallTime};
use tokio::time::Instant;

/// Told each time that the permit was asked and holds, between that and the sending: a test may stop the process there.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// A packet that changes something is sent next.
    fn permitted(&self);
}

/// The frame of one call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Call {
    deadline: Instant,
    clock: Arc<dyn Clock>,
    permit: Option<Arc<Leadership>>,
    /// Of a release, the permit of its attempt.
    attempt: Option<PermitCheck>,
    witness: Option<Arc<dyn Witness>>,
    /// In which life of the device alone anything is asked.
    life: Option<u64>,
}

impl Call {
    /// A call that may only read: `may_send` always refuses.
    pub fn reading(deadline: Instant, clock: Arc<dyn Clock>) -> Self {
        Self { deadline, clock, permit: None, attempt: None, witness: None, life: None }
    }

    /// A call that may also change power, as long as `permit` holds.
    pub fn control(deadline: Instant, clock: Arc<dyn Clock>, permit: Arc<Leadership>) -> Self {
        Self { deadline, clock, permit: Some(permit), attempt: None, witness: None, life: None }
    }

    /// The same call, which asks and changes in this life of the device and in no other: there it said whose machine it controls (S13).
    /// `None`: in whichever, as of a device without epochs, or of what is asked to find out in which life it is.
    #[must_use]
    pub fn in_life(self, life: Option<u64>) -> Self {
        Self { life, ..self }
    }

    /// The same call, which lets volumes go as long as that permit holds, too (S4).
    #[must_use]
    pub fn under(self, attempt: PermitCheck) -> Self {
        Self { attempt: Some(attempt), ..self }
    }

    /// Whether anything may be asked in that epoch.
    ///
    /// # Errors
    /// It is another one than that in which the device was identified: nothing is sent.
    pub fn may_go_in(&self, epoch: Epoch) -> Result<(), DriverError> {
        if self.life.is_none_or(|life| life == epoch.id) {
            return Ok(());
        }
        let detail = "its session is a new one: whose machine it controls is asked first, and power is read";
        Err(DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, detail))
    }

    /// The same call, before a witness.
    #[must_use]
    pub fn before(self, witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// Whether it may only read, whoever leads: a check's. What does not fit is told there, and stops no fence.
    pub fn may_only_read(&self) -> bool {
        self.permit.is_none()
    }

    /// When the call must have ended. A driver returns before it, with [`ErrorKind::TimedOut`].
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When the driver is back at the latest, a little before the deadline: its answer must still be heard.
    pub fn end(&self) -> Instant {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.deadline - (left / 10).min(Duration::from_millis(20))
    }

    /// The same call, ending earlier.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        Self { deadline: deadline.min(self.deadline), ..self.clone() }
    }

    /// Now, on the clock in which readings are stamped.
    pub fn now(&self) -> BootTime {
        self.clock.boot()
    }

    /// The clocks.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether it has a permit, and that has ended. What was begun under it and goes on by itself is then to be stopped; before
    /// anything is sent [`may_send`](Self::may_send) is asked.
    pub fn is_deposed(&self) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.check().is_err())
    }

    /// Whether a command may leave *now*, which its permit lets go until then: it is late neither for its caller nor for its permit, and
    /// [`may_send`](Self::may_send).
    ///
    /// # Errors
    /// It may not, and why. It is not sent.
    pub fn may_leave(&self, not_after: Option<WallTime>) -> Result<(), DriverError> {
        let late = |kind, detail: &str| Err(DriverError::new(kind, Effect::DidNotHappen, detail));
        if Instant::now() >= self.deadline {
            return late(ErrorKind::TimedOut, "its time is over");
        }
        if not_after.is_some_and(|until| self.clock.wall() > until) {
            return late(ErrorKind::Refused, "the permit's time is over");
        }
        self.may_send()
    }

    /// Whether a packet that changes something may be sent *now*. Asked before each copy of it, also after a login.
    pub fn may_send(&self) -> Result<(), DriverError> {
        let refused = |detail: String| DriverError::new(ErrorKind::NotLeader, Effect::DidNotHappen, detail);
        match &self.permit {
            None => return Err(refused("this call may only read".to_owned())),
            Some(permit) => permit.check().map_err(|ended| refused(ended.to_string()))?,
        }
        if let Some(attempt) = &self.attempt {
            let old = |why| DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why);
            attempt.may_send().map_err(old)?;
        }
        if let Some(witness) = &self.witness {
            witness.permitted();
        }
        Ok(())
    }
}
