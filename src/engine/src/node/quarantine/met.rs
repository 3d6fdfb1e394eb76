//! Whom the clusters have for the node, as they were met in this generation.

use std::collections::BTreeMap;

use picket_core::event::Event;
use picket_core::ids::{Generation, ReleaseId};
use picket_core::record::ReleaseState;

use crate::node::NodeTask;

/// Whom they have, until it is stored with what is stored next: no call to a device waits for that, and no store that is away makes it
/// forgotten.
#[derive(Debug, Default)]
pub(in crate::node) struct Met(BTreeMap<ReleaseId, (Generation, String)>);

impl NodeTask {
    /// Who was met first in that generation stands.
    pub(in crate::node) fn note_met(&mut self, of: Generation, release: ReleaseId, whom: String) {
        let known = self.met.0.get(&release).is_some_and(|(known, _)| *known == of);
        if !known {
            self.met.0.insert(release, (of, whom));
            self.tell_of_fence();
        }
    }

    /// What is stored is in the record alone: a person may have taken it out of there.
    pub(in crate::node) fn forget_stored_met(&mut self) {
        let fence = self.stored.record.fence.as_ref();
        let is_stored = |id: &ReleaseId| {
            fence.and_then(|fence| fence.release(id)).is_none_or(|state| state.subject.is_some())
        };
        self.met.0.retain(|id, _| !is_stored(id));
    }

    /// Whom that release met first in this fence, stored or not.
    pub(in crate::node) fn whom_it_met(&self, state: &ReleaseState) -> Option<String> {
        let of = self.record().generation;
        let noted = || self.met.0.get(&state.id).filter(|(known, _)| *known == of);
        state.subject.clone().or_else(|| noted().map(|(_, whom)| whom.clone()))
    }

    /// What is stored anyhow, after whom its releases met.
    pub(in crate::node) fn after_met<'e>(&self, event: Event<'e>) -> Event<'e> {
        let rides = matches!(
            event,
            Event::OffIntent { .. }
                | Event::Confirmed(_)
                | Event::GiveUp { .. }
                | Event::ReleaseIntent { .. }
                | Event::After { .. }
        );
        let states = self.record().fence.iter().flat_map(|fence| &fence.releases);
        let mut found: Vec<Event<'e>> = states
            .filter(|state| rides && state.subject.is_none())
            .filter_map(|state| {
                let subject = self.whom_it_met(state)?;
                Some(Event::ReleaseSubject { release: state.id.clone(), subject })
            })
            .collect();
        if found.is_empty() {
            return event;
        }
        match event {
            Event::After { found: more, event } => {
                found.extend(more);
                Event::After { found, event }
            }
            event => Event::After { found, event: Box::new(event) },
        }
    }
}
