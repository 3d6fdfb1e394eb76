//! Commands whose end is not known, while their far side may still take them.

use std::sync::{Mutex, PoisonError};

use picket_core::time::BootTime;

use crate::error::{DriverError, Effect};

/// Commands that were not answered, or whose answer does not say what became of them: until when they may be taken.
#[derive(Debug, Default)]
pub struct Unclear(Mutex<Vec<(u64, BootTime)>>);

/// One command while its answer is waited for.
#[derive(Debug)]
pub struct Sending<'a> {
    of: &'a Unclear,
    id: u64,
}

impl Unclear {
    /// One is about to be sent, which may be taken until then. A caller who goes away before the answer leaves it unclear.
    pub fn sending(&self, until: BootTime) -> Sending<'_> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = open.last().map_or(0, |(id, _)| id + 1);
        open.push((id, until));
        Sending { of: self, id }
    }

    /// The last moment at which one of them may be taken, if that is yet to come.
    pub fn until(&self, now: BootTime) -> Option<BootTime> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, until)| *until > now);
        open.iter().map(|(_, until)| *until).max()
    }
}

impl Sending<'_> {
    /// Its end is known.
    pub fn answered(self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(id, _)| *id != self.id);
    }

    /// Its end is known, unless that says otherwise.
    pub fn ended_as<T>(self, result: &Result<T, DriverError>) {
        if !matches!(result, Err(DriverError { effect: Effect::Unknown, .. })) {
            self.answered();
        }
    }
}
