//! One driver with its orders, and short ways to call it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use picket_core::power::Reading;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::conformance::orders::Orders;
use picket_driver::{Accepted, Call, Context, DriverError, Effect, ErrorKind, PowerDriver};
use picket_driver_ipmi::{IpmiDriver, IpmiKind};
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use crate::bmc::{PASSWORD, USER};

/// The machine's clocks.
#[derive(Debug)]
pub struct RealClock(std::time::Instant);

impl RealClock {
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(Self(std::time::Instant::now()))
    }
}

impl Clock for RealClock {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(self.0.elapsed())
    }

    fn wall(&self) -> WallTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        WallTime::from_millis(since.as_millis() as u64)
    }
}

pub fn context(clock: &Arc<dyn Clock>) -> Context {
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
    Context { clock: clock.clone(), random: Arc::new(random) }
}

/// A file that holds a password.
pub fn password(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

/// Settings for a BMC at `address`; `more` goes over them.
pub fn settings(address: SocketAddr, password: &NamedTempFile, more: Value) -> Map<String, Value> {
    let settings = json!({
        "host": address.ip().to_string(), "port": address.port(), "username": USER,
        "password_file": password.path(), "cipher_suites": [3],
    });
    let (Value::Object(mut settings), Value::Object(more)) = (settings, more) else {
        panic!("settings are a table");
    };
    settings.extend(more);
    settings
}

/// How long a call lasts that is answered: a busy machine is slow, and no BMC is taken for silent by that. It is less than the idle limit of a minute.
pub const LONG: Duration = Duration::from_secs(45);
/// How long one lasts as it is shipped, which may be waited for in vain.
pub const CALL: Duration = Duration::from_secs(5);

/// A driver under test.
pub struct Bench {
    pub driver: IpmiDriver,
    pub clock: Arc<dyn Clock>,
    pub orders: Orders,
    pub life: Duration,
}

impl Bench {
    pub async fn new(address: SocketAddr, more: Value) -> Self {
        let clock = RealClock::shared();
        let password = password(PASSWORD);
        let table = settings(address, &password, more);
        let driver = IpmiKind.device(&table, &context(&clock)).expect("the settings are right");
        let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
        Self { driver, clock, orders, life: LONG }
    }

    pub fn call(&self) -> Call {
        Call::control(Instant::now() + self.life, self.clock.clone(), self.orders.permit())
    }

    pub async fn read(&self) -> Result<Reading, DriverError> {
        self.driver.read_power(&self.call()).await
    }

    /// A reading in a call that may be too short for a busy machine: then another one is asked for.
    pub async fn answer(&self) -> Reading {
        let mut tries = 20;
        loop {
            match self.read().await {
                Err(error) if error.kind == ErrorKind::TimedOut && tries > 0 => tries -= 1,
                read => return read.expect("an answer"),
            }
        }
    }

    /// With what a call fails whose copies were all answered in time. What a busy machine answers too late may have been done, for all that is known, or
    /// says nothing of what it fails with.
    pub async fn fails_in_time<T: std::fmt::Debug>(
        &self,
        call: impl AsyncFn(&Self) -> Result<T, DriverError>,
    ) -> DriverError {
        let mut tries = 20;
        loop {
            let error = call(self).await.expect_err("it fails");
            tries -= 1;
            let is_answered = error.effect != Effect::Unknown && error.kind != ErrorKind::TimedOut;
            if is_answered || tries == 0 {
                return error;
            }
        }
    }

    pub async fn off(&self) -> Result<Accepted, DriverError> {
        let order = self.orders.off().await.expect("an order");
        self.driver.power_off(&order, &self.call()).await
    }

    pub async fn on(&self) -> Result<Accepted, DriverError> {
        let order = self.orders.on().await.expect("an order");
        self.driver.power_on(order, &self.call()).await
    }
}
