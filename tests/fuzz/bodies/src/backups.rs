//! Backups: written by an earlier version, cut off, changed, or put together by somebody.

use picket_core::ids::{FenceId, Incarnation};
use picket_core::record::Phase;
use picket_core::time::WallTime;
use picket_store::MemoryStore;
use picket_store::backup::{self, Backup, BackupError, Lines, RestoreOptions};
use ring::digest::{SHA256, digest};

const NOW: u64 = 1_795_270_000_000;

/// A backup as it is, and once more with the digest that it should have, so that what is behind the digest is met as well. What
/// is read is written again to what reads the same, and what is restored from it proves nothing.
pub(crate) fn backup(data: &[u8]) -> bool {
    look(data);
    look(&sealed(data))
}

fn look(data: &[u8]) -> bool {
    match backup::read(data) {
        Ok(read) => {
            comes_back(&read);
            is_restored(read);
            true
        }
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "{error:?}");
            if let BackupError::Line { line, what } = &error {
                let lines = data.split_inclusive(|byte| *byte == b'\n').count() as u64;
                assert!((1..=lines).contains(line) && !what.is_empty(), "{error} of {lines} lines");
            }
            false
        }
    }
}

/// The same lines with a last line that is right.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.starts_with(b"{\"end\"") || !last.ends_with(b"\n")) {
        lines.pop();
    }
    let mut whole = lines.concat();
    let digest: String = digest(&SHA256, &whole).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    whole.extend(format!("{{\"end\":{},\"sha256\":\"{digest}\"}}\n", lines.len()).into_bytes());
    whole
}

fn comes_back(read: &Backup) {
    let header = &read.header;
    let lines = Lines::new(read.content.clone(), header.taken_at, header.by.clone());
    let written: Vec<u8> = lines.flat_map(|line| line.expect("what was read can be written")).collect();
    let again = backup::read(&*written).expect("what was written can be read");
    assert_eq!((&again.header, &again.content), (&read.header, &read.content));
}

fn is_restored(read: Backup) {
    let id: FenceId = "019ab0b4-7d3a-7c11-9d10-0123456789ab".parse().expect("an id");
    let incarnation: Incarnation = "019ab0b4-7d3a-7c11-9d10-0123456789ac".parse().expect("an id");
    let term = read.content.term;
    let new = backup::restored_content(
        read,
        RestoreOptions { at: WallTime::from_millis(NOW), incarnation, mint: &mut || id },
    );
    assert_eq!(new.incarnation, incarnation);
    assert!(new.term > term || term.0 == u64::MAX);
    for stored in &new.records {
        let record = &stored.record;
        assert!(record.generation.0 >= NOW, "{}", record.node);
        // Of a retired one nothing is asked any more.
        if record.phase == Phase::Retired {
            continue;
        }
        let proof = record.fence.as_ref().map(|fence| (&fence.evidence, &fence.attestation));
        assert!(proof.is_none_or(|proof| proof == (&None, &None)), "{} is proven by a backup", record.node);
    }
    // A store takes it, or says what of it cannot be stored.
    if let Err(error) = MemoryStore::filled(&new) {
        assert!(!error.to_string().is_empty());
    }
}
