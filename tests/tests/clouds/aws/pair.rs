//! Two gateways over one etcd, and one instance of an EC2 of their own.

use picket_tests::peers::{Ec2, EtcdCluster};
use picket_tests::{Daemon, Fleet, Gateway, Gateways, Result, one_of_several};
use tokio::process::Child;

use crate::aws::scene::node;
use crate::scene::QUICK;

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
    pub gateways: Gateways,
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
            let fleet =
                Fleet::new().with(&one_of_several(n, &etcd, "3s")).with(&format!("{QUICK}{node}{CALL}"));
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let takes = ("PICKET_TRIAL_EC2_TAKES", TAKES);
        // What stood still is the first to go on: with more threads another one may find out first that nobody waits for that command any
        // more, which keeps it back as well.
        let alone = ("TOKIO_WORKER_THREADS", "1");
        let gateways =
            Gateways::start(gateways, &[takes, alone, ("PICKET_STOP_AT", point)], &[takes]).await?;
        Ok(Self { gateways, _asking: None, _etcd: etcd, ec2, instance, volume })
    }

    /// Fences it by that key, with everything released.
    pub async fn fence(&self, key: &str) -> Result<()> {
        let said = self.gateways.said(&[&FENCE[..], &["--key", key]].concat()).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateways.logs());
        assert_eq!(self.ec2.state(&self.instance).await?, "stopped", "{}", self.gateways.logs());
        Ok(())
    }

    /// Brings it back. Who leads since a moment may be about to: then it is asked again.
    pub async fn unfence(&self) -> Result<()> {
        let is_back = async || Ok(self.gateways.said(&UNFENCE).await?.code == 0);
        self.gateways.until("it is brought back", is_back).await?;
        assert_eq!(self.ec2.state(&self.instance).await?, "running", "{}", self.gateways.logs());
        Ok(())
    }

    /// Asks the first one for that, waits until it stands still, and the other one leads.
    pub async fn is_succeeded(&mut self, arguments: &[&str]) -> Result<()> {
        self._asking = Some(self.gateways.asking(arguments)?);
        self.gateways.until_stopped().await?;
        self.gateways.leads(1).await
    }

    /// Lets the first one go on, and waits until EC2 has answered one more of these commands: how it answered all of them, in order.
    pub async fn late(&mut self, action: &str) -> Result<Vec<u16>> {
        let before = self.answered(action).await?.len();
        self.gateways[0].process()?.thaw();
        let comes = async || Ok(self.answered(action).await?.len() > before);
        self.gateways.until("the late command is answered", comes).await?;
        self.gateways.until_succeeded().await?;
        self.answered(action).await
    }

    async fn answered(&self, action: &str) -> Result<Vec<u16>> {
        let asked = self.ec2.asked_to(action, &self.instance).await?;
        Ok(asked.iter().map(|one| one.status).filter(|status| *status != 0).collect())
    }
}
