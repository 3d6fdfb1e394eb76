//! One board of a fleet, and a driver before it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use picket_core::time::Clock;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, DriverKind, PowerDriver};
use picket_driver_ipmi::IpmiKind;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_redfish::RedfishKind;
use picket_driver_sim::{Fault, SimClock};
use picket_fleet::{Account, Bmc, BmcOptions, Fleet, RedfishPlace, Role, StartError};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::table::{Believes, Row, Since};

const USER: &str = "admin";
const PASSWORD: &str = "secret12";
/// The machine, and the world's device of its IPMI.
pub const MACHINE: &str = "n1";

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Redfish,
    Ipmi,
}

impl Over {
    /// The world's device that is spoken to.
    pub fn device(self) -> &'static str {
        match self {
            Self::Redfish => "n1-redfish",
            Self::Ipmi => MACHINE,
        }
    }
}

/// A board.
pub struct Board {
    fleet: Fleet,
    pub bmc: Arc<Bmc>,
    pub clock: Arc<dyn Clock>,
    directory: TempDir,
}

impl Board {
    /// One at an address that nobody else has.
    pub async fn start() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let account =
            Account { name: USER.to_owned(), password: PASSWORD.to_owned(), role: Role::Administrator };
        let fleet = loop {
            let random = RandomState::new().build_hasher().finish().to_le_bytes();
            // Above those of the end-to-end tests, and not .0 or .255.
            let host = Ipv4Addr::new(127, 200 + random[0] % 50, random[1], 1 + random[2] % 250);
            let options = BmcOptions {
                name: MACHINE.to_owned(),
                ipmi: SocketAddr::from((host, 10_623)),
                accounts: Arc::new([account.clone()]),
                suites: vec![Suite::Sha256],
                sessions: 16,
                idle: Duration::from_secs(60),
                redfish: Some(RedfishPlace {
                    address: SocketAddr::from((host, 10_443)),
                    sessions: 16,
                    idle: Duration::from_secs(300),
                    tasks: false,
                }),
                seed: 1,
            };
            match Fleet::start(&[options], &clock).await {
                Ok(fleet) => break fleet,
                Err(StartError::Listen { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        };
        let bmc = fleet.bmc(MACHINE).expect("it was asked for").clone();
        let directory = tempfile::tempdir().expect("a directory");
        let password = directory.path().join("password");
        std::fs::write(&password, PASSWORD).expect("written");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&password, private).expect("ours");
        Self { fleet, bmc, clock, directory }
    }

    /// A driver before it, with further settings.
    pub fn driver(&self, over: Over, believes: Believes, more: &Value) -> Arc<dyn PowerDriver> {
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
        let context = Context { clock: self.clock.clone(), random: Arc::new(random) };
        let password = self.directory.path().join("password");
        let address = match over {
            Over::Redfish => self.bmc.redfish_address().expect("it speaks Redfish"),
            Over::Ipmi => self.bmc.address(),
        };
        let mut settings = json!({
            "host": address.ip().to_string(), "port": address.port(), "username": USER, "password_file": password,
        });
        match over {
            Over::Redfish => {
                settings["last_reset_time"] = json!(true);
                self.believe(believes, &mut settings);
            }
            Over::Ipmi => settings["privilege"] = json!("administrator"),
        }
        let mut table: Map<String, Value> = settings.as_object().expect("a table").clone();
        table.extend(more.as_object().expect("a table").clone());
        let made = match over {
            Over::Redfish => RedfishKind::default().make(&table, &context),
            Over::Ipmi => IpmiKind.make(&table, &context),
        };
        made.unwrap_or_else(|faults| panic!("the settings are right: {faults:?}"))
    }

    fn believe(&self, believes: Believes, settings: &mut Value) {
        let own = || self.bmc.certificate().expect("it shows one");
        let ca_file = self.directory.path().join("ca.pem");
        let mut write = |pem: &str| {
            std::fs::write(&ca_file, pem).expect("written");
            settings["ca_file"] = json!(ca_file);
        };
        match believes {
            Believes::Authority => write(self.fleet.authority()),
            Believes::Itself => write(&pem(&own())),
            Believes::Digest => {
                let digest: String = Sha256::digest(own()).iter().map(|byte| format!("{byte:02x}")).collect();
                settings["certificate_sha256"] = json!(digest);
            }
        }
    }
}

/// As `openssl x509` writes it (RFC 7468).
fn pem(der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in der.chunks(48) {
        for three in line.chunks(3) {
            let at = |index| u32::from(three.get(index).copied().unwrap_or_default());
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for place in 0..4 {
                let letter = ALPHABET[(bits >> (18 - 6 * place) & 0x3F) as usize];
                text.push(if place > three.len() { '=' } else { letter.into() });
            }
        }
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}

/// A driver before a board, and its orders.
pub struct Scene {
    pub board: Board,
    pub over: Over,
    pub fault: Fault,
    pub driver: Arc<dyn PowerDriver>,
    pub orders: Orders,
}

impl Scene {
    /// Before a board that has that fault, if the row says so already now.
    pub async fn start(over: Over, fault: Fault, row: &Row) -> Self {
        let board = Board::start().await;
        if row.since == Since::Start {
            board.bmc.fault(fault.clone());
        }
        let driver = board.driver(over, row.believes, &row.more);
        let orders = Orders::new(driver.traits(), board.clock.clone()).await.expect("orders");
        Self { board, over, fault, driver, orders }
    }

    pub fn call(&self, life: Duration) -> Call {
        Call::control(Instant::now() + life, self.board.clock.clone(), self.orders.permit())
    }
}
