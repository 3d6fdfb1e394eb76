//! What is measured: the driver alone, with orders that are made before the clock starts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use picket_core::order::OffOrder;
use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, PowerDriver};
use picket_driver_ipmi::{IpmiDriver, IpmiKind};
use picket_engine::clock::SystemClock;
use picket_tests::peers::{ADMIN, PASSWORD};
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use crate::Wrong;

/// Longer than any round may take.
const LIFE: Duration = Duration::from_secs(20);

/// Makes drivers as the daemon does, from settings with a password in a file.
#[derive(Debug)]
pub struct Maker {
    context: Context,
    password: NamedTempFile,
    life: Duration,
}

impl Maker {
    /// One for all.
    pub fn new() -> Result<Self, Wrong> {
        Self::with_life(LIFE)
    }

    /// The same, for calls that take so long at most.
    pub fn with_life(life: Duration) -> Result<Self, Wrong> {
        let password = NamedTempFile::new()?;
        std::fs::write(password.path(), PASSWORD)?;
        // The kernel's randomness is part of what a session costs.
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("this kernel has random bytes");
        Ok(Self {
            context: Context { clock: Arc::new(SystemClock), random: Arc::new(random) },
            password,
            life,
        })
    }

    /// The clocks and the randomness.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A driver that has sent nothing yet. Suite 3: ipmi_sim knows no better, and the peers use it too.
    pub fn driver(&self, bmc: SocketAddr, privilege: &str) -> Result<Arc<IpmiDriver>, Wrong> {
        let settings = json!({
            "host": bmc.ip().to_string(), "port": bmc.port(), "username": ADMIN,
            "password_file": self.password.path(), "cipher_suites": [3], "privilege": privilege,
        });
        let settings: Map<String, Value> = settings.as_object().cloned().unwrap_or_default();
        match IpmiKind.device(&settings, &self.context) {
            Ok(driver) => Ok(Arc::new(driver)),
            Err(faults) => Err(format!("the bench's own settings are wrong: {faults:?}").into()),
        }
    }

    /// A driver with its order.
    pub async fn subject(&self, bmc: SocketAddr) -> Result<Subject, Wrong> {
        self.subject_with(bmc, "operator").await
    }

    /// The same at this privilege.
    pub async fn subject_with(&self, bmc: SocketAddr, privilege: &str) -> Result<Subject, Wrong> {
        let ipmi = self.driver(bmc, privilege)?;
        Ok(Subject { ipmi: Some(ipmi.clone()), ..self.subject_of(ipmi).await? })
    }

    /// Any other driver with its order.
    pub async fn subject_of(&self, driver: Arc<dyn PowerDriver>) -> Result<Subject, Wrong> {
        let orders = Orders::new(driver.traits(), self.context.clock.clone()).await?;
        let order = orders.off().await?;
        Ok(Subject { driver, ipmi: None, orders, order, context: self.context.clone(), life: self.life })
    }
}

/// One driver that may switch its BMC's host off.
#[derive(Debug)]
pub struct Subject {
    /// The driver.
    pub driver: Arc<dyn PowerDriver>,
    /// The same, where it is one for IPMI.
    ipmi: Option<Arc<IpmiDriver>>,
    /// More orders.
    pub orders: Orders,
    order: OffOrder,
    context: Context,
    life: Duration,
}

impl Subject {
    /// A call that may do everything.
    pub fn call(&self) -> Call {
        Call::control(Instant::now() + self.life, self.context.clock.clone(), self.orders.permit())
    }

    /// Off, and one reading after it that says so.
    pub async fn confirmed_off(&self) -> Result<(), Wrong> {
        let call = self.call();
        self.driver.power_off(&self.order, &call).await?;
        match self.driver.read_power(&call).await?.power {
            Power::Off => Ok(()),
            other => Err(format!("off was taken, and then read {other:?}").into()),
        }
    }

    /// A reading, which opens a session where none is.
    pub async fn look(&self) -> Result<Power, Wrong> {
        Ok(self.driver.read_power(&self.call()).await?.power)
    }

    /// A reading that says on.
    pub async fn seen_on(&self) -> Result<(), Wrong> {
        match self.look().await? {
            Power::On => Ok(()),
            other => Err(format!("it is on, and was read {other:?}").into()),
        }
    }

    /// Ends the session.
    pub async fn close(&self) -> Result<(), Wrong> {
        Ok(self.driver.quiesce(&self.call()).await?)
    }

    /// Datagrams of the driver so far, both ways.
    pub fn packets(&self) -> u64 {
        let packets = self.ipmi.as_ref().map(|ipmi| ipmi.packets()).unwrap_or_default();
        packets.sent + packets.received
    }
}
