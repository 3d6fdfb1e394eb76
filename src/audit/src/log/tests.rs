use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::Window;
use crate::verify::verify;

fn audit(home: &TempDir) -> (Audit, Writer) {
    let options = Options {
        directory: home.path().join("audit"),
        rotate: 1 << 20,
        keep: Duration::from_secs(86_400),
        most: u64::MAX,
        fsync: false,
    };
    Audit::open(options, Arc::new(|| 5_000)).expect("opened")
}

fn exchange(fence: &str, at: u64) -> Told {
    Told {
        at,
        what: "exchange".to_owned(),
        fence: Some(fence.to_owned()),
        details: json!({ "device": "bmc", "asked": "power", "answered": "off", "took_ms": 12 }),
        ..Told::default()
    }
}

fn denial() -> Told {
    let details = json!({ "call": "fence", "why": "no role" });
    Told { who: "uid:7".to_owned(), what: "denied".to_owned(), details, ..Told::default() }
}

#[test]
fn what_is_told_is_read_back_by_its_fence_at_once() {
    let home = tempfile::tempdir().expect("a directory");
    let (audit, _writer) = audit(&home);
    assert_eq!(audit.head(), None);
    for (fence, at) in [("f1", 1), ("f2", 2), ("f1", 3)] {
        audit.tell(exchange(fence, at));
    }
    let within = |exchanges| Bounds { window: Window { from: 0, to: 10_000 }, exchanges, bytes: u64::MAX };
    let found = audit.exchanges("f1", &within(100), || true).expect("read").exchanges;
    assert_eq!(found.iter().map(|one| one.at).collect::<Vec<_>>(), [1, 3]);
    assert_eq!((found[0].asked.as_str(), found[0].took), ("power", Duration::from_millis(12)));
    assert_eq!(audit.exchanges("f1", &within(1), || true).expect("read").exchanges.len(), 1);
    assert_eq!(audit.head().map(|head| head.seq), Some(4), "the file's first, and three");
    assert_eq!(audit.state(), State { failing: None, lost: 0, written: 3 });
}

#[test]
fn denials_are_one_entry_and_a_count_and_the_end_writes_everything() {
    let home = tempfile::tempdir().expect("a directory");
    let (audit, writer) = audit(&home);
    for _ in 0..1_000 {
        audit.tell_counted(denial());
    }
    drop(writer);
    let report = verify(&home.path().join("audit"), &[]).expect("read");
    assert_eq!((report.fault, report.entries), (None, 3), "the file's first, the first denial, the count");
    let mut text = Vec::new();
    crate::export(&home.path().join("audit"), None, None, &mut text).expect("read");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("\"more\":999") && text.contains("\"why\":\"no role\""), "{text}");
    // Whoever tells something after the end is not held up, and it is counted.
    audit.tell(exchange("f1", 9));
    assert_eq!(audit.state().lost, 1);
}

#[test]
fn without_an_audit_nothing_is_kept() {
    let audit = Audit::none();
    audit.tell(exchange("f1", 1));
    audit.tell_counted(denial());
    assert_eq!((audit.head(), audit.state(), audit.is_kept()), (None, State::default(), false));
}

#[test]
fn more_than_can_be_written_is_counted_and_holds_nobody_up() {
    let home = tempfile::tempdir().expect("a directory");
    let (audit, writer) = audit(&home);
    for n in 0..50_000 {
        audit.tell(exchange("f1", n));
    }
    drop(writer);
    let directory = home.path().join("audit");
    let bounds = Bounds { window: Window { from: 0, to: 50_000 }, exchanges: 50_000, bytes: u64::MAX };
    let found = crate::exchanges(&directory, "f1", &bounds, || true).expect("read").exchanges.len();
    let report = verify(&directory, &[]).expect("read");
    assert_eq!((report.fault, found as u64 + report.lost), (None, 50_000));
    assert_eq!(audit.state().lost, report.lost);
}

#[derive(Debug, Default)]
struct Elsewhere(Mutex<Vec<Told>>);

impl Keeper for Elsewhere {
    fn tell(&self, told: Told) {
        self.0.lock().push(told);
    }

    fn head(&self) -> Option<Head> {
        let seq = self.0.lock().len() as u64;
        (seq > 0).then(|| Head { seq, hash: "h".to_owned() })
    }
}

#[test]
fn what_is_kept_elsewhere_is_in_no_file_and_all_of_it_is_told() {
    let keeper = Arc::new(Elsewhere::default());
    let audit = Audit::elsewhere(keeper.clone());
    assert!(audit.is_kept());
    assert_eq!((audit.head(), audit.directory()), (None, None));
    audit.tell(exchange("f1", 1));
    audit.tell_counted(denial());
    audit.tell_counted(denial());
    assert_eq!(*keeper.0.lock(), [exchange("f1", 1), denial(), denial()]);
    assert_eq!(audit.head().expect("three are told").seq, 3);
    audit.flush();
    assert_eq!(audit.state(), State::default());
}
