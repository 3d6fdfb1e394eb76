//! `kill -9` at any moment loses nothing that was acknowledged.
//!
//! The test runs itself as a child that writes and says what was acknowledged; the child is killed at random moments.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::*;
use picket_core::ids::Term;
use picket_core::record::{NodeRecord, Phase};
use picket_core::store::{Guard, Store};
use picket_store::EmbeddedStore;

const STORE: &str = "PICKET_KILL_TEST_STORE";
const ROUNDS: u64 = 25;
const NODES: usize = 4;

/// The child: writes for ever. Does nothing where it is not called by the test below.
#[tokio::test]
async fn child() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let store = Arc::new(EmbeddedStore::open(Path::new(&path), life(1)).unwrap());
    let guard = Guard { term: store.take_term().await.unwrap(), incarnation: store.incarnation() };
    say(&format!("term {}", guard.term));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..NODES {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let name = node(&format!("n{n}"));
            let mut version = store.load(&name).await.unwrap().map_or(0, |stored| stored.version.0);
            loop {
                let (id, now) = (fence_id(version + 1, n as u8), at(version + 1));
                let record =
                    NodeRecord { node: name.clone(), breaches: version as u32 + 1, ..rich(Phase::Fenced) };
                let mut write = write_of(record, version);
                write.fences.push(fence(&name, id, now));
                write.keys.push((format!("k{version}"), entry("a", id, now, None)));
                version = store.write(guard, write).await.unwrap().version.0;
                say(&format!("{n} {version}"));
            }
        });
    }
    tasks.join_next().await;
}

/// One line in one write, so that a kill cannot tear it.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("ack {line}\n").as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("picket.redb");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut random = seed | 1;
    let mut acknowledged: BTreeMap<usize, u64> = BTreeMap::new();
    let mut term = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
            .env(STORE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut hear = |line: &str| {
            let Some((_, ack)) = line.trim_end().rsplit_once("ack ") else { return false };
            match ack.split_once(' ') {
                Some(("term", number)) => term = number.parse().unwrap(),
                Some((n, version)) => drop(acknowledged.insert(n.parse().unwrap(), version.parse().unwrap())),
                None => panic!("{line:?}"),
            }
            true
        };
        // Some rounds die while the store is made or opened, before anything was said; the others after so many words.
        let mut words = if round % 5 == 0 { 0 } else { 3 + random % 8 };
        while words > 0 {
            let mut line = String::new();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "round {round}: the child died by itself");
            words -= u64::from(hear(&line));
        }
        std::thread::sleep(Duration::from_micros(random % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        for line in rest.lines() {
            hear(line);
        }
        runtime.block_on(compare(&path, &mut acknowledged, &mut term, round));
    }
    let writes: u64 = acknowledged.values().sum();
    println!("{writes} acknowledged writes, {term} terms");
    assert!(writes > ROUNDS, "the children wrote next to nothing");
}

async fn compare(path: &Path, acknowledged: &mut BTreeMap<usize, u64>, term: &mut u64, round: u64) {
    let store = EmbeddedStore::open(path, life(1)).unwrap_or_else(|error| panic!("round {round}: {error}"));
    assert_eq!(store.incarnation(), life(1));
    for n in 0..NODES {
        let name = node(&format!("n{n}"));
        let acked = acknowledged.get(&n).copied().unwrap_or(0);
        let stored = store.load(&name).await.unwrap();
        let version = stored.as_ref().map_or(0, |stored| stored.version.0);
        assert!(
            version == acked || version == acked + 1,
            "round {round}: {acked} was acknowledged of {name}, and {version} is stored"
        );
        if let Some(stored) = stored {
            // The whole write is there, or nothing of it.
            assert_eq!(u64::from(stored.record.breaches), version);
            assert!(store.fence(fence_id(version, n as u8)).await.unwrap().is_some());
            assert_eq!(store.fence(fence_id(version + 1, n as u8)).await.unwrap(), None);
            assert!(store.key(&name, &format!("k{}", version - 1)).await.unwrap().is_some());
        }
        acknowledged.insert(n, version);
    }
    let next = store.take_term().await.unwrap();
    assert!(next > Term(*term), "round {round}: term {next} after {term}");
    *term = next.0;
}
