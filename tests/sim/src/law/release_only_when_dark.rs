//! S4: volumes go only while the machine is off, on a ground that is stored, by an attempt that stands in the ledger.

use picket_core::device::Grade;
use picket_core::ground::LOOK_LIFE;
use picket_core::ledger::EffectKind;
use picket_core::record::Phase;

use super::{Invariant, Past};
use crate::trace::{Event, What};

#[derive(Debug)]
pub(super) struct ReleaseOnlyWhenDark;

impl Invariant for ReleaseOnlyWhenDark {
    fn name(&self) -> &'static str {
        "release_only_when_dark"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Attempt { gateway, node, release, effect, generation, fence, grade } => {
                // One whose machine stood still may begin what was permitted before: what comes of it is looked at when it lands.
                if !past.leads(*gateway) {
                    return Ok(());
                }
                let record = past.record(node);
                let open = record.ledger.get(*effect);
                let entered = open.is_some_and(|open| open.kind == EffectKind::Release(release.clone()));
                let ground = record.fence.as_ref().is_some_and(|open| {
                    open.id == *fence && open.generation == *generation && open.evidence.is_some()
                });
                if record.phase != Phase::Fenced || record.generation != *generation || !ground || !entered {
                    return Err(format!("an attempt without a ground: {event:?} {record:#?}"));
                }
                // Switched on by somebody else since it was looked at: nobody could know.
                let Some(edge) = past.on_since(node, event.at) else { return Ok(()) };
                let vouched = *grade == Grade::Attested;
                // By the clocks of a machine that stood still the look is younger than it is.
                let still = past.stood_still(*gateway, edge.at, event.at);
                let fresh = event.at.since(edge.at) <= LOOK_LIFE + still || vouched;
                if past.is_ours(node, &edge) || !fresh {
                    return Err(format!("attempted while it is on since {edge:?}: {event:?}"));
                }
            }
            What::Released { gateway, node, permitted_at, grade, .. } => {
                let Some(edge) = past.on_since(node, event.at) else { return Ok(()) };
                let vouched = *grade == Grade::Attested;
                let still = past.stood_still(*gateway, edge.at, *permitted_at);
                let fresh = edge.at + LOOK_LIFE + still >= *permitted_at || vouched;
                if past.is_ours(node, &edge) || !fresh {
                    return Err(format!("let go while it is on since {edge:?}: {event:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
