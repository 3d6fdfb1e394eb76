//! Whose machine a device controls (S13): asked before what was learned of it is acted on, also on the way
//! to an on and to the undoing of a hold.
//!
//! # Invariants
//!
//! - Nothing is put back or switched on at another machine. Shown by
//!   `nothing_is_put_back_or_switched_on_that_is_another_machine`,
//!   `an_unfence_whose_bmc_is_another_from_any_request_on_brings_no_other_back`.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::{DeviceClass, Identity, IdentityMatch};
use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::ids::DeviceId;
use picket_core::outcome::Reason;
use picket_core::record::{Bringing, Fence, Phase, Said};
use picket_driver::{DriverError, ErrorKind, Identified};

use super::hands::{Did, Doing, Hands};
use super::{Fatal, NodeTask};

/// What devices said of whose machine they control.
#[derive(Debug, Default)]
pub(super) struct Whose {
    /// Not another one's: what was said, or why nothing.
    pub(super) ours: Vec<(DeviceId, Result<Identified, DriverError>)>,
    /// Another machine's, in words.
    pub(super) others: Vec<(DeviceId, String)>,
}

/// In which life of each device it said that it controls ours: what is sent to it goes in no other. `None`: it has none, or does not
/// know the question.
pub(super) type Ours = BTreeMap<DeviceId, Option<u64>>;

/// Whether a device that was asked so often whose machine it controls, and gave no answer, does not know the question.
pub(super) fn knows_it_not(kind: ErrorKind, times: u32) -> bool {
    match kind {
        ErrorKind::Unsupported => true,
        // Nothing is sent to it either.
        ErrorKind::Unreachable
        | ErrorKind::Authentication
        | ErrorKind::IdentityMismatch
        | ErrorKind::NotLeader
        | ErrorKind::NoTurn
        | ErrorKind::Settings => false,
        ErrorKind::TimedOut
        | ErrorKind::Throttled
        | ErrorKind::Forbidden
        | ErrorKind::Refused
        | ErrorKind::Protocol => times > 2,
    }
}

