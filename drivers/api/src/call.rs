//! What every call to a device carries: its deadline, the permit, the clocks.

use std::sync::Arc;

use picket_core::election::Leadership;
use picket_core::time::{BootTime, Clock};
use tokio::time::Instant;

use crate::error::{DriverError, Effect, ErrorKind};

/// The frame of one call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Call {
    deadline: Instant,
    clock: Arc<dyn Clock>,
    permit: Option<Arc<Leadership>>,
}

impl Call {
    /// A call that may only read: `may_send` always refuses.
    pub fn reading(deadline: Instant, clock: Arc<dyn Clock>) -> Self {
        Self { deadline, clock, permit: None }
    }

    /// A call that may also change power, as long as `permit` holds.
    pub fn control(deadline: Instant, clock: Arc<dyn Clock>, permit: Arc<Leadership>) -> Self {
        Self { deadline, clock, permit: Some(permit) }
    }

    /// When the call must have ended. A driver returns before it, with [`ErrorKind::TimedOut`].
    pub fn deadline(&self) -> Instant {
        self.deadline
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

    /// Whether a packet that changes something may be sent *now*. Asked before each copy of it, also after a login.
    pub fn may_send(&self) -> Result<(), DriverError> {
        let refused = |detail: String| DriverError::new(ErrorKind::NotLeader, Effect::DidNotHappen, detail);
        match &self.permit {
            None => Err(refused("this call may only read".to_owned())),
            Some(permit) => permit.check().map_err(|ended| refused(ended.to_string())),
        }
    }
}
