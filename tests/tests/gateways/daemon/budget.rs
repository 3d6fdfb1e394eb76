//! Budgets, the queue, pauses and plans, by the real daemon and over kill -9.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use picket_proto::v1::{ListNodesRequest, Phase};
use picket_tests::peers::until;
use picket_tests::{Client, Fleet, Gateway, Result, Said};
use tokio::task::JoinHandle;

use crate::daemon::SOON;

/// Fifty simulated machines, three of which may be fenced at once; a proof takes a few seconds.
fn fifty(lines: &str) -> Fleet {
    Fleet::new().with(&format!(
        "[rules]\ndwell = \"6s\"\n[nodes.\"n[1-50]\"]\nlabels = {{ rack = \"r1\" }}\n\
         [nodes.\"n[1-50]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{{node}}\"\n\
         [budget]\nat_once = 3\ncool_down = \"0s\"\nbrake_least = 1000\nmin_not_fenced = 0\n{lines}"
    ))
}

/// How many fences are open: begun, and neither released nor waiting for a person.
async fn open(client: &mut Client) -> Option<usize> {
    let request = ListNodesRequest { page_size: 1_000, ..ListNodesRequest::default() };
    let nodes = client.list_nodes(request).await.ok()?.into_inner().nodes;
    Some(nodes.iter().filter(|node| matches!(node.phase(), Phase::Fencing | Phase::Fenced)).count())
}

