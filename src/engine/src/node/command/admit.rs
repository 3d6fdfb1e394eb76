//! Whether a fence begins, is joined, stands already, or is not begun at all.

use picket_core::election::Ended;
use picket_core::event::{Event, FenceRequest, JoinRequest, Overrides, Person};
use picket_core::ground::{LookFault, ReleaseGround};
use picket_core::ids::FenceId;
use picket_core::machine::Refused;
use picket_core::outcome::Reason;
use picket_core::record::{Fence, Phase, SetAside, Then};
use picket_core::roles::Role;
use picket_core::store::StoreError;
use picket_core::time::BootTime;

use super::{DOUBTED, refusal, store_failure};
use crate::error::{EngineError, Stale};
use crate::node::{Failure, Fatal, NodeTask};
use crate::parts::PlannedRelease;
use crate::request::{Admission, Asides, FenceCall};

/// What becomes of a request for a fence, before any limit is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It opens a fence.
    Open,
    /// It joins the open one.
    Join,
    /// It joins one that was proven: already fenced, if that still holds.
    JoinProven,
}

impl NodeTask {
    pub(super) async fn admit(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        let admitted = self.admit_by_key(call).await?;
        // It was seen on while the store kept the caller waiting, and the record says Fenced still.
        match admitted {
            Ok(Admission::Joined(_) | Admission::Already(_)) if self.doubt.is_some() => {
                refusal(Failure::Unavailable(DOUBTED.to_owned()))
            }
            admitted => Ok(admitted),
        }
    }

