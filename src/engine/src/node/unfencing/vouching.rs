//! Whose machine a device controls, right before its on (S13): what only starts answers later, and who never knew the question is ours.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::ids::DeviceId;

use crate::node::whose::{Ours, is_host_of, knows_it_not};
use crate::node::{Fatal, NodeTask};

/// What is known of devices that are to be switched on and do not say whose machine they control.
#[derive(Debug, Default)]
pub(super) struct Vouched {
    /// Those that answer, and do not know the question.
    unknowing: BTreeSet<DeviceId>,
    /// How often one did not say.
    unanswered: BTreeMap<DeviceId, u32>,
    /// Those that answer when they are asked for power.
    answer: BTreeSet<DeviceId>,
    /// Those that said before whose machine they control, and do not say it now.
    withhold: BTreeSet<DeviceId>,
    /// Why the last on came to nothing.
    pub(super) refused: BTreeMap<DeviceId, String>,
}

impl Vouched {
    /// It answered when it was asked for power: what it left unanswered before says nothing.
    pub(super) fn answers(&mut self, device: &DeviceId) {
        if self.answer.insert(device.clone()) {
            self.unanswered.remove(device);
        }
    }

    /// A device that was not seen on, in words.
    pub(super) fn words(&self, device: &DeviceId) -> String {
        if self.withhold.contains(device) {
            format!("{device}, which does not say any more whose machine it controls,")
        } else {
            device.to_string()
        }
    }

    /// Why the last on of those came to nothing, in words.
    pub(super) fn refusals(&self, dark: &BTreeSet<DeviceId>) -> impl Iterator<Item = String> {
        let of_dark = self.refused.iter().filter(|(device, _)| dark.contains(*device));
        of_dark.map(|(device, why)| format!("the on: {device}: {why}"))
    }

    /// How often it did not say since it answers at all.
    fn asked_again(&mut self, device: &DeviceId) -> u32 {
        let times = self.unanswered.entry(device.clone()).or_default();
        *times += u32::from(self.answer.contains(device));
        *times
    }
}

impl NodeTask {
    /// Those of the dark devices that say now whose machine they control, and not another's (S13): somebody else's would be switched
    /// on, and may be fenced. Who only starts answers later; who answers and never knew the question is ours. `None`: one is another's,
    /// and a person is told.
    pub(super) async fn vouched(
        &mut self,
        vouched: &mut Vouched,
        dark: &BTreeSet<DeviceId>,
    ) -> Result<Option<Ours>, Fatal> {
        let is_asked =
            |device: &&DeviceId| is_host_of(&self.hands, device) && !vouched.unknowing.contains(*device);
        let asked: Vec<DeviceId> = dark.iter().filter(is_asked).cloned().collect();
        let rest = dark.iter().filter(|device| !asked.contains(device));
        let mut ours: Ours = rest.map(|device| (device.clone(), None)).collect();
        let Some(said) = self.whose(&asked).await? else { return Ok(None) };
        for (device, said) in said {
            let knows_it_not = match said {
                Ok(said) => {
                    // One that said whose it is, and says nothing now, is not believed in silence.
                    let never_knew =
                        self.expected_identity(&device).is_empty() && !self.has_said_whose(&device);
                    let tells = !said.identity.is_empty() || never_knew;
                    // It may know the question, and only be starting.
                    let knows_it_not =
                        !tells && vouched.asked_again(&device) > self.plan.paces.identity_tries;
                    if tells || knows_it_not && !self.has_said_whose(&device) {
                        vouched.withhold.remove(&device);
                        // Asked in each session, also of who has no answer: in another one it may be another's.
                        ours.insert(device, said.epoch.map(|epoch| epoch.id));
                        continue;
                    }
                    knows_it_not
                }
                Err(error) => knows_it_not(error.kind, vouched.asked_again(&device)),
            };
            match (knows_it_not, self.has_said_whose(&device)) {
                (true, false) => {
                    vouched.unknowing.insert(device.clone());
                    ours.insert(device, None);
                }
                (true, true) => {
                    vouched.withhold.insert(device);
                }
                (false, _) => {}
            }
        }
        Ok(Some(ours))
    }
}
