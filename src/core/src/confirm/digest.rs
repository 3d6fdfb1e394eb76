//! What of a judge decides how it goes on, for the model: see [`crate::model`].

use super::Judge;
use crate::ids::DeviceId;
use crate::model::bytes::Bytes;

impl Judge {
    /// Whether the device took our off in its present life with a plain yes, and that off stands.
    pub(crate) fn was_taken_plainly(&self, device: &DeviceId) -> bool {
        self.traces.get(device).is_some_and(|trace| trace.off.is_some_and(|off| off.is_acknowledged))
    }

    /// Tells it, in a form in which judges that go on in the same way are equal.
    pub(crate) fn digest(&self, to: &mut Bytes) {
        to.put(self.generation.0);
        to.put(self.term.0);
        to.put(u64::from(self.round));
        to.put(self.level as u64);
        to.flag(self.first_host_off.is_some());
        self.first_host_off.iter().for_each(|at| to.moment(*at));
        for trace in self.traces.values() {
            trace.digest(to, self.first_host_off);
        }
    }
}
