//! A later version must read what an earlier one wrote, and no version changes what it writes unseen.
//!
//! Each directory of `golden` holds what one version of the stored form wrote. They are never changed: where the form
//! changes on purpose, `PICKET_GOLDEN=<new directory> cargo test -p picket-store --test it golden` writes another one,
//! and `NEWEST` names it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::*;
use picket_core::ids::{Revision, Version};
use picket_core::ledger::EffectKind;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Bringing, Ended, Phase, ReleaseStage};
use picket_core::store::{KeyEntry, Note, Store, Stored};
use picket_store::{EmbeddedStore, format};

const NEWEST: &str = "v1.20";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Which version of the form that directory holds: 4 of `v1.4`.
fn number(form: &Path) -> u32 {
    let name = form.file_name().unwrap().to_string_lossy().into_owned();
    name.strip_prefix("v1").unwrap().trim_start_matches('.').parse().unwrap_or(0)
}

fn phases() -> Vec<Phase> {
    vec![
        Phase::Normal,
        Phase::Fencing,
        Phase::Fenced,
        Phase::Released,
        Phase::Unfencing,
        Phase::PowerOnFailed,
        Phase::NeedsOperator(Reason::BmcRestarted),
        Phase::Retired,
    ]
}

fn stored(phase: Phase) -> Stored {
    Stored { version: Version(5), revision: Revision(42), record: rich(phase) }
}

fn key() -> KeyEntry {
    let fence = fence_id(1_795_250_372_042, 7);
    entry("sha256:aa", fence, at(1_795_250_372_050), Some(Outcome::Fenced { released: true }))
}

fn note() -> Note {
    Note { version: Version(2), text: r#"{"scope":"everything"}"#.to_owned() }
}

/// What came with the drills, retirements and budgets.
fn assert_newer(read: &Stored) {
    let record = &read.record;
    assert_eq!(record.wired[&device("pdu-a")], "10.1.0.9:161/3");
    assert_eq!(record.drilled_at, Some(at(1_794_000_000_000)));
    assert_eq!(record.retired.as_ref().map(|word| word.reason.as_str()), Some("sold"));
    let fence = record.fence.as_ref().unwrap();
    assert_eq!(fence.budget_override.as_ref().map(|aside| aside.by.as_str()), Some("ada@example"));
    assert_eq!(fence.topology.addresses()[&device("bmc")], "10.1.0.7:623");
}

/// What this version writes, by file.
fn written() -> Vec<(String, Vec<u8>)> {
    let records = phases().into_iter().map(|phase| {
        (format!("record-{}.json", phase.label()), format::encode_record(&stored(phase)).unwrap())
    });
    let fence = rich(Phase::Fenced).fence.unwrap();
    let others = [
        ("fence.json".to_owned(), format::encode_fence(&fence).unwrap()),
        ("key.json".to_owned(), format::encode_key("k1", &key()).unwrap()),
        ("note.json".to_owned(), format::encode_note("pause/1", &note()).unwrap()),
    ];
    records.chain(others).collect()
}

#[test]
fn this_version_writes_the_newest_form() {
    if let Ok(name) = std::env::var("PICKET_GOLDEN") {
        let to = directory().join(name);
        fs::create_dir(&to).expect("goldens are never changed: name a new directory");
        for (file, bytes) in written() {
            fs::write(to.join(file), bytes).unwrap();
        }
    }
    for (file, bytes) in written() {
        let golden = fs::read(directory().join(NEWEST).join(&file)).expect(&file);
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            String::from_utf8_lossy(&golden),
            "{file} is written otherwise"
        );
    }
}

#[test]
fn every_form_ever_written_is_read() {
    let mut forms = 0;
    for form in fs::read_dir(directory()).unwrap() {
        let form = form.unwrap().path();
        if !form.is_dir() {
            continue;
        }
        forms += 1;
        for phase in phases() {
            let file = form.join(format!("record-{}.json", phase.label()));
            // Nothing was retired before this form.
            if phase == Phase::Retired && number(&form) < 4 {
                continue;
            }
            let read = format::decode_record("r1n07", &fs::read(&file).unwrap()).expect("a golden record");
            assert_eq!((read.version, read.revision), (Version(5), Revision(42)));
            assert_record(&read, &phase);
            // Of what an older one learned nobody but the device has said that it is so.
            let proof = read.record.identity_proofs.get(&device("bmc"));
            assert_eq!(proof.map(|proof| proof.by.as_str()), (number(&form) >= 10).then_some(WITNESS));
            let bare = picket_core::device::Identity::default();
            assert_eq!(read.record.expected_of(&device("bmc"), &bare).is_learned, proof.is_none());
            // An older one names no session: its effects are waited out.
            let session = read.record.ledger.open()[0].session.as_deref();
            assert_eq!(session, (number(&form) >= 5).then_some(SESSION));
            assert_eq!(read.record.idle_keys.len(), usize::from(number(&form) >= 18));
            // An older one has its holder alone.
            let keys = serde_json::to_value(&read.record.idle_keys).unwrap();
            assert_eq!(keys.pointer("/0/by").is_some(), number(&form) >= 19);
            assert_eq!(read.record.handed_over.is_some(), number(&form) >= 19);
        }
        let id = fence_id(1_795_250_372_042, 7);
        let fence = format::decode_fence(id, &fs::read(form.join("fence.json")).unwrap()).unwrap();
        assert_eq!(fence.id, id);
        assert_eq!(fence.topology.levels().len(), 2);
        let bound = format::decode_key("k1", &fs::read(form.join("key.json")).unwrap()).unwrap();
        assert_eq!(bound, key());
        if number(&form) >= 4 {
            let read = format::decode_note("pause/1", &fs::read(form.join("note.json")).unwrap()).unwrap();
            assert_eq!(read, note());
            assert_newer(
                &format::decode_record("r1n07", &fs::read(form.join("record-retired.json")).unwrap())
                    .unwrap(),
            );
        }
    }
    assert!(forms >= 1);
}

