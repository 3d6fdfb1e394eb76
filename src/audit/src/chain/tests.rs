use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::entry::decode;
use crate::prune::{Bounds, prune};
use crate::verify::{Anchor, Report, verify};

const BIG: u64 = 1 << 30;
/// In milliseconds.
const DAY: u64 = 86_400_000;

/// As if the disk had room for so many bytes more.
pub(super) fn write(room: &mut Option<u64>, file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let Some(left) = room else { return file.write_all(bytes) };
    let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    file.write_all(&bytes[..fits])?;
    *left -= fits as u64;
    if fits == bytes.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
}

fn told(text: &str) -> Told {
    Told {
        at: 1_000,
        who: "uid:0".to_owned(),
        what: "request".to_owned(),
        details: json!({ "reason": text }),
        ..Told::default()
    }
}

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("audit")
    }

    fn open(&self, rotate: u64) -> Chain {
        Chain::open(&self.path(), rotate, false).expect("opened")
    }

    fn files(&self) -> Vec<PathBuf> {
        crate::files::list(&self.path()).expect("listed").into_iter().map(|file| file.path).collect()
    }

    fn verify(&self, anchors: &[Anchor]) -> Report {
        verify(&self.path(), anchors).expect("read")
    }

    fn whole(&self) -> Report {
        let report = self.verify(&[]);
        assert_eq!(report.fault, None);
        report
    }

    /// The one file's lines, as another program would change them.
    fn edit(&self, change: impl FnOnce(&mut Vec<String>)) {
        let file = &self.files()[0];
        let mut lines: Vec<String> =
            fs::read_to_string(file).expect("text").lines().map(str::to_owned).collect();
        change(&mut lines);
        fs::write(file, lines.join("\n") + "\n").expect("written");
    }
}

fn chain_of(home: &Home, entries: usize) -> Chain {
    let mut chain = home.open(BIG);
    for n in 0..entries {
        chain.append(&[told(&n.to_string())], 1_000).expect("room");
    }
    chain
}

fn anchor(chain: &Chain) -> Anchor {
    Anchor { fence: "f1".to_owned(), seq: chain.head().seq, hash: chain.head().hash.clone(), at: 1_000 }
}

#[test]
fn a_chain_goes_on_over_processes_and_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    drop(chain_of(&home, 3));
    let chain = chain_of(&home, 3);
    let report = home.verify(&[anchor(&chain)]);
    assert_eq!((report.fault, report.entries, report.anchors), (None, 7, 1), "six, and the file's first");
    for (path, mode) in [(home.path(), 0o700), (home.files()[0].clone(), 0o600)] {
        assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o777, mode);
    }
}

#[test]
fn one_process_at_a_time_and_nobody_else() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let chain = chain_of(&home, 1);
    assert!(matches!(Chain::open(&home.path(), BIG, false), Err(OpenError::Locked { .. })));
    drop(chain);
    fs::set_permissions(&home.files()[0], fs::Permissions::from_mode(0o640)).expect("ours");
    let error = Chain::open(&home.path(), BIG, false).expect_err("open to others").to_string();
    assert!(error.contains("chmod 600"), "{error}");
    // As root the directory is given away: its owner could put another chain into it.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(home.path(), Some(4_711), None).expect("root may");
        let error = Chain::open(&home.path(), BIG, false).expect_err("a stranger's").to_string();
        assert!(error.contains("user 4711 owns it") && error.contains("sudo -u '#4711'"), "{error}");
    }
}