pub(super) fn is_host_of(hands: &Hands, device: &DeviceId) -> bool {
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
            let Did::Identified { result: said, .. } = did else { continue };
            let identity = said.as_ref().map(|said| said.identity.clone()).unwrap_or_default();
            match self.another_s(&device, &identity) {
                Some(detail) => {
                    // It is asked again before anything that it says counts.
                    self.asked_whose_in.remove(&device);
                    whose.others.push((device, detail));
                }
                None => whose.ours.push((device, said)),
            }
        }
        whose
    }

    /// The same. `None`: one of them controls another machine, and a person is told.
    pub(super) async fn whose(
        &mut self,
        devices: &[DeviceId],
    ) -> Result<Option<Vec<(DeviceId, Result<Identified, DriverError>)>>, Fatal> {
        let Whose { ours, others } = self.ask_whose(devices).await;
        match others.into_iter().next() {
            None => Ok(Some(ours)),
            Some((_, detail)) => {
                self.give_up(Reason::IdentityMismatch, detail).await?;
                Ok(None)
            }
        }
    }

    /// The lives in which these devices said whose machine they control: a board may have been exchanged. A device that said it before, and
    /// does not now, is none of them. `None`: one of them controls another machine, and a person is told. Where a person stands the node
    /// down he was told: what that device holds is another machine's, and is let be.
    /// `tries`: how often they were asked before.
    pub(super) async fn ours_to_undo(
        &mut self,
        held: &[DeviceId],
        tries: u32,
    ) -> Result<Option<Ours>, Fatal> {
        let Whose { ours, others } = self.ask_whose(held).await;
        if let Some((_, detail)) = others.first() {
            if self.record().bringing != Bringing::StandDown {
                self.give_up(Reason::IdentityMismatch, detail.clone()).await?;
                return Ok(None);
            }
            let devices: Vec<DeviceId> = others.iter().map(|(device, _)| device.clone()).collect();
            let detail = format!("not put back: {detail}");
            self.persist(|| Event::Unheld { devices: devices.clone(), detail: detail.clone() }).await?;
        }
        let mut lives = Ours::new();
        for (device, said) in ours {
            let said = match said {
                Ok(said) => said,
                Err(error) if knows_it_not(error.kind, tries + 1) => Identified::default(),
                // It may only be starting, and in the next session another machine may answer.
                Err(_) => continue,
            };
            if !said.identity.is_empty() || !self.has_said_whose(&device) {
                lives.insert(device, said.epoch.map(|epoch| epoch.id));
            }
        }
        Ok(Some(lives))
    }

    /// Devices that have said whose machine they control, in this fence, to this process, or at an earlier check to whichever: that they say
    /// nothing now is no answer (S13).
    pub(super) fn have_said_whose(&self) -> BTreeSet<DeviceId> {
        let in_fence = self.record().fence.iter().flat_map(|fence| &fence.identified);
        let at_a_check = self.record().learned.keys().filter(|device| self.told_a_check(device));
        self.said_whose.iter().chain(in_fence).chain(at_a_check).cloned().collect()
    }

    /// Whether what is known of a device whose identity was learned is its own word. What its settings give it may never have said; nor does an
    /// agent in its place say anything.
    fn told_a_check(&self, device: &DeviceId) -> bool {
        let is_agent = self.plan.drivers.get(device).is_some_and(|driver| driver.runs_programs());
        !is_agent && self.stands_by().device(device).is_some_and(|spec| spec.identity.is_empty())
    }

    pub(super) fn has_said_whose(&self, device: &DeviceId) -> bool {
        let says = |said: &Said| !said.identity.is_empty();
        self.said_first.get(device).is_some_and(says) || self.have_said_whose().contains(device)
    }

    /// A device was asked whose machine it controls, and answered.
    pub(super) fn said_now(&mut self, device: &DeviceId, said: &Identified) {
        if let Some(epoch) = said.epoch {
            self.asked_whose_in.insert(device.clone(), epoch.id);
        }
        if self.record().phase != Phase::Normal {
            let said = self.said(device, &said.identity);
            self.said_first.entry(device.clone()).or_default().add(said);
        }
    }

    fn said(&self, device: &DeviceId, identity: &Identity) -> Said {
        let far_side = self.plan.drivers.get(device).and_then(|driver| driver.far_side());
        Said { identity: identity.clone(), far_side }
    }

    /// What comparing what the device says says, and why that tells nobody whose machine it is, if so.
    pub(super) fn told_apart(&self, device: &DeviceId, said: &Identity) -> (IdentityMatch, Option<String>) {
        let compared = self.expected_identity(device).compare(said);
        match (compared, self.claimed_by_another(device, said)) {
            (IdentityMatch::Mismatch, _) => (IdentityMatch::Mismatch, None),
            (_, Some(other)) => (IdentityMatch::Unknown, Some(other)),
            (compared, None) => (compared, None),
        }
    }

    /// Why what the device says tells nobody whose machine it controls, in words: another node's device claims the same of itself; or where
    /// nothing is known of this one, that machine is known to be another's, or another device of the node is known to control another one.
    pub(super) fn claimed_by_another(&self, device: &DeviceId, said: &Identity) -> Option<String> {
        let twins = &self.parts.twins;
        if let Some((node, other)) = twins.twin_of(&self.plan.id, device, said) {
            return Some(format!("and so does {node}/{other}"));
        }
        if self.is_known_as(device, said) {
            return None;
        }
        if let Some((node, other)) = twins.expected_of_another(&self.plan.id, said) {
            return Some(format!("which is what {node}/{other} is to control"));
        }
        let differs = |other: &DeviceId| {
            let known = self.expected_identity(other).identity;
            let is_another = other != device && known.compare(said) == IdentityMatch::Mismatch;
            is_another.then(|| format!("and {other} is to control {}", known.words()))
        };
        self.hosts().iter().find_map(differs)
    }

    /// What is known of the device's machine is another by now.
    pub(super) fn expects(&self, device: &DeviceId) {
        self.parts.twins.expects(&self.plan.id, device, self.expected_identity(device).identity);
    }

    /// What the device said first within this fence, where nobody knows whether that is right, and it is not stored yet.
    pub(super) fn said_and_not_stored(&self, device: &DeviceId, said: &Identity) -> Option<Said> {
        let is_unknown = self.told_apart(device, said).0 == IdentityMatch::Unknown;
        let stored = |fence: &Fence| fence.said.contains_key(device);
        let first = self.said_first.get(device).filter(|said| **said != Said::default())?;
        (is_unknown && !self.record().fence.as_ref().is_some_and(stored)).then(|| first.clone())
    }

    /// Why nothing may be sent to the device, in words: it controls another machine than the node's, or one that an orphan keeps off; or,
    /// where nobody knows which machine is the node's, one that another node claims, or another far side answers than before within
    /// this fence.
    pub(super) fn another_s(&self, device: &DeviceId, said: &Identity) -> Option<String> {
        if let Some(machine) = self.parts.twins.kept_off_by(said) {
            return Some(format!("{device} says it controls {machine}; nothing was sent to it"));
        }
        let (expected, is_known) = (self.expected_identity(device), self.is_known_as(device, said));
        if !is_known && self.parts.own.says(said) {
            return Some(format!(
                "{device} says it controls {}, on which this gateway stands: nothing was sent to it; give its `identity` in the settings",
                said.words()
            ));
        }
        match self.told_apart(device, said) {
            (IdentityMatch::Mismatch, _) => Some(mismatch(device, said, &expected.identity)),
            // It is likelier that the device's address is wrong than that two boards say the same; and the other one would be switched off.
            // What was learned from the device itself tells no more than what the other one says.
            (_, Some(other)) if expected.compare(said) != IdentityMatch::Match => Some(format!(
                "{device} says it controls {}, {other}: nothing was sent to it; if its address is right, give its `identity` in the settings",
                said.words()
            )),
            (IdentityMatch::Unknown, _) => {
                let (first, now) = (self.said_first.get(device)?, self.said(device, said));
                let (says, before) = (now.words(), first.words());
                first.is_another_than(&now).then(|| {
                    format!("{device} says it is {says}, and said {before} before in this fence: nothing more is sent to it; if that is right, give its `identity` in the settings")
                })
            }
            (IdentityMatch::Match | IdentityMatch::Learned, _) => None,
        }
    }

    /// Takes away what devices say that control another machine by now: in each new life one is asked before what it says counts (S13).
    /// Of a node that nobody stood down a person is told, where he is not waited for already.
    pub(super) async fn let_others_be(&mut self, looks: &mut [Look]) -> Result<(), Fatal> {
        let exchanged = std::mem::take(&mut self.exchanged);
        let told = exchanged.first_key_value().map(|(device, detail)| format!("{device}: {detail}"));
        let found = self.others_among(looks).await.or(told);
        let is_stood_down = self.record().bringing == Bringing::StandDown;
        let tells_a_person = match self.record().phase {
            Phase::Released => true,
            Phase::Unfencing => !is_stood_down,
            _ => false,
        };
        match found.filter(|_| tells_a_person) {
            Some(detail) => self.give_up(Reason::IdentityMismatch, detail).await,
            None => Ok(()),
        }
    }

    /// Takes away what those say that began a new life, and control another machine in it; of one of them what it said, in words.
    async fn others_among(&mut self, looks: &mut [Look]) -> Option<String> {
        let life =
            |look: &Look| look.reading.as_ref().and_then(|reading| reading.epoch).map(|epoch| epoch.id);
        let new: BTreeMap<DeviceId, u64> = looks
            .iter()
            .filter(|look| is_host_of(&self.hands, &look.device))
            .filter_map(|look| Some((look.device.clone(), life(look)?)))
            .filter(|(device, life)| self.asked_whose_in.get(device) != Some(life))
            .collect();
        if new.is_empty() {
            return None;
        }
        let asked: Vec<DeviceId> = new.keys().cloned().collect();
        let Whose { ours, others } = self.ask_whose(&asked).await;
        for (device, said) in ours {
            let tells = said.as_ref().is_ok_and(|said| !said.identity.is_empty());
            let told_in = said.ok().and_then(|said| said.epoch).map(|epoch| epoch.id);
            // One that never knew the question is not asked again in this life.
            let counts = match tells {
                true => told_in == new.get(&device).copied(),
                false => !self.has_said_whose(&device),
            };
            if counts {
                self.asked_whose_in.extend(new.get(&device).map(|life| (device, *life)));
            } else {
                looks.iter_mut().filter(|look| look.device == device).for_each(|look| look.reading = None);
            }
        }
        for (device, _) in &others {
            self.asked_whose_in.remove(device);
            looks.iter_mut().filter(|look| look.device == *device).for_each(|look| look.reading = None);
        }
        others.into_iter().next().map(|(_, detail)| detail)
    }

    /// Those of the devices that do not say they control another machine (S13), and in which life: a board may have been exchanged
    /// since. `None`: one does, and a person is told.
    pub(super) async fn still_ours(
        &mut self,
        devices: &[DeviceId],
        looks: &[Look],
    ) -> Result<Option<Ours>, Fatal> {
        let Some(said) = self.whose(devices).await? else { return Ok(None) };
        // Where it does not tell now in which life it is: where it read On.
        let looked = |device: &DeviceId| {
            let look = looks.iter().find(|look| look.device == *device)?;
            look.reading.as_ref()?.epoch
        };
        let mut ours = Ours::new();
        for (device, said) in said {
            // One was ours when the first off was sent, and it has just answered: it never knew the question.
            let knows_it_not = match &said {
                Ok(said) => said.identity.is_empty(),
                Err(error) => {
                    matches!(error.kind, ErrorKind::Unsupported | ErrorKind::TimedOut | ErrorKind::Throttled)
                }
            };
            if said.is_ok() && !knows_it_not || knows_it_not && !self.has_said_whose(&device) {
                let epoch = said.ok().and_then(|said| said.epoch).or_else(|| looked(&device));
                ours.insert(device, epoch.map(|epoch| epoch.id));
            }
        }
        Ok(Some(ours))
    }
}

/// What was asked was answered of another machine.
pub(super) fn is_another_s(error: &DriverError) -> bool {
    error.kind == ErrorKind::IdentityMismatch
}

/// That a device controls another machine, in words.
fn mismatch(device: &DeviceId, said: &Identity, expected: &Identity) -> String {
    let (says, wanted) = (said.words(), expected.words());
    format!("{device} says it controls {says}, expected {wanted}: nothing was sent to it")
}
