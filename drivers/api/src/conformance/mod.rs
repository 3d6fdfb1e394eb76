//! The conformance suite that every driver runs through: rules S1, S2, S6, S8, S9, S10, S11, S13 and S18 as far as they can
//! be seen from outside, on a device whose truth the test knows; and what one owes besides that knows of volumes (`volumes`).
//!
//! One line for a driver: `conformance::run(&subject).await`, with a [`Subject`] that makes drivers and hurts the
//! device. `drivers/sim/tests/it` runs drivers through it that are wrong on purpose, at least one for each check: a check
//! that nothing fails is none. A simulated device has no paths, and so no redirects: what that check sees is shown in
//! `drivers/redfish/tests/peers`. Only with the feature `conformance`, for tests: what it needs to make orders has no place in the
//! gateway.

mod boards;
mod checks;
mod duties;
mod effects;
mod lateness;
pub mod orders;
mod permits;
mod rig;
mod sessions;
mod volumes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};

use crate::driver::PowerDriver;
use crate::volumes::VolumeAt;

/// What is done to the device, until it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It answers nothing and does nothing.
    Silence,
    /// Once, at once: it restarts and has forgotten its sessions. What it controls stays as it is, and it goes on to
    /// say the truth.
    Restart,
    /// It does not like the credentials of drivers made from now on.
    WrongCredentials,
    /// It answers, but neither On nor Off: with a word that nobody knows.
    Nonsense,
    /// It answers, and leaves out what its power is.
    Missing,
    /// It answers that it is on its way (`PoweringOff`, `stopping`).
    Transition,
    /// It answers that what it controls is not there.
    Gone,
    /// It takes an off at once; the fall comes so much later.
    SlowFall(Duration),
    /// An off while it is off is refused with an error, not said with a flag.
    AlreadyIsError,
    /// Every packet, in both directions, arrives twice.
    Doubled,
    /// What is asked happens; no answer arrives.
    AnswersLost,
    /// Once: the next request to it is lost on its way, whatever it asks. [`Subject::lost_at`] says when.
    FirstCopyLost,
    /// Of each request that arrives a copy arrives again, so much later.
    LateCopies(Duration),
    /// It refuses an off, and does not do it.
    Refuses,
    /// Each of its answers comes so much later; what is asked happens at once.
    SlowAnswers(Duration),
    /// A request is carried out; the head of its answer arrives, and the end of its body does not.
    CutAnswers,
    /// Each path is redirected to itself with, or without, its last slash, on the same scheme, host and port; nothing is done before.
    Redirects,
    /// A login makes a session, and what one needs to use that is not in the answer.
    UselessLogins,
    /// Its machine is off; an off is refused with an error that says nothing of that.
    RepeatRefused,
    /// It says that it controls another machine than before, which [`Subject::identity`] then says too.
    OtherMachine,
}

/// What is done to whoever keeps the volumes, until the device is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeTrouble {
    /// What is asked of volumes is answered with what makes no sense.
    Garbled,
    /// The same with an answer that ends in the middle.
    Cut,
    /// A detach is taken at once; the volume goes so much later.
    SlowDetach(Duration),
    /// A detach happens, and its answer does not arrive; all else is answered.
    DetachUnanswered,
}

/// Who has a volume, in truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The device's machine has it.
    pub ours: bool,
    /// So many other machines have it.
    pub others: usize,
}

/// A detach that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// It named the device's machine.
    pub names_machine: bool,
    /// It named the place at which that has the volume, in the way in which a place is named there.
    pub names_place: bool,
}

/// The volumes of the device's machine, and the ways to look at and move them that do not go through the driver.
#[async_trait]
pub trait Storage: Send + Sync {
    /// A new volume, attached to the device's machine for certain: where that has it.
    async fn attach(&self) -> VolumeAt;

    /// The same, attached to another machine too; `None`: here none can be at two.
    async fn shared(&self) -> Option<VolumeAt>;

    /// Somebody else's hand: takes it from the device's machine and gives it to another one, at the same place there, for certain.
    async fn hand_over(&self, volume: &VolumeAt);

    /// Hurts whoever keeps them. `false`: this subject cannot; what needs it is left out, and said.
    async fn hurt(&self, trouble: VolumeTrouble) -> bool;

    /// The truth: who has it.
    async fn owners(&self, volume: &VolumeAt) -> Owners;

    /// The volume from which the machine runs, which stays.
    async fn root(&self) -> String;

    /// The detaches of that volume that were heard from the driver, whatever became of them.
    async fn detaches(&self, volume: &VolumeAt) -> Vec<Heard>;
}

/// A device under test, and the ways to look at and hurt it that do not go through the driver.
#[async_trait]
pub trait Subject: Send + Sync {
    /// A driver for the device that was never used. Several may live at once.
    fn driver(&self) -> Arc<dyn PowerDriver>;

