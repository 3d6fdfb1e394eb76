//! How much is read for one answer.

use std::cell::Cell;
use std::sync::Arc;

use super::*;
use crate::{Audit, Options, Told};

fn home(entries: u64) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory");
    let options = Options {
        directory: home.path().join("audit"),
        rotate: 1 << 20,
        keep: Duration::from_secs(86_400),
        most: u64::MAX,
        fsync: false,
    };
    let (audit, writer) = Audit::open(options, Arc::new(|| 5_000)).expect("opened");
    for at in 0..entries {
        for fence in ["f1", "f2"] {
            audit.tell(Told {
                at,
                who: "gateway".to_owned(),
                what: "exchange".to_owned(),
                fence: Some(fence.to_owned()),
                details: serde_json::json!({ "device": "bmc", "asked": "power", "answered": "off" }),
                ..Told::default()
            });
        }
    }
    drop(writer);
    home
}

fn bounds(exchanges: usize, bytes: u64) -> Bounds {
    Bounds { window: Window { from: 0, to: u64::MAX }, exchanges, bytes }
}

fn read(home: &tempfile::TempDir, bounds: &Bounds, is_wanted: impl Fn() -> bool) -> (usize, bool) {
    let found = exchanges(&home.path().join("audit"), "f1", bounds, is_wanted).expect("read");
    (found.exchanges.len(), found.is_cut)
}

#[test]
fn what_was_left_out_is_said() {
    let home = home(100);
    let whole = bounds(100, u64::MAX);
    assert_eq!(read(&home, &whole, || true), (100, false));
    assert_eq!(read(&home, &bounds(99, u64::MAX), || true), (99, true));
    let (found, is_cut) = read(&home, &bounds(100, 10_000), || true);
    assert!(is_cut && (1..100).contains(&found), "{found}");
    assert_eq!(read(&home, &bounds(100, 0), || true), (0, true));
}

#[test]
fn nothing_more_is_read_once_nobody_wants_it() {
    let home = home(100);
    let asked = Cell::new(0);
    let wanted_ten_times = || {
        asked.set(asked.get() + 1);
        asked.get() <= 10
    };
    let (found, is_cut) = read(&home, &bounds(100, u64::MAX), wanted_ten_times);
    assert!(is_cut && found < 10, "{found}");
    assert_eq!(asked.get(), 11);
}
