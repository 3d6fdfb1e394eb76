//! Whose machine a device controls (S13): asked before what was learned of it is acted on.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::{Identity, IdentityMatch};
use picket_core::ids::DeviceId;
use picket_core::outcome::Reason;
use picket_driver::DriverError;

use super::hands::{Did, Doing};
use super::{Fatal, NodeTask};

impl NodeTask {
    /// Asks these devices whose machine they control. What they said, or why they did not; `None`: one of them says that it is another
    /// one, and a person is told.
    pub(super) async fn whose(
        &mut self,
        devices: &[DeviceId],
    ) -> Result<Option<Vec<(DeviceId, Result<Identity, DriverError>)>>, Fatal> {
        self.lingering.clear();
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().map(|device| self.hands.identify(device)).collect();
        let mut all = Vec::new();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            let Did::Identified(said) = did else { continue };
            let expected = self.expected_identity(&device);
            if let Ok(said) = &said
                && expected.compare(said) == IdentityMatch::Mismatch
            {
                let detail = mismatch(&device, said, &expected);
                self.give_up(Reason::IdentityMismatch, detail).await?;
                return Ok(None);
            }
            all.push((device, said));
        }
        Ok(Some(all))
    }
}

/// That a device controls another machine, in words.
pub(super) fn mismatch(device: &DeviceId, said: &Identity, expected: &Identity) -> String {
    let (says, wanted) = (said.words(), expected.words());
    format!("{device} says it controls {says}, expected {wanted}: nothing was sent to it")
}
