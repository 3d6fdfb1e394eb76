//! The file itself: who may open it, and what is said when it cannot be read.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::common::*;
use picket_core::ids::Term;
use picket_core::record::Phase;
use picket_core::store::{FenceQuery, Guard, Store, StoreError, Stored};
use picket_store::{EmbeddedStore, OpenError};
use proptest::prelude::*;
use redb::ReadableTable;
use tempfile::TempDir;

fn home() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("picket.redb");
    (home, path)
}

async fn guard(store: &EmbeddedStore) -> Guard {
    Guard { term: store.take_term().await.unwrap(), incarnation: store.incarnation() }
}

/// A store with a record, a fence and a few smaller records; closed well.
async fn filled(path: &Path) -> Vec<Stored> {
    let store = EmbeddedStore::open(path, life(1)).unwrap();
    let guard = guard(&store).await;
    let record = rich(Phase::Fenced);
    let mut write = write_of(record.clone(), 0);
    write.fences.extend(record.fence);
    store.write(guard, write).await.unwrap();
    for n in 0..20 {
        store.write(guard, write_of(plain(&format!("r2n{n:02}"), n), 0)).await.unwrap();
    }
    store.load_all().await.unwrap()
}

fn refused(path: &Path) -> (OpenError, String) {
    let error = EmbeddedStore::open(path, life(9)).expect_err("it must not open");
    let said = error.to_string();
    assert!(said.contains(&path.display().to_string()), "it names the file: {said}");
    (error, said)
}

#[tokio::test]
async fn everything_survives_closing_and_the_terms_grow() {
    let (_home, path) = home();
    let wrote = filled(&path).await;
    let store = EmbeddedStore::open(&path, life(2)).unwrap();
    assert_eq!(store.incarnation(), life(1), "the life is minted once");
    assert_eq!(store.load_all().await.unwrap(), wrote);
    assert_eq!(store.fences(FenceQuery { limit: 10, ..FenceQuery::default() }).await.unwrap().len(), 1);
    let old = Guard { term: Term(1), incarnation: life(1) };
    assert_eq!(store.take_term().await, Ok(Term(2)));
    let late = store.write(old, write_of(plain("r2n00", 7), 1)).await;
    assert!(matches!(late, Err(StoreError::Deposed(_))), "{late:?}");
}

#[tokio::test]
async fn the_file_is_the_gateways_alone() {
    let (home, path) = home();
    filled(&path).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&home.path().join("picket.redb.lock")), 0o600);

    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let (error, said) = refused(&path);
    assert!(matches!(error, OpenError::Exposed { mode: 0o644, .. }) && said.contains("chmod 600"), "{said}");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();

    fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
    let error = EmbeddedStore::open(&path, life(9)).unwrap_err().to_string();
    assert!(error.contains("open to everybody") && error.contains("chmod o-w"), "{error}");

    // As root the directory is given away: its owner could put another store into it.
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(home.path(), Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(home.path(), Some(4_711), None).unwrap();
        let error = EmbeddedStore::open(&path, life(9)).unwrap_err().to_string();
        assert!(error.contains("user 4711 owns it") && error.contains("sudo -u '#4711'"), "{error}");
    }
}

