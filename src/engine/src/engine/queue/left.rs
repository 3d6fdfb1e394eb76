//! Requests that wait no more, and may stand in the store still.

use picket_core::budget::Ticket;
use picket_core::election::Leadership;
use picket_core::ids::{NodeId, Version};

use picket_core::store::StoreError;
use picket_core::time::BootTime;

use super::{Engine, name};
use crate::request::FenceCall;

/// A request that waits no more, and may stand in the store still.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) ticket: Ticket,
    pub(super) node: NodeId,
    pub(super) holder: String,
    pub(super) ghost: Option<Ghost>,
}

/// A request of which the store did not say whether it took it. A copy of that write may land later, and compares that nothing stands there:
/// until the request would have expired an expired one stands in its place.
#[derive(Debug)]
pub(super) struct Ghost {
    until: BootTime,
    expired: String,
    is_barred: bool,
}

impl Ghost {
    pub(super) fn new(until: BootTime, expired: String) -> Self {
        Self { until, expired, is_barred: false }
    }
}

impl Left {
    pub(super) fn new(ticket: Ticket, node: &NodeId, call: &FenceCall) -> Self {
        Self { ticket, node: node.clone(), holder: call.holder.name.clone(), ghost: None }
    }

    /// Takes it out of the store, or sees to it that nobody begins it. True: nothing of it is left, and nothing more can come.
    pub(super) async fn take_out(
        &mut self,
        engine: &Engine,
        leadership: &Leadership,
    ) -> Result<bool, StoreError> {
        let now = engine.shared.parts.clock.boot();
        let Some(ghost) = self.ghost.as_mut().filter(|ghost| now < ghost.until) else {
            return take_out(engine, leadership, self.ticket).await.map(|()| true);
        };
        if !ghost.is_barred {
            let (store, name) = (&engine.shared.parts.store, name(self.ticket));
            let found = store.note(&name).await?.map_or(Version(0), |note| note.version);
            store.put_note(leadership.guard(), &name, found, Some(ghost.expired.clone())).await?;
            ghost.is_barred = true;
        }
        Ok(false)
    }
}

/// Takes the note of a request out of the store.
pub(super) async fn take_out(
    engine: &Engine,
    leadership: &Leadership,
    ticket: Ticket,
) -> Result<(), StoreError> {
    let (store, name) = (&engine.shared.parts.store, name(ticket));
    match store.note(&name).await? {
        Some(note) => store.put_note(leadership.guard(), &name, note.version, None).await.map(drop),
        None => Ok(()),
    }
}