    async fn admit_by_key(&mut self, mut call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        // A repetition is answered even when it comes late: it changes nothing.
        match self.bound(call.key.as_ref()).await {
            Ok(Ok(Some(entry))) => {
                if let Some(fence) = entry.fence
                    && let Some(answer) = self.replay(fence).await?
                {
                    return Ok(answer);
                }
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return Ok(Err(error)),
            Err(failure) => return refusal(failure),
        }
        // The roles may have changed while the call waited, for the store or behind others.
        if let Err(lost) = self.judge_anew(&mut call) {
            return Ok(Err(lost));
        }
        match self.way(&call) {
            Ok(Way::Open) => self.open(call).await,
            Ok(Way::JoinProven) => self.join_proven(call).await,
            Ok(Way::Join) => self.join(call).await,
            Err(error) => Ok(Err(error)),
        }
    }

    /// Whether the call may be let in by the roles of now.
    fn judge_anew(&self, call: &mut FenceCall) -> Result<(), EngineError> {
        let aside = call.set_aside.is_some().then_some(Role::Admin);
        let may = self.office.may_still(call, &self.plan);
        let may = may.and_then(|may| self.may_still_act(aside, None).map(|()| may));
        call.holder.by_person &= may.map_err(EngineError::RoleLost)?.as_a_person;
        Ok(())
    }

    /// Whether whoever asked may still ask by the roles of now, and has the role `besides`, where one is needed; for `holder`, where one is named.
    pub(super) fn may_still_act(&self, besides: Option<Role>, holder: Option<&str>) -> Result<(), String> {
        let Some((person, role)) = self.acting.as_ref().and_then(|acting| acting.right.as_ref()) else {
            return Ok(());
        };
        let roles: Vec<Role> = [*role].into_iter().chain(besides).collect();
        self.office.may_still_act(person, &roles, holder, &self.plan)
    }

    /// Which way a request goes, as the node stands: the same for whoever asks for a fence, and for a plan of it. Limits come
    /// after it, and bar only whoever opens a fence.
    pub(super) fn way(&self, call: &FenceCall) -> Result<Way, EngineError> {
        self.in_time(call.not_after, call.expected_generation)?;
        if call.holder.then == Then::PowerOn {
            self.plan.comes_back("a fence that powers on again")?;
        }
        // Where another gateway would go on with it, it is stored, and left to that one.
        if self.is_own_host() && !self.has_successor() {
            return Err(EngineError::Blocked {
                reason: Reason::OwnHost,
                detail: "this gateway stands on that machine and does not shoot itself".to_owned(),
            });
        }
        let way = match self.record().phase {
            // A restore keeps it off, and proves nothing: a fence goes through its own off (S21).
            _ if self.record().is_undecided() => Way::Open,
            Phase::Normal | Phase::Unfencing | Phase::PowerOnFailed => Way::Open,
            Phase::Fenced | Phase::Released => Way::JoinProven,
            // A person is asked in the middle of an unfence: the fence was ended by it, and nobody can join it.
            Phase::NeedsOperator(_) if !self.fence_is_current() => Way::Open,
            Phase::Fencing | Phase::NeedsOperator(_) => Way::Join,
            Phase::Retired => {
                let refused = Refused::Phase {
                    wanted: "a fence",
                    phase: "retired",
                    hint: "its hardware is gone for good; settings with another machine make it a node again",
                };
                return Err(refused.into());
            }
        };
        match call.turn {
            Some(turn) if way == Way::Open && turn.generation != self.record().generation => {
                let detail = "the node was fenced and brought back while the request waited: ask again, if it is dead again";
                Err(EngineError::Blocked { reason: Reason::Expired, detail: detail.to_owned() })
            }
            _ => Ok(way),
        }
    }

    /// A key that is bound: its fence goes on, or it has ended and is told as it ended. `None`: it ended before an off
    /// was sent, which does not bind the key (S20): it is decided again.
    async fn replay(&mut self, fence: FenceId) -> Result<Option<Result<Admission, EngineError>>, Fatal> {
        let record = self.record();
        let open = record.fence.as_ref().filter(|open| open.id == fence);
        if open.is_some_and(|open| open.generation == record.generation) && !record.is_groundless() {
            if let Err(error) = self.look_again(fence).await? {
                return Ok(Some(Err(error)));
            }
            if self.fence_id() == fence {
                return Ok(Some(Ok(Admission::Joined(fence))));
            }
        }
        Ok(match self.kept(fence).await {
            Ok(Some(ended)) if ended.sent_nothing() => None,
            Ok(Some(ended)) => Some(Ok(Admission::Superseded(Box::new(ended)))),
            Ok(None) => Some(Err(Stale::FenceGone(fence).into())),
            Err(error) => Some(refusal(store_failure(error))?),
        })
    }

    /// Fenced is said only with a proof in hand and an Off read just now, to whoever asks again too (S20). Where that does not hold the fence
    /// is the present one no more, or goes on.
    pub(super) async fn look_again(&mut self, fence: FenceId) -> Result<Result<(), EngineError>, Fatal> {
        let is_proven = matches!(self.record().phase, Phase::Fenced | Phase::Released);
        if !is_proven || self.record().is_groundless() || self.fence_id() != fence {
            return Ok(Ok(()));
        }
        // And only while this leadership stands: after it another one may have brought the node back.
        if let Some(fresh_until) = self.prove_now().await? {
            if let Err(error) = self.ask_store().await {
                return refusal(store_failure(error));
            }
            self.is_off_still(fresh_until).await?;
        }
        Ok(Ok(()))
    }

    /// A fence of this node: the open one, or one of the history.
    pub(super) async fn kept(&mut self, fence: FenceId) -> Result<Option<Fence>, StoreError> {
        if let Some(open) = self.record().fence.as_ref().filter(|open| open.id == fence) {
            return Ok(Some(open.clone()));
        }
        let store = self.parts.store.clone();
        self.of_store(store.fence(fence)).await
    }

    /// K11: what a machine's end would cost the store is told by the members that answer now, and not by our own records alone.
    pub(in crate::node) async fn count_members(&mut self) {
        if self.office.carries_a_member(&self.plan.id) {
            let store = self.parts.store.clone();
            let silent = self.of_store(store.silent_members()).await;
            self.office.hears_nothing_of(silent);
        }
    }

    async fn open(&mut self, mut call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        self.count_members().await;
        // A member that is silent takes its time, and roles may be taken meanwhile.
        let may = self.judge_anew(&mut call);
        if let Err(lost) = may {
            return Ok(Err(lost));
        }
        let aside = Asides::which(call.set_aside.as_ref());
        let ticket = call.turn.map(|turn| turn.ticket);
        // A drill, and a parent's fence, are no word of somebody who found the node dead.
        if !self.drilling && self.of_child.is_none() {
            self.office.complains(&self.plan.id, &call.holder.name);
        }
        let through_pauses = self.of_child.as_ref().is_some_and(|child| child.is_breach);
        let place = match self.office.take(&self.plan, aside, ticket.as_ref(), through_pauses) {
            Ok(place) => place,
            Err(bar) => return Ok(Err(EngineError::Barred(Box::new(bar)))),
        };
        let words = |quorum, none: &str| place.words(quorum).unwrap_or(none).to_owned();
        let set_aside = call.set_aside.map(|Asides { budget, quorum }| Overrides {
            budget: budget.map(|who| (who, words(false, "no limit would have barred it"))),
            quorum: quorum.map(|who| (who, words(true, "it does not cost the store its quorum"))),
        });
        let rules = &self.parts.rules;
        let request = FenceRequest {
            id: self.mint_fence(),
            holder: call.holder,
            deadline: call.deadline.unwrap_or(rules.deadline_of(&self.plan.topology)),
            min_grade: call.min_grade.unwrap_or(picket_core::device::Grade::Claimed),
            topology: self.topology_to_fence(),
            releases: self.plan.releases.iter().map(PlannedRelease::told).collect(),
            key: call.key,
            set_aside,
        };
        let id = request.id;
        let request = Box::new(request);
        let event = if self.drilling { Event::Drill(request) } else { Event::Fence(request) };
        match self.apply(event).await {
            Ok(_) => {
                self.resumed = false;
                Ok(Ok(Admission::Opened(id)))
            }
            Err(failure) => {
                self.office.give_back(self.record());
                refusal(failure)
            }
        }
    }

    async fn join(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        let found = [self.asked_for_less(&call), self.sets_aside(&call)];
        let found: Vec<Event<'static>> = found.into_iter().flatten().collect();
        let join = Event::Join(self.join_request(call));
        let event = match found.is_empty() {
            true => join,
            false => Event::After { found, event: Box::new(join) },
        };
        match self.apply(event).await {
            Ok(_) => Ok(Ok(Admission::Joined(self.fence_id()))),
            Err(failure) => refusal(failure),
        }
    }

    /// What joins, with its deadline, or the settings' one, where it has no hold yet: whoever asks again and again puts no end off by that (S16).
    fn join_request(&self, call: FenceCall) -> Box<JoinRequest> {
        // A child goes by its own fence's deadline, and asks for nothing here.
        let is_new = self.of_child.is_none() && !self.record().holds.contains_key(&call.holder.name);
        let usual = self.parts.rules.deadline_of(&self.plan.topology);
        let deadline = is_new.then(|| call.deadline.unwrap_or(usual));
        Box::new(JoinRequest { holder: call.holder, key: call.key, deadline })
    }

    /// A fence that waits for a better grade than it can prove goes on for a person who says that less is enough (S16). A program
    /// lowers nothing that others asked for.
    fn asked_for_less(&self, call: &FenceCall) -> Option<Event<'static>> {
        let waits = self.record().phase == Phase::NeedsOperator(Reason::GradeTooLow);
        let asked = self.record().fence.as_ref()?.min_grade;
        let grade = call.min_grade.filter(|grade| waits && call.holder.by_person && *grade < asked)?;
        let person = Person { name: call.holder.by.clone(), reason: call.holder.reason.clone() };
        Some(Event::AskedForLess { grade, person })
    }

