//! A gateway that stands alone.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use picket_core::election::{Election, lead};
use picket_core::ids::{Incarnation, NodeId, Term, Version};
use picket_core::record::NodeRecord;
use picket_core::store::{Store, StoreError, Write};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_election::Single;
use picket_store::{EmbeddedStore, MemoryStore};

const JUMP: Duration = Duration::from_secs(1);

/// Clocks that stand until they are moved.
#[derive(Debug)]
struct HandClock {
    boot: AtomicU64,
    wall: AtomicU64,
}

impl HandClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { boot: 1_000.into(), wall: 1_700_000_000_000.into() })
    }

    fn pass(&self, millis: u64) {
        self.boot.fetch_add(millis, SeqCst);
        self.wall.fetch_add(millis, SeqCst);
    }
}

impl Clock for HandClock {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(Duration::from_millis(self.boot.load(SeqCst)))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_millis(self.wall.load(SeqCst))
    }
}

fn life(n: u8) -> Incarnation {
    Incarnation::mint(WallTime::from_millis(1), [n; 10])
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(life(1)).unwrap())
}

fn embedded(path: &Path) -> Arc<dyn Store> {
    Arc::new(EmbeddedStore::open(path, life(1)).unwrap())
}

fn first_write() -> Write {
    let record = NodeRecord::new(NodeId::new("r1n01").unwrap());
    Write { expected: Version(0), record, fences: Vec::new(), keys: Vec::new() }
}

#[tokio::test]
async fn terms_grow_over_restarts() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("picket.redb");
    for restart in 1..=4 {
        let store = embedded(&path);
        let single = Single::new(Arc::clone(&store));
        let permit = lead(&single, HandClock::new(), JUMP).await.unwrap();
        assert_eq!(permit.term(), Term(restart));
        assert_eq!(permit.guard().incarnation, life(1));
        assert_eq!(permit.check(), Ok(()));
    }
}

#[tokio::test]
async fn a_deposed_leaders_write_is_refused_and_its_permit_has_ended() {
    let store = memory();
    let single = Single::new(Arc::clone(&store));
    let clock = HandClock::new();
    let former = lead(&single, clock.clone(), JUMP).await.unwrap();
    let present = lead(&single, clock.clone(), JUMP).await.unwrap();
    assert!(present.term() > former.term());
    assert!(former.check().is_err(), "two permits of one gateway do not hold at once");
    assert!(matches!(store.write(former.guard(), first_write()).await, Err(StoreError::Deposed(_))));
    let node = NodeId::new("r1n01").unwrap();
    assert!(matches!(store.check(former.guard(), &node, Version(0)).await, Err(StoreError::Deposed(_))));
    assert!(store.write(present.guard(), first_write()).await.is_ok());
    assert_eq!(present.check(), Ok(()));
}

#[tokio::test]
async fn the_lease_has_no_end_while_time_passes() {
    let single = Single::new(memory());
    let clock = HandClock::new();
    let permit = lead(&single, clock.clone(), JUMP).await.unwrap();
    clock.pass(90 * 86_400_000);
    assert_eq!(permit.check(), Ok(()));
}

#[tokio::test]
async fn a_clock_jump_ends_leadership_for_good_and_a_new_campaign_takes_a_new_term() {
    for (jump, ends) in
        [(900, false), (-900, false), (1_100, true), (-1_100, true), (i64::from(i32::MAX), true)]
    {
        let single = Single::new(memory());
        let clock = HandClock::new();
        let permit = lead(&single, clock.clone(), JUMP).await.unwrap();
        clock.wall.store(clock.wall.load(SeqCst).wrapping_add_signed(jump), SeqCst);
        assert_eq!(permit.check().is_err(), ends, "a jump of {jump} ms");
        clock.wall.store(clock.wall.load(SeqCst).wrapping_add_signed(-jump), SeqCst);
        assert_eq!(permit.check().is_err(), ends, "jumping back heals nothing");
        let again = lead(&single, clock.clone(), JUMP).await.unwrap();
        assert_eq!((again.term(), again.check()), (Term(2), Ok(())));
    }
}

#[tokio::test]
async fn who_resigns_sends_nothing_more() {
    let single = Single::new(memory());
    let permit = lead(&single, HandClock::new(), JUMP).await.unwrap();
    single.resign().await.unwrap();
    let ended = permit.check().unwrap_err();
    assert_eq!(ended.term, permit.term());
    single.resign().await.expect("to resign twice does no harm");
}

#[tokio::test]
async fn of_campaigns_at_once_the_last_term_holds_and_no_other() {
    let single = Arc::new(Single::new(memory()));
    let clock = HandClock::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (single, clock) = (Arc::clone(&single), clock.clone());
        tasks.spawn(async move { lead(&*single, clock, JUMP).await.unwrap() });
    }
    let permits = tasks.join_all().await;
    let holding: Vec<_> =
        permits.iter().filter(|permit| permit.check().is_ok()).map(|permit| permit.term()).collect();
    assert_eq!(holding, [Term(8)]);
}
