//! What happens when the disk fails, and when the power does.
#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;

use picket_core::ids::Generation;
use picket_core::record::NodeRecord;
use picket_core::time::WallTime;
use proptest::prelude::*;
use tempfile::TempDir;

use super::disk::Faults;
use super::faulty::DiskCall;
use super::*;

fn home() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("picket.redb");
    (home, path)
}

fn life() -> Incarnation {
    Incarnation::mint(WallTime::from_millis(1), [1; 10])
}

fn write(name: &str, expected: u64, size: usize) -> Write {
    let mut record = NodeRecord::new(NodeId::new(name).unwrap());
    record.generation = Generation(expected + 1);
    let hold = picket_core::record::Hold {
        reason: "x".repeat(size),
        by: String::new(),
        since: WallTime::default(),
        drop_when_released: false,
        breached: false,
        ended: false,
        placed_alone: false,
        kept: false,
        askers: Vec::new(),
    };
    record.holds.insert("filler".to_owned(), hold);
    Write { expected: Version(expected), record, fences: Vec::new(), keys: Vec::new() }
}

async fn lead(store: &EmbeddedStore) -> Guard {
    Guard { term: store.take_term().await.unwrap(), incarnation: store.incarnation() }
}

/// How many cases a property is tried with: `usual`, or as many as a soak asks for.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok()).unwrap_or(usual)
}

