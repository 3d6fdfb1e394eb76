//! Two gateways over one etcd, and one node behind a BMC that speaks Redfish and keeps idle sessions for half an hour.

use std::sync::Arc;
use std::time::Duration;

use picket_core::time::Clock;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Heard, SimClock, Verb};
use picket_fleet::{Account, BmcOptions, Fleet as Bmcs, RedfishPlace, Role};
use picket_tests::peers::{ADMIN, EtcdCluster, PASSWORD, fresh_address};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Gateways, Result, Webhook, one_of_several};
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep};

/// After so long the BMC ends an idle session by itself: without its name a late off would be waited for that long.
pub const IDLE: Duration = Duration::from_secs(1_800);

/// The scene. Gateways are called `g0`, which leads, and `g1`.
pub struct Duo {
    /// First, so that they end first.
    pub gateways: Gateways,
    _etcd: EtcdCluster,
    _bmcs: Bmcs,
    pub bmc: Arc<picket_fleet::Bmc>,
    _ca: NamedTempFile,
    pub webhook: Webhook,
}

impl Duo {
    /// With these variables for the one that leads; waits until both serve. A reset of the BMC's is a task, or not.
    pub async fn start(variables: &[(&str, &str)], tasks: bool) -> Result<Self> {
        let etcd = EtcdCluster::start(1).await?;
        let account =
            Account { name: ADMIN.to_owned(), password: PASSWORD.to_owned(), role: Role::Administrator };
        let address = fresh_address();
        let options = BmcOptions {
            name: "n1".to_owned(),
            ipmi: address,
            accounts: Arc::new([account]),
            suites: vec![Suite::Sha256],
            sessions: 8,
            idle: IDLE,
            redfish: Some(RedfishPlace { address, sessions: 8, idle: IDLE, tasks }),
            seed: 1,
        };
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let bmcs = Bmcs::start(&[options], &clock).await.expect("a free address");
        let ca = NamedTempFile::new().expect("a file");
        std::fs::write(ca.path(), bmcs.authority()).expect("written");
        let bmc = bmcs.bmc("n1").expect("it was asked for").clone();
        let truth = bmc.clone();
        let webhook = Webhook::with_witness(Arc::new(move || truth.is_on())).await?;
        let device = Bmc::redfish_at(bmc.redfish_address().expect("it speaks Redfish"));
        // A call that outlasts a stop of its process: what is sent after that is the BMC's to refuse, and not the call's end.
        let device = device.trusting(ca.path()).with("last_reset_time = true\ncall = \"120s\"");
        let mut gateways = Vec::new();
        for n in 0..2 {
            let fleet = Fleet::new()
                .with(&one_of_several(n, &etcd, "3s"))
                .with("[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"")
                .node("n1", &device, &["detach"])
                .webhook("detach", &webhook.url(), "settle = \"0s\"");
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let gateways = Gateways::start(gateways, variables, &[]).await?;
        Ok(Self { gateways, _etcd: etcd, _bmcs: bmcs, bmc, _ca: ca, webhook })
    }

    /// Fences the node by that key. It is let go, and off while it was.
    pub async fn fence(&self, key: &str) -> Result<()> {
        let said = self.gateways.said(&["fence", "n1", "--yes", "--reason", "a test", "--key", key]).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateways.logs());
        assert!(!self.bmc.is_on(), "{said:?}\n{}", self.gateways.logs());
        let releases = self.webhook.releases();
        assert!(!releases.is_empty() && releases.iter().all(|one| one.on == Some(false)), "{releases:?}");
        Ok(())
    }

    /// Brings it back, in far less than a session lives by itself.
    pub async fn unfence(&self) -> Result<()> {
        let began = Instant::now();
        let said = self.gateways.said(&["unfence", "n1", "--reason", "a test"]).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateways.logs());
        assert!(self.bmc.is_on(), "{said:?}\n{}", self.gateways.logs());
        assert!(began.elapsed() < IDLE / 6, "{:?}", began.elapsed());
        Ok(())
    }

    /// What the BMC was told, and carried out or not.
    pub fn told(&self, verb: Verb) -> Vec<Heard> {
        let now = self.bmc.now();
        self.bmc.world().heard(now).iter().filter(|heard| heard.verb == verb).cloned().collect()
    }

    /// Lets the first one go on, and waits until it knows that it does not lead. What it sent then was turned away by the BMC, unless
    /// the end of its leadership closed the connection sooner, which throws away what was not read yet: both are right, and which
    /// it is, chance decides. That a BMC turns it away the driver's own tests show.
    pub async fn goes_on_in_vain(&mut self) -> Result<()> {
        let before = self.bmc.turned_away();
        self.gateways[0].process()?.thaw();
        self.gateways.until_succeeded().await?;
        // Whatever was read would have been done by then.
        sleep(Duration::from_secs(3)).await;
        println!("turned away by the BMC: {}", self.bmc.turned_away() - before);
        Ok(())
    }
}
