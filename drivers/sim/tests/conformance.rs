//! The simulated devices conform: host devices and outlets, with and without sessions.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble, run};
use picket_driver_sim::{Act, Fault, SharedWorld, SimClock, SimDriver, SimOptions, Verb, World};

struct Simulated {
    world: SharedWorld,
    clock: Arc<SimClock>,
    device: &'static str,
    names_sessions: bool,
}

impl Simulated {
    fn new(device: &'static str, build: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(3);
        world.add_machine("n1").add_host("n1", "bmc").add_supply("n1", "outlet");
        world.set_hold_up("n1", Duration::ZERO);
        build(&mut world);
        Self { world: world.shared(), clock: Arc::new(SimClock::new()), device, names_sessions: false }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("whole")
    }
}

#[async_trait]
impl Subject for Simulated {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let options = SimOptions { names_sessions: self.names_sessions, ..SimOptions::default() };
        Arc::new(SimDriver::new(&self.world, self.device, &options))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.world().truth("n1", self.clock.boot())
    }

    async fn set_power(&self, on: bool) {
        let verb = if on { Verb::On } else { Verb::Off };
        let act = match self.device {
            "outlet" => Act::ForeignOutlet { outlet: "outlet".to_owned(), verb },
            _ => Act::Foreign { machine: "n1".to_owned(), verb },
        };
        self.world().happen(self.clock.boot(), act);
    }

    async fn commands(&self) -> Option<u64> {
        let received = self.world().received(self.device, self.clock.boot());
        Some(received.offs + received.ons + received.holds)
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let fault = match trouble {
            Trouble::Silence => Fault::Silent,
            Trouble::WrongCredentials => Fault::WrongPassword,
            Trouble::Nonsense => Fault::SaysNothing,
            Trouble::SlowFall(time) => Fault::OffTakes { least: time, most: time },
            Trouble::AlreadyIsError => Fault::AlreadyIsError,
            Trouble::Doubled => Fault::Doubled,
            Trouble::Restart => {
                let restart = Act::RestartBmc {
                    device: self.device.to_owned(),
                    down: Duration::ZERO,
                    estranged: false,
                };
                self.world().happen(self.clock.boot(), restart);
                return true;
            }
        };
        self.world().fault(self.device, fault);
        true
    }

    async fn mend(&self) {
        self.world().mend(self.device);
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

async fn conforms(subject: Simulated, left_out: &[&str]) {
    let report = run(&subject).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.left_out, left_out, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_device_conforms() {
    conforms(Simulated::new("bmc", |_| {}), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_device_whose_sessions_have_names_conforms() {
    // A successor needs a session of its own, and some checks leave theirs open.
    let subject = Simulated::new("bmc", |world| {
        world.set_sessions("bmc", 16, Duration::from_secs(60));
    });
    conforms(Simulated { names_sessions: true, ..subject }, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_outlet_conforms() {
    conforms(Simulated::new("outlet", |_| {}), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_device_without_sessions_conforms() {
    let subject = Simulated::new("bmc", |world| {
        world.set_sessionless("bmc");
    });
    let left_out =
        ["a restart begins an epoch after loss", "after a restart no off is sent before a reading"];
    conforms(subject, &left_out).await;
}
