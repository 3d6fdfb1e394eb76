//! What the brake counts outlives a leadership (S14): it is a note of the fleet, written soon after it changed.

use std::time::Duration;

use picket_core::budget::Complaints;
use picket_core::election::Leadership;
use picket_core::store::{Store, StoreError};

use super::Office;
use super::pauses::write;

/// The note's name.
const NAME: &str = "brake";
/// What changes within that time is written at once.
const GATHERED: Duration = Duration::from_secs(1);
/// After a write that failed.
const AGAIN: Duration = Duration::from_secs(5);
/// The longest note with all callers' names, in bytes: every store takes it.
const LONGEST: usize = 256 << 10;
/// The most nodes that a note names.
const MOST: usize = 2_048;

/// As the note has it. Of many complaints the names of callers are left out, for nobody takes those back and they stand for their time; of still more
/// there is a number alone.
fn text(whole: &Complaints, short: impl FnOnce() -> Complaints) -> Option<String> {
    if *whole == Complaints::default() {
        return None;
    }
    let written = |kept: &Complaints| serde_json::to_string(kept).ok();
    written(whole).filter(|text| text.len() <= LONGEST).or_else(|| written(&short()))
}

/// What an earlier leadership kept. A note that cannot be read is of another version: what it kept is forgotten, and told.
pub(super) async fn read(store: &dyn Store) -> Result<Complaints, StoreError> {
    let Some(note) = store.note(NAME).await?.map(|note| note.text) else {
        return Ok(Complaints::default());
    };
    Ok(serde_json::from_str(&note).unwrap_or_else(|error| {
        tracing::error!(%error, "what the brake counted before cannot be read: it counts from now on");
        Complaints::default()
    }))
}

impl Office {
    /// Keeps what the brake counts, for as long as that leadership lasts.
    pub(crate) async fn keep_complaints(&self, store: &dyn Store, leadership: &Leadership) {
        let mut written = None;
        while leadership.check().is_ok() {
            self.complained.notified().await;
            tokio::time::sleep(GATHERED).await;
            let calendar = self.calendar();
            let now = self.clock.boot();
            let stamp = |at| calendar.stamp(at, now);
            let whole = self.papers().books.complaints(stamp);
            let now_text = text(&whole, || self.papers().books.short_of_complaints(MOST, stamp));
            if written.as_ref() == Some(&now_text) {
                continue;
            }
            let writing = self.writing.lock().await;
            let kept = write(store, leadership, NAME, now_text.clone()).await;
            drop(writing);
            match kept {
                Ok(()) => written = Some(now_text),
                Err(error) => {
                    tracing::warn!(%error, "what the brake counts was not stored: it is tried again");
                    tokio::time::sleep(AGAIN).await;
                    self.complained.notify_one();
                }
            }
        }
    }
}