#[test]
fn what_was_changed_removed_added_or_moved_is_found_where_it_is() {
    type Change = fn(&mut Vec<String>);
    let cases: [(&str, Change, u64, &str); 6] = [
        ("changed", |lines| lines[2] = lines[2].replace("\"1\"", "\"9\""), 3, "it was changed"),
        ("removed", |lines| drop(lines.remove(2)), 3, "entry 4 follows entry 2"),
        ("moved", |lines| lines.swap(1, 2), 2, "entry 3 follows entry 1"),
        ("doubled", |lines| lines.insert(2, lines[1].clone()), 3, "entry 2 follows entry 2"),
        ("made unreadable", |lines| lines[2] = "{}".to_owned(), 3, "it is no entry"),
        ("made unreadable at the end", |lines| lines[4] = "x".to_owned(), 5, "it is no entry"),
    ];
    for (name, change, line, what) in cases {
        let home = Home::new();
        drop(chain_of(&home, 4));
        home.edit(change);
        let fault = home.verify(&[]).fault.expect(name);
        assert_eq!(fault.line, line, "{name}: {fault}");
        assert!(fault.what.contains(what) && fault.file.starts_with("audit-"), "{name}: {fault}");
    }
}

#[test]
fn an_end_that_was_cut_off_or_written_anew_is_seen_by_the_fences() {
    let home = Home::new();
    let chain = chain_of(&home, 4);
    let known = anchor(&chain);
    drop(chain);
    home.edit(|lines| lines.truncate(3));
    let fault = home.verify(std::slice::from_ref(&known)).fault.expect("its end is gone");
    assert!(
        fault.what.contains("ends with entry 3") && fault.what.contains("fence f1 names entry 5"),
        "{fault}"
    );
    assert_eq!(home.verify(&[]).fault, None, "by itself it is whole");
    let mut chain = home.open(BIG);
    for _ in 0..4 {
        chain.append(&[told("another story")], 2_000).expect("room");
    }
    let fault = home.verify(&[known]).fault.expect("another one stands there");
    assert!(fault.line == 5 && fault.what.contains("written anew"), "{fault}");
}

#[test]
fn files_follow_one_another_and_go_at_their_age() {
    let home = Home::new();
    let mut chain = home.open(600);
    let first = {
        chain.append(&[told("first")], 1_000).expect("room");
        anchor(&chain)
    };
    for n in 0..12 {
        let later = Told { at: 1_000 + n * DAY, ..told("later") };
        chain.append(&[later], 1_000 + n * DAY).expect("room");
    }
    let files = home.files();
    assert!(files.len() > 3, "{files:?}");
    let second = fs::read_to_string(&files[1]).expect("text");
    assert!(
        second
            .lines()
            .next()
            .is_some_and(|line| line.contains("\"what\":\"file\"") && line.contains("audit-0"))
    );
    assert_eq!(home.whole().files, files.len());

    fs::rename(&files[1], home.0.path().join("elsewhere")).expect("moved");
    assert!(
        home.verify(&[]).fault.is_some_and(|fault| fault.line == 1 && fault.what.contains("follows entry"))
    );
    fs::rename(home.0.path().join("elsewhere"), &files[1]).expect("moved back");

    let kept = std::time::Duration::from_millis(6 * DAY);
    let bounds = Bounds { keep: Some(kept), most: u64::MAX };
    let (gone, for_size) = prune(&mut chain, &home.path(), bounds, 13 * DAY).expect("removed");
    assert!(gone > 0 && !for_size && !files[gone - 1].exists() && files[gone].exists());
    let report = home.verify(&[first, anchor(&chain)]);
    assert_eq!((report.fault, report.anchors, report.older), (None, 1, 1));
    assert!(report.notes.iter().any(|note| note.contains("removed at their age")), "{:?}", report.notes);
    fs::remove_file(&home.files()[0]).expect("gone");
    assert!(home.verify(&[]).fault.is_some_and(|fault| fault.what.contains("no entry says")));
}

/// A chain of several files, a day from one entry to the next.
fn many_days(home: &Home, days: u64) -> Chain {
    let mut chain = home.open(600);
    for day in 1..=days {
        chain.append(&[Told { at: day * DAY, ..told("a day") }], day * DAY).expect("room");
    }
    chain
}

