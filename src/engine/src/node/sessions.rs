//! What happens to the devices' sessions while a fence is open: a loss, or a silence, is stored and binds successors (S2).

use std::collections::{BTreeMap, BTreeSet};

use picket_core::confirm::SILENCE;
use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::ids::{DeviceId, FenceId};
use picket_core::power::{Began, Epoch, Power};
use picket_core::record::{NodeRecord, Phase};
use picket_core::time::BootTime;
use picket_driver::{DriverError, Effect, ErrorKind};

use super::hands::Did;
use super::{Fatal, NodeTask};

/// What this process heard, and what of it is not stored yet.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// When the node's fences began, one after the other until it is back. What had stopped answering before was not lost
    /// within them.
    pub(super) began: Began,
    /// When a person said, to this process, that he looked at the machine after a BMC restarted within this fence.
    pub(super) seen_off_at: Option<BootTime>,
    /// The fence that was open when this process led last.
    pub(super) fence: Option<FenceId>,
    /// The session in which each device answered last.
    heard: BTreeMap<DeviceId, u64>,
    /// Devices that told of a life of their own.
    told: BTreeSet<DeviceId>,
    lost: BTreeSet<DeviceId>,
    silent: BTreeMap<DeviceId, bool>,
    /// Devices that said On.
    on: BTreeSet<DeviceId>,
    unseen: Unseen,
}

/// Devices whose restarts nothing shows but their silence, and sessions that they refuse.
#[derive(Debug, Default)]
struct Unseen {
    /// When each answered last in this fence.
    answered: BTreeMap<DeviceId, BootTime>,
    /// Those that left a question unanswered since.
    quiet: BTreeSet<DeviceId>,
    /// Those that may have restarted, until that is acted on.
    restarted: BTreeSet<DeviceId>,
}

impl Unseen {
    /// Whether this answer shows that the device may have restarted.
    fn shows_restart(&mut self, device: &DeviceId, heard: Heard<'_>, refused_at: Option<BootTime>) -> bool {
        let before = self.answered.get(device).copied();
        let refused = before.zip(refused_at).is_some_and(|(before, refused)| refused >= before);
        match heard {
            Heard::Answer { asked_at, answered_at } => {
                let was_quiet = self.quiet.remove(device);
                // Where nothing was asked for so long nothing is known to be wrong: a fenced node is watched at its own pace.
                let silent = before.is_some_and(|before| asked_at.since(before) >= SILENCE);
                self.answered.insert(device.clone(), answered_at);
                refused || was_quiet && silent
            }
            Heard::Nothing { error, asked_at } => {
                // From a command on that it may have taken it is to be heard.
                if error.effect == Effect::Unknown {
                    self.answered.entry(device.clone()).or_insert(asked_at);
                }
                // An agent has no word of its own for a BMC that is silent. What was never asked left nothing unanswered.
                let was_asked = !matches!(error.kind, ErrorKind::NotLeader | ErrorKind::NoTurn);
                if was_asked && self.answered.contains_key(device) {
                    self.quiet.insert(device.clone());
                }
                false
            }
        }
    }
}

/// What a device was heard to say, whatever it was asked.
#[derive(Clone, Copy, Debug)]
enum Heard<'d> {
    Answer { asked_at: BootTime, answered_at: BootTime },
    Nothing { error: &'d DriverError, asked_at: BootTime },
}

