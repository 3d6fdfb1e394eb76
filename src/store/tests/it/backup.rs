//! Backups: what is taken out is put back, from every store into every other; what is not whole is refused, in words.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::common::*;
use picket_core::ids::{Generation, Incarnation, Revision, Term};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Cause, NodeRecord, Phase};
use picket_core::restore;
use picket_core::store::{Content, Guard, Store, StoreError, Write};
use picket_store::backup::{self, Backup, BackupError, Lines, RestoreOptions};
use picket_store::{EmbeddedStore, MemoryStore, OpenError};
use sha2::{Digest, Sha256};

const TAKEN: u64 = 1_795_260_000_000;

/// A store that has been through something: three nodes, five fences, keys and notes.
async fn live(store: &dyn Store) -> Guard {
    let guard = Guard { term: store.take_term().await.unwrap(), incarnation: store.incarnation() };
    let write = |name: &str, phase: Phase| {
        let mut record = NodeRecord { node: node(name), ..rich(phase) };
        let id = fence_id(1_795_250_372_042, name.as_bytes()[0]);
        if record.phase == Phase::Normal {
            record.fence = None;
        }
        if let Some(fence) = &mut record.fence {
            fence.node = node(name);
            fence.id = id;
        }
        let fences = record.fence.clone().into_iter().collect();
        let keys = vec![(format!("key of {name}"), entry("sha256:aa", id, at(TAKEN), None))];
        Write { expected: picket_core::ids::Version(0), record, fences, keys }
    };
    let writes = [write("c", Phase::Normal), write("a", Phase::Released), write("b", Phase::Fencing)];
    for one in writes {
        store.write(guard, one).await.unwrap();
    }
    for (name, text) in [("pause/everything", "{}"), ("queue/00000000000000000001", "{}")] {
        store.put_note(guard, name, picket_core::ids::Version(0), Some(text.to_owned())).await.unwrap();
    }
    guard
}

async fn taken() -> Content {
    let store = MemoryStore::new(life(1)).unwrap();
    live(&store).await;
    store.dump().await.unwrap()
}

fn bytes(content: &Content) -> Vec<u8> {
    Lines::new(content.clone(), at(TAKEN), "picketd test").map(Result::unwrap).collect::<Vec<_>>().concat()
}

fn read(bytes: &[u8]) -> Result<Backup, BackupError> {
    backup::read(bytes)
}

fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.redb");
    (home, path)
}

fn restored(content: &Content, fresh: Incarnation) -> Content {
    let mut number = 100;
    let mut mint = || {
        number += 1;
        fence_id(TAKEN, number)
    };
    let backup = read(&bytes(content)).unwrap();
    backup::restored_content(
        backup,
        RestoreOptions { at: at(TAKEN + 1_000), incarnation: fresh, mint: &mut mint },
    )
}

#[tokio::test]
async fn what_is_taken_out_of_one_store_is_the_same_out_of_another() {
    let memory = taken().await;
    let (_home, path) = home();
    let store = EmbeddedStore::open(&path, life(1)).unwrap();
    live(&store).await;
    assert_eq!(store.dump().await.unwrap(), memory);
    assert_eq!(
        (memory.records.len(), memory.fences.len(), memory.keys.len(), memory.notes.len()),
        (3, 2, 3, 2)
    );
}

#[tokio::test]
async fn a_backup_says_what_it_is_and_reads_back_as_it_was() {
    let content = taken().await;
    let bytes = bytes(&content);
    let read = read(&bytes).unwrap();
    assert_eq!(read.content, content);
    let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
    assert_eq!(lines.len(), 1 + 3 + 2 + 3 + 2 + 1);
    assert_eq!(
        lines[0],
        format!(
            "{{\"picket_backup\":1,\"taken_at\":{TAKEN},\"by\":\"picketd test\",\"incarnation\":\"{}\",\"term\":1,\
             \"nodes\":3,\"fences\":2,\"keys\":3,\"notes\":2}}",
            life(1)
        )
    );
    assert!(lines[11].starts_with("{\"end\":11,\"sha256\":\""), "{}", lines[11]);
    assert!(lines[1].starts_with("{\"kind\":\"node\",\"name\":\"a\",\"stored\":{\"body\":"), "{}", lines[1]);
}