/// Every field that a rule reads.
fn assert_record(read: &Stored, phase: &Phase) {
    let record = &read.record;
    assert_eq!(record.node, node("r1n07"));
    assert_eq!(record.generation.0, 3);
    assert_eq!(record.phase, *phase);
    assert_eq!(record.bringing == Bringing::StandDown, *phase == Phase::Unfencing);
    assert_eq!(record.breaches, 2);
    assert_eq!(record.back_since, Some(at(1_795_000_000_000)));
    assert!(record.holds["ops"].drop_when_released);
    assert_eq!(record.learned[&device("bmc")].serial.as_deref(), Some("SN1"));

    let open = record.ledger.open();
    assert_eq!(open.len(), 6);
    assert_eq!(open[0].kind, EffectKind::Off(device("bmc")));
    assert_eq!(open[0].life.map(|life| life.as_millis()), Some(60_500));
    assert_eq!((open[1].kind.clone(), open[1].life), (EffectKind::On(device("pdu-a")), None));
    assert_eq!((open[5].id.0, open[5].term.0, open[5].generation.0), (16, 7, 3));
    assert!(record.ledger.bars_on() && record.ledger.bars_proof());

    // The first forms knew none.
    if let [open, returned] = record.receipts.as_slice() {
        assert_eq!((open.effect.0, open.generation.0, open.round, open.ended), (16, 3, 1, None));
        assert_eq!((open.by.as_str(), open.life().as_secs()), ("db@example", 60));
        assert_eq!(returned.ended, Some(Ended::Returned));
    } else {
        assert_eq!(record.receipts, []);
    }

    let fence = record.fence.as_ref().unwrap();
    assert!(fence.off_sent);
    assert_eq!(fence.level, 1);
    assert_eq!(fence.lost.len(), 1);
    assert_eq!(fence.switched_off.len(), 2);
    assert_eq!(fence.releases[0].stage, ReleaseStage::Accepted);
    assert_eq!(fence.holds[&device("bmc")].found["restore_policy"], "previous");
    assert_eq!(fence.attestation.as_ref().map(|word| word.generation.0), Some(3));
    assert_eq!(fence.outcome, Some(Outcome::NeedsOperator(Reason::ReleaseDeadline)));
    let supplies: Vec<_> = fence.topology.level(1).unwrap().devices.iter().map(|d| d.id.as_str()).collect();
    assert_eq!(supplies, ["pdu-a", "pdu-b"]);
    assert_eq!(fence.topology.devices().next().unwrap().dwell.as_millis(), 1_500);
}

#[test]
fn a_value_of_a_later_form_is_refused_with_its_name() {
    let bytes = String::from_utf8(format::encode_record(&stored(Phase::Fenced)).unwrap()).unwrap();
    let later = bytes.replacen("\"v\":1", "\"v\":2", 1);
    let error = format::decode_record("r1n07", later.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("the record of r1n07 has format 2"), "{error}");
    let error = format::decode_record("r1n08", bytes.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("says that it is of r1n07"), "{error}");
    let error = format::decode_record("r1n07", &bytes.as_bytes()[..100]).unwrap_err().to_string();
    assert!(error.contains("the record of r1n07 cannot be read"), "{error}");
}

/// The file itself as version 1 left it, so that a redb which cannot read it any more does not go unseen.
#[tokio::test]
async fn the_file_of_the_first_version_opens() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("picket.redb");
    let golden = directory().join("v1.redb");
    if std::env::var_os("PICKET_GOLDEN").is_some() && !golden.exists() {
        write_file(&golden).await;
    }
    fs::copy(&golden, &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let store = EmbeddedStore::open(&path, life(9)).unwrap();
    assert_eq!(store.incarnation(), life(1));
    let read = store.load_all().await.unwrap();
    assert_eq!(read.len(), 1);
    assert_record(&read[0], &Phase::Fenced);
    assert_eq!(store.key(&node("r1n07"), "k1").await.unwrap(), Some(key()));
    assert_eq!(
        store.fences(picket_core::store::FenceQuery { limit: 9, ..Default::default() }).await.unwrap().len(),
        1
    );
    assert_eq!(store.take_term().await.unwrap().0, 3);
}

async fn write_file(path: &Path) {
    let home = tempfile::tempdir().unwrap();
    let made = home.path().join("picket.redb");
    let store = EmbeddedStore::open(&made, life(1)).unwrap();
    store.take_term().await.unwrap();
    let term = store.take_term().await.unwrap();
    let record = rich(Phase::Fenced);
    let mut write = write_of(record.clone(), 0);
    write.fences.extend(record.fence);
    write.keys.push(("k1".to_owned(), key()));
    let guard = picket_core::store::Guard { term, incarnation: store.incarnation() };
    store.write(guard, write).await.unwrap();
    drop(store);
    fs::copy(made, path).unwrap();
}