#[test]
fn the_oldest_files_go_when_there_are_too_many_bytes_and_the_chain_says_so() {
    let home = Home::new();
    let mut chain = many_days(&home, 20);
    let old = Anchor { at: 19 * DAY, seq: 2, ..anchor(&chain) };
    let most = 2_000;
    let bounds = Bounds { keep: None, most };
    let (gone, for_size) = prune(&mut chain, &home.path(), bounds, 20 * DAY).expect("removed");
    assert!(gone > 0 && for_size);
    let length = |file: &PathBuf| fs::metadata(file).expect("there").len();
    assert!(home.files().iter().map(length).sum::<u64>() <= most + 1_200);
    let report = home.verify(&[old]);
    assert_eq!((report.fault, report.older), (None, 1));
    assert!(report.notes.iter().any(|note| note.contains("too many bytes")), "{:?}", report.notes);
    let bounds = Bounds { keep: None, most: 0 };
    prune(&mut chain, &home.path(), bounds, 20 * DAY).expect("removed");
    assert!(home.files().len() <= 2, "the one that is written on, and the one that the entry began");
    home.whole();
}

#[test]
fn a_file_that_begins_with_a_line_that_was_cut_off_goes_at_its_age_like_any_other() {
    let home = Home::new();
    drop(many_days(&home, 4));
    // As a crash during the first write after a rotation leaves it.
    let next = AuditFile::new(&home.path(), 1_000);
    let seq = home.whole().last + 1;
    let next = AuditFile { first: seq, path: next.path.with_file_name(format!("audit-{seq:020}.jsonl")) };
    fs::write(&next.path, "{\"v\":1,\"seq\":").expect("written");
    fs::set_permissions(&next.path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let mut chain = many_days(&home, 20);
    home.whole();
    let bounds = Bounds { keep: Some(std::time::Duration::from_secs(86_400)), most: u64::MAX };
    let (gone, _) = prune(&mut chain, &home.path(), bounds, 30 * DAY).expect("removed");
    assert!(gone > 3 && !next.path.exists(), "{gone} went");
    home.whole();
}

#[test]
fn recent_entries_that_were_removed_under_a_pretext_are_missed() {
    let home = Home::new();
    let mut chain = many_days(&home, 20);
    let young = Anchor { at: 19 * DAY, seq: 2, ..anchor(&chain) };
    let (files, head) = (home.files(), home.whole());
    assert!(head.fault.is_none() && files.len() > 4);
    let prev = files[3].clone();
    let first = fs::read_to_string(&prev).expect("text");
    let first = decode(first.lines().next().expect("a line").as_bytes()).expect("an entry");
    let details = json!({
        "files": 3, "seq": first.seq - 1, "hash": first.prev, "because": "age", "keep_ms": 1,
    });
    chain.append(&[own("removed", details, 20 * DAY)], 20 * DAY).expect("room");
    files[..3].iter().for_each(|file| fs::remove_file(file).expect("gone"));
    let fault = home.verify(&[young]).fault.expect("it was removed too early");
    assert!(fault.what.contains("before it was as old"), "{fault}");
}

#[test]
fn a_long_line_that_is_none_hides_nothing_after_it() {
    let home = Home::new();
    drop(chain_of(&home, 3));
    let mut file = OpenOptions::new().append(true).open(&home.files()[0]).expect("there");
    let long = vec![b'x'; (1 << 20) + 500];
    file.write_all(&long).and_then(|()| file.write_all(b"\n")).expect("written");
    file.write_all(b"{}\n").expect("written");
    assert!(home.verify(&[]).fault.is_some_and(|fault| fault.line == 5 && fault.what.contains("no entry")));
}

#[test]
fn a_line_that_was_cut_off_stays_and_is_told_of() {
    let home = Home::new();
    drop(chain_of(&home, 3));
    let file = home.files()[0].clone();
    let length = fs::metadata(&file).expect("there").len();
    OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(length - 40)).expect("cut");
    assert!(home.whole().notes[0].contains("not whole yet, or was cut off"));
    let mut chain = home.open(BIG);
    assert!(chain.owes() && chain.torn() == 1);
    chain.append(&[told("after")], 2_000).expect("room");
    let report = home.whole();
    assert!(report.notes[0].contains("cut off before it"), "{:?}", report.notes);
    let text = fs::read_to_string(&file).expect("text");
    assert_eq!(text.lines().count(), 6, "nothing was dropped");
    assert!(text.contains("\"what\":\"torn\",\"details\":{\"lines\":[{\"bytes\":"), "{text}");
    // Whoever breaks a line after the fact has no entry that speaks of it.
    home.edit(|lines| lines[1] = lines[1][..50].to_owned());
    assert!(home.verify(&[]).fault.is_some_and(|fault| fault.line == 2));
}