    /// Limits that bar a fence before its first off are set aside by whoever joins it, too: nothing else lets it go then (S16).
    fn sets_aside(&self, call: &FenceCall) -> Option<Event<'static>> {
        let Asides { budget, quorum } = call.set_aside.clone().filter(|_| self.is_unsent())?;
        let words = self.office.last_look(&self.plan).map(|bar| bar.text);
        let words = words.unwrap_or_else(|| "no limit bars it now".to_owned());
        let told = |who: Option<SetAside>| who.map(|who| (who, words.clone()));
        Some(Event::SetAside(Overrides { budget: told(budget), quorum: told(quorum) }))
    }

    /// "Already fenced" is said only with a proof in hand and an Off read just now; else it is proven anew.
    async fn join_proven(&mut self, mut call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        let proven = self.prove_now().await?;
        // A device that is silent takes its time, and roles may be taken meanwhile.
        let still = self.judge_anew(&mut call);
        if let Err(lost) = still {
            return Ok(Err(lost));
        }
        // A join that wants the power back once everything is released may bring the node back at once.
        let fence = self.fence_id();
        if let Err(failure) = self.apply(Event::Join(self.join_request(call))).await {
            return refusal(failure);
        }
        Ok(Ok(match proven {
            Some(fresh_until) if self.is_off_still(fresh_until).await? => Admission::Already(fence),
            _ => Admission::Joined(self.fence_id()),
        }))
    }

    /// What was read before the store was asked says nothing of now where that took its time: it is read once more, and the store is asked for
    /// nothing but to take what that finds. False also where the node is being brought back by now.
    async fn is_off_still(&mut self, fresh_until: BootTime) -> Result<bool, Fatal> {
        let is_kept_off = matches!(self.record().phase, Phase::Fenced | Phase::Released);
        if self.now() <= fresh_until {
            return Ok(true);
        }
        let is_off = is_kept_off && self.prove_now().await?.is_some();
        let ended = |ended: Ended| Fatal(StoreError::Deposed(ended.to_string()));
        self.hands.leadership().check().map_err(ended)?;
        Ok(is_off)
    }

    /// Whether the node is proven off now: a proof in hand and an Off read just now, and until when that is fresh. If not it is proven anew.
    async fn prove_now(&mut self) -> Result<Option<BootTime>, Fatal> {
        // What was seen while the store was asked is told first: it may be a breach.
        if self.store_doubt().await? {
            return Ok(None);
        }
        let mut looked = 0;
        let why = loop {
            let looks = match self.of_child {
                Some(_) => self.look_for_children(true).await?,
                None => self.look().await?,
            };
            let now = self.now();
            self.gives_up_what_restarted().await?;
            if self.record().phase == Phase::Fencing || self.found_on(&looks).await? {
                return Ok(None);
            }
            let Some(held) = &self.ground else {
                // Also where the watch gave the proof up before.
                break self.restarted_since().unwrap_or("this leadership has not proven it yet".to_owned());
            };
            let Err(fault) = held.ground.examine(&looks, now) else {
                return Ok(Some(held.ground.fresh_until(&looks, now)));
            };
            looked += 1;
            let is_unclear = matches!(fault, LookFault::NotOff(_) | LookFault::Stale(_));
            if is_unclear && matches!(held.ground, ReleaseGround::Attested(_)) {
                // A person's word ends where a host device says On, and by nothing that a device does not say (S12).
                return Ok(None);
            }
            if !is_unclear || looked >= self.plan.paces.looks_without_off {
                break fault.to_string();
            }
        };
        let seen = self.ground.is_some() || self.restarted_since().is_some();
        let gone = self.withdraw_now().await;
        self.persist_unproven(gone, || Event::Unproven { why: why.clone(), seen }).await?;
        Ok(None)
    }

    pub(super) fn fence_is_current(&self) -> bool {
        let record = self.record();
        record.fence.as_ref().is_some_and(|fence| fence.generation == record.generation)
    }

    fn fence_id(&self) -> FenceId {
        match &self.record().fence {
            Some(fence) => fence.id,
            None => self.mint_fence(),
        }
    }
}
