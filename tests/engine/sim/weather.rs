//! A store that is away for a while, slow, or does not say whether it wrote; and a log of all that it took.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::{Fence, NodeRecord};
use picket_core::store::{
    Content, FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written,
};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver_sim::{Random, SimClock};

/// What was written, and when.
#[derive(Clone, Debug)]
pub struct Entry {
    pub at: BootTime,
    pub version: Version,
    pub record: NodeRecord,
}

#[derive(Debug)]
struct Sky {
    random: Random,
    away_until: BootTime,
    silent_percent: u8,
    slow: Duration,
    swallow: Option<Duration>,
    mute: Option<Duration>,
    records_away_until: BootTime,
    linger: Duration,
    notes_take: Duration,
    late_note: Option<Duration>,
    reads_take: Duration,
    records_take: Duration,
    forgets_for: Duration,
    silent_members: BTreeSet<String>,
    members_take: Duration,
}

/// A store under the weather.
#[derive(Debug)]
pub struct Weather {
    inner: Mutex<Arc<dyn Store>>,
    clock: Arc<SimClock>,
    sky: Mutex<Sky>,
    pub log: Mutex<Vec<Entry>>,
    /// When it confirmed leadership and version.
    pub checks: Mutex<Vec<BootTime>>,
}

impl Weather {
    pub fn new(inner: Arc<dyn Store>, clock: Arc<SimClock>, seed: u64) -> Self {
        let sky = Sky {
            random: Random::new(seed),
            away_until: BootTime::default(),
            silent_percent: 0,
            slow: Duration::ZERO,
            swallow: None,
            mute: None,
            records_away_until: BootTime::default(),
            linger: Duration::ZERO,
            notes_take: Duration::ZERO,
            late_note: None,
            reads_take: Duration::ZERO,
            records_take: Duration::ZERO,
            forgets_for: Duration::ZERO,
            silent_members: BTreeSet::new(),
            members_take: Duration::ZERO,
        };
        Self {
            inner: Mutex::new(inner),
            clock,
            sky: Mutex::new(sky),
            log: Mutex::default(),
            checks: Mutex::default(),
        }
    }

    fn inner(&self) -> Arc<dyn Store> {
        self.inner.lock().clone()
    }

    /// Another store is in its place from now on, as after a restore under those who use it.
    pub fn replace(&self, inner: Arc<dyn Store>) {
        *self.inner.lock() = inner;
    }

    /// Nothing is answered for so long.
    pub fn away(&self, time: Duration) {
        self.sky.lock().away_until = self.clock.boot() + time;
    }

    /// The next write happens, and from then on nothing is answered for so long.
    pub fn swallow(&self, time: Duration) {
        self.sky.lock().swallow = Some(time);
    }

    /// The next write happens and is not answered, and for so long no node's record is told; all else is.
    pub fn mute(&self, time: Duration) {
        self.sky.lock().mute = Some(time);
    }

    /// In so many of 100 cases it does not say whether it wrote; and it takes so long for each answer, at most.
    pub fn rough(&self, silent_percent: u8, slow: Duration) {
        let mut sky = self.sky.lock();
        (sky.silent_percent, sky.slow) = (silent_percent, slow);
    }

    /// What is written is told so much later.
    pub fn linger(&self, time: Duration) {
        self.sky.lock().linger = time;
    }

    /// A note that is written is answered so much later.
    pub fn notes_take(&self, time: Duration) {
        self.sky.lock().notes_take = time;
    }

    /// The next note is written so much later, by a member that stood still; nobody hears of it.
    pub fn writes_the_next_note_late(&self, after: Duration) {
        self.sky.lock().late_note = Some(after);
    }

    /// Each read of a record, a key or a fence is answered so much later.
    pub fn reads_take(&self, time: Duration) {
        self.sky.lock().reads_take = time;
    }

    /// Each node's record is told so much later.
    pub fn records_take(&self, time: Duration) {
        self.sky.lock().records_take = time;
    }

    async fn read(&self) {
        let takes = self.sky.lock().reads_take;
        tokio::time::sleep(takes).await;
    }

    /// Forgetting what is too old takes so long.
    pub fn forgets_for(&self, time: Duration) {
        self.sky.lock().forgets_for = time;
    }