#[test]
fn a_full_disk_leaves_a_gap_that_is_counted_and_told() {
    let home = Home::new();
    let mut chain = chain_of(&home, 2);
    let head = chain.head().clone();
    for room in [0, 1, 100, 300] {
        chain.room = Some(room);
        let error = chain.append(&[told("a"), told("b")], 5_000).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((chain.head(), home.whole().entries), (&head, 3));
    }
    chain.room = None;
    chain.append(&[told("c")], 6_000).expect("room");
    let report = home.whole();
    assert_eq!((report.entries, report.lost, report.notes), (5, 8, vec![]));
    assert!(!chain.owes());
}

#[derive(Clone, Debug)]
enum Happens {
    Append(usize),
    Full(u64, usize),
    /// The process is gone, and the end of the newest file with it: so many bytes, as they were not on the disk yet.
    Crash(u64),
    Restart,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (1_usize..4).prop_map(Happens::Append),
        2 => (0_u64..900, 1_usize..4).prop_map(|(room, entries)| Happens::Full(room, entries)),
        1 => (0_u64..400).prop_map(Happens::Crash),
        1 => Just(Happens::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn whatever_happens_the_chain_verifies_and_every_entry_is_in_it_or_counted(
        history in proptest::collection::vec(happens(), 1..40),
        rotate in prop_oneof![Just(BIG), 300_u64..2_000],
    ) {
        let home = Home::new();
        let mut chain = home.open(rotate);
        let (mut tellings, mut crashed) = (0_u64, false);
        let mut anchors = Vec::new();
        for happens in history {
            match happens {
                Happens::Append(entries) => {
                    chain.room = None;
                    chain.append(&vec![told("x"); entries], 1_000).expect("room");
                    tellings += entries as u64;
                    anchors.push(anchor(&chain));
                }
                Happens::Full(room, entries) => {
                    chain.room = Some(room);
                    let _ = chain.append(&vec![told("x"); entries], 1_000);
                    chain.room = None;
                    tellings += entries as u64;
                }
                Happens::Restart | Happens::Crash(_) => {
                    crashed |= chain.gap.lost > 0;
                    drop(chain);
                    if let (Happens::Crash(bytes), Some(file)) = (happens, home.files().last()) {
                        let length = fs::metadata(file).expect("there").len();
                        let file = OpenOptions::new().write(true).open(file).expect("ours");
                        file.set_len(length.saturating_sub(bytes)).expect("cut");
                        crashed |= bytes > 0;
                        anchors.clear();
                    }
                    chain = home.open(rotate);
                }
            }
        }
        chain.room = None;
        chain.append(&[told("the end")], 1_000).expect("room");
        let report = home.verify(&anchors);
        prop_assert_eq!(&report.fault, &None, "{:?}", report);
        prop_assert_eq!(report.anchors, anchors.len());
        if !crashed {
            let requests: usize = home.files().iter().map(|file| {
                fs::read_to_string(file).expect("text").matches("\"what\":\"request\"").count()
            }).sum();
            prop_assert_eq!(requests as u64 + report.lost, tellings + 1);
        }
    }
}
