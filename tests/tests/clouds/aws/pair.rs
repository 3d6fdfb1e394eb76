//! Two gateways over one etcd, and one instance of an EC2 of their own.

use std::process::Stdio;
use std::time::Duration;

use picket_tests::peers::{Ec2, EtcdCluster};
use picket_tests::{Daemon, Fleet, Gateway, PeerError, Result, Said};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::aws::scene::{QUICK, node};

/// The longest that is waited for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than the first one may stand still within a call: what it sends then is EC2's to refuse, and not the call's end.
const CALL: &str = "call = \"120s\"\n";
/// So many seconds may pass, as these gateways are told, before EC2 takes nothing any more.
const TAKES: &str = "12";
/// And so many do.
const SIGNED: u64 = 10;
pub const FENCE: [&str; 5] = ["fence", "n1", "--yes", "--reason", "a test"];
pub const UNFENCE: [&str; 4] = ["unfence", "n1", "--reason", "a test"];

/// The scene. Gateways are called `g0`, which leads, and `g1`.
pub struct Pair {
    /// First, so that they end first.
    gateways: Vec<Gateway>,
    /// Which of them is asked.
    leader: usize,
    /// Who asked the first one when it stood still.
    _asking: Option<Child>,
    _etcd: EtcdCluster,
    pub ec2: Ec2,
    pub instance: String,
    pub volume: String,
}

impl Pair {
    /// The first one stops itself (SIGSTOP) at that point; waits until both serve. EC2 takes signatures for as long as they say, or for
    /// as long as the test lasts: then something else has to refuse what is late.
    pub async fn stopping_at(point: &str, is_bounded: bool) -> Result<Self> {
        let (etcd, ec2) = tokio::try_join!(EtcdCluster::start(1), Ec2::start())?;
        if is_bounded {
            ec2.patience(SIGNED).await?;
        }
        let instance = ec2.instance(&["/dev/sdf"]).await?;
        let volume = ec2.volumes(&instance).await?["/dev/sdf"].clone();
        let files = ec2.files("pair", &ec2.picket().await?)?;
        let node = node(&ec2, files, &format!("aws:///eu-central-1a/{instance}"));
        let mut gateways = Vec::new();
        for n in 0..2 {
            let fleet = Fleet::new().with(&format!("[gateway]\nname = \"g{n}\"")).with(QUICK).with(&format!(
                "[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\n[election]\nlease = \"3s\"\n{node}{CALL}",
                etcd.endpoints()
            ));
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let mut pair = Self { gateways, leader: 0, _asking: None, _etcd: etcd, ec2, instance, volume };
        let takes = ("PICKET_TRIAL_EC2_TAKES", TAKES);
        // What stood still is the first to go on: with more threads another one may find out first that nobody waits for that command any
        // more, which keeps it back as well.
        let alone = ("TOKIO_WORKER_THREADS", "1");
        pair.gateways[0].begin(&[takes, alone, ("PICKET_STOP_AT", point)]).await?;
        pair.gateways[0].checked().await?;
        pair.gateways[1].begin(&[takes]).await?;
        pair.leads(0).await?;
        Ok(pair)
    }

    /// Waits until that one says that it leads.
    pub async fn leads(&self, n: usize) -> Result<()> {
        let own = format!("g{n}");
        self.until(&format!("{own} leads"), async || {
            let seen = self.gateways[n].gateways().await;
            seen.is_some_and(|seen| {
                seen.trouble.is_empty() && seen.gateways.iter().any(|one| one.leads && one.name == own)
            })
        })
        .await
    }

    async fn until(&self, what: &str, mut seen: impl AsyncFnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !seen().await {
            if Instant::now() >= deadline {
                let (what, seen) = (what.to_owned(), self.logs());
                return Err(PeerError::TimedOut { what, within: PATIENCE, seen });
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// `picket` to whoever leads.
    fn asking(&self, arguments: &[&str]) -> Result<Child> {
        let mut command = tokio::process::Command::from(self.gateways[self.leader].command(arguments)?);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().map_err(PeerError::io("run picket"))
    }

    /// The same, to its end.
    async fn said(&self, arguments: &[&str]) -> Result<Said> {
        let running = self.asking(arguments)?;
        let Ok(output) = tokio::time::timeout(PATIENCE, running.wait_with_output()).await else {
            let (what, seen) = (format!("{arguments:?} comes to its end"), self.logs());
            return Err(PeerError::TimedOut { what, within: PATIENCE, seen });
        };
        Ok(Said::of(output.map_err(PeerError::io("wait for picket"))?))
    }

    /// Fences it by that key, with everything released.
    pub async fn fence(&self, key: &str) -> Result<()> {
        let said = self.said(&[&FENCE[..], &["--key", key]].concat()).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.logs());
        assert_eq!(self.ec2.state(&self.instance).await?, "stopped", "{}", self.logs());
        Ok(())
    }

    /// Brings it back. Who leads since a moment may be about to: then it is asked again.
    pub async fn unfence(&self) -> Result<()> {
        self.until("it is brought back", async || self.said(&UNFENCE).await.is_ok_and(|said| said.code == 0))
            .await?;
        assert_eq!(self.ec2.state(&self.instance).await?, "running", "{}", self.logs());
        Ok(())
    }

    /// Asks the first one for that, waits until it stands still, and the other one leads.
    pub async fn is_succeeded(&mut self, arguments: &[&str]) -> Result<()> {
        self._asking = Some(self.asking(arguments)?);
        let deadline = Instant::now() + PATIENCE;
        while !self.gateways[0].process()?.is_frozen() {
            assert!(Instant::now() < deadline, "it never stopped\n{}", self.logs());
            sleep(Duration::from_millis(50)).await;
        }
        self.leads(1).await?;
        self.leader = 1;
        Ok(())
    }

    /// Lets the first one go on, and waits until EC2 has answered one more of these commands: how it answered all of them, in order.
    pub async fn late(&mut self, action: &str) -> Result<Vec<u16>> {
        let before = self.answered(action).await?.len();
        self.gateways[0].process()?.thaw();
        self.until("the late command is answered", async || {
            self.answered(action).await.is_ok_and(|answered| answered.len() > before)
        })
        .await?;
        self.until("g0 knows that it does not lead", async || {
            self.gateways[0].log().contains("does not lead; standing again")
        })
        .await?;
        self.answered(action).await
    }

    async fn answered(&self, action: &str) -> Result<Vec<u16>> {
        let asked = self.ec2.asked_to(action, &self.instance).await?;
        Ok(asked.iter().map(|one| one.status).filter(|status| *status != 0).collect())
    }

    pub fn logs(&self) -> String {
        let logs = self.gateways.iter().enumerate().map(|(n, one)| format!("--- g{n}\n{}", one.log()));
        logs.collect::<Vec<_>>().join("\n")
    }
}
