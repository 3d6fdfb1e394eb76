//! Off by the parent (S22): a machine that runs on another one is off because that one is.
//!
//! The child's fence is a hold on its parent, in the parent's own record: one place says who keeps a
//! machine off. Where a child runs is a driver's word. Which node a name means is the engine's matter.
//!
//! # Invariants
//!
//! - A [`ParentOff`] is made of a proof whose devices read Off just now, and of nothing else. Shown by
//!   `it_is_made_of_a_proof_whose_devices_read_off_just_now`.
//! - It speaks for a child only where the child's whereabouts were asked for after it, name that parent,
//!   and no migration or evacuation is open. Shown by
//!   `a_child_is_off_by_the_parent_on_which_it_still_runs_and_by_no_other`.

use crate::confirm::ConfirmedOff;
use crate::device::Grade;
use crate::ground::{Look, LookFault, ReleaseGround};
use crate::ids::{FenceId, NodeId, Term};
use crate::record::{NodeRecord, Phase};
use crate::time::BootTime;

/// What the name of a hold begins with that a child's fence has on its parent. Nobody else's hold is named so.
const PREFIX: &str = "child:";

/// The name of the hold that the fence of `child` has on its parent.
pub fn hold_of(child: &NodeId) -> String {
    format!("{PREFIX}{child}")
}

/// Whose fence has a hold of that name; `None`: it is no child's.
pub fn child_of(holder: &str) -> Option<&str> {
    holder.strip_prefix(PREFIX)
}

/// Whether a hold of the child on that machine has nothing switched off: the machine is held for the child already, or goes off, and stays so,
/// by the word of somebody who may say that. Before its off was sent a hold would keep its fence from being given up.
pub fn is_kept_off_for(machine: &NodeRecord, child: &NodeId) -> bool {
    let fence = machine.fence.as_ref().filter(|fence| fence.generation == machine.generation);
    let Some(fence) = fence.filter(|_| !machine.is_undecided()) else { return false };
    let is_held = machine.holds.get(&hold_of(child)).is_some_and(|hold| !hold.breached && !hold.ended);
    let stays_off = machine.holds.values().any(|hold| !hold.drop_when_released);
    match machine.phase {
        Phase::Fenced | Phase::Released => stays_off,
        Phase::Fencing => is_held || stays_off && !fence.is_unsent(),
        Phase::NeedsOperator(_) => is_held,
        Phase::Normal | Phase::Unfencing | Phase::PowerOnFailed | Phase::Retired => false,
    }
}

/// Where a machine runs, as whoever places it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The machine on which it runs, or would, as its owner names it; `None`: it is not said.
    pub host: Option<String>,
    /// Why it may be about to run elsewhere: a migration or an evacuation that is open, in words. What is not known to be over
    /// is open.
    pub moving: Option<String>,
    /// The machines on which another copy of it may be, as their owner names them: it was evacuated from there, and nobody has removed that
    /// copy.
    pub copies: Vec<String>,
    /// When the first copy of the question was sent.
    pub asked_at: BootTime,
    /// When the answer arrived.
    pub answered_at: BootTime,
}

/// A parent is proven off, and its devices read Off just now. Like the proof it is neither cloned nor stored.
#[derive(Debug)]
pub struct ParentOff {
    node: NodeId,
    fence: FenceId,
    round: u32,
    term: Term,
    grade: Grade,
    asked_at: BootTime,
    seen_at: BootTime,
}

/// Why a parent is not known to be off now.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotSeen {
    /// A person's word is no proof of another machine.
    #[error("a person vouches for it, and no device was read")]
    Attested,
    /// What proves it was not read just now.
    #[error("{0}")]
    Look(#[from] LookFault),
}

/// Why a parent that is off says nothing of a child.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotThere {
    /// It runs on another machine: this one's Off is none of its.
    #[error("it runs on {0}")]
    Elsewhere(String),
    /// It may be about to.
    #[error("it may be about to run elsewhere: {0}")]
    Moving(String),
    /// Nobody says where it runs.
    #[error("it is not said where it runs")]
    Unsaid,
    /// The machine that is named is no node.
    #[error("it runs on {0}, which is no node of the settings")]
    NoNode(String),
    /// What was asked before the parent was seen off may have changed since.
    #[error("where it runs was asked before its parent was seen off")]
    TooEarly,
}

impl ParentOff {
    /// Of a ground whose devices were looked at just now.
    ///
    /// # Errors
    /// It is no proof by devices, or these do not read Off now.
    pub fn of(ground: &ReleaseGround, looks: &[Look], now: BootTime) -> Result<Self, NotSeen> {
        let ReleaseGround::Confirmed(proof) = ground else { return Err(NotSeen::Attested) };
        ground.examine(looks, now)?;
        let proves = |look: &&Look| proof.devices().any(|(device, _)| *device == look.device);
        let asked_at = looks.iter().filter(proves).map(Look::asked).min().unwrap_or_default();
        Ok(Self::seen(proof, asked_at, now))
    }