    /// The clocks in which its readings are stamped.
    fn clock(&self) -> Arc<dyn Clock>;

    /// The truth: whether what it controls is on.
    async fn is_on(&self) -> bool;

    /// Somebody else's hand: switches it, at once and for certain.
    async fn set_power(&self, on: bool);

    /// How many commands that change something have reached the device; `None` if nobody can tell.
    async fn commands(&self) -> Option<u64>;

    /// Hurts the device. `false`: this subject cannot; what needs it is left out, and said.
    async fn hurt(&self, trouble: Trouble) -> bool;

    /// Ends all troubles.
    async fn mend(&self);

    /// Whether each command that the device hears was sent by the driver itself, and not by a program of somebody else's that may
    /// send one again.
    fn hears_the_driver(&self) -> bool {
        true
    }

    /// How many sessions are open at the device; `None`: it has none, or nobody can tell.
    async fn sessions(&self) -> Option<u64> {
        None
    }

    /// How long it keeps the slot of a login that nobody went on with: an answer that a client did not wait for names a slot which nobody can
    /// give back. `None`: it keeps none.
    fn half_logins_last(&self) -> Option<Duration> {
        None
    }

    /// After how long the device ends a session in which nothing is said; `None`: it has none, or nobody can tell.
    fn idle_limit(&self) -> Option<Duration> {
        None
    }

    /// What keeps the device's machine off, or does not, as the device truly has it: another text where it is otherwise. Whether a
    /// watchdog runs is not in it, as none is ever started again. `None`: it holds nothing, or nobody can tell.
    async fn hold_state(&self) -> Option<String> {
        None
    }

    /// What the device says of itself, if it was asked right; `None`: it says nothing, or nobody can tell.
    async fn identity(&self) -> Option<Identity> {
        None
    }

    /// The volumes of its machine, where the driver knows of them.
    fn storage(&self) -> Option<&dyn Storage> {
        None
    }

    /// When [`Trouble::FirstCopyLost`] lost the request, on the clock of [`Subject::clock`].
    async fn lost_at(&self) -> Option<BootTime> {
        None
    }

    /// How long a call may take that is not about time, where the driver's own is too short for a machine that is busy.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// What no debug print and no error may contain.
    fn secrets(&self) -> Vec<String>;
}

/// What the suite did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Checks that were passed.
    pub passed: Vec<&'static str>,
    /// Checks that this subject cannot show, as it cannot be hurt that way.
    pub left_out: Vec<&'static str>,
    /// The driver knows of volumes; without, nothing is said of the checks that are about them.
    pub has_volumes: bool,
}

/// A driver that does not conform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The check.
    pub check: &'static str,
    /// What was seen, and what would be right.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)
    }
}

impl std::error::Error for Failure {}

/// What the checks are called, in the order in which they are run: those of every driver, then those of one that knows of volumes.
pub fn names() -> impl Iterator<Item = &'static str> {
    checks::ALL.iter().map(|(name, _)| *name).chain(volume_names())
}

/// What those are called that are about volumes.
pub fn volume_names() -> impl Iterator<Item = &'static str> {
    checks::OF_VOLUMES.iter().map(|(name, _)| *name)
}

/// Runs every check, each with a driver of its own on a device that is on and unhurt.
///
/// # Errors
/// The first check that fails.
pub async fn run(subject: &dyn Subject) -> Result<Report, Failure> {
    let has_volumes = subject.driver().volumes().is_some() || subject.storage().is_some();
    let mut report = Report { has_volumes, ..Report::default() };
    for name in names().filter(|name| has_volumes || volume_names().all(|other| other != *name)) {
        if run_one(subject, name).await? { report.passed.push(name) } else { report.left_out.push(name) }
    }
    subject.mend().await;
    subject.set_power(true).await;
    Ok(report)
}

/// Runs the check of that name; whether this subject can show it.
///
/// # Errors
/// It fails, or there is none of that name.
pub async fn run_one(subject: &dyn Subject, name: &str) -> Result<bool, Failure> {
    let mut all = checks::ALL.iter().chain(checks::OF_VOLUMES);
    let Some((check, body)) = all.find(|(known, _)| *known == name) else {
        return Err(Failure { check: "the suite", what: format!("it has no check {name:?}") });
    };
    subject.mend().await;
    subject.set_power(true).await;
    let failed = |what| Failure { check, what };
    let rig = rig::Rig::new(subject).await.map_err(failed)?;
    let shown = body(&rig).await.map_err(failed)?;
    // Sessions are few; the next check opens its own.
    rig.leave().await;
    Ok(shown == rig::Shown::Yes)
}
