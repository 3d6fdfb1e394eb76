//! The driver before as much of EC2 as it asks for.

mod batching;
mod commands;
mod ec2;
mod endpoints;
mod holding;
mod policies;
mod programs;
mod secrets;
mod spot;
mod volumes;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use picket_cloud::fakes::SetClock;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, DriverKind, PowerDriver};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use self::ec2::Ec2;
use crate::kind::AwsKind;

/// EC2, devices of it, and what they need.
struct Scene {
    ec2: Ec2,
    kind: AwsKind,
    context: Context,
    clock: Arc<SetClock>,
    home: TempDir,
}

fn id(number: usize) -> String {
    format!("i-{number:017x}")
}

impl Scene {
    async fn new(machines: usize) -> Self {
        let ec2 = Ec2::start((0..machines).map(id)).await;
        // It is not EC2's.
        let clock = Arc::new(SetClock::at(2_000_001_000));
        let context = Context { clock: clock.clone(), random: Arc::new(|_: &mut [u8]| {}) };
        let home = tempfile::tempdir().expect("a directory");
        std::fs::write(home.path().join("config"), "[default]\nregion = eu-central-1\n").expect("written");
        let keys = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\naws_session_token = hunter3\n";
        let credentials = home.path().join("credentials");
        std::fs::write(&credentials, keys).expect("written");
        std::fs::set_permissions(&credentials, PermissionsExt::from_mode(0o600)).expect("it is ours");
        Self { ec2, kind: AwsKind::default(), context, clock, home }
    }

    /// With one machine, its driver and orders for that.
    async fn of_one() -> (Self, Arc<dyn PowerDriver>, Orders) {
        let scene = Self::new(1).await;
        let driver = scene.driver(0);
        let orders = scene.orders(&driver).await;
        (scene, driver, orders)
    }

    fn driver(&self, number: usize) -> Arc<dyn PowerDriver> {
        self.driver_with(number, json!({}))
    }

    fn driver_with(&self, number: usize, more: Value) -> Arc<dyn PowerDriver> {
        let file = |name: &str| self.home.path().join(name).display().to_string();
        let mut table = json!({
            "instance": id(number), "endpoint": self.ec2.endpoint, "profile": "default",
            "config_file": file("config"), "credentials_file": file("credentials"),
        });
        let table = table.as_object_mut().expect("a table");
        table.extend(more.as_object().expect("a table").clone());
        self.kind.make(table, &self.context).expect("right")
    }

    async fn orders(&self, driver: &Arc<dyn PowerDriver>) -> Orders {
        Orders::new(driver.traits(), self.clock.clone()).await.expect("orders")
    }

    fn call(&self, orders: &Orders) -> Call {
        self.call_of(orders, Duration::from_secs(60))
    }

    fn call_of(&self, orders: &Orders, life: Duration) -> Call {
        Call::control(Instant::now() + life, self.clock.clone(), orders.permit())
    }

    fn ahead(&self, seconds: u64) {
        self.clock.ahead(seconds);
    }

    fn far_time(&self) -> SystemTime {
        self.ec2.with(|world| world.now)
    }
}
