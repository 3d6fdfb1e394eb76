//! The driver before as much of Compute Engine as it asks for.

mod absences;
mod anew;
mod batching;
mod commands;
mod compute;
mod instance_identity;
mod logging_in;
mod orders;
mod secrets;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use picket_cloud::fakes::SetClock;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, DriverKind, PowerDriver};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use self::compute::{Compute, PROJECT, ZONE};
use crate::kind::GcpKind;

/// Nobody's: it signs in these tests alone.
const KEY: &str = include_str!("key.pem");

/// Compute Engine, devices of it, and what they need.
struct Scene {
    compute: Compute,
    kind: GcpKind,
    context: Context,
    clock: Arc<SetClock>,
    home: TempDir,
}

fn id(number: usize) -> String {
    format!("{}", 1_000_000_000_000_000_000 + number)
}

impl Scene {
    async fn new(machines: usize) -> Self {
        let compute = Compute::start((0..machines).map(id)).await;
        let clock = Arc::new(SetClock::at(2_000_000_000));
        let context = Context { clock: clock.clone(), random: Arc::new(|_: &mut [u8]| {}) };
        let scene = Self {
            compute,
            kind: GcpKind::default(),
            context,
            clock,
            home: tempfile::tempdir().expect("a directory"),
        };
        let tokens = format!("{}/token", scene.compute.endpoint);
        let key = json!({
            "type": "service_account", "client_email": "picket@p-1", "private_key": KEY, "private_key_id": "k1", "token_uri": tokens,
        });
        scene.write("key.json", &key.to_string());
        scene
    }

    /// A file that nobody else may read.
    fn write(&self, name: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.home.path().join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("ours");
        path.display().to_string()
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

    /// Of another process.
    fn elsewhere(&self, number: usize) -> Arc<dyn PowerDriver> {
        self.driver_of(&GcpKind::default(), number, json!({}))
    }

    fn driver_with(&self, number: usize, more: Value) -> Arc<dyn PowerDriver> {
        self.driver_of(&self.kind, number, more)
    }

    fn driver_of(&self, kind: &GcpKind, number: usize, more: Value) -> Arc<dyn PowerDriver> {
        let key = self.home.path().join("key.json").display().to_string();
        let mut table = json!({
            "instance": format!("gce://{PROJECT}/{ZONE}/vm-{}", id(number)), "id": id(number), "endpoint": self.compute.endpoint,
            "credentials_file": key, "metadata": self.compute.endpoint,
        });
        let table = table.as_object_mut().expect("a table");
        table.extend(more.as_object().expect("a table").clone());
        table.retain(|_, value| !value.is_null());
        kind.make(table, &self.context).expect("right")
    }

    async fn orders(&self, driver: &Arc<dyn PowerDriver>) -> Orders {
        Orders::new(driver.traits(), self.clock.clone()).await.expect("orders")
    }

    fn call(&self, orders: &Orders) -> Call {
        self.call_of(orders, Duration::from_secs(15))
    }

    fn call_of(&self, orders: &Orders, life: Duration) -> Call {
        Call::control(Instant::now() + life, self.clock.clone(), orders.permit())
    }

    /// Time goes by, here and there.
    fn ahead(&self, seconds: u64) {
        self.clock.ahead(seconds);
        self.compute.with(|world| world.now += i64::try_from(seconds).expect("not so long"));
    }
}
