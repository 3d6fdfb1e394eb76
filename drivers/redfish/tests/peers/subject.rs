//! A driver before a service, and short ways to call it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use picket_core::power::{Power, Reading};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::conformance::orders::Orders;
use picket_driver::{Accepted, Call, DriverError, ErrorKind, PowerDriver};
use picket_driver_redfish::{RedfishDriver, RedfishKind};
use serde_json::Value;

use crate::fake::Fake;

/// The clocks of this process.
#[derive(Debug)]
pub struct RealClock(Instant);

impl RealClock {
    /// From now on.
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for RealClock {
    fn boot(&self) -> BootTime {
        BootTime::default() + self.0.elapsed()
    }

    fn wall(&self) -> WallTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Nothing that is answered needs a call of more than so long.
pub const LONGEST: Duration = Duration::from_secs(60);

/// A driver with its orders.
pub struct Hand {
    pub driver: RedfishDriver,
    pub orders: Orders,
    pub clock: Arc<dyn Clock>,
}

impl Hand {
    /// Before a fake, with further settings.
    pub async fn of(fake: &Fake, more: Value) -> Self {
        Self::with(RedfishKind::default().device(&fake.settings(more)).expect("right settings")).await
    }

    /// Of a driver.
    pub async fn with(driver: RedfishDriver) -> Self {
        let clock = RealClock::shared();
        let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
        Self { driver, orders, clock }
    }

    /// A call of so long.
    pub fn call_of(&self, life: Duration) -> Call {
        Call::control(tokio::time::Instant::now() + life, self.clock.clone(), self.orders.permit())
    }

    /// A call.
    pub fn call(&self) -> Call {
        // No bound of an idle machine: what is slow here is the machine.
        self.call_of(Duration::from_secs(30))
    }

    /// With what a call of so long fails whose last answer came in time. A busy machine may hear it after the call's end, which shows nothing: then a
    /// longer one is made.
    pub async fn fails<T: std::fmt::Debug>(
        &self,
        mut life: Duration,
        ask: impl AsyncFn(&Call) -> Result<T, DriverError>,
    ) -> DriverError {
        loop {
            let error = ask(&self.call_of(life)).await.expect_err("it fails");
            if error.kind != ErrorKind::TimedOut || life > LONGEST {
                return error;
            }
            life *= 2;
        }
    }

    pub async fn read(&self) -> Result<Reading, DriverError> {
        self.driver.read_power(&self.call()).await
    }

    pub async fn power(&self) -> Power {
        self.read().await.unwrap_or_else(|error| panic!("no reading: {error}")).power
    }

    pub async fn off(&self) -> Result<Accepted, DriverError> {
        let order = self.orders.off().await.expect("an order");
        self.driver.power_off(&order, &self.call()).await
    }

    pub async fn on(&self) -> Result<Accepted, DriverError> {
        let order = self.orders.on_in(self.driver.session()).await.expect("an order");
        self.driver.power_on(order, &self.call()).await
    }

    pub async fn quiesce(&self) -> Result<(), DriverError> {
        self.driver.quiesce(&self.call()).await
    }
}
