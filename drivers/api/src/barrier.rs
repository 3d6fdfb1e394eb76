//! Whether a command may still go, asked once there is a connection for it: that may take seconds.
//!
//! **Invariant.** It goes for whoever holds its barrier: where the call was cut off meanwhile, as by a breach, it does not.

use std::sync::{Arc, Mutex, PoisonError};

use picket_core::time::WallTime;

use crate::{Call, DriverError};

/// The error that barred one command, if one did. The call that waits for the command holds the barrier; the connection does not.
#[derive(Debug, Default)]
pub struct Barrier(Arc<Mutex<Option<DriverError>>>);

impl Barrier {
    /// Asks for the permit (S4, S6), whether it is late, for its caller and for whoever permitted it until then, and whether anybody
    /// waits for it still.
    pub fn word(
        &self,
        call: &Call,
        not_after: Option<WallTime>,
    ) -> Arc<dyn Fn() -> Result<(), String> + Send + Sync> {
        let (barrier, call) = (Arc::downgrade(&self.0), call.clone());
        Arc::new(move || {
            let Some(barrier) = barrier.upgrade() else {
                return Err("whoever asked for it has left".to_owned());
            };
            call.may_leave(not_after).map_err(|error| {
                let words = error.to_string();
                *barrier.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                words
            })
        })
    }

    /// What barred it.
    pub fn barred(&self) -> Option<DriverError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
