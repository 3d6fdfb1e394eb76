//! What a child's device asks of its parent (S22).

use picket_core::device::{DeviceClass, Grade};
use picket_core::event::{Event, Holder, Person};
use picket_core::ids::{NodeId, Term};
use picket_core::machine::Refused;
use picket_core::parent::{ParentOff, child_of, hold_of, is_kept_off_for};
use picket_core::record::{EndedHold, Phase, SetAside, Then};
use picket_core::topology::Level;

use crate::error::EngineError;
use crate::node::{Fatal, NodeTask};
use crate::office::{Standing, names};
use crate::parents::{ParentAnswer, ParentAsk, ParentSeen};
use crate::request::{Admission, Asides, FenceCall, Taken};

/// Who asks for a child.
const BY: &str = "picket";

/// Nobody but a child holds its parent under a child's name.
///
/// # Errors
/// The name is a child's.
pub(super) fn expect_no_child(holder: &str) -> Result<(), EngineError> {
    match child_of(holder) {
        None => Ok(()),
        Some(_) => Err(EngineError::Field {
            field: "holder",
            what: "names that begin with \"child:\" are those of the fences of machines that run on this one: choose another"
                .to_owned(),
        }),
    }
}

impl NodeTask {
    /// The hold of a child goes with the child's own fence: what would bring the parent back meanwhile is refused (S22).
    pub(super) fn expect_let_go(&self, holder: &str) -> Result<(), EngineError> {
        let child = child_of(holder).and_then(|child| NodeId::new(child).ok());
        let Some(child) = child.filter(|child| !self.is_let_go(child)) else { return Ok(()) };
        let is_ended = self.record().holds.get(holder).is_some_and(|hold| hold.ended);
        let (phase, hint) = match self.office.standing(&child) {
            Some(Standing { phase, .. }) if is_ended => (
                phase,
                "its hold was ended by an admin, and goes by itself once nothing of the child relies on it: ask again in a moment",
            ),
            Some(Standing { phase, .. }) => (
                phase,
                "the child is kept off by it: unfence the child, stand it down or retire it, and its hold goes with that; or an admin of \
                 this node ends its hold by `picket unhold NODE --holder child:CHILD`",
            ),
            None => (
                "retired",
                "a release, or a receipt, of the child is open: its hold goes by itself once that has ended",
            ),
        };
        Err(Refused::Phase { wanted: "dropping a child's hold", phase, hint }.into())
    }

    /// No child that is kept off is left without its parent: neither where a person stands it down, nor where it is retired.
    pub(super) fn expect_no_child_is_kept(&self) -> Result<(), EngineError> {
        self.record().holds.keys().try_for_each(|holder| self.expect_let_go(holder))
    }

    /// The children that hold this node.
    fn children(&self) -> impl Iterator<Item = NodeId> {
        self.record().holds.keys().filter_map(|holder| NodeId::new(child_of(holder)?).ok())
    }

    /// Whether it is fenced for a child: whether that one recovered is asked there, and not here.
    pub(in crate::node) fn is_held_for_a_child(&self) -> bool {
        self.children().next().is_some()
    }

    /// Whether it is fenced for a child that was found on although nobody unfenced it: exempt as that one is (S11).
    pub(in crate::node) fn is_held_for_a_breach(&self) -> bool {
        self.children().any(|child| self.office.standing(&child).is_some_and(|child| child.is_breach))
    }

    /// Whether nothing of a child keeps this node off any more: it is not kept off itself, or an admin ended its hold and nothing of it relies
    /// on that.
    fn is_let_go(&self, child: &NodeId) -> bool {
        let is_ended = self.record().holds.get(&hold_of(child)).is_some_and(|hold| hold.ended);
        self.office.is_gone(child) || is_ended && self.office.relies_on_none(child)
    }