/// Looks all the time; the most that was ever seen.
struct Watch {
    most: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Watch {
    async fn begin(gateway: &Gateway) -> Result<Self> {
        let mut client = gateway.client().await?;
        let (most, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, stop) = (most.clone(), over.clone());
        let task = tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                if let Some(now) = open(&mut client).await {
                    seen.fetch_max(now, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Ok(Self { most, over, task })
    }

    async fn end(self) -> usize {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.task.await;
        self.most.load(Ordering::SeqCst)
    }
}

/// How many nodes have a line of their own that begins so.
fn count(said: &Said, word: &str) -> usize {
    let is_so = |line: &&str| line.split_once("  ").is_some_and(|(_, told)| told.starts_with(word));
    said.out.lines().filter(is_so).count()
}

#[tokio::test]
async fn of_fifty_requests_at_once_three_go_also_over_deaths_and_those_that_wait_follow() -> Result<()> {
    let mut gateway = Gateway::start(&fifty("")).await?;
    let watch = Watch::begin(&gateway).await?;
    let all = ["fence", "n[1-50]", "--yes", "--reason", "a storm", "--timeout", "1s"];
    // On a busy machine not all of fifty are answered within a second.
    let mut patient = all;
    patient[6] = "4s";
    let said = gateway.picket(&patient).await?;
    assert_eq!((count(&said, "blocked (budget)"), count(&said, "not done within")), (47, 3), "{said:?}");
    assert!(said.out.contains("the fleet may have 3 of its 50 nodes fenced at once, and has 3"), "{said:?}");
    // The same again, and now they wait: whoever is fenced is joined, and the gateway dies with those in its queue.
    let mut waiting = all.to_vec();
    waiting.push("--queue");
    let said = gateway.picket(&waiting).await?;
    assert_eq!(count(&said, "not done within"), 50, "{said:?}");
    // On a busy machine few of them reach the gateway within a second; four are to follow.
    let deadline = Instant::now() + SOON;
    while gateway.log().matches("outcome=\"waits\"").count() < 4 {
        assert!(Instant::now() < deadline, "nobody waits: {}", gateway.log());
        gateway.picket(&waiting).await?;
    }
    assert_eq!(watch.end().await, 3);
    for _ in 0..2 {
        gateway.kill();
        gateway.begin(&[]).await?;
        assert_eq!(open(&mut gateway.client().await?).await, Some(3), "they go on, and no other begins");
    }
    let watch = Watch::begin(&gateway).await?;
    let deadline = Instant::now() + SOON;
    let mut client = gateway.client().await?;
    while touched(&mut client).await < 7 {
        assert!(Instant::now() < deadline, "nobody follows: {}", gateway.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(watch.end().await, 3);
    Ok(())
}

/// How many nodes were begun to be fenced.
async fn touched(client: &mut Client) -> usize {
    let request = ListNodesRequest { page_size: 1_000, ..ListNodesRequest::default() };
    let nodes = client.list_nodes(request).await.map(|answer| answer.into_inner().nodes).unwrap_or_default();
    nodes.iter().filter(|node| node.phase() != Phase::Normal).count()
}

/// By the shipped budget: whoever asks for one node after the other has less than half of the fleet, also over a death, and is not told when to
/// come again. A person says that they are dead; half of the fleet is left all the same.
#[tokio::test]
async fn whoever_asks_for_all_nodes_in_turn_has_less_than_half_of_them() -> Result<()> {
    let fleet = Fleet::new().with(
        "[nodes.\"n[1-6]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{node}\"\n[budget]\n\
         [roles.people]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n",
    );
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    let fence = async |gateway: &Gateway, node: &str| {
        gateway.picket(&["fence", node, "--yes", "--reason", "a test"]).await
    };
    for node in ["n1", "n2"] {
        assert_eq!(fence(&gateway, node).await?.code, 0, "{node}");
    }
    for dies in [false, true] {
        if dies {
            gateway.kill();
            gateway.begin(&[]).await?;
        }
        for node in ["n3", "n4", "n5", "n6", "n3"] {
            let said = fence(&gateway, node).await?;
            assert!(said.code == 3 && said.out.contains("blocked (brake): "), "{said:?}");
            assert!(!said.out.contains("ask again"), "{said:?}");
        }
    }
    assert_eq!(gateway.picket(&["resume", "--everything", "--reason", "a fire"]).await?.code, 0);
    // What was fenced is proven anew by the next process, and counts as being fenced until then.
    let mut client = gateway.client().await?;
    until("n1 and n2 are released again", SOON, async || Ok(open(&mut client).await == Some(0))).await?;
    assert_eq!(fence(&gateway, "n3").await?.code, 0);
    let said = fence(&gateway, "n4").await?;
    assert!(said.code == 3 && said.out.contains("the fleet must keep 3 of its 6 nodes"), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_pause_survives_kill_9_and_plan_fence_and_status_agree_on_it() -> Result<()> {
    let mut gateway = Gateway::start(&fifty("[groups.\"rack=*\".budget]\nmin_not_fenced = 1\n")).await?;
    let fence = ["fence", "n1", "--yes", "--reason", "a test"];
    let planned = gateway.picket(&["plan", "n1"]).await?;
    assert_eq!(planned.code, 0, "{planned:?}");
    assert!(
        planned.out.contains("dry run: it would begin") && planned.out.contains("off bmc"),
        "{planned:?}"
    );
    let paused =
        gateway.picket(&["pause", "--group", "rack=r1", "--for", "1h", "--reason", "a new switch"]).await?;
    assert!(paused.code == 0 && paused.out.contains("paused: group rack=r1, until 2"), "{paused:?}");
    gateway.kill();
    gateway.begin(&[]).await?;
    for command in [&["plan", "n1"][..], &fence, &["fence", "n1", "--dry-run"]] {
        let said = gateway.picket(command).await?;
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.out.contains("blocked (paused): group rack=r1 is paused by"), "{said:?}");
    }
    let status = gateway.picket(&["status"]).await?;
    assert!(
        status.out.contains("paused: group rack=r1, until") && status.out.contains("a new switch"),
        "{status:?}"
    );
    let short = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test", "--queue=1s"]).await?;
    assert!(short.code == 3 && short.out.contains("blocked (expired)"), "{short:?}");
    let queued =
        gateway.command(&["fence", "n1", "--yes", "--reason", "a test", "--queue=5m", "-o", "json"])?;
    let queued = tokio::process::Command::from(queued)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it runs");
    let waits =
        || async { gateway.picket(&["status", "n1"]).await.is_ok_and(|said| said.out.contains("waits for")) };
    while !waits().await {}
    let back = gateway.picket(&["unfence", "n1", "--reason", "alive after all"]).await?;
    assert_eq!(back.code, 0, "{back:?}");
    let ended = queued.wait_with_output().await.expect("it ends");
    let told: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    let outcome = &told["results"][0]["outcome"];
    assert_eq!((ended.status.code(), &outcome["reason"]), (Some(3), &"withdrawn".into()), "{told}");
    assert!(outcome["detail"].as_str().is_some_and(|detail| detail.contains("alive after all")), "{told}");
    let audit = gateway.store_file().with_extension("audit").display().to_string();
    let audit = gateway.picket(&["history", "--audit", &audit, "--export"]).await?;
    assert!(audit.out.contains("\"outcome\":\"withdrawn\""), "{audit:?}");
    let everything = gateway.picket(&["resume", "--everything", "--reason", "done"]).await?;
    assert!(everything.code == 6 && everything.out.contains("paused is group rack=r1"), "{everything:?}");
    let resumed = gateway.picket(&["resume", "--group", "rack=r1", "--reason", "done"]).await?;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let planned = gateway.picket(&["plan", "n1", "--override-budget", "none needed", "-o", "json"]).await?;
    assert!(
        planned.code == 0 && planned.out.contains("the override of the budget is of no use"),
        "{planned:?}"
    );
    let fenced = gateway.picket(&fence).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    let planned = gateway.picket(&["plan", "n1"]).await?;
    assert!(planned.code == 0 && planned.out.contains("fenced already and released"), "{planned:?}");
    Ok(())
}
