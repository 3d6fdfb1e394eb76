//! What is told of a node's devices where a fence does not come to a proof.

use picket_core::device::DeviceSpec;
use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_driver::DriverError;

use super::Run;
use crate::node::{NodeTask, words};

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
        let hand = run.hands.get(id);
        let asked = hand.map(|hand| hand.asked).unwrap_or_default();
        let asked = format!("asked {asked} time{}", if asked == 1 { "" } else { "s" });
        let (said, why) = self.last_words(id);
        let why = if run.judge.withholds_its_identity(id) {
            let withholds =
                "it does not say any more whose machine it controls: its address may lead to another one's";
            Some(withholds.to_owned())
        } else {
            let refused = hand.and_then(|hand| hand.refused.as_ref());
            let lacks = || run.judge.lacks(id, self.now());
            refused.map(|refused| format!("the off: {refused}")).or(why).or_else(lacks)
        };
        let why = why.map(|why| format!("{why}; ")).unwrap_or_default();
        format!("{id} {said} ({why}{asked})")
    }

    /// Why a call to it failed, with the setting that bounds a call.
    pub(super) fn fault_words(&self, id: &DeviceId, error: &DriverError) -> String {
        let call = self.plan.topology.device(id).map(|spec| spec.call);
        words::fault(error, call, self.live.devices.get(id).and_then(|live| live.reading_took))
    }

    /// What is left of the fence's deadline, where anything is.
    pub(super) fn left_words(&self, run: &Run) -> String {
        match run.deadline.since(self.now()).as_secs() {
            0 => String::new(),
            left => format!("; {left}s of its deadline were left"),
        }
    }

    /// The same in one.
    pub(in crate::node) fn says_last(&self, id: &DeviceId) -> String {
        let (said, why) = self.last_words(id);
        why.map_or_else(|| format!("{id} {said}"), |why| format!("{id} {said} ({why})"))
    }

    /// How the device read last, and why it came to nothing. An answer that is neither on nor off says in its own words why, and what a person
    /// can do.
    pub(in crate::node) fn last_words(&self, id: &DeviceId) -> (&'static str, Option<String>) {
        let live = self.live.devices.get(id);
        let said = match live.and_then(|live| live.power) {
            Some((Power::On, _)) => "on",
            Some((Power::Off, _)) => "off",
            Some((Power::Unknown, _)) | None => "unknown",
        };
        let fault = live.and_then(|live| live.fault.as_ref()).map(|(fault, _)| fault);
        // What a cloud says of an instance that is off has in it what became of its last start.
        let is_cloud = self.stands_by().device(id).is_some_and(DeviceSpec::is_cloud);
        let says_more = said == "unknown" || said == "off" && is_cloud;
        let unclear = live.filter(|live| !live.said.is_empty() && says_more).map(|live| &live.said);
        (said, fault.or(unclear).cloned())
    }
}