    /// Why this node is not fenced for that child: an admin of it said so.
    fn refuses(&self, child: &NodeId) -> Option<EngineError> {
        let (holder, record) = (hold_of(child), self.record());
        let of = self.office.standing(child).and_then(|child| child.fence);
        let ended = record.refused.get(&holder).filter(|ended| Some(ended.of) == of);
        // What somebody else switched off since is no wish of the child's, and keeps no more off by it.
        let is_off_anyway = |ended: &EndedHold| {
            matches!(record.phase, Phase::Fencing | Phase::Fenced | Phase::Released | Phase::NeedsOperator(_))
                && record.fence.as_ref().map(|fence| fence.id) != ended.within
        };
        let is_refused = ended.is_some_and(|ended| !is_off_anyway(ended));
        let is_ended = record.holds.get(&holder).is_some_and(|hold| hold.ended);
        (is_refused || is_ended).then(|| {
            let why =
                format!("an admin of it ended the hold of {child}, which stands for this fence of {child}");
            EngineError::NotAllowed(why)
        })
    }

    /// Lets go what a child holds that is not kept off any more, and could not say so: it was retired, perhaps as an orphan. What is open of
    /// such a child is waited out first (S5). The same of a hold that an admin ended.
    pub(in crate::node) async fn drop_holds_of_the_gone(&mut self) -> Result<(), Fatal> {
        let gone: Vec<NodeId> = self.children().filter(|child| self.is_let_go(child)).collect();
        for child in gone {
            if let Err(refused) = self.drop_hold_of(&child, "relies on it no more").await? {
                tracing::warn!(%child, %refused, "the hold of a child that relies on it no more stands");
            }
        }
        Ok(())
    }

    /// Drops a child's hold. With none left this node is brought back, but where a person is asked about it.
    async fn drop_hold_of(&mut self, child: &NodeId, why: &str) -> Result<Result<Taken, EngineError>, Fatal> {
        let (holder, reason) = (hold_of(child), format!("{child} {why}"));
        let person = Person { name: BY.to_owned(), reason };
        match self.record().phase {
            Phase::NeedsOperator(_) => {
                self.grant(person.into(), |person| Event::LetGo { holder, person }).await
            }
            _ => self.unfence(holder, person.into()).await,
        }
    }

    pub(super) async fn as_parent(
        &mut self,
        ask: ParentAsk,
        term: Term,
    ) -> Result<Result<ParentAnswer, EngineError>, Fatal> {
        // What waited in the mailbox while another one led is nobody's wish any more.
        if term != self.hands.leadership().term() {
            return Ok(Err(EngineError::NoLeader("it was asked under another leadership".to_owned())));
        }
        match ask {
            ParentAsk::Hold { child, least, .. } => self.hold_for(&child, least).await,
            ParentAsk::LetGo { child } => self.let_go_of(&child).await,
            ParentAsk::Look { child, is_held } => {
                let hold = is_held.then(|| hold_of(&child));
                Ok(Ok(ParentAnswer::Seen(self.seen_by(hold).await?)))
            }
            ParentAsk::Read => {
                self.read_for_children().await?;
                Ok(Ok(ParentAnswer::Settled))
            }
            ParentAsk::Settle => Ok(Ok(ParentAnswer::Settled)),
        }
    }

    /// Reads what says whether it is on, where nobody is watching it.
    async fn read_for_children(&mut self) -> Result<(), Fatal> {
        if !matches!(self.record().phase, Phase::Normal | Phase::PowerOnFailed) {
            return Ok(());
        }
        let mut devices = self.hosts();
        if devices.is_empty() {
            devices = self.plan.topology.devices().map(|spec| spec.id.clone()).collect();
        }
        self.look_at(&devices).await.map(drop)
    }

