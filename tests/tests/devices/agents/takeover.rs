//! Two gateways whose device is an agent: the leader dies, or stands still, in the middle of an off (S5, S6, S8).

use std::time::{Duration, Instant};

use picket_tests::peers::{EtcdCluster, eventually};
use picket_tests::{Daemon, Fleet, Gateway, Gateways, Result, Webhook, one_of_several};
use tokio::process::Child;

use crate::agents::scene::{Fake, runs};

/// The longest that is waited for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the successor counts on where nothing was seen of the off's end: a call (8 s), its keeper's lateness (2 s), `max_life` (7 s).
const LIFE: Duration = Duration::from_secs(17);

/// Two gateways over one etcd, and one machine behind an agent. `g0` leads.
struct Pair {
    gateways: Gateways,
    fake: Fake,
    webhook: Webhook,
    _etcd: EtcdCluster,
}

impl Pair {
    async fn start(node: impl Fn(&Fake) -> String) -> Result<Self> {
        let (etcd, fake) = (EtcdCluster::start(1).await?, Fake::new());
        let webhook = Webhook::with_witness(fake.truth()).await?;
        let mut gateways = Vec::new();
        for n in 0..2 {
            let fleet = Fleet::new()
                .with(&one_of_several(n, &etcd, "3s"))
                .with("[rules]\ndwell = \"500ms\"\nwatch = \"1s\"")
                .with(&node(&fake))
                .webhook("detach", &webhook.url(), "settle = \"0s\"");
            gateways.push(Gateway::of(Daemon::Shipped, &fleet)?);
        }
        let gateways = Gateways::start(gateways, &[], &[]).await?;
        Ok(Self { gateways, fake, webhook, _etcd: etcd })
    }

    /// Fences the node; returns once the leader's off hangs, with what its agent started. Offs hang until the agent is mended.
    async fn off_hangs(&self) -> Result<(Child, Vec<u32>)> {
        self.fake.fall_silent_when_told("off");
        let fence = self.gateways.asking(&["fence", "n1", "--yes", "--reason", "a test", "--key", "k1"])?;
        eventually("the off hangs", PATIENCE, || self.fake.children().into_iter().any(runs)).await?;
        assert!(self.fake.commands().is_empty(), "nothing was carried out yet");
        Ok((fence, self.fake.children()))
    }

    /// The fence went on to its end: nothing was released while the machine was on.
    async fn is_fenced(&self, fence: Child) -> Result<()> {
        let said = self.gateways.end(fence).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateways.logs());
        let releases = self.webhook.releases();
        assert!(!releases.is_empty() && releases.iter().all(|one| one.on == Some(false)), "{releases:?}");
        assert!(self.fake.commands().iter().all(|command| command == "off"), "{:?}", self.fake.commands());
        Ok(())
    }

    /// Brings it back: the on came once, after all that the deposed leader's agent had started was dead.
    async fn comes_back(&self) -> Result<()> {
        let back = self.gateways.said(&["unfence", "n1", "--reason", "a test"]).await?;
        assert_eq!(back.code, 0, "{back:?}\n{}", self.gateways.logs());
        let ons = self.fake.commands().iter().filter(|command| *command == "on").count();
        assert_eq!((ons, self.fake.outlived().as_str()), (1, ""), "{:?}", self.fake.commands());
        assert!((self.fake.truth())());
        Ok(())
    }
}

#[tokio::test]
async fn a_leader_that_dies_in_the_middle_of_an_agents_off_is_followed_and_its_off_waited_out() -> Result<()>
{
    let mut pair = Pair::start(Fake::node).await?;
    let (fence, children) = pair.off_hangs().await?;
    pair.gateways[0].kill();
    pair.fake.mend();
    let died = Instant::now();
    pair.is_fenced(fence).await?;
    assert!(!children.into_iter().any(runs), "they died with it");
    pair.comes_back().await?;
    // What it had sent may be on its way for so long, counted by whoever leads now from when it read of it, which was later.
    assert!(died.elapsed() >= LIFE, "the on came {:?} after its leader had died", died.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_leader_that_stands_still_in_the_middle_of_an_agents_off_sends_nothing_after_the_successors_on()
-> Result<()> {
    let mut pair = Pair::start(Fake::node).await?;
    let (fence, children) = pair.off_hangs().await?;
    pair.gateways[0].process()?.freeze();
    pair.fake.mend();
    let stopped = Instant::now();
    pair.is_fenced(fence).await?;
    pair.comes_back().await?;
    assert!(stopped.elapsed() >= LIFE, "the on came {:?} after its leader had stopped", stopped.elapsed());
    assert!(pair.gateways[0].process()?.is_frozen() && !children.into_iter().any(runs));
    let carried_out = pair.fake.commands();
    pair.gateways[0].process()?.thaw();
    // It finds out who leads, and follows.
    pair.gateways
        .until("g0 sees that g1 leads", async || {
            let seen = pair.gateways[0].gateways().await;
            Ok(seen.is_some_and(|seen| seen.gateways.iter().any(|one| one.leads && one.name == "g1")))
        })
        .await?;
    assert_eq!(pair.fake.commands(), carried_out, "{}", pair.gateways.logs());
    assert!((pair.fake.truth())(), "it was switched off once more\n{}", pair.gateways.logs());
    Ok(())
}

#[tokio::test]
async fn where_nobody_vouches_for_a_killed_agent_a_person_decides_before_the_on() -> Result<()> {
    let mut pair = Pair::start(Fake::node_without_max_life).await?;
    let (fence, _children) = pair.off_hangs().await?;
    pair.gateways[0].kill();
    pair.fake.mend();
    pair.is_fenced(fence).await?;
    let barred = pair.gateways.said(&["unfence", "n1", "--reason", "a test"]).await?;
    let status = pair.gateways.said(&["status", "n1"]).await?;
    assert!(
        barred.code != 0 && barred.out.contains("nothing bounds it"),
        "{barred:?}\n{}",
        pair.gateways.logs()
    );
    assert!(status.out.contains("unbounded"), "{status:?}");
    assert!(pair.fake.commands().iter().all(|command| command == "off"), "{:?}", pair.fake.commands());
    assert!(!(pair.fake.truth())(), "it is kept off");
    // Somebody looked, and says that it has surely ended.
    let retried = pair
        .gateways
        .said(&["retry", "n1", "--yes", "--reason", "the agent is dead, its network quiet"])
        .await?;
    assert_eq!(retried.code, 0, "{retried:?}\n{}", pair.gateways.logs());
    pair.comes_back().await
}