impl<'d> Heard<'d> {
    /// What a call shows of that. `now`: its answer came now, where it does not say when. A command that was begun under a hold's or
    /// an on's order is asked for at a moment that nobody keeps: it shows an answer, and no silence.
    fn of(did: &'d Did, now: BootTime) -> Option<Self> {
        match did {
            Did::Read { result: Ok(reading), .. } => {
                Some(Self::Answer { asked_at: reading.asked_at, answered_at: reading.answered_at })
            }
            Did::Off { result: Ok(taken), .. } => {
                Some(Self::Answer { asked_at: taken.asked_at, answered_at: taken.answered_at })
            }
            Did::Identified { asked_at, result: Ok(said) } if !said.identity.is_empty() => {
                Some(Self::Answer { asked_at: *asked_at, answered_at: now })
            }
            Did::Inspected { asked_at, result: Ok(found) } if !found.is_empty() => {
                Some(Self::Answer { asked_at: *asked_at, answered_at: now })
            }
            Did::Held { asked_at, result: Ok(_), .. } => {
                Some(Self::Answer { asked_at: *asked_at, answered_at: now })
            }
            Did::Read { asked_at, result: Err(error) }
            | Did::Off { asked_at, result: Err(error), .. }
            | Did::Held { asked_at, result: Err(error), .. }
            | Did::Identified { asked_at, result: Err(error) }
            | Did::Inspected { asked_at, result: Err(error) } => {
                Some(Self::Nothing { error, asked_at: *asked_at })
            }
            _ => None,
        }
    }
}

/// Whether an error may stand for a device that answers nothing in its session: also what comes of making the next one. What it
/// answered to a question is none.
fn is_silence(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::TimedOut
        | ErrorKind::Unreachable
        | ErrorKind::Throttled
        | ErrorKind::Authentication
        | ErrorKind::Protocol => true,
        ErrorKind::NotLeader
        | ErrorKind::NoTurn
        | ErrorKind::Settings
        | ErrorKind::Unsupported
        | ErrorKind::Refused
        | ErrorKind::Forbidden
        | ErrorKind::IdentityMismatch => false,
    }
}

/// The life of the device in which it was answered, where the answer says it.
fn life(did: &Did) -> Option<Epoch> {
    match did {
        Did::Read { result: Ok(reading), .. } => reading.epoch,
        Did::Identified { result: Ok(said), .. } => said.epoch,
        Did::Off { result: Ok(taken), .. } => taken.epoch,
        _ => None,
    }
}

impl Sessions {
    /// Those of a fence that begins now: what went before is none of its matter.
    pub(super) fn since(began: BootTime) -> Self {
        Self { began: Began::Here(began), ..Self::default() }
    }

    /// Other drivers count the lives of their devices anew, and what was silent to those before is lost to them, as it is to another process.
    pub(super) fn of_other_drivers(&mut self) {
        self.heard.clear();
        self.told.clear();
        let silent = std::mem::take(&mut self.silent);
        self.lost.extend(silent.into_iter().filter(|(_, silent)| *silent).map(|(device, _)| device));
    }

    /// What the next leadership here goes on with. What fell silent to another process is lost to this one: its sessions
    /// are others. Of a fence that another process began nobody here knows when that was.
    pub(super) fn taking_over(mut self, record: &NodeRecord, now: BootTime) -> Self {
        let fence = record.fence.as_ref().map(|fence| fence.id);
        if self.fence != fence {
            // What this process saw in an earlier fence is none of this one's matter.
            self = Self { began: Began::Elsewhere { led_since: now }, fence, ..Self::default() };
        }
        let silent = record.fence.iter().flat_map(|fence| &fence.silent);
        self.lost.extend(silent.filter(|device| self.silent.get(*device) != Some(&true)).cloned());
        self
    }

    /// Notes what a call came to of a device whose restarts nothing else shows. `refused_at`: when it refused a session last.
    pub(super) fn note_unseen(
        &mut self,
        device: &DeviceId,
        did: &Did,
        refused_at: Option<BootTime>,
        now: BootTime,
    ) {
        let Some(heard) = Heard::of(did, now) else { return };
        if self.unseen.shows_restart(device, heard, refused_at) {
            self.unseen.restarted.insert(device.clone());
            self.lost.insert(device.clone());
        }
        // A successor knows nothing of the answers to this process: to it a silence is a loss, as that of a session is.
        if self.unseen.answered.contains_key(device) {
            self.silent.insert(device.clone(), self.unseen.quiet.contains(device));
        }
    }