    /// These of its members do not answer from now on.
    pub fn hears_nothing_of(&self, members: &[&str]) {
        self.sky.lock().silent_members = members.iter().map(ToString::to_string).collect();
    }

    /// Which of its members answer is known after this time.
    pub fn members_take(&self, time: Duration) {
        self.sky.lock().members_take = time;
    }

    /// All is well again.
    pub fn clear(&self) {
        self.away(Duration::ZERO);
        self.rough(0, Duration::ZERO);
    }

    async fn door(&self) -> Result<(), StoreError> {
        let slow = {
            let mut sky = self.sky.lock();
            let most = sky.slow;
            sky.random.between(Duration::ZERO, most)
        };
        if !slow.is_zero() {
            tokio::time::sleep(slow).await;
        }
        if self.clock.boot() < self.sky.lock().away_until {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        Ok(())
    }

    /// Whether it keeps silent now, and whether it writes all the same.
    fn silent(&self) -> Option<bool> {
        let mut sky = self.sky.lock();
        let percent = sky.silent_percent;
        sky.random.percent(percent).then(|| sky.random.percent(50))
    }

    fn note(&self, written: Written, record: NodeRecord) {
        let entry = Entry { at: self.clock.boot(), version: written.version, record };
        self.log.lock().push(entry);
    }
}

#[async_trait]
impl Store for Weather {
    fn incarnation(&self) -> Incarnation {
        self.inner().incarnation()
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        self.door().await?;
        self.inner().take_term().await
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        self.door().await?;
        self.inner().load_all().await
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        self.door().await?;
        if self.clock.boot() < self.sky.lock().records_away_until {
            return Err(StoreError::Unavailable("records are away".to_owned()));
        }
        let takes = self.sky.lock().records_take;
        tokio::time::sleep(takes).await;
        self.inner().load(node).await
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        self.door().await?;
        let silent = self.silent();
        if silent == Some(false) {
            return Err(StoreError::Unknown("no answer".to_owned()));
        }
        let record = write.record.clone();
        let written = self.inner().write(guard, write).await?;
        self.note(written, record);
        let linger = self.sky.lock().linger;
        if !linger.is_zero() {
            tokio::time::sleep(linger).await;
        }
        let swallowed = self.sky.lock().swallow.take();
        if let Some(time) = swallowed {
            self.away(time);
        }
        let muted = {
            let mut sky = self.sky.lock();
            let muted = sky.mute.take();
            sky.records_away_until = muted.map_or(sky.records_away_until, |time| self.clock.boot() + time);
            muted
        };
        match silent.or(swallowed.or(muted).map(|_| true)) {
            None => Ok(written),
            Some(_) => Err(StoreError::Unknown("no answer".to_owned())),
        }
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        self.door().await?;
        self.inner().check(guard, node, version).await?;
        self.read().await;
        self.checks.lock().push(self.clock.boot());
        Ok(())
    }

    async fn silent_members(&self) -> BTreeSet<String> {
        let take = self.sky.lock().members_take;
        tokio::time::sleep(take).await;
        self.sky.lock().silent_members.clone()
    }

    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
        self.door().await?;
        self.read().await;
        self.inner().key(node, key).await
    }

    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError> {
        self.door().await?;
        self.read().await;
        self.inner().fence(id).await
    }

    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        self.door().await?;
        self.inner().fences(query).await
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        self.door().await?;
        self.inner().revision().await
    }

    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        self.door().await?;
        self.inner().changed_since(since).await
    }

    async fn dump(&self) -> Result<Content, StoreError> {
        self.inner().dump().await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError> {
        self.door().await?;
        self.inner().note(name).await
    }

    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
        self.door().await?;
        self.inner().notes(prefix).await
    }

    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        self.door().await?;
        let late = self.sky.lock().late_note.take();
        if let Some(after) = late {
            let (inner, name) = (self.inner(), name.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                let _may_be_too_late = inner.put_note(guard, &name, expected, text).await;
            });
            return Err(StoreError::Unknown("no answer".to_owned()));
        }
        let put = self.inner().put_note(guard, name, expected, text).await;
        let takes = self.sky.lock().notes_take;
        tokio::time::sleep(takes).await;
        put
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        let time = self.sky.lock().forgets_for;
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        self.inner().forget(guard, before).await
    }
}
