//! What the rows share: a clock, the drivers' settings, and the accounts of simulated BMCs.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::{Context, DriverKind, PowerDriver};
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::SimClock;
use picket_fleet::{Account, Bmc, BmcOptions, Fleet, RedfishPlace, Role};
use picket_tests::peers::{ADMIN, PASSWORD, fresh_address};
use serde_json::{Map, Value};
use tempfile::{NamedTempFile, TempDir};

/// A password that nobody has.
pub const WRONG: &str = "wrong-hunter2";

/// The clocks of this process; moments of it that were noted elsewhere are its moments too.
#[derive(Debug)]
pub struct Ticking(Instant);

impl Ticking {
    /// From now on.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }

    /// That moment.
    pub fn of(&self, moment: Instant) -> BootTime {
        BootTime::from_boot(moment.saturating_duration_since(self.0))
    }
}

impl Clock for Ticking {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(self.0.elapsed())
    }

    fn wall(&self) -> WallTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or_default())
    }
}

/// A driver of that kind by these settings.
pub fn driver(kind: &dyn DriverKind, settings: &Value, clock: &Arc<Ticking>) -> Arc<dyn PowerDriver> {
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
    let context = Context { clock: clock.clone(), random: Arc::new(random) };
    let table: &Map<String, Value> = settings.as_object().expect("a table");
    kind.make(table, &context).unwrap_or_else(|faults| panic!("the settings are right: {faults:?}"))
}

/// A file with a secret, which nobody else may read as tempfile makes it.
pub fn secret(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

/// Files with the right password and with one that nobody has.
pub struct Passwords {
    right: NamedTempFile,
    wrong: NamedTempFile,
}

impl Passwords {
    pub fn new() -> Self {
        Self { right: secret(PASSWORD), wrong: secret(WRONG) }
    }

    pub fn path(&self, right: bool) -> String {
        let file = if right { &self.right } else { &self.wrong };
        file.path().display().to_string()
    }
}

/// One simulated BMC of picket-fleet, which other people's clients take for one (`tests/tests/devices/fleet`).
pub struct Simulated {
    fleet: Fleet,
    directory: TempDir,
    pub bmc: Arc<Bmc>,
    /// The world's device that is spoken to.
    pub device: &'static str,
    /// It says that it is another machine.
    pub is_another: Mutex<bool>,
}

/// After how long it ends an idle session, over either protocol.
pub const IDLE: Duration = Duration::from_secs(60);

impl Simulated {
    /// Over IPMI with these suites, and over Redfish, where a reset may be a task.
    pub async fn start(device: &'static str, suites: &[Suite], tasks: bool) -> Self {
        let address = fresh_address();
        let account =
            Account { name: ADMIN.to_owned(), password: PASSWORD.to_owned(), role: Role::Administrator };
        let options = BmcOptions {
            name: "n1".to_owned(),
            ipmi: address,
            accounts: Arc::new([account]),
            suites: suites.to_vec(),
            sessions: 16,
            idle: IDLE,
            redfish: Some(RedfishPlace { address, sessions: 16, idle: IDLE, tasks }),
            seed: 1,
        };
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let fleet = Fleet::start(&[options], &clock).await.expect("a free address");
        let bmc = fleet.bmc("n1").expect("it was asked for").clone();
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.pem"), fleet.authority()).expect("it can be written");
        Self { fleet, directory, bmc, device, is_another: Mutex::new(false) }
    }

    /// The authority behind its certificate.
    pub fn ca_file(&self) -> String {
        assert!(!self.fleet.authority().is_empty());
        self.directory.path().join("ca.pem").display().to_string()
    }
}
