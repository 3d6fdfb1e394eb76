//! What the audit is told: who asked for what and how it ended, what was said to devices, and where it stood.

use std::sync::Arc;
use std::time::Duration;

use picket_audit::{Audit, Options, Writer, export};
use picket_core::device::{DeviceSpec, Identity};
use picket_core::event::{BoundKey, Person};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::outcome::Outcome;
use picket_core::record::SetAside;
use picket_driver_sim::Fault;
use picket_engine::{Acting, Admission, Asides, Ask, FenceCall, ReceiptCall, Until};
use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::Setup;

struct Kept {
    home: TempDir,
    audit: Audit,
    writer: Option<Writer>,
}

impl Kept {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("audit");
        let keep = Duration::from_secs(86_400);
        let options = Options { directory, rotate: 1 << 30, keep, most: u64::MAX, fsync: false };
        let (audit, writer) = Audit::open(options, Arc::new(|| 7)).expect("opened");
        Self { home, audit, writer: Some(writer) }
    }

    /// All entries of a kind, once everything is written.
    fn all(&self, what: &str) -> Vec<Value> {
        self.audit.flush();
        let mut text = Vec::new();
        export(&self.home.path().join("audit"), None, None, &mut text).expect("read");
        let text = String::from_utf8(text).expect("text");
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        entries.filter(|entry| entry["what"] == what).collect()
    }
}

