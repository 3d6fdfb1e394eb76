//! A source of a test's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use picket_liveness::{Liveness, Look, Sign};
use tokio::time::Instant;

use super::PATIENCE;

/// What a source says, by how often and when it is asked.
type Says = dyn Fn(usize, Instant) -> Option<Look> + Send + Sync;

/// A source; where it says nothing it hangs.
pub(super) struct Source {
    says: Box<Says>,
    pub(super) asked: AtomicUsize,
    /// What its silence is taken for.
    silence: Look,
    /// What it says to checks; `None`: it is asked in fences alone.
    pub(super) to_checks: Mutex<Option<Look>>,
    /// The boot of which it speaks, and whether the node gives signs of life there.
    pub(super) boot: Mutex<Option<(String, bool)>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

impl Source {
    pub(super) fn new(says: impl Fn(usize, Instant) -> Option<Look> + Send + Sync + 'static) -> Arc<Self> {
        Self::with_silence(Look::Unanswered("silence".to_owned()), says)
    }

    pub(super) fn with_silence(
        silence: Look,
        says: impl Fn(usize, Instant) -> Option<Look> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            says: Box::new(says),
            asked: AtomicUsize::new(0),
            silence,
            to_checks: Mutex::default(),
            boot: Mutex::default(),
        })
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Liveness for Source {
    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn late(&self) -> Look {
        self.silence.clone()
    }

    async fn check(&self) -> Option<Look> {
        self.to_checks.lock().clone()
    }

    fn sign(&self) -> Option<Sign> {
        let (boot, lives) = self.boot.lock().clone()?;
        let beat = if lives { self.asked() } else { 0 };
        Some(Sign { boot, beat: Some(beat.to_string()) })
    }

    async fn look(&self) -> Look {
        let nth = self.asked.fetch_add(1, Ordering::SeqCst);
        match (self.says)(nth, Instant::now()) {
            Some(look) => look,
            None => std::future::pending().await,
        }
    }
}
