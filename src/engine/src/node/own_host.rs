//! What another gateway must do (S17): a gateway does not shoot the machine on which it stands, and one
//! that reaches no device of a fence lets another gateway try.
//!
//! # Invariants
//!
//! - Where no other gateway stands for election, the fence of the own machine is BLOCKED(self). Shown by
//!   `alone_a_gateway_blocks_the_fence_of_its_own_host`,
//!   `the_gateway_does_not_shoot_the_machine_that_it_stands_on`.
//! - A leader leaves its own machine to another gateway, and does not stand while that fence is open. Shown
//!   by `a_leader_leaves_its_own_host_to_another_one_and_does_not_stand_meanwhile`.
//! - A leader that reaches no device hands over once. Shown by
//!   `a_leader_that_reaches_nothing_hands_over_once`.

use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::outcome::Reason;
use picket_core::record::Fence;
use picket_core::store::StoreError;

use super::{Failure, Fatal, NodeTask};
use crate::successors::Successors;

/// This leadership ends, so that another gateway goes on.
pub(super) fn left(why: &str) -> Fatal {
    tracing::warn!(why, "this gateway stands on that machine and does not shoot itself: another one goes on");
    Fatal(StoreError::Deposed(format!(
        "another gateway goes on with the machine on which this one stands ({why})"
    )))
}

impl NodeTask {
    /// Where the gateway's own machine runs is asked before a fence of what may carry it.
    pub(super) async fn locate_own_host(&self) {
        let is_child = self.plan.topology.devices().any(|spec| spec.class == DeviceClass::Parent);
        if let Some(engine) = self.parts.parents.engine().filter(|_| !is_child) {
            engine.locate_own_host().await;
        }
    }

    /// Whether this gateway stands on the node, or on what runs on it.
    pub(super) fn is_own_host(&self) -> bool {
        let carries =
            || self.parts.parents.engine().is_some_and(|engine| engine.carries_own_host(&self.plan.id));
        self.plan.own_host || self.parts.own.is(&self.plan, self.record(), &self.parts.twins) || carries()
    }

    /// Whether another gateway stands for election, and would go on.
    pub(super) fn has_successor(&self) -> bool {
        Successors::of(&*self.parts.election).is_any()
    }

    /// The machine under this gateway is to be fenced. Alone, nothing is sent: BLOCKED, or a person's, where an off of
    /// another gateway may be on its way.
    pub(super) async fn leave_own_host(&mut self) -> Result<(), Fatal> {
        if self.has_successor() {
            // A leadership ends for a node that is still to be fenced, and not for one that is well (S15).
            if self.ends_recovered().await? {
                return Ok(());
            }
            return Err(left("its fence is open"));
        }
        let why = "this gateway stands on that machine and does not shoot itself, and no other one stands for election";
        if self.is_undecided() {
            self.persist(|| Event::Bar { reason: Reason::OwnHost, why: why.to_owned() }).await?;
            return Ok(());
        }
        self.give_up(Reason::OwnHost, why.to_owned()).await
    }

    /// Whether another fence that programs asked for ended a leadership within the cool-down. A program that has a node's devices fall silent, and the
    /// node recover, would end one leadership after the other: none would be long enough to prove another node off, or to release it (S14).
    fn handed_over_lately(&self, fence: &Fence) -> bool {
        let Some(last) = self.record().handed_over.as_ref() else { return false };
        let passed = self.wall().millis().checked_sub(last.at.millis()).map(Duration::from_millis);
        // A cool-down of days would leave it to a gateway that reaches none of its devices. Its own deadline is its caller's word.
        let bar = self.office.cool_down().min(self.parts.rules.deadline_of(&fence.topology) / 2);
        let is_lately = passed.is_some_and(|passed| passed < bar);
        !fence.by_person && last.fence != fence.id && is_lately
    }

    /// Each gateway lets another one try once a fence, where one stands that has not tried: this leadership ends.
    pub(super) async fn let_another_try(&mut self, why: &str) -> Result<(), Fatal> {
        let gateway = self.parts.election.me().gateway;
        let Some(fence) = &self.record().fence else { return Ok(()) };
        if self.handed_over_lately(fence) {
            return Ok(());
        }
        let tried = &fence.handed_over;
        let is_any_left = Successors::of(&*self.parts.election).is_any_beside(tried);
        // Who tries last says so: else those who let it try would stand aside for as long as the fence lasts.
        let stays = !is_any_left && !tried.is_empty();
        if tried.contains(&gateway) || !is_any_left && !stays {
            return Ok(());
        }
        match self.apply(Event::HandOver { gateway: gateway.clone(), why: why.to_owned(), stays }).await {
            Ok(_) if stays => Ok(()),
            Ok(_) => {
                tracing::warn!(why, "none of its devices is reached from here: another gateway tries");
                Err(Fatal(StoreError::Deposed(
                    "another gateway tries what this one does not reach".to_owned(),
                )))
            }
            Err(Failure::Fatal(error)) => Err(Fatal(error)),
            Err(Failure::Refused(_) | Failure::Unavailable(_)) => Ok(()),
        }
    }
}