#[tokio::test]
async fn what_is_not_whole_is_refused_with_what_is_wrong() {
    let bytes = bytes(&taken().await);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let says = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    // Cut off anywhere, it is never taken for whole.
    for cut in (0..bytes.len()).step_by(211).chain(bytes.len() - 200..bytes.len()) {
        assert!(read(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    assert_eq!(says(b""), "it is no backup of picketd's: it is empty");
    assert_eq!(says(b"PK\x03\x04 zip"), "it is no backup of picketd's: its first line is no JSON");
    assert_eq!(
        says(b"{\"v\":1}\n"),
        "it is no backup of picketd's: its first line does not say \"picket_backup\" and a number"
    );
    assert_eq!(
        says(text.replacen("\"picket_backup\":1", "\"picket_backup\":2", 1).as_bytes()),
        "it has format 2, and this version reads formats up to 1: run the picketd that wrote it, or a later one"
    );
    let without_last = text.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    assert_eq!(
        says(without_last.as_bytes()),
        "it ends after line 11 without its last line: it was cut off; take it again, or use another one"
    );
    let forged = text.replacen("\"phase\":\"released\"", "\"phase\":\"normal\"", 1);
    assert!(forged != text);
    assert!(says(forged.as_bytes()).starts_with("it was changed since it was taken (its SHA-256 is "));
    let lines: Vec<&str> = text.lines().collect();
    let fewer = [&lines[..3], &lines[4..]].concat().join("\n") + "\n";
    assert_eq!(
        says(fewer.as_bytes()),
        "it was changed since it was taken (its last line counts 11 lines before it, and there are 10); use another one"
    );
    assert!(says((text.clone() + &text).as_bytes()).contains("something follows its last line, 12"));
    let nonsense = text.replacen("\"kind\":\"key\"", "\"kind\":\"kea\"", 1);
    assert!(
        says(nonsense.as_bytes()).starts_with("line 7: unknown variant `kea`"),
        "{}",
        says(nonsense.as_bytes())
    );
}

#[tokio::test]
async fn what_stands_in_it_twice_or_without_its_history_is_refused_with_where() {
    let text = String::from_utf8(bytes(&taken().await)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // Somebody put it together by hand, and the digest is right.
    let sealed = |body: &[&str]| {
        let body = body.join("\n") + "\n";
        let digest = Sha256::digest(body.as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{body}{{\"end\":{},\"sha256\":\"{digest}\"}}\n", body.lines().count())
    };
    let says = |body: &[&str]| read(sealed(body).as_bytes()).unwrap_err().to_string();
    assert!(read(sealed(&lines[..11]).as_bytes()).is_ok());
    for (from, of) in [
        (1, "the record of a"),
        (4, "fence "),
        (6, "the key \"key of a\" of a"),
        (9, "the note \"pause/everything\""),
    ] {
        let twice = [&lines[..11], &[lines[from]]].concat();
        let said = says(&twice);
        assert!(said.starts_with(&format!("line 12: {of}")), "{said}");
        assert!(said.ends_with(&format!("stands in line {} already", from + 1)), "{said}");
    }
    let header = lines[0].replace("\"fences\":2", "\"fences\":1");
    let without = [&[header.as_str()], &lines[1..4], &lines[5..11]].concat();
    let said = says(&without);
    assert!(said.starts_with("line 2: fence ") && said.ends_with(" of a is not in its history"), "{said}");
    assert!(
        says(&lines[..10])
            .starts_with("it was changed since it was taken (its first line counts 2 notes, and there are 1"),
        "{}",
        says(&lines[..10])
    );
}

/// Each `golden/backup-*.jsonl` is what one version wrote. They are never changed: where the form changes on purpose,
/// `PICKET_GOLDEN=<another name>` writes one more, and this names it.
const NEWEST: &str = "backup-v1.15.jsonl";

#[tokio::test]
async fn every_backup_ever_written_is_read_and_restored() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let written = bytes(&taken().await);
    if let Ok(name) = std::env::var("PICKET_GOLDEN") {
        let path = directory.join(name);
        assert!(!path.exists(), "goldens are never changed: name a new one");
        std::fs::write(path, &written).unwrap();
    }
    let newest = std::fs::read(directory.join(NEWEST)).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        String::from_utf8(newest).unwrap(),
        "it is written otherwise"
    );
    let mut read_so_far = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|is| is != "jsonl") {
            continue;
        }
        let backup = read(&std::fs::read(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!((backup.header.nodes, backup.header.fences, backup.header.notes), (3, 2, 2));
        let mut mint = || fence_id(TAKEN, 100 + read_so_far);
        let new = backup::restored_content(
            backup,
            RestoreOptions { at: at(TAKEN + 1), incarnation: life(9), mint: &mut mint },
        );
        MemoryStore::filled(&new).unwrap().load_all().await.unwrap();
        read_so_far += 1;
    }
    assert!(read_so_far >= 1);
}

#[tokio::test]
async fn a_restored_store_is_another_life_in_which_nothing_is_proven() {
    let old = taken().await;
    let new = restored(&old, life(9));
    assert_eq!((new.incarnation, new.term), (life(9), Term(TAKEN + 1_000)));
    let phases: Vec<(&str, Phase)> =
        new.records.iter().map(|one| (one.record.node.as_str(), one.record.phase.clone())).collect();
    let kept = Phase::NeedsOperator(Reason::Restored);
    assert_eq!(phases, [("a", kept.clone()), ("b", kept), ("c", Phase::Normal)]);
    for (before, after) in old.records.iter().zip(&new.records) {
        assert_eq!(after.record.generation, Generation(TAKEN + 1_000), "{}", before.record.node);
        assert!(after.record.restored.is_some());
        let Some(fence) = &after.record.fence else { continue };
        assert_eq!((fence.cause, &fence.evidence, &fence.attestation), (Cause::Restored, &None, &None));
        assert_eq!(fence.outcome, Some(Outcome::NeedsOperator(Reason::Restored)));
        assert!(new.fences.contains(fence), "its fence stands in the history as well");
    }
    // What was open has ended, as keys that are bound to it are told; what waited is void.
    let ended: Vec<_> = new.fences.iter().filter(|fence| fence.cause != Cause::Restored).collect();
    assert!(ended.len() == 2 && ended.iter().all(|fence| fence.ended_at == Some(at(TAKEN + 1_000))));
    assert_eq!(new.keys, old.keys);
    assert_eq!(
        new.notes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["lives", "pause/everything", "restored"]
    );
}

/// What gateways of the old life noted at a cluster's Nodes is known by it (K7): it is handed on, over as many restores as there are.
#[tokio::test]
async fn a_restored_store_knows_the_lives_that_it_came_from() {
    let lives = |content: &Content| {
        let noted = content.notes.iter().find(|(name, _)| name == restore::LIVES);
        noted.map(|(_, note)| serde_json::from_str::<Vec<Incarnation>>(&note.text).unwrap())
    };
    let first = taken().await;
    assert_eq!(lives(&first), None);
    let second = restored(&first, life(9));
    assert_eq!(lives(&second), Some(vec![life(1)]));
    // Through a store, which may be of another kind.
    let third = restored(&MemoryStore::filled(&second).unwrap().dump().await.unwrap(), life(10));
    assert_eq!(lives(&third), Some(vec![life(1), life(9)]));
    let mut odd = second;
    odd.notes.iter_mut().for_each(|(_, note)| note.text.insert(0, 'x'));
    assert_eq!(lives(&restored(&odd, life(11))), Some(vec![life(9)]));
}

#[tokio::test]
async fn it_is_restored_into_a_store_of_either_kind_and_old_guards_are_void() {
    let content = restored(&taken().await, life(9));
    let (_home, path) = home();
    EmbeddedStore::restore(&path, &content).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let embedded = EmbeddedStore::open(&path, life(3)).unwrap();
    let memory = MemoryStore::filled(&content).unwrap();
    let stores: [&dyn Store; 2] = [&embedded, &memory];
    for store in stores {
        assert_eq!(store.incarnation(), life(9));
        assert_eq!(store.revision().await.unwrap(), Revision(3));
        let mut again = store.dump().await.unwrap();
        again.records.iter_mut().zip(&content.records).for_each(|(again, was)| again.revision = was.revision);
        assert_eq!(again, content);
        let old = Guard { term: Term(1), incarnation: life(1) };
        let refused = store.check(old, &node("a"), content.records[0].version).await.unwrap_err();
        assert!(matches!(refused, StoreError::Deposed(_)), "{refused}");
        let term = store.take_term().await.unwrap();
        assert_eq!(term, Term(TAKEN + 1_001));
        let guard = Guard { term, incarnation: life(9) };
        store.check(guard, &node("a"), content.records[0].version).await.unwrap();
        assert_eq!(store.changed_since(Revision(1)).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn it_is_restored_where_there_is_no_store_and_was_none() {
    let content = restored(&taken().await, life(9));
    let (_home, path) = home();
    drop(EmbeddedStore::open(&path, life(3)).unwrap());
    let refused = EmbeddedStore::restore(&path, &content).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "there is a store at {0} already, and a backup is restored into a new one only: move it away, and {0}.lock \
             with it, if it is surely of no use any more",
            path.display()
        )
    );
    // The file alone gone: its lock file remembers it.
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(EmbeddedStore::restore(&path, &content), Err(OpenError::Exists { .. })));
    std::fs::remove_file(path.with_extension("redb.lock")).unwrap();
    EmbeddedStore::restore(&path, &content).unwrap();
    assert!(matches!(EmbeddedStore::restore(&path, &content), Err(OpenError::Exists { .. })));
    let open = EmbeddedStore::open(&path, life(3)).unwrap();
    assert!(matches!(EmbeddedStore::restore(&path, &content), Err(OpenError::Locked { .. })));
    assert_eq!(open.incarnation(), life(9));
}

#[tokio::test]
async fn a_store_that_was_moved_is_refused_until_its_mark_is_taken_away() {
    let (_home, path) = home();
    let store = EmbeddedStore::open(&path, life(3)).unwrap();
    live(&store).await;
    let before = store.dump().await.unwrap();
    store.seal("etcd at e1:2379".to_owned()).await.unwrap();
    drop(store);
    let refused = EmbeddedStore::open(&path, life(4)).unwrap_err().to_string();
    assert_eq!(
        refused,
        format!(
            "the store {} was moved to etcd at e1:2379, and is not used any more: two stores that both believe they know \
             the fleet would each let go what the other keeps off. Use the new one; or, if that was never used, take the \
             mark away: picketd unseal",
            path.display()
        )
    );
    assert_eq!(EmbeddedStore::unseal(&path).unwrap().to, "etcd at e1:2379");
    assert!(matches!(EmbeddedStore::unseal(&path), Err(OpenError::NotSealed { .. })));
    let store = EmbeddedStore::open(&path, life(4)).unwrap();
    assert_eq!(store.dump().await.unwrap(), before);
}
