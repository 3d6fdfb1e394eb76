//! A simulated machine behind a BMC that speaks Redfish and IPMI, and the world behind it, which knows what is true.

use std::sync::Arc;
use std::time::Duration;

use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Edge, Fault, SimClock};
use picket_fleet::{Account, BmcOptions, Fleet, RedfishPlace, Role};
use picket_tests::peers::{ADMIN, OPERATOR, PASSWORD, Truth, fresh_address};
use picket_tests::{Bmc, Result};
use tempfile::NamedTempFile;

use super::DEVICE;
use crate::bmc::scene::{Plan, Scene};

/// One machine with a BMC that speaks both protocols.
pub struct Machine {
    _fleet: Fleet,
    pub bmc: Arc<picket_fleet::Bmc>,
    ca: NamedTempFile,
}

impl Machine {
    pub async fn new() -> Result<Self> {
        Self::with(false).await
    }

    /// With a reset that is a task, or not.
    pub async fn with(tasks: bool) -> Result<Self> {
        let account =
            |name: &str, role| Account { name: name.to_owned(), password: PASSWORD.to_owned(), role };
        let (ipmi, idle) = (fresh_address(), Duration::from_secs(60));
        let options = BmcOptions {
            name: "n1".to_owned(),
            ipmi,
            accounts: Arc::new([account(ADMIN, Role::Administrator), account(OPERATOR, Role::Operator)]),
            suites: vec![Suite::Sha1, Suite::Sha256],
            sessions: 8,
            idle,
            redfish: Some(RedfishPlace { address: ipmi, sessions: 8, idle, tasks }),
            seed: 1,
        };
        let clock: Arc<dyn picket_core::time::Clock> = Arc::new(SimClock::new());
        let fleet = Fleet::start(&[options], &clock).await.expect("a free address");
        let ca = NamedTempFile::new().expect("a file");
        std::fs::write(ca.path(), fleet.authority()).expect("written");
        let bmc = fleet.bmc("n1").expect("it was asked for").clone();
        Ok(Self { _fleet: fleet, bmc, ca })
    }

    pub fn truth(&self) -> Truth {
        let bmc = self.bmc.clone();
        Arc::new(move || bmc.is_on())
    }

    /// The device that the settings name.
    pub fn redfish(&self) -> Bmc {
        self.by_default().with("last_reset_time = true")
    }

    /// The same where nothing that it says shows its restarts.
    pub fn without_epochs(&self) -> Bmc {
        self.by_default().with("last_reset_time = false")
    }

    /// The same by default settings.
    pub fn by_default(&self) -> Bmc {
        self.device().with("session_timeout = \"60s\"")
    }

    /// The same by name and password.
    pub fn by_default_without_sessions(&self) -> Bmc {
        self.device().with("authentication = \"basic\"\nmax_life = \"5s\"")
    }

    fn device(&self) -> Bmc {
        let address = self.bmc.redfish_address().expect("it speaks Redfish");
        Bmc::redfish_at(address).trusting(self.ca.path())
    }

    /// The same BMC by its other protocol, which has no faults.
    pub fn ipmi(&self) -> Bmc {
        Bmc::at(self.bmc.address())
    }

    /// From now on its Redfish misbehaves so, too.
    pub fn fault(&self, fault: Fault) {
        self.bmc.world().fault(DEVICE, fault);
    }

    pub fn mend(&self) {
        self.bmc.world().mend(DEVICE);
    }

    /// How many commands its Redfish was given.
    pub fn commands(&self) -> usize {
        let now = self.bmc.now();
        self.bmc.world().heard(now).iter().filter(|heard| heard.device == DEVICE).count()
    }

    /// Every change of its power.
    pub fn edges(&self) -> Vec<Edge> {
        let now = self.bmc.now();
        self.bmc.world().edges(&Self::machine(), now).to_vec()
    }

    pub fn machine() -> String {
        "n1".to_owned()
    }

    /// The daemon over it alone.
    pub async fn scene(&self, settings: &str) -> Result<Scene> {
        Plan::over(self.truth(), &[("bmc", self.redfish())]).with(settings).start().await
    }
}
