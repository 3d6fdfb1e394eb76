//! Whether a command may still go, asked once there is a connection for it: that may take seconds.

use std::sync::{Arc, Mutex, PoisonError};

use picket_core::time::WallTime;
use tokio::time::Instant;

use crate::{Call, DriverError, Effect, ErrorKind};

/// What bars one command, if anything did.
#[derive(Clone, Debug, Default)]
pub struct Barrier(Arc<Mutex<Option<DriverError>>>);

impl Barrier {
    /// Asks for the permit (S6), and whether it is late: for its caller, and for whoever permitted it until then.
    pub fn word(
        &self,
        call: &Call,
        not_after: Option<WallTime>,
    ) -> Arc<dyn Fn() -> Result<(), String> + Send + Sync> {
        let (barrier, call) = (self.clone(), call.clone());
        Arc::new(move || {
            let late =
                |kind, detail: &str| Err(DriverError::new(kind, Effect::DidNotHappen, detail.to_owned()));
            let may = if Instant::now() >= call.deadline() {
                late(ErrorKind::TimedOut, "its time is over")
            } else if not_after.is_some_and(|until| call.clock().wall() > until) {
                late(ErrorKind::Refused, "the permit's time is over")
            } else {
                call.may_send()
            };
            may.map_err(|error| {
                let words = error.to_string();
                *barrier.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                words
            })
        })
    }

    /// What barred it.
    pub fn barred(&self) -> Option<DriverError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
