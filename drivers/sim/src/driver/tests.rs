//! The driver on the world, with paused time.

mod calls;
mod late;
mod sessions;

use std::sync::Arc;

use picket_core::election::{Election, ElectionError, Leadership, Lease, Won, lead};
use picket_core::ids::{Incarnation, Term};
use picket_core::time::{BootTime, Clock};

use super::*;
use crate::{Act, Fault, SimClock, World};

const DEV: &str = "n1-bmc";

#[derive(Debug)]
struct Alone(Arc<Lease>);

#[async_trait]
impl Election for Alone {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        let incarnation = Incarnation::mint(Default::default(), [0; 10]);
        Ok(Won { term: Term(1), incarnation, lease: self.0.clone() })
    }
    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

/// A world with one machine and one BMC, its driver, a clock and a permit.
struct Bench {
    world: SharedWorld,
    driver: SimDriver,
    clock: Arc<dyn Clock>,
    permit: Arc<Leadership>,
}

impl Bench {
    async fn new() -> Self {
        Self::of(|_| {}).await
    }

    async fn of(prepare: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(1);
        world.add_machine("n1").add_host("n1", DEV);
        prepare(&mut world);
        let world = world.shared();
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let permit =
            lead(&Alone(Lease::endless()), clock.clone(), Duration::from_secs(1)).await.expect("leads");
        let driver = SimDriver::new(&world, DEV, &SimOptions::default());
        Self { world, driver, clock, permit }
    }

    fn call(&self) -> Call {
        Call::control(Instant::now() + Duration::from_secs(5), self.clock.clone(), self.permit.clone())
    }

    async fn read(&self) -> Result<Reading, DriverError> {
        self.driver.read_power(&self.call()).await
    }

    async fn off(&self) -> Result<Accepted, DriverError> {
        self.driver.command(None, &self.call(), Verb::Off).await
    }

    async fn on(&self) -> Result<Accepted, DriverError> {
        self.driver.command(None, &self.call(), Verb::On).await
    }

    fn world(&self) -> parking_lot::MutexGuard<'_, World> {
        self.world.lock()
    }

    fn fault(&self, fault: Fault) {
        self.world().fault(DEV, fault);
    }

    fn mend(&self) {
        self.world().mend(DEV);
    }

    fn now(&self) -> BootTime {
        self.clock.boot()
    }
}