/// The version that is stored.
async fn stored(store: &EmbeddedStore, name: &str) -> Result<u64, StoreError> {
    let stored = store.load(&NodeId::new(name).unwrap()).await?;
    Ok(stored.map_or(0, |stored| stored.version.0))
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_half_written_and_later_it_goes_on() {
    let (_home, path) = home();
    let faults = Faults::default();
    let store = EmbeddedStore::open_on(&path, life(), faults.clone()).unwrap();
    let guard = lead(&store).await;
    store.write(guard, write("a", 0, 10)).await.unwrap();
    let full = fs::metadata(&path).unwrap().len();
    faults.plan.room.store(full, SeqCst);
    let mut done = 1;
    let refused = loop {
        match store.write(guard, write("a", done, 50_000 * done as usize)).await {
            Ok(_) => done += 1,
            Err(error) => break error,
        }
        assert!(done < 100, "the disk never filled up");
    };
    assert!(
        matches!(&refused, StoreError::Unavailable(what) if what.contains("picket.redb: the disk is full")),
        "{refused}"
    );
    // While it is full what is stored can be read, a small write may even fit, and nothing is lost.
    assert_eq!(stored(&store, "a").await, Ok(done));
    let again = store.write(guard, write("a", done, 50_000 * done as usize)).await;
    assert!(matches!(again, Err(StoreError::Unavailable(_))), "{again:?}");
    assert_eq!(store.check(guard, &NodeId::new("a").unwrap(), Version(done)).await, Ok(()));
    faults.plan.room.store(u64::MAX, SeqCst);
    store.write(guard, write("a", done, 1_000_000)).await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(&path, life()).unwrap();
    assert_eq!(stored(&store, "a").await, Ok(done + 1));
}

/// The n-th write or flush of the disk fails, once or for good: what is answered is what is stored.
#[tokio::test]
async fn whichever_call_of_the_disk_fails_the_answer_is_true() {
    let mut answers = std::collections::BTreeMap::new();
    for stays in [false, true] {
        for n in 0..40 {
            let (_home, path) = home();
            let faults = Faults::default();
            let store = EmbeddedStore::open_on(&path, life(), faults.clone()).unwrap();
            let guard = lead(&store).await;
            store.write(guard, write("a", 0, 20_000)).await.unwrap();
            faults.plan.stays.store(stays, SeqCst);
            faults.plan.until_fault.store(n, SeqCst);
            let mut version = 1;
            while version < 8 {
                let answer = store.write(guard, write("a", version, 20_000)).await;
                let kind = answer.as_ref().map(|_| ()).map_err(std::mem::discriminant);
                *answers.entry(format!("{kind:?}")).or_insert(0) += 1;
                match answer {
                    Ok(written) => version = written.version.0,
                    Err(StoreError::Unavailable(_)) => {
                        faults.plan.until_fault.store(-1, SeqCst);
                        assert_eq!(
                            stored(&store, "a").await,
                            Ok(version),
                            "fault {n}: it said that nothing happened"
                        );
                    }
                    Err(StoreError::Unknown(_)) => {
                        faults.plan.until_fault.store(-1, SeqCst);
                        let found = stored(&store, "a").await.unwrap();
                        assert!(
                            found == version || found == version + 1,
                            "fault {n}: {found} after {version}"
                        );
                        version = found;
                    }
                    Err(other) => panic!("fault {n}: {other}"),
                }
            }
            assert_eq!(store.check(guard, &NodeId::new("a").unwrap(), Version(version)).await, Ok(()));
            drop(store);
            let store = EmbeddedStore::open(&path, life()).unwrap();
            assert_eq!(stored(&store, "a").await, Ok(version), "fault {n}: after closing");
        }
    }
    assert!(answers.len() >= 3, "all three answers were seen: {answers:?}");
}

#[tokio::test]
async fn while_the_disk_fails_every_call_says_so_and_none_waits() {
    let (_home, path) = home();
    let faults = Faults::default();
    let store = EmbeddedStore::open_on(&path, life(), faults.clone()).unwrap();
    let guard = lead(&store).await;
    faults.plan.stays.store(true, SeqCst);
    faults.plan.until_fault.store(0, SeqCst);
    for _ in 0..3 {
        let write = store.write(guard, write("a", 0, 10)).await.unwrap_err();
        assert!(write.to_string().contains("failed on purpose"), "{write}");
        let term = store.take_term().await.unwrap_err();
        assert!(term.to_string().contains("failed on purpose"), "{term}");
    }
    faults.plan.until_fault.store(-1, SeqCst);
    assert_eq!(stored(&store, "a").await, Ok(0));
    store.write(guard, write("a", 0, 10)).await.unwrap();
}

#[test]
fn a_disk_that_fails_while_the_store_is_made_leaves_none() {
    for n in 0..12 {
        let (home, path) = home();
        let faults = Faults::default();
        faults.plan.stays.store(true, SeqCst);
        faults.plan.until_fault.store(n, SeqCst);
        let made = EmbeddedStore::open_on(&path, life(), faults);
        if made.is_err() {
            assert!(matches!(made, Err(OpenError::Io { .. })), "fault {n}: {made:?}");
            let store = EmbeddedStore::open(&path, life());
            assert!(store.is_ok(), "fault {n}: {store:?} in {:?}", fs::read_dir(home.path()));
        }
    }
}

/// The file as a disk may have it after the power went in the middle of event `cut`: everything up to the last flush,
/// and of what came after it any part.
fn after_power_loss(events: &[DiskCall], cut: usize, kept: impl Fn(usize) -> bool) -> Vec<u8> {
    let flushed = events[..cut].iter().rposition(|event| matches!(event, DiskCall::Sync)).unwrap_or(0);
    let mut bytes = Vec::new();
    let mut sectors = 0;
    for (number, event) in events[..cut].iter().enumerate() {
        match event {
            DiskCall::Write { offset, data } => {
                let offset = *offset as usize;
                bytes.resize(bytes.len().max(offset + data.len()), 0);
                for (start, sector) in
                    data.chunks(512).enumerate().map(|(n, sector)| (offset + n * 512, sector))
                {
                    sectors += 1;
                    if number < flushed || kept(sectors) {
                        bytes[start..start + sector.len()].copy_from_slice(sector);
                    }
                }
            }
            DiskCall::SetLen(len) => bytes.resize(*len as usize, 0),
            DiskCall::Sync => {}
        }
    }
    bytes
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_answered() {
    let (_home, path) = home();
    let faults = Faults::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // What was answered, and how much the disk had been told by then.
    let mut answered = vec![];
    runtime.block_on(async {
        drop(EmbeddedStore::open(&path, life()).unwrap());
        faults.plan.record(&fs::read(&path).unwrap());
        let store = EmbeddedStore::open_on(&path, life(), faults.clone()).unwrap();
        let guard = lead(&store).await;
        for version in 0..12 {
            store.write(guard, write("a", version, 3_000 * (version as usize % 4))).await.unwrap();
            answered.push((faults.plan.recorded().len(), version + 1));
        }
    });
    let events = faults.plan.recorded();
    let opened = answered[0].0;
    proptest!(ProptestConfig::with_cases(cases(300)), |(cut in 2..events.len(), seed in any::<u64>(), keep in 0..=8_u64)| {
        let kept = |sector: usize| (seed.rotate_left(sector as u32 % 63) ^ sector as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61 < keep;
        fs::write(&path, after_power_loss(&events, cut, kept)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let store = EmbeddedStore::open(&path, life());
        let store = store.map_err(|error| TestCaseError::fail(format!("cut at {cut} of {}: {error}", events.len())))?;
        let found = runtime.block_on(stored(&store, "a")).unwrap();
        let least = answered.iter().rev().find(|(told, _)| *told <= cut).map_or(0, |(_, version)| *version);
        prop_assert!(found >= least && found <= least + 1, "cut at {}: {} found, {} answered", cut, found, least);
        prop_assert!(cut >= opened || found <= 1);
    });
}

#[tokio::test]
async fn who_waits_behind_a_turn_that_never_came_hears_that_nothing_was_begun() {
    let (_home, path) = home();
    let store = EmbeddedStore::open(&path, life()).unwrap();
    let (answer, first) = store.queue.enter(semantics::take_term);
    assert!(first, "nobody serves the queue yet");
    let worker = QueueWorker::new(Arc::clone(&store.queue), Arc::clone(&store.db_file));
    // Another one leaves it to that turn, which its runtime drops as it ends.
    let other = store.take_term();
    tokio::pin!(other);
    assert!(waits(other.as_mut()).await);
    drop(worker);
    for said in [answer.await.unwrap(), other.await] {
        assert!(
            matches!(&said, Err(StoreError::Unavailable(why)) if why.contains("not begun")),
            "surely nothing was done: {said:?}"
        );
    }
    assert_eq!(store.take_term().await.map(|term| term.0), Ok(1), "the next one sees to a turn of its own");
}

/// Polls it once; whether it waits.
async fn waits<F: Future + Unpin>(mut future: F) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut future).poll(context).is_pending())
    })
    .await
}