#[tokio::test]
async fn a_second_process_hears_who_holds_it() {
    let (home, path) = home();
    let store = EmbeddedStore::open(&path, life(1)).unwrap();
    let (error, said) = refused(&path);
    assert!(matches!(error, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{said}");
    assert!(said.contains(&format!("another picketd (pid {})", std::process::id())), "{said}");

    // Another name for the same file has another lock file; redb's own lock still holds.
    let other = home.path().join("other.redb");
    fs::hard_link(&path, &other).unwrap();
    let (error, said) = refused(&other);
    assert!(matches!(error, OpenError::Locked { pid: None, .. }), "{said}");

    drop(store);
    EmbeddedStore::open(&path, life(1)).expect("free again");
}

#[tokio::test]
async fn a_store_that_is_gone_is_not_replaced_by_an_empty_one() {
    let (home, path) = home();
    filled(&path).await;
    fs::remove_file(&path).unwrap();
    let (error, said) = refused(&path);
    assert!(matches!(error, OpenError::Gone { .. }) && said.contains("picket.redb.lock"), "{said}");
    fs::remove_file(home.path().join("picket.redb.lock")).unwrap();
    let store = EmbeddedStore::open(&path, life(9)).expect("both are gone: on purpose");
    assert_eq!(store.incarnation(), life(9));
}

#[tokio::test]
async fn a_store_in_the_place_of_another_one_is_told_loudly() {
    let (kept, path) = home();
    filled(&path).await;
    assert_eq!(told(&path), "", "the same one");
    let (_other, elsewhere) = home();
    drop(EmbeddedStore::open(&elsewhere, life(2)).unwrap());
    fs::copy(&elsewhere, &path).unwrap();
    let said = told(&path);
    assert!(said.contains("ERROR") && said.contains("replaced by another one"), "{said}");
    assert!(said.contains(&life(1).to_string()) && said.contains(&life(2).to_string()), "{said}");
    let lock = fs::read_to_string(kept.path().join("picket.redb.lock")).unwrap();
    assert!(lock.contains(&life(2).to_string()), "{lock}");
    assert_eq!(told(&path), "", "once");
}

/// What is logged while the store is opened.
fn told(path: &Path) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    drop(tracing::subscriber::with_default(subscriber, || EmbeddedStore::open(path, life(9)).unwrap()));
    String::from_utf8(log.0.lock().clone()).unwrap()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_store_that_was_only_half_made_is_made_again() {
    let (home, path) = home();
    fs::write(home.path().join("picket.redb.new"), b"half").unwrap();
    fs::write(home.path().join("picket.redb.lock"), b"pid 1\n").unwrap();
    let store = EmbeddedStore::open(&path, life(1)).unwrap();
    assert_eq!(store.load_all().await.unwrap(), []);
    assert!(!home.path().join("picket.redb.new").exists());
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let (home, _) = home();
    let path = home.path().join("none/picket.redb");
    let error = EmbeddedStore::open(&path, life(1)).unwrap_err().to_string();
    assert!(error.contains("none") && error.contains("No such file"), "{error}");
    // The number of the running user: root, who types it, would make it root's.
    let of = |what: &str| std::process::Command::new("id").arg(what).output().expect("id runs").stdout;
    let [user, group] =
        ["-u", "-g"].map(|what| String::from_utf8(of(what)).expect("a number").trim().to_owned());
    let command = format!("install -d -m 700 -o {user} -g {group} {}/none", home.path().display());
    assert!(error.ends_with(&command), "{error}");
}

#[tokio::test]
async fn no_file_that_is_no_store_opens() {
    let (_home, path) = home();
    for (bytes, what) in [
        (&b""[..], "it is empty"),
        (b"x", "magic number"),
        (&[0; 65_536], "magic number"),
        (b"[gateway]\nname = \"gw1\"\n", "magic number"),
    ] {
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let (error, said) = refused(&path);
        assert!(matches!(error, OpenError::Damaged { .. }), "{said}");
        assert!(said.contains(what) && said.contains("restore the file from a backup"), "{said}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "it is left as it was");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(refused(&path).0, OpenError::Io { .. }));
    fs::remove_dir(&path).unwrap();
    let other = redb::Database::create(&path).unwrap();
    drop(other);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let (_, said) = refused(&path);
    assert!(said.contains("no store of picketd's"), "{said}");
}

/// Rewrites one value of a closed store, as a defect or another version might have.
fn rewrite(path: &Path, key: &[u8], change: impl FnOnce(String) -> Option<String>) {
    const TABLE: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("picket");
    let database = redb::Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(TABLE).unwrap();
        let old = table.get(key).unwrap().map(|value| String::from_utf8(value.value().to_vec()).unwrap());
        match change(old.expect("the key is there")) {
            Some(new) => drop(table.insert(key, new.as_bytes()).unwrap()),
            None => drop(table.remove(key).unwrap()),
        }
    }
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_store_of_a_later_version_is_refused() {
    let (_home, path) = home();
    filled(&path).await;
    rewrite(&path, b"mformat", |_| Some("{\"v\":9,\"body\":2,\"more\":true}".to_owned()));
    let (error, said) = refused(&path);
    assert!(matches!(error, OpenError::Newer { found: 2, known: 1, .. }), "{said}");
    assert!(said.contains("has format 2") && said.contains("up to 1"), "{said}");
}

#[tokio::test]
async fn one_record_that_cannot_be_read_stops_everything_and_is_named() {
    for (key, change, what) in [
        (&b"nr2n07"[..], "{\"v\":1,\"body\":{}}", "the record of r2n07"),
        (b"nr2n07", "not JSON", "the record of r2n07"),
        (b"mterm", "{\"v\":1,\"body\":-1}", "\"term\""),
        (b"mrevision", "{\"v\":1,\"body\":3}", "do not fit"),
        (b"c\0\0\0\0\0\0\0\x03", "r1n07", "do not fit"),
    ] {
        let (_home, path) = home();
        filled(&path).await;
        rewrite(&path, key, |_| Some(change.to_owned()));
        let (error, said) = refused(&path);
        assert!(matches!(error, OpenError::Damaged { .. }) && said.contains(what), "{said}");
    }
    let (_home, path) = home();
    filled(&path).await;
    rewrite(&path, b"nr2n07", |_| None);
    let (_, said) = refused(&path);
    assert!(said.contains("20 records are stored, and 21 changes"), "{said}");
}

#[tokio::test]
async fn writes_that_arrive_together_are_all_answered() {
    let (_home, path) = home();
    let store = Arc::new(EmbeddedStore::open(&path, life(1)).unwrap());
    let guard = guard(&store).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..300 {
        let store = Arc::clone(&store);
        // Every node is written by three tasks at once: one wins.
        tasks.spawn(async move { store.write(guard, write_of(plain(&format!("n{}", n % 100), n), 0)).await });
    }
    let mut revisions = Vec::new();
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            Ok(written) => revisions.push(written.revision.0),
            Err(StoreError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=100).collect::<Vec<_>>());
    assert_eq!(store.load_all().await.unwrap().len(), 100);
}

#[test]
fn a_runtime_that_ends_leaves_the_store_usable() {
    const CALLS: usize = 20 * 8;
    let (_home, path) = home();
    let store = Arc::new(EmbeddedStore::open(&path, life(1)).unwrap());
    for _ in 0..20 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        for _ in 0..8 {
            let store = Arc::clone(&store);
            runtime.spawn(async move { store.take_term().await });
        }
        runtime.shutdown_background();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // The threads of a runtime may outlive its end for a while. A write that waits behind a turn of theirs hears that it
    // was not begun; each of their calls can do so once.
    for _ in 0..=CALLS {
        match runtime.block_on(store.take_term()) {
            Ok(_) => return,
            Err(StoreError::Unavailable(why)) => assert!(why.contains("not begun"), "{why}"),
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the store serves nobody any more");
}

/// What opens is what was written: a damaged file is refused, or the damage was where nothing lay.
fn opens_whole_or_not(path: &Path, wrote: &[Stored]) -> Result<bool, TestCaseError> {
    match EmbeddedStore::open(path, life(9)) {
        Ok(store) => {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert_eq!(store.incarnation(), life(1));
            let read = runtime.block_on(store.load_all());
            prop_assert_eq!(read.as_deref(), Ok(wrote));
            let fences = runtime.block_on(store.fences(FenceQuery { limit: 10, ..FenceQuery::default() }));
            prop_assert_eq!(fences.map(|fences| fences.len()), Ok(1));
            prop_assert_eq!(runtime.block_on(store.take_term()), Ok(Term(2)));
            Ok(true)
        }
        Err(OpenError::Damaged { .. } | OpenError::Newer { .. }) => Ok(false),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

fn golden_bytes() -> (Vec<u8>, Vec<Stored>) {
    let (_home, path) = home();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let wrote = runtime.block_on(filled(&path));
    (fs::read(&path).unwrap(), wrote)
}

fn place(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let (bytes, wrote) = golden_bytes();
    let (_home, path) = home();
    for length in (0..bytes.len()).step_by(997).chain([bytes.len() - 1, bytes.len() - 4_096]) {
        place(&path, &bytes[..length]);
        assert!(
            !opens_whole_or_not(&path, &wrote).unwrap(),
            "cut off after {length} of {} bytes",
            bytes.len()
        );
    }
}

#[test]
fn bytes_that_changed_on_the_disk_are_never_believed() {
    let (bytes, wrote) = golden_bytes();
    let (_home, path) = home();
    // Most of the file is empty space, in which nothing can be damaged.
    let written: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
    let refused = std::cell::Cell::new(0);
    proptest!(config(400), |(
        at in prop::sample::select(written.clone()), flip in 1..=255_u8, length in prop_oneof![Just(1_usize), Just(512), Just(4_096)]
    )| {
        let mut damaged = bytes.clone();
        let end = (at + length).min(damaged.len());
        damaged[at..end].iter_mut().for_each(|byte| *byte ^= flip);
        place(&path, &damaged);
        refused.set(refused.get() + usize::from(!opens_whole_or_not(&path, &wrote)?));
    });
    let refused = refused.get();
    assert!(refused > 100, "only {refused} damages were seen");
}

/// A block of the file as it was earlier: the disk lost one write of many.
#[test]
fn a_write_that_the_disk_lost_is_never_an_older_state_unseen() {
    let (_home, path) = home();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let before = {
        runtime.block_on(filled(&path));
        fs::read(&path).unwrap()
    };
    let wrote = runtime.block_on(async {
        let store = EmbeddedStore::open(&path, life(1)).unwrap();
        let guard = Guard { term: Term(1), incarnation: life(1) };
        store.write(guard, write_of(plain("r2n05", 99), 1)).await.unwrap();
        store.load_all().await.unwrap()
    });
    let after = fs::read(&path).unwrap();
    for at in (0..before.len().min(after.len())).step_by(4_096) {
        let end = (at + 4_096).min(before.len()).min(after.len());
        if before[at..end] == after[at..end] {
            continue;
        }
        place(&path, &after);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&before[at..end], at as u64).unwrap();
        opens_whole_or_not(&path, &wrote).unwrap_or_else(|error| panic!("block at {at}: {error}"));
    }
}
