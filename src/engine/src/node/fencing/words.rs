//! What is told of a node's devices where a fence does not come to a proof.

use picket_core::ids::DeviceId;
use picket_core::power::Power;

use super::Run;
use crate::node::NodeTask;

impl NodeTask {
    /// What the devices of the level said last, and how often they were asked.
    pub(super) fn level_words(&self, run: &Run) -> String {
        self.words_of(&self.level_devices(run.level), run)
    }

    /// The same of all levels that had their turn.
    pub(super) fn words_of_all(&self, run: &Run) -> String {
        let Some(fence) = self.open_fence() else { return String::new() };
        let asked = fence.topology.devices().map(|spec| &spec.id).filter(|id| run.hands.contains_key(*id));
        self.words_of(&asked.cloned().collect::<Vec<_>>(), run)
    }

    fn words_of(&self, devices: &[DeviceId], run: &Run) -> String {
        devices.iter().map(|device| self.device_words(device, run)).collect::<Vec<_>>().join(", ")
    }

    fn device_words(&self, id: &DeviceId, run: &Run) -> String {
        let live = self.live.devices.get(id);
        let said = match live.and_then(|live| live.power) {
            Some((Power::On, _)) => "on",
            Some((Power::Off, _)) => "off",
            Some((Power::Unknown, _)) | None => "unknown",
        };
        let hand = run.hands.get(id);
        let asked = hand.map(|hand| hand.asked).unwrap_or_default();
        let asked = format!("asked {asked} time{}", if asked == 1 { "" } else { "s" });
        if run.judge.withholds_its_identity(id) {
            return format!(
                "{id} {said} (it does not say any more whose machine it controls: its address may lead to another one's; {asked})"
            );
        }
        let fault = live.and_then(|live| live.fault.as_ref()).map(|(fault, _)| fault);
        // An answer that is neither on nor off says in its own words why, and what a person can do.
        let unclear = live.filter(|live| !live.said.is_empty() && said == "unknown").map(|live| &live.said);
        match (hand.and_then(|hand| hand.refused.as_ref()), fault.or(unclear)) {
            (Some(refused), _) => format!("{id} {said} (the off: {refused}; {asked})"),
            (None, Some(fault)) => format!("{id} {said} ({fault}; {asked})"),
            (None, None) => format!("{id} {said} ({asked})"),
        }
    }
}