    fn seen(proof: &ConfirmedOff, asked_at: BootTime, seen_at: BootTime) -> Self {
        Self {
            node: proof.node().clone(),
            fence: proof.fence(),
            round: proof.round(),
            term: proof.term(),
            grade: proof.evidence().grade,
            asked_at,
            seen_at,
        }
    }

    /// The parent.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// How good its own evidence is.
    pub fn grade(&self) -> Grade {
        self.grade
    }

    /// When the oldest of the readings was asked for: what it says of a child is no younger.
    pub fn asked_at(&self) -> BootTime {
        self.asked_at
    }

    /// What tells its proof from every other one.
    pub fn proof(&self) -> (FenceId, u32, Term) {
        (self.fence, self.round, self.term)
    }

    /// Whether a child is off by it. `runs_on`: the node that the placement's name means.
    ///
    /// # Errors
    /// Why it says nothing of the child. Only [`NotThere::Elsewhere`] says that it is not off by this.
    pub fn speaks_for(&self, placement: &Placement, runs_on: Option<&NodeId>) -> Result<(), NotThere> {
        if placement.asked_at < self.seen_at {
            return Err(NotThere::TooEarly);
        }
        if let Some(why) = &placement.moving {
            return Err(NotThere::Moving(why.clone()));
        }
        match (&placement.host, runs_on) {
            (None, _) => Err(NotThere::Unsaid),
            (Some(host), None) => Err(NotThere::NoNode(host.clone())),
            (Some(_), Some(node)) if *node == self.node => Ok(()),
            (Some(host), Some(_)) => Err(NotThere::Elsewhere(host.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{Power, Reading};
    use crate::support::{Bench, device, host, s};

    fn node(name: &str) -> NodeId {
        NodeId::new(name).expect("a good name")
    }

    fn at(seconds: u64) -> BootTime {
        BootTime::from_boot(s(seconds))
    }

    fn placed(host: Option<&str>, moving: Option<&str>, asked: u64) -> Placement {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let (asked_at, answered_at) = (at(asked), at(asked));
        Placement { host: own(host), moving: own(moving), copies: Vec::new(), asked_at, answered_at }
    }

    fn off() -> ParentOff {
        let mut bench = Bench::of(&[&[host("bmc")]]);
        bench.falls("bmc");
        let proof = bench.confirmed();
        ParentOff::seen(&proof, at(99), at(100))
    }

    #[test]
    fn a_child_is_off_by_the_parent_on_which_it_still_runs_and_by_no_other() {
        let off = off();
        let own = off.node().clone();
        assert_eq!(off.speaks_for(&placed(Some("hv1"), None, 100), Some(&own)), Ok(()));
        for (placement, runs_on, why) in [
            (placed(Some("hv2"), None, 100), Some(node("hv2")), NotThere::Elsewhere("hv2".to_owned())),
            (placed(Some("hv9"), None, 100), None, NotThere::NoNode("hv9".to_owned())),
            (placed(None, None, 100), Some(own.clone()), NotThere::Unsaid),
            (placed(Some("hv1"), Some("evacuating"), 100), Some(own.clone()), {
                NotThere::Moving("evacuating".to_owned())
            }),
            (placed(Some("hv1"), None, 99), Some(own.clone()), NotThere::TooEarly),
        ] {
            assert_eq!(off.speaks_for(&placement, runs_on.as_ref()), Err(why), "{placement:?}");
        }
    }

    #[test]
    fn it_is_made_of_a_proof_whose_devices_read_off_just_now() {
        let mut bench = Bench::of(&[&[host("bmc")]]);
        bench.falls("bmc");
        let ground = ReleaseGround::Confirmed(bench.confirmed());
        let look = |power: Option<Power>, asked: u64, epoch: u64| {
            let epoch = Some(crate::power::Epoch { id: epoch, loss: None });
            let (asked_at, answered_at) = (at(asked), at(asked));
            let said = String::new();
            let reading =
                power.map(|power| Reading { power, asked_at, answered_at, epoch, said, lowered_by: None });
            [Look { device: device("bmc"), asked_at, reading }]
        };
        let seen = ParentOff::of(&ground, &look(Some(Power::Off), 99, 1), at(100)).expect("seen off");
        assert_eq!((seen.asked_at(), seen.node()), (at(99), ground.node()));
        for (looks, fault) in [
            (look(Some(Power::Off), 97, 1), LookFault::Stale(device("bmc"))),
            (look(Some(Power::Off), 100, 2), LookFault::NewEpoch(device("bmc"))),
            (look(Some(Power::Unknown), 100, 1), LookFault::NotOff(device("bmc"))),
            (look(Some(Power::On), 100, 1), LookFault::On(device("bmc"))),
            (look(None, 100, 1), LookFault::NotOff(device("bmc"))),
        ] {
            let refused = ParentOff::of(&ground, &looks, at(100)).map(|_| ());
            assert_eq!(refused, Err(NotSeen::Look(fault)));
        }
    }

    #[test]
    fn the_hold_of_a_child_is_told_from_every_other_one() {
        assert_eq!(child_of(&hold_of(&node("vm1"))), Some("vm1"));
        assert_eq!(child_of("ops"), None);
    }
}