    async fn hold_for(
        &mut self,
        child: &NodeId,
        least: Grade,
    ) -> Result<Result<ParentAnswer, EngineError>, Fatal> {
        if self.plan.topology.devices().any(|spec| spec.class == DeviceClass::Parent) {
            let why = "it has a parent of its own: a machine that is fenced for another one must be fenced by its own devices";
            return Ok(Err(EngineError::NotAllowed(why.to_owned())));
        }
        if let Some(refused) = self.refuses(child) {
            return Ok(Err(refused));
        }
        if let Some(why) = self.proves_too_little(least) {
            return Ok(Err(EngineError::NotAllowed(why)));
        }
        let standing = self.office.standing(child);
        let is_breach = standing.as_ref().is_some_and(|child| child.is_breach);
        // What was set aside for the child goes over to no other node (S22).
        let budget = is_breach.then(|| {
            let reason = format!("{child} was found on although nobody unfenced it");
            Asides { budget: Some(SetAside { by: BY.to_owned(), reason }), quorum: None }
        });
        let askers = standing.as_ref().map(|child| child.askers.as_slice()).unwrap_or_default();
        let by = match self.office.may_for_child(child, askers, &self.plan) {
            Ok(by) => by,
            Err(_) if is_kept_off_for(self.record(), child) => names(askers),
            Err(why) => return Ok(Err(EngineError::RoleLost(why))),
        };
        // Nobody is left who asked, where the settings name the child.
        let by = if by.is_empty() { BY.to_owned() } else { by };
        let reason = format!("{child} runs on it, and is fenced by it");
        let (name, then) = (hold_of(child), Then::StayOff);
        let call = FenceCall {
            holder: Holder { name, by, reason, then, by_person: false, asker: None },
            key: None,
            min_grade: Some(least),
            deadline: None,
            not_after: None,
            expected_generation: None,
            set_aside: budget,
            turn: None,
        };
        self.of_child = standing;
        let admitted = self.admit(call).await;
        self.of_child = None;
        let admitted = admitted?;
        Ok(admitted.map(|admitted| ParentAnswer::Held { already: matches!(admitted, Admission::Already(_)) }))
    }

    /// Why no level could prove as much of this node as its child wants: it would be switched off, with all that runs on it, for nothing.
    fn proves_too_little(&self, least: Grade) -> Option<String> {
        if self.record().phase != Phase::Normal {
            return None;
        }
        let own = self.topology_to_fence();
        let of_level = |level: &Level| {
            let graded = level.devices.iter().map(|spec| spec.best_grade(self.compared(spec)));
            graded.min_by_key(|(grade, _)| *grade)
        };
        let (best, why) = own.levels().iter().filter_map(of_level).max_by_key(|(grade, _)| *grade)?;
        (best < least).then(|| {
            format!(
                "it could be proven off with the grade {best:?} at best ({}), and its child wants {least:?}: nothing was sent to it; give its \
                 `identity` in the settings, or a lower `grade` in the child's",
                why.join("; ")
            )
        })
    }

    async fn let_go_of(&mut self, child: &NodeId) -> Result<Result<ParentAnswer, EngineError>, Fatal> {
        let hold = hold_of(child);
        if !self.record().holds.contains_key(&hold) {
            return Ok(Ok(ParentAnswer::LetGo));
        }
        let taken = self.drop_hold_of(child, "is brought back").await?;
        Ok(taken.map(|_| ParentAnswer::LetGo))
    }

    /// Where this node stands for a child. Its devices are asked only where it could be proven off by them.
    async fn seen_by(&mut self, hold: Option<String>) -> Result<ParentSeen, Fatal> {
        match hold.map(|hold| self.record().holds.get(&hold)) {
            Some(None) => return Ok(ParentSeen::Void("is not held for it")),
            Some(Some(held)) if held.breached => return Ok(ParentSeen::Void("was found on since")),
            Some(Some(held)) if held.ended => {
                return Ok(ParentSeen::Void("is not held for it any more, by the word of an admin"));
            }
            Some(Some(_)) | None => {}
        }
        let is_proven = matches!(self.record().phase, Phase::Fenced | Phase::Released);
        if !is_proven || self.ground.is_none() {
            let phase = self.record().phase.label().replace('_', " ");
            return Ok(ParentSeen::Unproven(format!("it is {phase}")));
        }
        let looks = self.look_for_children(false).await?;
        if self.found_on(&looks).await? || self.proof_is_gone(&looks).await? {
            return Ok(ParentSeen::Void("was found on just now"));
        }
        if let Some(why) = self.gives_up_what_restarted().await? {
            return Ok(ParentSeen::Unproven(why));
        }
        let Some(ground) = self.ground.clone() else {
            return Ok(ParentSeen::Unproven("its proof was given up".to_owned()));
        };
        Ok(ParentOff::of(&ground.ground, &looks, self.now()).into())
    }
}
