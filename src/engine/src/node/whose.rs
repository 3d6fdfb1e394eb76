//! Whose machine a device controls (S13): asked before what was learned of it is acted on.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::{DeviceClass, Identity, IdentityMatch};
use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::outcome::Reason;
use picket_core::record::Bringing;
use picket_driver::{DriverError, ErrorKind};

use super::hands::{Did, Doing, Hands};
use super::{Fatal, NodeTask};

/// What devices said of whose machine they control.
#[derive(Debug, Default)]
pub(super) struct Whose {
    /// Not another one's: what was said, or why nothing.
    pub(super) ours: Vec<(DeviceId, Result<Identity, DriverError>)>,
    /// Another machine's, in words.
    pub(super) others: Vec<(DeviceId, String)>,
}

/// Whose machines devices control that are to be switched on.
#[derive(Debug, Default)]
pub(super) struct Vouched {
    ours: BTreeSet<DeviceId>,
    /// How often one did not say.
    unanswered: BTreeMap<DeviceId, u32>,
    /// Those that answer when they are asked for power.
    answer: BTreeSet<DeviceId>,
}

/// So often a device that is expected to say whose it is says nothing of it, before it is believed not to know.
const KNOWN: u32 = 10;

impl Vouched {
    /// It answered when it was asked for power: what it left unanswered before says nothing.
    pub(super) fn answers(&mut self, device: &DeviceId) {
        if self.answer.insert(device.clone()) {
            self.unanswered.remove(device);
        }
    }

    /// How often it did not say since it answers at all.
    fn asked_again(&mut self, device: &DeviceId) -> u32 {
        let times = self.unanswered.entry(device.clone()).or_default();
        *times += u32::from(self.answer.contains(device));
        *times
    }
}

fn is_host_of(hands: &Hands, device: &DeviceId) -> bool {
    hands.class(device) == Some(DeviceClass::Host)
}

impl NodeTask {
    /// Asks these devices whose machine they control.
    pub(super) async fn ask_whose(&mut self, devices: &[DeviceId]) -> Whose {
        self.lingering.clear();
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().map(|device| self.hands.identify(device)).collect();
        let mut whose = Whose::default();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            let Did::Identified(said) = did else { continue };
            let expected = self.expected_identity(&device);
            match &said {
                Ok(said) if expected.compare(said) == IdentityMatch::Mismatch => {
                    let detail = mismatch(&device, said, &expected);
                    whose.others.push((device, detail));
                }
                _ => whose.ours.push((device, said)),
            }
        }
        whose
    }

    /// The same. `None`: one of them controls another machine, and a person is told.
    pub(super) async fn whose(
        &mut self,
        devices: &[DeviceId],
    ) -> Result<Option<Vec<(DeviceId, Result<Identity, DriverError>)>>, Fatal> {
        let Whose { ours, others } = self.ask_whose(devices).await;
        match others.into_iter().next() {
            None => Ok(Some(ours)),
            Some((_, detail)) => {
                self.give_up(Reason::IdentityMismatch, detail).await?;
                Ok(None)
            }
        }
    }

    /// Whether none of these devices controls another machine by now: a board may have been exchanged. False: one does, and a person is
    /// told. A person who stands the node down was: what that device holds is another machine's, and is let be.
    pub(super) async fn are_ours_to_undo(&mut self, held: &[DeviceId]) -> Result<bool, Fatal> {
        let others = self.ask_whose(held).await.others;
        let Some((_, detail)) = others.first() else { return Ok(true) };
        if self.record().bringing != Bringing::StandDown {
            self.give_up(Reason::IdentityMismatch, detail.clone()).await?;
            return Ok(false);
        }
        let devices: Vec<DeviceId> = others.iter().map(|(device, _)| device.clone()).collect();
        let detail = format!("not put back: {detail}");
        self.persist(|| Event::Unheld { devices: devices.clone(), detail: detail.clone() }).await?;
        Ok(true)
    }

    /// Those of the dark devices that were asked whose machine they control, and did not say another's (S13): somebody else's would
    /// be switched on, and may be fenced. Who only starts answers later; who answers and does not know the question is ours. `None`:
    /// one does say so, and a person is told.
    pub(super) async fn vouched(
        &mut self,
        vouched: &mut Vouched,
        dark: &BTreeSet<DeviceId>,
    ) -> Result<Option<BTreeSet<DeviceId>>, Fatal> {
        let is_new = |device: &&DeviceId| is_host_of(&self.hands, device) && !vouched.ours.contains(*device);
        let asked: Vec<DeviceId> = dark.iter().filter(is_new).cloned().collect();
        let Some(said) = self.whose(&asked).await? else { return Ok(None) };
        for (device, said) in said {
            let knows_it_not = match said {
                Ok(said) if !said.is_empty() || self.expected_identity(&device).is_empty() => true,
                // It knew the question before, and may only be starting.
                Ok(_) => vouched.asked_again(&device) > KNOWN,
                Err(error) => match error.kind {
                    ErrorKind::Unsupported => true,
                    // Nothing is sent to it either.
                    ErrorKind::Unreachable
                    | ErrorKind::Authentication
                    | ErrorKind::IdentityMismatch
                    | ErrorKind::NotLeader
                    | ErrorKind::Settings => false,
                    ErrorKind::TimedOut
                    | ErrorKind::Throttled
                    | ErrorKind::Forbidden
                    | ErrorKind::Refused
                    | ErrorKind::Protocol => vouched.asked_again(&device) > 2,
                },
            };
            if knows_it_not {
                vouched.ours.insert(device);
            }
        }
        let ours =
            dark.iter().filter(|device| !is_host_of(&self.hands, device) || vouched.ours.contains(*device));
        Ok(Some(ours.cloned().collect()))
    }
}

/// That a device controls another machine, in words.
pub(super) fn mismatch(device: &DeviceId, said: &Identity, expected: &Identity) -> String {
    let (says, wanted) = (said.words(), expected.words());
    format!("{device} says it controls {says}, expected {wanted}: nothing was sent to it")
}
