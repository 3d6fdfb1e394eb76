//! What a leadership does beside its nodes: it forgets what is too old, and keeps what its successor needs.

use std::sync::Arc;
use std::time::Duration;

use picket_core::election::Leadership;
use picket_core::time::WallTime;

use super::Engine;

/// How often the history forgets what is too old.
const FORGETTING: Duration = Duration::from_secs(3_600);

impl Engine {
    /// Forgets now and every hour, for as long as that leadership lasts.
    pub(super) async fn forgetting(self, leadership: Arc<Leadership>) {
        while leadership.check().is_ok() {
            self.forget(&leadership).await;
            tokio::time::sleep(FORGETTING).await;
        }
    }

    /// Ended fences, and their keys, are kept as long as the rules say. What cannot be forgotten now is forgotten later.
    async fn forget(&self, leadership: &Leadership) {
        let parts = &self.shared.parts;
        let kept = u64::try_from(self.fleet().parts.rules.history.as_millis()).unwrap_or(u64::MAX);
        let before = WallTime::from_millis(parts.clock.wall().millis().saturating_sub(kept));
        match parts.store.forget(leadership.guard(), before).await {
            Ok(0) => {}
            Ok(fences) => tracing::info!(fences, "the history forgot what is too old"),
            Err(error) => tracing::warn!(%error, "the history did not forget what is too old"),
        }
    }

    /// Keeps what the brake counts for whoever leads next (S14).
    pub(super) async fn keeping_complaints(self, leadership: Arc<Leadership>) {
        self.shared.office.keep_complaints(&*self.shared.parts.store, &leadership).await;
    }
}
