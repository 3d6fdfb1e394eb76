//! What machines a page's gateway stands before.

use std::net::SocketAddr;
use std::sync::Arc;

use picket_core::time::Clock;
use picket_driver_sim::SimClock;
use picket_fleet::{Account, BmcOptions, RedfishPlace, Role};
use picket_tests::peers::{ADMIN, OPERATOR, PASSWORD, fresh_address};
use picket_tests::{Bmc, Fleet, PeerError, Result};
use tempfile::TempDir;

/// Two nodes of a rack whose machines are simulated: enough for every page that wants a gateway and nothing else.
const RACK: &str = r#"
[releases.detach]
kind = "none"
settle = "0s"
[templates.rack]
releases = ["detach"]
labels = { rack = "r1" }
[templates.rack.devices.bmc]
driver = "sim"
machine = "{node}"
[nodes.r1n01]
template = "rack"
[nodes.r1n07]
template = "rack"
"#;

/// Which machines a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// None in particular.
    Simulated,
    /// One whose BMC speaks Redfish.
    Redfish,
    /// One whose BMC speaks IPMI.
    Ipmi,
}

impl Machines {
    /// By the page's name.
    pub fn of(page: &str) -> Self {
        match page.trim_start_matches("docs/") {
            page if page.starts_with("redfish") || page == "rehearse-settings.md" => Self::Redfish,
            page if page.starts_with("ipmi") || page == "bare-metal.md" => Self::Ipmi,
            _ => Self::Simulated,
        }
    }

    /// A gateway's settings, in which r1n01 is such a machine.
    pub fn before(self, boards: &Boards) -> Fleet {
        match self {
            Self::Simulated => Fleet::new().with(RACK),
            Self::Redfish => {
                let ca = boards.home.path().join("ca.pem");
                Fleet::new().node("r1n01", &Bmc::redfish_at(boards.redfish()).trusting(&ca), &[])
            }
            Self::Ipmi => Fleet::new().node("r1n01", &Bmc::at(boards.ipmi), &[]),
        }
    }
}

/// A BMC of picket-fleet's on real sockets, over both protocols.
pub struct Boards {
    fleet: picket_fleet::Fleet,
    ipmi: SocketAddr,
    home: TempDir,
}

impl Boards {
    /// It answers.
    pub async fn start() -> Result<Self> {
        let account =
            |name: &str, role| Account { name: name.to_owned(), password: PASSWORD.to_owned(), role };
        let ipmi = fresh_address();
        let options = BmcOptions {
            name: "r1n01".to_owned(),
            ipmi,
            accounts: Arc::new([account(ADMIN, Role::Administrator), account(OPERATOR, Role::Operator)]),
            suites: vec![picket_driver_ipmi::crypto::Suite::Sha256],
            sessions: 4,
            idle: std::time::Duration::from_secs(60),
            redfish: Some(RedfishPlace {
                address: ipmi,
                sessions: 4,
                idle: std::time::Duration::from_secs(300),
                tasks: false,
            }),
            seed: 1,
        };
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let fleet = picket_fleet::Fleet::start(&[options], &clock).await;
        let fleet = fleet.expect("a free address");
        let home = tempfile::tempdir().map_err(PeerError::io("create a folder"))?;
        std::fs::write(home.path().join("ca.pem"), fleet.authority()).map_err(PeerError::io("write a CA"))?;
        Ok(Self { fleet, ipmi, home })
    }

    /// Where its Redfish answers.
    pub fn redfish(&self) -> SocketAddr {
        self.fleet.bmc("r1n01").and_then(|bmc| bmc.redfish_address()).expect("it speaks Redfish")
    }
}
