//! How many connections are kept, over all devices: those that carried a command, and so many of the others.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of those that only looked. A connection takes some forty kilobytes here, and a worker of the service there.
const KEPT: usize = 512;

/// The places of connections that are kept between calls.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Semaphore>);

impl Default for Pool {
    fn default() -> Self {
        Self::of(KEPT)
    }
}

impl Pool {
    /// With so many places.
    pub fn of(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// A place, if one is free.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}
