//! What outlives a leadership in this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use picket_core::ids::{EffectId, Incarnation};

use super::idling::Spoken;
use super::inbox::Inbox;
use super::sessions::Sessions;
use crate::parts::NodePlan;

/// What a node's task hands to the one of the next leadership in this process.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) mailbox: Inbox,
    /// Effects that this process sent: its drivers, and their sessions, outlive a leadership.
    pub(super) own: BTreeSet<EffectId>,
    /// By whose drivers, and in which life of the store.
    pub(super) of: Option<(Arc<NodePlan>, Incarnation)>,
    pub(super) sessions: Sessions,
    pub(super) spoken: Spoken,
    /// How often a defect of ours ended the node's task.
    pub(crate) panics: u32,
}

impl Kept {
    pub(crate) fn new(mailbox: Inbox) -> Self {
        Self {
            mailbox,
            own: BTreeSet::new(),
            of: None,
            sessions: Sessions::default(),
            spoken: Spoken::default(),
            panics: 0,
        }
    }

    /// What was sent in sessions that these drivers can close. Other drivers, of settings that were taken since, know nothing
    /// of those sessions, and another life of the store gives the same numbers to other effects: what was sent so is waited
    /// out like anybody else's (S5).
    pub(super) fn own_of(&self, plan: &Arc<NodePlan>, life: Incarnation) -> BTreeSet<EffectId> {
        let same = |(of, then): &(Arc<NodePlan>, Incarnation)| Arc::ptr_eq(of, plan) && *then == life;
        if self.of.as_ref().is_some_and(same) { self.own.clone() } else { BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use picket_core::ids::NodeId;
    use picket_core::time::WallTime;
    use picket_core::topology::Topology;

    use super::*;
    use crate::spec::NodeSpec;

    fn plan() -> Arc<NodePlan> {
        Arc::new(NodePlan::of(NodeSpec::new(NodeId::new("n1").expect("a name"), Topology::none())))
    }

    #[test]
    fn effects_of_other_drivers_and_of_another_life_of_the_store_are_nobody_s_own() {
        let life = |first| Incarnation::mint(WallTime::from_millis(1), [first; 10]);
        let (plan, life, other) = (plan(), life(1), life(2));
        let kept = Kept {
            own: BTreeSet::from([EffectId(7)]),
            of: Some((plan.clone(), life)),
            ..Kept::new(Inbox::taken())
        };
        assert_eq!(kept.own_of(&plan, life), BTreeSet::from([EffectId(7)]));
        assert_eq!(kept.own_of(&plan, other), BTreeSet::new());
        assert_eq!(kept.own_of(&self::plan(), life), BTreeSet::new());
    }
}