    /// The same of one that tells of its lives: it answered.
    pub(super) fn note_seen(&mut self, device: &DeviceId, did: &Did, now: BootTime) {
        if let Some(Heard::Answer { answered_at, .. }) = Heard::of(did, now) {
            self.unseen.answered.insert(device.clone(), answered_at);
            self.unseen.quiet.remove(device);
        }
    }

    /// Whether the device told of a life of its own in this fence.
    pub(super) fn told_a_life(&self, device: &DeviceId) -> bool {
        self.told.contains(device)
    }

    /// Whether the device may have restarted, and nobody took note of it yet.
    pub(super) fn may_have_restarted(&self, device: &DeviceId) -> bool {
        self.unseen.restarted.contains(device)
    }

    /// Whether the device may have restarted since this was asked last.
    pub(super) fn takes_restart(&mut self, device: &DeviceId) -> bool {
        self.unseen.restarted.remove(device)
    }

    /// The devices that may have restarted since this was asked last.
    pub(super) fn take_restarts(&mut self) -> BTreeSet<DeviceId> {
        std::mem::take(&mut self.unseen.restarted)
    }

    /// Notes what a call to a device came to.
    pub(super) fn note(&mut self, device: &DeviceId, did: &Did) {
        if let Did::Read { result: Ok(reading), .. } = did
            && reading.power == Power::On
        {
            self.on.insert(device.clone());
        }
        if let Some(epoch) = life(did) {
            return self.heard_in(device, epoch);
        }
        match did {
            Did::Read { result: Err(error), .. }
            | Did::Identified { result: Err(error), .. }
            | Did::Inspected { result: Err(error), .. }
            | Did::Held { result: Err(error), .. }
            | Did::Off { result: Err(error), .. }
                if is_silence(error.kind) && self.heard.contains_key(device) =>
            {
                self.silent.insert(device.clone(), true);
            }
            // Ended by ourselves: the next one is no news.
            Did::Quiesced(Ok(())) => {
                self.heard.remove(device);
                self.silent.entry(device.clone()).and_modify(|silent| *silent = false);
            }
            _ => {}
        }
    }

    /// The device answered in that life.
    fn heard_in(&mut self, device: &DeviceId, epoch: Epoch) {
        self.told.insert(device.clone());
        let before = self.heard.insert(device.clone(), epoch.id);
        if before == Some(epoch.id) {
            // A silence that a predecessor noted was in another session: that one never answers again.
            self.silent.entry(device.clone()).and_modify(|silent| *silent = false);
            return;
        }
        let fell_silent = self.silent.remove(device) == Some(true);
        // Other settings make other drivers, which count anew.
        let before = before.filter(|before| *before < epoch.id);
        let news = before.is_none_or(|before| epoch.was_lost_after(before));
        if news && epoch.was_lost_since(self.began) || fell_silent {
            self.lost.insert(device.clone());
        }
    }
}

impl NodeTask {
    /// Stores what sessions went through since the last time, while a fence is open. Whoever acts on an answer calls this
    /// before.
    pub(super) async fn store_sessions(&mut self) -> Result<(), Fatal> {
        let Some(fence) = &self.record().fence else {
            self.sessions = Sessions::default();
            return Ok(());
        };
        let known =
            |device: &&DeviceId| fence.topology.device(device).is_some_and(|spec| spec.class.has_sessions());
        let lost: Vec<DeviceId> = self
            .sessions
            .lost
            .iter()
            .filter(known)
            .filter(|one| !fence.lost.contains(*one) || fence.seen_off.contains(*one))
            .cloned()
            .collect();
        let silent: Vec<(DeviceId, bool)> = self
            .sessions
            .silent
            .iter()
            .filter(|(device, silent)| known(device) && fence.silent.contains(*device) != **silent)
            .filter(|(device, _)| !lost.contains(device))
            .map(|(device, silent)| (device.clone(), *silent))
            .collect();
        // Each is forgotten only once it is stored: this may end in the middle, with the leadership, while the store is away.
        self.sessions.lost.retain(|device| lost.contains(device));
        for device in lost {
            tracing::warn!(%device, "the device's session was lost while the node is fenced");
            self.persist(|| Event::Lost { device: device.clone() }).await?;
            self.sessions.lost.remove(&device);
        }
        for (device, silent) in silent {
            self.persist(|| Event::Silent { device: device.clone(), silent }).await?;
        }
        self.store_on().await
    }

