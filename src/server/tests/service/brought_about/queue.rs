//! The queue: its length, each caller's share of it, one entry for a request however often it is asked, and that nothing which is over begins.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::record::Fence;
use picket_core::store::Note;
use picket_core::time::BootTime;
use serde_json::Value;

use super::laws::{Book, Kind};
use super::rights::share_room;

/// A request that goes to its node takes some time on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(120);

/// What became of a reload is seen to within that time.
const SEEN_TO: Duration = Duration::from_secs(10);

/// A request that waits, as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    node: String,
    holder: String,
    by: String,
    reason: String,
    key: Option<String>,
}

impl Entry {
    fn read(text: &str) -> Self {
        let note: Value = serde_json::from_str(text).expect("a request that waits");
        let word = |name: &str| note[name].as_str().expect("a word").to_owned();
        let key = note.get("key").map(|key| key[0].as_str().expect("a key").to_owned());
        Self { node: word("node"), holder: word("holder"), by: word("by"), reason: word("reason"), key }
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.node == other.node
            && match (&self.key, &other.key) {
                (Some(one), Some(other)) => one == other,
                (None, None) => {
                    (&self.holder, &self.by, &self.reason) == (&other.holder, &other.by, &other.reason)
                }
                _ => false,
            }
    }
}

impl Book {
    /// This waits now.
    pub(super) fn waits(&mut self, notes: Vec<(String, Note)>, now: BootTime) {
        let read = |(name, note): (String, Note)| (name, Entry::read(&note.text));
        let queue: BTreeMap<String, Entry> = notes.into_iter().map(read).collect();
        let since = self.queue_seen_at;
        for (name, entry) in queue.iter().filter(|(name, _)| !self.queue.contains_key(*name)) {
            // What came before it, and waits still, waited when it came.
            let before = || queue.range(..name.clone()).map(|(_, before)| before);
            let theirs = before().filter(|one| share_room(&one.by, &entry.by)).count();
            let all = before().count();
            let most = self.bounds.since(since).map(|bounds| bounds.budget.queue_most as usize).max();
            let most = most.unwrap_or_default();
            if theirs + all >= most {
                self.broken.push(format!(
                    "{} had {theirs} of the {all} that wait in a queue of {most}, and got another place",
                    entry.by
                ));
            }
            if let Some(same) = before().find(|one| one.asks_the_same(entry)) {
                self.broken.push(format!("{same:?} waits twice"));
            }
            self.seen.entered += 1;
        }
        self.expect_rights(&queue, now);
        (self.queue, self.queue_seen_at) = (queue, now);
    }

    /// What waits goes once its caller has no right to it any more.
    fn expect_rights(&mut self, queue: &BTreeMap<String, Entry>, now: BootTime) {
        let may = |entry: &Entry, since: BootTime| {
            self.rights.since(since).any(|rights| rights.may_hold(&entry.by, &entry.holder, &entry.node))
        };
        let next = now + Duration::from_millis(1);
        let long_ago = BootTime::from_boot(now.since_boot().saturating_sub(SEEN_TO));
        let stays =
            queue.iter().filter(|(name, entry)| self.queue.contains_key(*name) && !may(entry, long_ago));
        let broken: Vec<String> = stays
            .map(|(_, entry)| format!("{entry:?} waits, and its caller has no right to it any more"))
            .collect();
        let gone = self.queue.iter().filter(|(name, entry)| !queue.contains_key(*name) && !may(entry, next));
        self.seen.lost += gone.count() as u64;
        self.broken.extend(broken);
    }

    /// Whether the request of that fence was over before it was begun.
    pub(super) fn expect_in_time(&mut self, fence: &Fence, now: BootTime) {
        let Some(request) = self.request(&fence.reason).filter(|one| one.node == fence.node.as_str()) else {
            return;
        };
        let Kind::Fence { waits, .. } = request.kind else { return };
        let lives = self.bounds.since(request.asked_last).map(|bounds| bounds.budget.queue_expires);
        let life = waits.map(|at_most| at_most.min(lives.max().unwrap_or_default())).unwrap_or_default();
        if now > request.asked_last + life + ON_ITS_WAY {
            let asked = request.asked_last;
            self.broken.push(format!(
                "{} is fenced for a request of {asked:?}, which lived for {life:?}",
                fence.node
            ));
        }
    }
}
