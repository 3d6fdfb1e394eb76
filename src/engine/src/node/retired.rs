//! A node whose hardware is gone for good: nothing is sent, and it waits for settings that bring another
//! machine.
//!
//! # Invariants
//!
//! - What its own process sent comes to its end first. Shown by
//!   `what_its_own_process_sent_comes_to_its_end_and_it_may_leave`.
//! - Settings with another machine make it a node again. Shown by
//!   `a_reload_that_brings_another_machine_makes_it_a_node_again`.

use picket_core::event::Event;

use super::{Fatal, NodeTask, sleep_until};

impl NodeTask {
    pub(super) async fn retired(&mut self) -> Result<(), Fatal> {
        // Whoever has its board now is no twin of it.
        self.parts.twins.forget(&self.plan.id);
        let here = self.place();
        let now = self.settings_in_words();
        let then = self.record().retired.as_ref().map(|retired| retired.settings.clone());
        if then.is_some_and(|then| then != now) {
            tracing::info!(settings = now, "the settings of a retired node are others than they were");
            self.persist(|| Event::Resettled { settings: now.clone() }).await?;
            self.adopt().await?;
        }
        // What this process sent to its devices ends with its sessions there: nothing else would ever end it.
        let own = self.record().ledger.open().iter().any(|open| self.own.contains(&open.id));
        if self.place() == here && own {
            self.drain(|kind| kind.device().is_some()).await?;
        }
        while self.place() == here && !self.steps_aside() {
            // What it left in the ledger ends with its longest life.
            self.close_expired(|_| true).await?;
            let now = self.now();
            let expiry = self.record().ledger.open().iter().filter_map(|open| self.expires_at(open)).min();
            let timer = async {
                match expiry {
                    Some(at) => sleep_until(now, at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => self.command(command).await?,
                () = timer => {}
            }
        }
        Ok(())
    }

    /// The node's devices as the settings have them: what they control, and where they answer. `None`: the settings do
    /// not have the node.
    pub(super) fn settings_in_words(&self) -> Option<String> {
        if self.plan.drivers.is_empty() {
            return None;
        }
        let word = |spec: &picket_core::device::DeviceSpec| {
            let driver = self.plan.drivers.get(&spec.id);
            let endpoint = driver.map(|driver| driver.traits().endpoint.clone()).unwrap_or_default();
            let identity = if spec.identity.is_empty() {
                String::new()
            } else {
                format!(" ({})", spec.identity.words())
            };
            format!("{}: {endpoint}{identity}", spec.id)
        };
        Some(self.plan.topology.devices().map(word).collect::<Vec<_>>().join(", "))
    }
}
