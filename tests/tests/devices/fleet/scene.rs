//! A few simulated BMCs, and the clients that ask them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use picket_core::time::Clock;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::SimClock;
use picket_fleet::{Account, Bmc, BmcOptions, Fleet, RedfishPlace, Role};
use picket_tests::peers::{ADMIN, OPERATOR, PASSWORD, fresh_address};
pub use picket_tests::{Result, peers};

/// Who may only look.
pub const LOOKER: &str = "looker";

/// The usual accounts.
pub fn accounts() -> Arc<[Account]> {
    let account = |name: &str, role| Account { name: name.to_owned(), password: PASSWORD.to_owned(), role };
    Arc::new([
        account(ADMIN, Role::Administrator),
        account(OPERATOR, Role::Operator),
        account(LOOKER, Role::User),
    ])
}

/// One machine's BMC at an address of its own.
pub fn options(name: &str, ipmi: SocketAddr) -> BmcOptions {
    BmcOptions {
        name: name.to_owned(),
        ipmi,
        accounts: accounts(),
        suites: vec![Suite::Sha1, Suite::Sha256],
        sessions: 4,
        idle: Duration::from_secs(60),
        redfish: Some(RedfishPlace {
            address: ipmi,
            sessions: 4,
            idle: Duration::from_secs(300),
            tasks: false,
        }),
        seed: 1,
    }
}

/// A clock of the worlds.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SimClock::new())
}

/// One BMC alone.
pub struct Scene {
    fleet: Fleet,
    /// It.
    pub bmc: Arc<Bmc>,
}

impl Scene {
    /// It answers.
    pub async fn new() -> Self {
        Self::with_sessions(4).await
    }

    /// It answers, and has so many sessions.
    pub async fn with_sessions(sessions: usize) -> Self {
        let options = BmcOptions { sessions, ..options("n1", fresh_address()) };
        let fleet = Fleet::start(&[options], &clock()).await;
        let fleet = fleet.expect("a free address");
        let bmc = fleet.bmc("n1").expect("it was asked for").clone();
        Self { fleet, bmc }
    }

    /// ipmitool as administrator.
    pub fn ipmitool(&self, suite: u8) -> peers::Ipmitool {
        peers::Ipmitool::new(self.bmc.address()).suite(suite)
    }

    /// ipmipower as administrator.
    pub fn ipmipower(&self, suite: u8) -> peers::Ipmipower {
        peers::Ipmipower::new(self.bmc.address()).suite(suite)
    }

    /// What clients of its Redfish trust.
    pub fn authority(&self) -> &str {
        self.fleet.authority()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        let now = self.bmc.now();
        self.bmc.world().sessions("n1", now)
    }
}

/// Asks until it is so, as somebody would who asks again.
pub async fn eventually(what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let asked_again = async {
        while !seen().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), asked_again)
        .await
        .unwrap_or_else(|_| panic!("never seen: {what}"));
}
