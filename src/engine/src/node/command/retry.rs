//! A person tries again: by which settings, and by which word.

use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::record::Phase;
use picket_core::topology::Topology;

use crate::error::EngineError;
use crate::node::{Fatal, NodeTask};
use crate::request::{Ask, Taken};

/// What a retry goes by.
pub(super) struct SettingsOfNow {
    /// The levels; `None`: the fence stays with its own.
    levels: Option<Topology>,
    /// That a person wanted others.
    others: Option<String>,
}

impl SettingsOfNow {
    /// The retry, by these.
    pub(super) fn before(self, retry: Event<'_>) -> Event<'_> {
        let levels = self.levels.map(Event::NewTopology);
        let found: Vec<Event<'_>> = levels.into_iter().chain(self.others.map(Event::OtherSettings)).collect();
        if found.is_empty() { retry } else { Event::After { found, event: Box::new(retry) } }
    }
}

impl NodeTask {
    /// What devices say that restarted is believed by the word of a person who looked at the machine, while none of them says On.
    pub(super) async fn retry_seen_off(&mut self, ask: Ask) -> Result<Result<Taken, EngineError>, Fatal> {
        let hosts = self.hosts();
        // Before the devices are asked: what is lost after this, that person did not see.
        let at = self.now();
        let is_possible = matches!(self.record().phase, Phase::NeedsOperator(_));
        let looks: Vec<Look> = if is_possible { self.look_at(&hosts).await? } else { Vec::new() };
        let settings = self.settings_of_now();
        let retry = |person| settings.before(Event::RetrySeenOff { person, looks: &looks });
        let taken = self.grant(ask, retry).await?;
        if taken.is_ok() {
            self.sessions.seen_off_at = Some(at);
        }
        Ok(taken)
    }

    /// By what a retry goes: of a node that is being let back in by whose machines the settings say its devices control, and by nothing else.
    pub(super) fn settings_of_now(&self) -> SettingsOfNow {
        let record = self.record();
        let waits = matches!(record.phase, Phase::NeedsOperator(_)) && record.fence.is_some();
        let levels = waits.then(|| self.topology_to_fence());
        SettingsOfNow { levels, others: self.office.refused_settings() }
    }
}
