//! The beginning of a leadership: what counts is read from the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_core::budget::pause::{Pause, Pauses};
use picket_core::ids::NodeId;
use picket_core::record::{Cause, Fence, NodeRecord};
use picket_core::restore::{NOTE, Restored};
use picket_core::store::{FenceQuery, Store, StoreError, Stored};
use picket_core::time::{BootTime, Clock, WallTime};

use super::pauses::PREFIX;
use super::{Office, Papers, Plans};

/// How many fences are read from the history at once.
const BATCH: usize = 256;

impl Office {
    /// Counts anew from what is stored.
    pub(crate) async fn begin(
        &self,
        store: &dyn Store,
        plans: &Plans,
        stored: &BTreeMap<NodeId, Arc<Stored>>,
    ) -> Result<(), StoreError> {
        let clock = &*self.clock;
        let budget = self.budget();
        let roles = self.papers().roles.clone();
        let mut papers = Papers::new(budget.clone(), roles, plans);
        papers.books.know_places_of(&self.papers().books);
        for (node, opened, sent_nothing) in begun(store, budget.longest_window(), clock.wall()).await? {
            papers.books.remember(&node, ago(clock.boot(), clock.wall(), opened), sent_nothing);
        }
        let mut records: Vec<_> = stored.values().map(|one| &one.record).collect();
        // In the order in which they were begun, which is that of the last look: what sent nothing was begun anew with each retry, and stands
        // behind all others where it gave its place away since.
        let begun = |fence: &Fence| match fence.off_sent {
            true => fence.opened_at,
            false => fence.confirming_since.unwrap_or(fence.opened_at),
        };
        records.sort_by_key(|record| {
            record.fence.as_ref().map(|fence| (!fence.off_sent, fence.gave_way, begun(fence), fence.id))
        });
        for record in records {
            papers.take_in(record, clock);
        }
        papers.pauses = read_pauses(store, clock.boot(), clock.wall()).await?;
        papers.restored = read_restored(store).await?;
        *self.papers() = papers;
        Ok(())
    }

    /// Shows the pauses that are stored, where another gateway decides by them.
    pub(crate) async fn see(&self, store: &dyn Store) -> Result<(), StoreError> {
        let pauses = read_pauses(store, self.clock.boot(), self.clock.wall()).await?;
        self.papers().pauses = pauses;
        Ok(())
    }

    /// A node came into the settings, and this is stored of it.
    pub(crate) fn take_in(&self, record: &NodeRecord) {
        self.papers().take_in(record, &*self.clock);
    }
}

impl Papers {
    fn take_in(&mut self, record: &NodeRecord, clock: &dyn Clock) {
        if let Some(stamp) = record.back_since {
            self.books.remember_back(&record.node, stamp, ago(clock.boot(), clock.wall(), stamp));
        }
        self.stored(record, clock.boot());
    }
}

/// When that was on our own clock. What a clock that was set back says is yet to come was just now.
fn ago(now: BootTime, wall: WallTime, then: WallTime) -> BootTime {
    let age = Duration::from_millis(wall.millis().saturating_sub(then.millis()));
    BootTime::from_boot(now.since_boot().saturating_sub(age))
}

/// The callers' fences that were begun within the longest window, oldest first, and whether they ended before an off.
async fn begun(
    store: &dyn Store,
    window: Duration,
    now: WallTime,
) -> Result<Vec<(NodeId, WallTime, bool)>, StoreError> {
    let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
    let oldest = WallTime::from_millis(now.millis().saturating_sub(window));
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let batch = store.fences(FenceQuery { node: None, before, limit: BATCH }).await?;
        let Some(last) = batch.last() else { break };
        before = Some(last.id);
        let past = batch.len() < BATCH || last.opened_at < oldest;
        let counts = |fence: &Fence| fence.cause != Cause::Breach && fence.opened_at >= oldest;
        let told = |fence: Fence| (fence.node.clone(), fence.opened_at, fence.sent_nothing());
        found.extend(batch.into_iter().filter(counts).map(told));
        if past {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// The pauses that stand. One that cannot be read might have been meant for anything: nothing begins on that ground.
async fn read_pauses(store: &dyn Store, now: BootTime, wall: WallTime) -> Result<Pauses, StoreError> {
    let mut pauses = Pauses::default();
    for (name, note) in store.notes(PREFIX).await? {
        match serde_json::from_str::<Pause>(&note.text) {
            Ok(pause) => {
                let until = now + pause.left(wall);
                pauses.put(pause, until);
            }
            Err(error) => {
                return Err(StoreError::Damaged(format!("the pause {name:?} cannot be read: {error}")));
            }
        }
    }
    Ok(pauses)
}

/// What a restored store says of itself.
async fn read_restored(store: &dyn Store) -> Result<Option<Restored>, StoreError> {
    let Some(note) = store.note(NOTE).await? else { return Ok(None) };
    let restored: Restored = serde_json::from_str(&note.text)
        .map_err(|error| StoreError::Damaged(format!("the note {NOTE:?} cannot be read: {error}")))?;
    tracing::info!(
        at = %restored.at, taken_at = %restored.taken_at, from = %restored.from,
        "the store came out of a backup: what it does not know and reads Off is kept off until an admin drops its hold"
    );
    Ok(Some(restored))
}
