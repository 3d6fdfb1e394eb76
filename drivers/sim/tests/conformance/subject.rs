//! A simulated device, as the suite wants it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_sim::{Act, Fault, SharedWorld, SimClock, SimDriver, SimOptions, Verb, World};

/// After how long the devices end an idle session.
const IDLE: Duration = Duration::from_secs(60);

pub struct Simulated {
    world: SharedWorld,
    clock: Arc<SimClock>,
    device: &'static str,
    has_sessions: bool,
    names_sessions: bool,
    told: Mutex<Told>,
}

/// What is told of the troubles that hold.
#[derive(Default)]
struct Told {
    lost_at: Option<BootTime>,
    another: Option<Identity>,
}

impl Simulated {
    pub fn new(device: &'static str, build: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(3);
        world.add_machine("n1").add_host("n1", "bmc").add_supply("n1", "outlet");
        world.set_hold_up("n1", Duration::ZERO).set_sessions(device, 4, IDLE);
        build(&mut world);
        let (clock, told) = (Arc::new(SimClock::new()), Mutex::default());
        Self { world: world.shared(), clock, device, has_sessions: true, names_sessions: false, told }
    }

    /// One without sessions: every packet stands alone.
    pub fn sessionless(device: &'static str) -> Self {
        let subject = Self::new(device, |world| {
            world.set_sessionless(device);
        });
        Self { has_sessions: false, ..subject }
    }

    /// One whose sessions others can end by their names.
    pub fn named(device: &'static str) -> Self {
        // A successor needs a session of its own, and some checks leave theirs open.
        let subject = Self::new(device, |world| {
            world.set_sessions(device, 16, IDLE);
        });
        Self { names_sessions: true, ..subject }
    }

    /// The driver, as it is and not as the trait has it.
    pub fn sim(&self) -> SimDriver {
        let options = SimOptions { names_sessions: self.names_sessions, ..SimOptions::default() };
        SimDriver::new(&self.world, self.device, &options)
    }

    fn is_outlet(&self) -> bool {
        self.device == "outlet"
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("whole")
    }
}

#[async_trait]
impl Subject for Simulated {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        Arc::new(self.sim())
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
            Trouble::Nonsense | Trouble::Transition => Fault::SaysNothing,
            // Its answers leave nothing out, and there is always a machine behind it.
            Trouble::Missing | Trouble::Gone => return false,
            Trouble::AnswersLost => Fault::AnswerLost { times: u32::MAX },
            Trouble::FirstCopyLost => {
                // It arrives half a millisecond after it was sent.
                self.told().lost_at = Some(self.clock.boot() + Duration::from_millis(1));
                Fault::RequestLost { times: 1 }
            }
            // Nothing ends a late copy where there are no sessions.
            Trouble::LateCopies(_) if !self.has_sessions => return false,
            Trouble::LateCopies(after) => Fault::Twice { verb: Verb::Off, after, times: u32::MAX },
            Trouble::Refuses => Fault::OffRefused,
            // An outlet does not know what hangs on it.
            Trouble::OtherMachine if self.is_outlet() => return false,
            Trouble::OtherMachine => {
                let another = Identity { uuid: Some("0f".repeat(16)), serial: Some("another".to_owned()) };
                self.told().another = Some(another.clone());
                Fault::SaysIdentity(another)
            }
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
        *self.told() = Told::default();
    }

    async fn sessions(&self) -> Option<u64> {
        let open = self.world().sessions(self.device, self.clock.boot()) as u64;
        self.has_sessions.then_some(open)
    }

    fn idle_limit(&self) -> Option<Duration> {
        self.has_sessions.then_some(IDLE)
    }

    async fn hold_state(&self) -> Option<String> {
        let held = self.world().hold("n1");
        (!self.is_outlet()).then(|| format!("{:?}, button locked: {}", held.restore, held.button_locked))
    }

    async fn identity(&self) -> Option<Identity> {
        let own = || match self.is_outlet() {
            true => Identity::default(),
            false => self.world().identity("n1").clone(),
        };
        Some(self.told().another.clone().unwrap_or_else(own))
    }

    async fn lost_at(&self) -> Option<BootTime> {
        self.told().lost_at
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}
