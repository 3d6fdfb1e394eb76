//! The beginning of a leadership: what counts is read from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::budget::pause::{Pause, Pauses};
use picket_core::ids::{Incarnation, NodeId};
use picket_core::record::{Cause, Fence, NodeRecord, Restored};
use picket_core::restore::{LIVES, Lives, NOTE};
use picket_core::store::{FenceQuery, Store, StoreError, Stored};
use picket_core::time::{BootTime, WallTime};

use super::calendar::Calendar;
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
        let now = self.clock.boot();
        let calendar = self.calendar();
        let budget = self.budget();
        let roles = self.papers().roles.clone();
        let mut papers = Papers::new(budget.clone(), roles, plans);
        papers.books.know_places_of(&self.papers().books);
        for (opened, node, sent_nothing) in begun(store, budget.longest_window(), now, &calendar).await? {
            papers.books.remember(&node, opened, sent_nothing);
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
            papers.take_in(record, now, &calendar);
        }
        let kept = super::brake::read(store).await?;
        papers.books.take_up(kept, |stamp| calendar.when(stamp, now));
        papers.pauses = read_pauses(store, now, &calendar).await?;
        papers.restored = read_restored(store).await?;
        papers.lives = Some(Arc::new(read_lives(store, papers.restored.as_ref()).await?));
        *self.papers() = papers;
        Ok(())
    }

    /// Shows the pauses that are stored, where another gateway decides by them.
    pub(crate) async fn see(&self, store: &dyn Store) -> Result<(), StoreError> {
        let pauses = read_pauses(store, self.clock.boot(), &self.calendar()).await?;
        self.papers().pauses = pauses;
        Ok(())
    }

    /// A node came into the settings, and this is stored of it.
    pub(crate) fn take_in(&self, record: &NodeRecord) {
        let calendar = self.calendar();
        self.papers().take_in(record, self.clock.boot(), &calendar);
    }

    /// What both clocks have said until now.
    pub(super) fn calendar(&self) -> Calendar {
        let mut calendar = self.calendar.lock();
        calendar.look(self.clock.boot(), self.clock.wall());
        calendar.clone()
    }

    /// What the wall clock would say now that wrote this stamp, had it not jumped since.
    pub(crate) fn now_as_of(&self, stamp: WallTime) -> WallTime {
        self.calendar().now_as_of(stamp, self.clock.boot())
    }
}

impl Papers {
    fn take_in(&mut self, record: &NodeRecord, now: BootTime, calendar: &Calendar) {
        if let Some(stamp) = record.back_since {
            self.books.remember_back(&record.node, stamp, calendar.when(stamp, now));
        }
        self.stored(record, now);
    }
}

/// The callers' fences that were begun within the longest window, oldest first, and whether they ended before an off.
async fn begun(
    store: &dyn Store,
    window: Duration,
    now: BootTime,
    calendar: &Calendar,
) -> Result<Vec<(BootTime, NodeId, bool)>, StoreError> {
    let earliest = calendar.earliest(window, now);
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let batch = store.fences(FenceQuery { node: None, before, limit: BATCH }).await?;
        let Some(last) = batch.last() else { break };
        before = Some(last.id);
        let past = batch.len() < BATCH || last.opened_at < earliest;
        let counts =
            |fence: &Fence| fence.cause != Cause::Breach && calendar.age(fence.opened_at, now) <= window;
        let told =
            |fence: Fence| (calendar.when(fence.opened_at, now), fence.node.clone(), fence.sent_nothing());
        found.extend(batch.into_iter().filter(counts).map(told));
        if past {
            break;
        }
    }
    found.reverse();
    // By their ids they stand in the order of the wall clock.
    found.sort_by_key(|(opened, ..)| *opened);
    Ok(found)
}

/// The pauses that stand. One that cannot be read might have been meant for anything: nothing begins on that ground.
async fn read_pauses(store: &dyn Store, now: BootTime, calendar: &Calendar) -> Result<Pauses, StoreError> {
    let mut pauses = Pauses::default();
    for (name, note) in store.notes(PREFIX).await? {
        match serde_json::from_str::<Pause>(&note.text) {
            Ok(pause) => {
                let until = now + pause.left(calendar.now_as_of(pause.since, now));
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

/// By what it is known again where gateways note something in its name. A version before the note [`LIVES`] wrote only what it came from last.
async fn read_lives(store: &dyn Store, restored: Option<&Restored>) -> Result<Lives, StoreError> {
    let note = store.note(LIVES).await?;
    // It only says what an earlier life noted in a cluster: no fence waits for that.
    let mut before: BTreeSet<Incarnation> = note.map_or_else(BTreeSet::new, |note| {
        serde_json::from_str(&note.text).unwrap_or_else(|error| {
            tracing::warn!(%error, "the note {LIVES:?} cannot be read: what earlier lives of this store noted in Kubernetes is another's");
            BTreeSet::new()
        })
    });
    before.extend(restored.map(|restored| restored.from));
    Ok(Lives { now: store.incarnation(), before })
}
