//! S8, with a whole gateway that stands still between its permit and its packet, and another one that goes on meanwhile: what the first
//! sends when it goes on comes to nothing, as its token is over.

use std::time::Duration;

use picket_tests::peers::{EtcdCluster, GceDisk, GceInstance, GceMake, GceRequest};
use picket_tests::{Daemon, Gateway, PeerError, Result, Said, program};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::gcp::scene::{Plan, by_hand, compute, picket, private, soon};

/// So many seconds a token lives here: it is over long before the other one may go on.
const LIFE: u64 = 15;
/// The longest that is waited for anything.
const PATIENCE: Duration = Duration::from_secs(180);

/// Two gateways over one etcd, and one node, which is an instance. `g0` leads, and stops at that point.
struct Pair {
    /// First, so that they end first.
    gateways: Vec<Gateway>,
    _etcd: EtcdCluster,
    instance: GceInstance,
}

impl Pair {
    async fn stopping_at(point: &str) -> Result<Self> {
        let (etcd, compute) = (EtcdCluster::start(1).await?, compute().await?);
        let instance = compute.instance(&["data"]).await?;
        let key = compute.short_lived_file(&picket().await?, LIFE)?;
        private(&key)?;
        let mut gateways = Vec::new();
        for n in 0..2 {
            let store = format!(
                "[gateway]\nname = \"g{n}\"\n[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\n\
                 [election]\nlease = \"3s\"",
                etcd.endpoints()
            );
            // A call that outlasts the stop of its process: what is sent after that is the cloud's to refuse, and not the call's end.
            let plan = Plan::new().device("call = \"120s\"\n");
            let fleet = plan.fleet(compute, &key, &instance).with(&store);
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let mut pair = Self { gateways, _etcd: etcd, instance };
        // With one thread alone: with more of them it may know that it leads no more before it sends what it was about to.
        pair.gateways[0].begin(&[("PICKET_STOP_AT", point), ("TOKIO_WORKER_THREADS", "1")]).await?;
        pair.gateways[0].checked().await?;
        pair.gateways[1].begin(&[]).await?;
        Ok(pair)
    }

    /// `picket` to both, to its end.
    async fn said(&self, verb: &[&str]) -> Result<Said> {
        let endpoints: Vec<String> = self.gateways.iter().map(Gateway::endpoint).collect();
        let mut command = tokio::process::Command::new(program("picket")?);
        command.arg("--endpoint").arg(endpoints.join(",")).args(verb).args(["n1", "--reason", "a test"]);
        command.args(["--timeout", "170s"]).stdin(std::process::Stdio::null()).kill_on_drop(true);
        Ok(Said::of(command.output().await.map_err(PeerError::io("run picket"))?))
    }

    /// The same, done. While nobody leads it is asked for again.
    async fn does(&self, verb: &[&str]) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.said(verb).await?;
            let is_leaderless = said.code == 5 && Instant::now() < end;
            if !is_leaderless {
                assert_eq!(said.code, 0, "{said:?}\n{}", self.logs());
                return Ok(());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn is(&self, state: &str) -> Result<()> {
        assert_eq!(compute().await?.state(&self.instance.id).await?, state, "{}", self.logs());
        Ok(())
    }

    /// Waits until the first one stands still.
    async fn until_stopped(&mut self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !self.gateways[0].process()?.is_frozen() {
            assert!(Instant::now() < end, "it never stops\n{}", self.logs());
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// What was asked for by that method and was refused as its token was over; the others.
    async fn heard(&self, method: &str) -> Result<(Vec<GceRequest>, Vec<GceRequest>)> {
        let all = compute().await?.asked_to(method, &self.instance.id).await?;
        Ok(all.into_iter().partition(|one| one.status == 401))
    }

    /// Lets the first one go on: what it was about to send comes, once, and is refused, with a token that is over.
    async fn goes_on_in_vain(&mut self, method: &str) -> Result<()> {
        let (late, before) = self.heard(method).await?;
        assert!(late.is_empty(), "{late:#?}");
        self.gateways[0].process()?.thaw();
        let end = Instant::now() + PATIENCE;
        while self.heard(method).await?.0.is_empty() {
            assert!(Instant::now() < end, "nothing comes late\n{}", self.logs());
            sleep(Duration::from_millis(50)).await;
        }
        // It knows that it does not lead, and sends nothing else.
        while !self.gateways[0].log().contains("does not lead; standing again") {
            assert!(Instant::now() < end, "it still leads\n{}", self.logs());
            sleep(Duration::from_millis(50)).await;
        }
        let (late, after) = self.heard(method).await?;
        assert_eq!((late.len(), after.len()), (1, before.len()), "{late:#?} {after:#?}\n{}", self.logs());
        let age = late[0].token.as_ref().map(|token| token.age);
        assert!(age.is_some_and(|age| age > LIFE as f64), "{late:#?}");
        assert_eq!(late[0].reason.as_deref(), Some("authError"), "{late:#?}");
        Ok(())
    }

    fn logs(&self) -> String {
        let logs = self.gateways.iter().enumerate().map(|(n, one)| format!("--- g{n}\n{}", one.log()));
        logs.collect::<Vec<_>>().join("\n")
    }
}

const FENCE: [&str; 2] = ["fence", "--yes"];
const UNFENCE: [&str; 1] = ["unfence"];

/// The successor waits until what may be on its way is surely over, brings the node back, and fences it anew: then the start comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    // The second time for a command: its connection stands.
    let mut pair = Pair::stopping_at("permitted on#2").await?;
    pair.does(&FENCE).await?;
    let unfenced = pair.said(&UNFENCE).await?;
    pair.until_stopped().await?;
    if unfenced.code != 0 {
        pair.does(&UNFENCE).await?;
    }
    pair.is("RUNNING").await?;
    let (late, starts) = pair.heard("instances.start").await?;
    assert_eq!((late.len(), starts.len()), (0, 1), "the successor's own alone\n{}", pair.logs());
    pair.does(&FENCE).await?;
    pair.goes_on_in_vain("instances.start").await?;
    pair.is("TERMINATED").await?;
    let events = compute().await?.events(&pair.instance.id).await?;
    assert_eq!(events.iter().filter(|event| event.what == "on").count(), 1, "{events:#?}");
    pair.does(&UNFENCE).await
}

/// The successor lets the disk go itself, and brings the node back once what may be on its way is surely over. By then the disk is
/// another machine's, and another disk is at its device: neither is pulled from its owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_detach_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    let compute = compute().await?;
    // Where the permit is made, before it is looked whether the disk is there, before it is sent, and when its connection stands.
    let mut pair = Pair::stopping_at("permitted release#4").await?;
    pair.does(&FENCE).await?;
    pair.until_stopped().await?;
    let (late, detaches) = pair.heard("instances.detachDisk").await?;
    assert_eq!((late.len(), detaches.len()), (0, 1), "the successor's own alone\n{}", pair.logs());
    pair.does(&UNFENCE).await?;
    pair.is("RUNNING").await?;

    let disk = pair.instance.disks["data"].clone();
    let heir = GceMake { disks: vec![GceDisk::new("data").of(&disk)], ..GceMake::default() };
    let heir = compute.make(&heir).await?;
    let spare = compute.instance(&["spare"]).await?;
    compute.switch(&spare.id, "TERMINATED").await?;
    assert_eq!(by_hand(&spare, "detachDisk?deviceName=spare", None).await?, 200);
    let other = spare.disks["spare"].clone();
    soon("it is free", async || Ok(compute.disk(&other).await?.users.is_empty())).await?;
    let source = format!("projects/{}/zones/{}/disks/{other}", compute.project(), spare.zone);
    let at = json!({ "source": source, "deviceName": "data" });
    assert_eq!(by_hand(&pair.instance, "attachDisk", Some(&at)).await?, 200);
    let has = async || Ok(compute.disk(&other).await?.users.contains_key(&pair.instance.id));
    soon("it is attached", has).await?;

    pair.goes_on_in_vain("instances.detachDisk").await?;
    let (disk, other) = (compute.disk(&disk).await?, compute.disk(&other).await?);
    assert!(disk.users.contains_key(&heir.id) && disk.users.len() == 1, "{disk:?}");
    assert!(other.users.contains_key(&pair.instance.id) && other.users.len() == 1, "{other:?}");
    Ok(())
}