    /// A host device said On: what let an Off of this fence be believed all the same is over.
    async fn store_on(&mut self) -> Result<(), Fatal> {
        let Some(fence) = &self.record().fence else { return Ok(()) };
        // A node that was proven off, and is found on, is in breach: that goes first, and ends both by itself.
        let is_open = match self.record().phase {
            Phase::Fencing => true,
            Phase::NeedsOperator(_) => fence.evidence.is_none(),
            _ => false,
        };
        let is_believed = is_open && !(fence.seen_off.is_empty() && fence.proved_held.is_empty());
        let is_host = |device: &DeviceId| {
            fence.topology.device(device).is_some_and(|spec| spec.class == DeviceClass::Host)
        };
        let on = self.sessions.on.iter().find(|device| is_believed && is_host(device)).cloned();
        if let Some(device) = on {
            self.persist(|| Event::SeenOn { device: device.clone() }).await?;
        }
        self.sessions.on.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use picket_core::power::{Epoch, Loss, Power, Reading};

    use super::*;

    fn read(epoch: Epoch) -> Did {
        let at = BootTime::default();
        let reading = Reading {
            power: Power::Off,
            asked_at: at,
            answered_at: at,
            epoch: Some(epoch),
            said: String::new(),
            lowered_by: None,
        };
        Did::Read { asked_at: at, result: Ok(reading) }
    }

    /// Other settings make other drivers, also while another process leads: the number says nothing across them, the loss does.
    #[test]
    fn a_loss_of_a_driver_made_anew_is_not_hidden_by_the_numbers_of_the_one_before() {
        let bmc = DeviceId::new("bmc").expect("a good name");
        for lost in [true, false] {
            let mut sessions = Sessions::default();
            sessions.note(&bmc, &read(Epoch { id: 5, loss: None }));
            let loss = lost.then_some(Loss { epoch: 2, since: BootTime::default() });
            sessions.note(&bmc, &read(Epoch { id: 2, loss }));
            assert_eq!(sessions.lost.contains(&bmc), lost);
        }
    }

    #[test]
    fn a_silence_in_an_earlier_fence_is_no_loss_in_one_that_another_process_began() {
        let bmc = DeviceId::new("bmc").expect("a good name");
        let mut sessions =
            Sessions { fence: Some(FenceId::mint(Default::default(), [1; 10])), ..Sessions::default() };
        sessions.note(&bmc, &read(Epoch { id: 1, loss: None }));
        let silent = DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, "no answer");
        sessions.note(&bmc, &Did::Read { asked_at: BootTime::default(), result: Err(silent) });
        let record = NodeRecord::new(picket_core::ids::NodeId::new("n1").expect("a good name"));
        let mut sessions = sessions.taking_over(&record, BootTime::default());
        sessions.note(&bmc, &read(Epoch { id: 2, loss: None }));
        assert!(sessions.lost.is_empty() && sessions.silent.is_empty(), "{sessions:?}");
    }

    #[test]
    fn a_loss_is_told_once_and_an_older_one_is_no_news() {
        let bmc = DeviceId::new("bmc").expect("a good name");
        let loss = Some(Loss { epoch: 2, since: BootTime::default() });
        let mut sessions = Sessions::default();
        for (id, news) in [(2, true), (2, false), (3, false)] {
            sessions.note(&bmc, &read(Epoch { id, loss }));
            assert_eq!(sessions.lost.remove(&bmc), news, "epoch {id}");
        }
    }
}