async fn lab(kept: &Kept) -> Lab {
    let setup = Setup { audit: kept.audit.clone(), ..Setup::new(NODE, &[&["bmc"]]) };
    Lab::set_up(90, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await
}

fn detail<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry["details"][key].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn every_request_is_told_with_who_asked_and_what_became_of_it() {
    let kept = Kept::new();
    let mut lab = lab(&kept).await;
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    let nowhere = NodeId::new("n9").expect("a good name");
    lab.engine.retry(&nowhere, person()).await.expect_err("no such node");
    lab.engine.retry(&node(), person()).await.expect_err("nothing waits");
    lab.engine.unfence(&node(), "nobody".to_owned(), person()).await.expect_err("no such hold");
    lab.kill().await;
    let requests = kept.all("request");
    let told: Vec<(&str, &str)> =
        requests.iter().map(|entry| (detail(entry, "call"), detail(entry, "outcome"))).collect();
    assert_eq!(
        told,
        [("fence", "accepted"), ("retry", "refused"), ("retry", "refused"), ("unfence", "refused")]
    );
    assert_eq!(requests[0]["fence"], id.to_string());
    assert!(detail(&requests[1], "how").contains("there is no node") && requests[1]["node"] == "n9");
    assert!(detail(&requests[3], "how").contains("holds nothing here"));
    assert!(requests[1..].iter().all(|entry| entry["who"] == "ada" && detail(entry, "reason") == "a test"));
}

/// What an admin alone may do: limits set aside, a hold dropped that is somebody else's, another machine accepted, a backup.
#[tokio::test(start_paused = true)]
async fn each_act_of_an_admin_is_told_with_who_did_it_and_why() {
    let kept = Kept::new();
    let mut setup = Setup { audit: kept.audit.clone(), ..Setup::new(NODE, &[&["bmc"]]) };
    // The settings say nothing of whose machine it controls.
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| spec.identity = Identity::default());
    let mut lab = Lab::set_up(91, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    let aside = |reason: &str| Some(SetAside { by: "ada".to_owned(), reason: reason.to_owned() });
    let set_aside = Some(Asides { budget: aside("a storm"), quorum: aside("a flood") });
    let call = FenceCall { set_aside, ..lab.call() };
    let Admission::Opened(id) = lab.engine.fence(&node(), call).await.expect("let in") else {
        panic!("a new fence")
    };
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    lab.engine.unfence(&node(), "db".to_owned(), person()).await.expect("dropped");
    lab.reach("normal", s(600)).await;
    let bmc = DeviceId::new("bmc").expect("a good name");
    lab.engine.accept_identity(&node(), bmc, Default::default(), person()).await.expect("accepted");
    lab.engine.backup("ada").await.expect("taken");
    lab.kill().await;

    let steps = [kept.all("phase"), kept.all("step")].concat();
    let words: Vec<String> = steps.iter().map(|step| step["details"].to_string()).collect();
    for why in ["a storm", "a flood"] {
        let told = words.iter().any(|words| words.contains("ada") && words.contains(why));
        assert!(told, "{why} is not told of ada in {words:#?}");
    }
    let requests = kept.all("request");
    for (call, reason) in [("unfence", "a test"), ("accept_identity", "a test"), ("backup", "")] {
        let told = requests.iter().find(|entry| detail(entry, "call") == call);
        let told = told.unwrap_or_else(|| panic!("{call} is not told: {requests:#?}"));
        assert_eq!((told["who"].as_str(), detail(told, "outcome")), (Some("ada"), "accepted"), "{told}");
        assert_eq!(detail(told, "reason"), reason, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_only_repeats_a_request_fills_no_disk_and_the_role_is_told() {
    let mut kept = Kept::new();
    let mut lab = lab(&kept).await;
    let call = lab.call();
    let engine = lab.engine.acting_as(Acting { roles: "controller".to_owned(), right: None });
    let opened = engine.fence(&node(), call.clone()).await.expect("let in").fence();
    lab.outcome(opened, Until::Released).await;
    for _ in 0..1_000 {
        engine.fence(&node(), call.clone()).await.expect("let in again");
    }
    lab.kill().await;
    // Its end writes the counts that are due within a minute.
    drop(kept.writer.take());
    let requests = kept.all("request");
    let hows: Vec<&str> = requests.iter().map(|entry| detail(entry, "how")).collect();
    assert_eq!(requests.len(), 3, "it was opened; it was asked again; and how often: {hows:?}");
    assert_eq!(requests[2]["details"]["more"], 999);
    assert!(requests.iter().all(|entry| entry["role"] == "controller"), "{requests:?}");
}

/// S14: what is so already costs its caller nothing, and would push out of the audit what others did.
#[tokio::test(start_paused = true)]
async fn who_asks_for_what_is_so_already_fills_no_disk() {
    let mut kept = Kept::new();
    let mut lab = lab(&kept).await;
    lab.fence().await;
    let call = ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
    let receipt = lab.engine.receipt(&node(), call).await.expect("proven off").id;
    for number in 0..500 {
        let key = Some(BoundKey::of("ops", &format!("again{number}"), "d".to_owned()));
        for key in [None, key] {
            let ask = Ask { key, ..person().into() };
            lab.engine.hold(&node(), "ops".to_owned(), ask).await.expect("held");
        }
        lab.engine.return_receipt(&node(), receipt, "db".to_owned()).await.expect("handed back");
    }
    lab.kill().await;
    drop(kept.writer.take());
    let requests = kept.all("request");
    for (call, more) in [("hold", 998), ("return_receipt", 498)] {
        let told: Vec<&Value> = requests.iter().filter(|entry| detail(entry, "call") == call).collect();
        assert_eq!(told.len(), 3, "it was done; it was asked again; and how often: {told:?}");
        assert_eq!(told[2]["details"]["more"], more);
    }
}

/// What its caller writes fills the audit once, in the entry that also says in which role.
#[tokio::test(start_paused = true)]
async fn an_accepted_hold_is_told_in_full_once() {
    let kept = Kept::new();
    let mut lab = lab(&kept).await;
    lab.fence().await;
    let person = Person { reason: "water in the cellar".to_owned(), ..person() };
    lab.engine.hold(&node(), "ops".to_owned(), person).await.expect("held");
    lab.kill().await;
    let (requests, steps) = (kept.all("request"), kept.all("step"));
    let hold = requests.iter().find(|entry| detail(entry, "call") == "hold").expect("told");
    assert_eq!((detail(hold, "reason"), detail(hold, "outcome")), ("water in the cellar", "accepted"));
    let step = steps.iter().find(|entry| detail(entry, "event") == "hold").expect("told");
    assert_eq!(step["details"]["words"], serde_json::json!(["held for ops"]));
    let fence = lab.record().fence.expect("held");
    let moment = &fence.moments.last().expect("one").what;
    assert_eq!(moment, "held for ops by ada: water in the cellar", "whoever looks at the node reads it all");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_merely_watched_is_one_entry_and_a_count() {
    let kept = Kept::new();
    let mut lab = lab(&kept).await;
    let id = lab.open().await;
    lab.outcome(id, Until::Released).await;
    tokio::time::sleep(s(7_200)).await;
    lab.kill().await;
    let exchanges = kept.all("exchange");
    let counted: u64 = exchanges.iter().filter_map(|entry| entry["details"]["more"].as_u64()).sum();
    assert!((650..=750).contains(&counted), "every 10 s for two hours: {counted}");
    assert!(exchanges.len() < 60, "{}", exchanges.len());
    let off =
        exchanges.iter().find(|entry| detail(entry, "asked") == "power off, hard").expect("it was sent");
    assert_eq!((detail(off, "device"), detail(off, "answered")), ("bmc", "taken"));
    assert!(exchanges.iter().all(|entry| entry["fence"] == id.to_string() && entry["node"] == NODE));
}

#[tokio::test(start_paused = true)]
async fn a_device_that_says_nothing_and_an_answer_that_nobody_waited_for_are_told() {
    let kept = Kept::new();
    let mut lab = lab(&kept).await;
    lab.fault("bmc", Fault::Silent);
    lab.open().await;
    tokio::time::sleep(s(7)).await;
    lab.kill().await;
    let exchanges = kept.all("exchange");
    let answers: Vec<&str> = exchanges.iter().map(|entry| detail(entry, "answered")).collect();
    assert!(
        answers.iter().any(|answer| answer.contains("timed out") || answer.contains("unreachable")),
        "{answers:?}"
    );
    assert!(answers.contains(&"its answer was not waited for"), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn each_phase_is_told_with_its_evidence_and_the_fence_knows_where_the_audit_stood() {
    let kept = Kept::new();
    let mut lab = lab(&kept).await;
    // The writer keeps real time: something stands there before anything is anchored.
    kept.audit.tell(picket_audit::Told { what: "start".to_owned(), ..picket_audit::Told::default() });
    kept.audit.flush();
    let id = lab.open().await;
    lab.outcome(id, Until::Released).await;
    kept.audit.flush();
    let confirmed =
        lab.view().stored.record.fence.clone().and_then(|fence| fence.audit).expect("anchored").seq;
    lab.engine.unfence(&node(), "db".to_owned(), person()).await.expect("held by db");
    tokio::time::sleep(s(300)).await;
    assert_eq!(lab.phase(), "normal");
    let ended = lab.engine.get_fence(id).await.expect("asked").expect("kept").audit.expect("anchored");
    assert!(ended.seq > confirmed, "{} and {confirmed}", ended.seq);
    lab.kill().await;
    let directory = kept.home.path().join("audit");
    let phases = kept.all("phase");
    let to: Vec<&str> = phases.iter().map(|entry| detail(entry, "to")).collect();
    assert_eq!(to, ["fencing", "fenced", "released", "unfencing", "normal"]);
    let evidence = &phases[1]["details"]["evidence"];
    assert_eq!((&evidence["grade"], &evidence["devices"][0]["device"]), (&"observed".into(), &"bmc".into()));
    let anchor = picket_audit::Anchor { fence: id.to_string(), seq: ended.seq, hash: ended.hash, at: 0 };
    let report = picket_audit::verify(&directory, &[anchor]).expect("read");
    assert_eq!((report.fault, report.anchors), (None, 1));
}
