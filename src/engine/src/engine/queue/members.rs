//! Members of the store that do not answer, for whoever waits at its quorum (K11).

use super::{LOOK, Runner};

impl Runner<'_> {
    /// Where one of those that wait would cost the store a member, who answers now is asked for now and then; nobody waits for it here.
    pub(super) fn count_members(&mut self) {
        let parts = &self.engine.shared.parts;
        let (office, now) = (&self.engine.shared.office, parts.clock.boot());
        let is_due = self.counting.is_empty() && now >= self.counted + LOOK;
        if is_due && self.entries.values().any(|entry| office.carries_a_member(&entry.node)) {
            self.counted = now;
            let store = parts.store.clone();
            self.counting.push(Box::pin(async move { store.silent_members().await }));
        }
    }
}
